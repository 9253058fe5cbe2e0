"""Results that are kept: found again, ignored on demand, outlived, and computed once by two who want them."""

from __future__ import annotations

from pathlib import Path

from tests.sdk.marks import count
from tests.sdk.sdk import Sdk, until

HIT = "CACHE_HIT"
POPULATED = "CACHE_POPULATED"


def test_the_second_run_of_the_same_finds_the_result(sdk: Sdk, tmp_path: Path) -> None:
    first = sdk.run("caching.square", folder=str(tmp_path), x=7)
    second = sdk.run("caching.square", folder=str(tmp_path), x=7)
    other = sdk.run("caching.square", folder=str(tmp_path), x=8)

    assert [run.result() for run in (first, second, other)] == [49, 49, 64]
    assert [run.cache_status for run in (first, second, other)] == [POPULATED, HIT, POPULATED]
    assert count(tmp_path, "square") == 2


def test_children_and_roots_share_results(sdk: Sdk, tmp_path: Path) -> None:
    assert sdk.run("caching.square", folder=str(tmp_path), x=3).result() == 9
    parent = sdk.run("caching.twice", folder=str(tmp_path), x=3)

    assert parent.result() == 18
    children = [sdk.look(parent.run, line.name) for line in sdk.actions(parent.run)[1:]]
    assert [child.cache_status for child in children] == [HIT, HIT]
    assert count(tmp_path, "square") == 1


def test_a_run_may_overwrite_what_is_kept(sdk: Sdk, tmp_path: Path) -> None:
    sdk.run("caching.square", folder=str(tmp_path), x=2)
    again = sdk.run("caching.square", options={"overwrite_cache": True}, folder=str(tmp_path), x=2)
    after = sdk.run("caching.square", folder=str(tmp_path), x=2)

    assert (again.cache_status, after.cache_status) == (POPULATED, HIT)
    assert count(tmp_path, "square") == 2


def test_inputs_that_do_not_matter_do_not_count(sdk: Sdk, tmp_path: Path) -> None:
    assert sdk.run("caching.noted", folder=str(tmp_path), note="one").result() == "one"
    assert sdk.run("caching.noted", folder=str(tmp_path), note="two").result() == "one"


def test_a_result_that_is_too_old_is_computed_anew(sdk: Sdk, tmp_path: Path) -> None:
    """Its greatest age is a second; the first run that finds it older computes it."""
    ran: list[str] = []

    def ran_anew() -> bool:
        ran.append(sdk.run("caching.briefly", folder=str(tmp_path)).cache_status)
        return len(ran) > 1 and ran[-1] != HIT

    until(ran_anew, "the result is too old")
    assert (ran[0], ran[-1]) == (POPULATED, POPULATED)
    assert count(tmp_path, "briefly") == 2


def test_two_runs_that_want_the_same_of_a_serialized_task_compute_it_once(sdk: Sdk, tmp_path: Path) -> None:
    root = sdk.start("caching.slowly", folder=str(tmp_path), x=5)
    parent = sdk.start("caching.one_slowly", folder=str(tmp_path), x=5)
    sdk.until(parent, lambda lines: len(lines) == 2)
    until(lambda: count(tmp_path, "slowly") == 1, "one of the two has begun")
    (tmp_path / "go").touch()

    looks = [sdk.finish(root), sdk.finish(parent)]
    assert [look.result() for look in looks] == [25, 25]
    assert count(tmp_path, "slowly") == 1
    child = sdk.look(parent, sdk.actions(parent)[1].name)
    assert sorted([looks[0].cache_status, child.cache_status]) == [HIT, POPULATED]


def test_who_waits_for_a_reservation_goes_on_when_the_holder_is_aborted(sdk: Sdk, tmp_path: Path) -> None:
    first = sdk.start("caching.slowly", folder=str(tmp_path), x=6)
    until(lambda: count(tmp_path, "slowly") == 1, "the first has begun")
    second = sdk.start("caching.slowly", folder=str(tmp_path), x=6)
    sdk.call("abort_run", run=first, reason="no longer wanted")
    (tmp_path / "go").touch()

    assert sdk.finish(first).phase == "aborted"
    assert sdk.finish(second).result() == 36
    assert count(tmp_path, "slowly") == 2
