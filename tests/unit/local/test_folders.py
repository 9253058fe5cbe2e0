from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from flyte_binary.domain.errors import Unavailable
from flyte_binary.domain.ids import ActionId, AttemptId
from flyte_binary.executor.backend import AttemptPhase
from flyte_binary.executor.local.folders import Folders
from flyte_binary.executor.local.observed import state_from

ID = ActionId("p", "development", "r1", "a0").attempt(1)


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path)


@pytest.mark.parametrize(
    "attempt",
    [ID, ActionId("p", "d", "..", "a/b").attempt(12), ActionId(".", "мир", "%2E", "a b\n").attempt(3)],
)
def test_every_attempt_has_a_folder_of_its_own_below_the_root(
    folders: Folders, tmp_path: Path, attempt: AttemptId
) -> None:
    name = folders.name(attempt)

    assert folders.attempt(name) == attempt
    assert len(folders.path(attempt).resolve().relative_to(tmp_path.resolve()).parts) == 5


@pytest.mark.parametrize("name", ["", "a", "a/b/c/d/x", "a/b/c/d/1/work", "/etc/passwd"])
def test_what_is_no_name_of_ours_is_nobody(folders: Folders, name: str) -> None:
    assert folders.attempt(name) is None


def test_a_claim_is_had_once(folders: Folders) -> None:
    lock = folders.claim(ID, "n1")
    assert lock is not None
    assert folders.claim(ID, "n1") is None
    with pytest.raises(Unavailable, match="earlier launch"):
        folders.claim(ID, "n2")
    os.close(lock)


def test_a_claim_that_led_to_nothing_may_be_had_again(folders: Folders) -> None:
    """The server was killed between the claim and the process."""
    lock = folders.claim(ID, "n1")
    assert lock is not None
    (folders.path(ID) / "work").mkdir()
    os.close(lock)
    assert phase(folders) is AttemptPhase.ABSENT

    again = folders.claim(ID, "n1")
    assert again is not None
    assert not (folders.path(ID) / "work").exists()
    os.close(again)


def test_a_launch_that_began_is_not_had_again_although_it_was_lost(folders: Folders) -> None:
    lock = folders.claim(ID, "n1")
    assert lock is not None
    note(folders, "started.json", {"pid": 2**22 + 1, "birth": "x", "at": 5.0})
    assert phase(folders) is AttemptPhase.RUNNING
    os.close(lock)

    assert folders.claim(ID, "n1") is None
    state = state_from(folders.look(ID), "n1")
    assert state.phase is AttemptPhase.ABSENT
    assert state.started_at is not None and state.reason
    other = folders.claim(ID, "n2")
    assert other is not None
    os.close(other)


def test_a_file_cut_by_a_power_failure_counts_as_not_there(folders: Folders) -> None:
    lock = folders.claim(ID, "n1")
    assert lock is not None
    os.close(lock)
    (folders.path(ID) / "exit.json").write_bytes(b'{"exit_code": ')
    assert phase(folders) is AttemptPhase.ABSENT
    (folders.path(ID) / "attempt.json").write_bytes(b"")
    assert folders.look(ID) is None


def test_the_lock_lives_in_the_descriptor_that_was_handed_on(folders: Folders) -> None:
    lock = folders.claim(ID, "n1")
    assert lock is not None
    handed_on = os.dup(lock)
    os.close(lock)
    assert phase(folders) is AttemptPhase.STARTING
    os.close(handed_on)
    assert phase(folders) is AttemptPhase.ABSENT


def test_a_server_killed_while_it_removed_an_attempt_leaves_no_empty_folders_after_the_next_start(
    folders: Folders, tmp_path: Path
) -> None:
    neighbour = ActionId("p", "development", "r1", "a1").attempt(1)
    for attempt in (ID, neighbour, ActionId("p", "development", "r2", "a0").attempt(1)):
        folders.path(attempt).mkdir(parents=True)
    # Killed after the attempt's folder was set aside, and before those above it were removed.
    trash = tmp_path / ".trash"
    trash.mkdir()
    folders.path(ID).rename(trash / "1")
    folders.path(ActionId("p", "development", "r2", "a0").attempt(1)).rename(trash / "2")

    folders.empty_trash()

    assert [path for path in sorted(tmp_path.rglob("*")) if not any(path.iterdir())] == [folders.path(neighbour)]
    assert list(folders.all()) == [neighbour]
    assert not folders.path(ID).parent.exists()


def test_discarding_removes_empty_parents_and_no_neighbour(folders: Folders, tmp_path: Path) -> None:
    other = ActionId("p", "development", "r2", "a0").attempt(1)
    for attempt in (ID, other):
        os.close(folders.claim(attempt, "n") or 0)
    folders.discard(folders.path(ID))

    assert list(folders.all()) == [other]
    assert not (tmp_path / "p/development/r1").exists()


def note(folders: Folders, name: str, value: dict[str, object]) -> None:
    (folders.path(ID) / name).write_text(json.dumps(value))


def phase(folders: Folders) -> AttemptPhase:
    return state_from(folders.look(ID), "n1").phase
