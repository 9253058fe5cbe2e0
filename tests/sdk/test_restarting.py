"""The server stops, is killed, or the whole machine is, while runs are in flight: none is lost, none runs twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.sdk.marks import count, marks
from tests.sdk.sdk import Look, Sdk, settled, until
from tests.sdk.serving import GONE_SECONDS, Server, free_port, serving, write_client_config

FAN_OUT = 200


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("restarted")) as server:
        yield server


@pytest.fixture(scope="module")
def own_sdk(own_server: Server) -> Iterator[Sdk]:
    sdk = Sdk(write_client_config(own_server, own_server.folder / "client.yaml"), own_server.folder)
    yield sdk
    sdk.close()


@pytest.fixture(autouse=True)
def up_again(own_server: Server) -> Iterator[None]:
    """A test that failed halfway does not take the others with it."""
    yield
    if not own_server.is_running():
        own_server.start()


def test_a_fan_out_outlives_a_kill_of_the_server(own_server: Server, own_sdk: Sdk, tmp_path: Path) -> None:
    run = own_sdk.start("fan.count", folder=str(tmp_path), n=FAN_OUT)
    finishing = own_sdk.begin("finish", run=run)
    until(lambda: count(tmp_path, "leaf-*") >= FAN_OUT // 8, "some of the leaves are done")
    own_server.kill()
    assert count(tmp_path, "leaf-*") < FAN_OUT, "and others are not"
    own_server.start()

    assert Look(**settled(finishing)).result() == sum(range(FAN_OUT))
    lines = own_sdk.actions(run)
    assert len(lines) == FAN_OUT + 1
    assert {line.phase for line in lines} == {"succeeded"}
    assert [count(tmp_path, f"leaf-{x}") for x in range(FAN_OUT)] == [1] * FAN_OUT


def test_attempts_go_on_while_the_server_restarts(own_server: Server, own_sdk: Sdk, tmp_path: Path) -> None:
    go = tmp_path / "go"
    run = own_sdk.start("misbehaving.talks_slowly", release=str(go))
    finishing = own_sdk.begin("finish", run=run)
    until((tmp_path / "go.begun").exists, "it runs")
    own_server.stop()
    own_server.start()
    own_sdk.until(run, lambda lines: lines[0].phase == "running")
    go.touch()

    ended = Look(**settled(finishing))
    assert (ended.phase, len(ended.attempts)) == ("succeeded", 1)
    assert own_sdk.call("logs", run=run)[1:3] == [" before the file\n", " after the file\n"]


def test_what_ended_while_the_server_was_away_is_found(own_server: Server, own_sdk: Sdk, tmp_path: Path) -> None:
    run = own_sdk.start("caching.slowly", folder=str(tmp_path), x=3)
    until(lambda: count(tmp_path, "slowly") == 1, "it runs")
    (mark,) = marks(tmp_path, "slowly")
    own_server.kill()
    (tmp_path / "go").touch()
    until(lambda: not psutil.pid_exists(mark.pid), "it has ended")
    own_server.start()

    ended = own_sdk.finish(run)
    assert (ended.result(), len(ended.attempts)) == (9, 1)
    assert count(tmp_path, "slowly") == 1


def test_two_who_want_the_same_compute_it_once_across_a_kill(own_server: Server, own_sdk: Sdk, tmp_path: Path) -> None:
    runs = [own_sdk.start(task, folder=str(tmp_path), x=4) for task in ("caching.slowly", "caching.one_slowly")]
    until(lambda: count(tmp_path, "slowly") == 1, "one of them has begun")
    own_sdk.until(runs[1], lambda lines: len(lines) == 2)
    own_server.kill()
    own_server.start()
    (tmp_path / "go").touch()

    assert [own_sdk.finish(run).result() for run in runs] == [16, 16]
    assert count(tmp_path, "slowly") == 1


def test_a_condition_stays_open_across_a_kill(own_server: Server, own_sdk: Sdk) -> None:
    run = own_sdk.start("conditions.approval")
    own_sdk.until(run, lambda lines: [line.phase for line in lines[1:]] == ["paused"])
    own_server.kill()
    own_server.start()
    own_sdk.call("signal", run=run, condition="approve", value=True)

    assert own_sdk.finish(run).result() == "approved"


def test_an_abort_after_a_kill_reaches_what_was_started_before(
    own_server: Server, own_sdk: Sdk, tmp_path: Path
) -> None:
    run = own_sdk.start("aborting.family", folder=str(tmp_path))
    until(lambda: len(marks(tmp_path, "*")) == 4, "all processes of the family are there")
    own_server.kill()
    own_server.start()
    own_sdk.call("abort_run", run=run, reason="after the restart")

    assert own_sdk.finish(run).phase == "aborted"
    until(lambda: not [mark for mark in marks(tmp_path, "*") if psutil.pid_exists(mark.pid)], "the end of them all")


def test_attempts_that_die_with_the_machine_are_started_again(own_server: Server, own_sdk: Sdk, tmp_path: Path) -> None:
    """The task has no retries of its own: losing its process is not its fault."""
    run = own_sdk.start("caching.slowly", folder=str(tmp_path), x=7)
    until(lambda: count(tmp_path, "slowly") == 1, "it runs")
    processes = _with_its_keepers(marks(tmp_path, "slowly")[0].pid)
    own_server.kill()
    for process in processes:
        process.kill()
    psutil.wait_procs(processes, timeout=GONE_SECONDS)
    own_server.start()
    until(lambda: count(tmp_path, "slowly") == 2, "it runs again")
    (tmp_path / "go").touch()

    assert own_sdk.finish(run).result() == 49


def _with_its_keepers(pid: int) -> list[psutil.Process]:
    """The process of an attempt and those above it that outlive the server."""
    attempt = psutil.Process(pid)
    ours = {process.pid for process in (psutil.Process(), *psutil.Process().parents())}
    keepers = [process for process in attempt.parents() if process.pid != 1 and process.pid not in ours]
    assert keepers, "somebody keeps it while there is no server"
    return [*keepers, attempt]


def test_a_second_server_on_the_same_folder_refuses(own_server: Server, own_sdk: Sdk) -> None:
    size = own_server.log_size()
    second = own_server.spawn(port=free_port())

    assert second.wait(timeout=GONE_SECONDS) == 2
    assert f"another flyte-binary (process {own_server.pid}) serves the data folder" in own_server.log(size)
    assert own_sdk.run("hello.main", name="still here").result() == "Hello, still here!"
