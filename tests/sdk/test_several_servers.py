"""Two servers on one PostgreSQL and one data folder; one of them is killed, or comes and goes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.postgres_server import shared_server
from tests.sdk.marks import count
from tests.sdk.sdk import Look, Sdk, settled, until
from tests.sdk.serving import Server, write_client_config

FAN_OUT = 500
LONG_SECONDS = 150


@dataclass
class Pair:
    stays: Server
    goes: Server
    sdk: Sdk
    """Connected to the one that stays."""

    def launches(self, server: Server) -> int:
        lines = httpx.get(f"{server.url}/metrics", timeout=10).raise_for_status().text.splitlines()
        return next(int(float(line.split()[1])) for line in lines if line.startswith("flyte_executor_launches"))


@pytest.fixture
def pair(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Pair]:
    url = shared_server().url(f"pair_{abs(hash(request.node.name)) % 10**9}")
    settings = {"runs.database.postgres.url": url}
    servers = [Server(tmp_path / name, settings, shared=tmp_path / "shared") for name in ("stays", "goes")]
    for server in servers:
        server.start()
    sdk = Sdk(write_client_config(servers[0], tmp_path / "client.yaml"), tmp_path)
    yield Pair(*servers, sdk)
    sdk.close()
    for server in servers:
        if server.is_running():
            server.stop()
        server.check_log()


def test_a_fan_out_through_both_outlives_a_kill_of_one(pair: Pair, tmp_path: Path) -> None:
    pair.sdk.call("actions", run=pair.sdk.run("hello.main", name="warm").run)
    folder = tmp_path / "marks"
    folder.mkdir()
    run = pair.sdk.start("fan.count", folder=str(folder), n=FAN_OUT)
    finishing = pair.sdk.begin("finish", run=run)
    until(lambda: count(folder, "leaf-*") >= FAN_OUT // 4, "some of the leaves are done")
    launched_by_it = pair.launches(pair.goes)
    pair.goes.kill()
    assert count(folder, "leaf-*") < FAN_OUT, "and others are not"
    assert launched_by_it > FAN_OUT // 20

    assert Look(**settled(finishing, LONG_SECONDS)).result() == sum(range(FAN_OUT))
    lines = pair.sdk.actions(run)
    assert len(lines) == FAN_OUT + 1
    assert {line.phase for line in lines} == {"succeeded"}
    assert [count(folder, f"leaf-{x}") for x in range(FAN_OUT)] == [1] * FAN_OUT


def test_an_attempt_of_a_killed_server_goes_on_and_its_log_is_served(pair: Pair, tmp_path: Path) -> None:
    run, go = _on_the_one_that_goes(pair, tmp_path)
    pair.goes.kill()
    followed = pair.sdk.begin("logs", run=run)
    go.touch()

    ended = Look(**settled(pair.sdk.begin("finish", run=run), LONG_SECONDS))
    assert (ended.phase, len(ended.attempts)) == ("succeeded", 1)
    said = ["before the file\n", "after the file\n"]
    assert [line.strip(" ") for line in settled(followed)[1:3]] == said
    assert [line.strip(" ") for line in pair.sdk.call("logs", run=run)[1:3]] == said, "also from the archive"


def test_a_run_keeps_its_limit_across_servers(pair: Pair) -> None:
    spans = pair.sdk.run("fan.spans", options={"max_action_concurrency": 2}, n=8).result()

    moments = sorted([(began, 1) for began, _ in spans] + [(ended, -1) for _, ended in spans])
    running = list(itertools.accumulate(step for _, step in moments))
    assert max(running) <= 2
    assert all(pair.launches(server) for server in (pair.stays, pair.goes))


def _on_the_one_that_goes(pair: Pair, folder: Path) -> tuple[str, Path]:
    """A run whose process was started by the server that is to be killed, and the file that lets it end."""
    for number in range(20):
        go = folder / f"go-{number}"
        run = pair.sdk.start("misbehaving.talks_slowly", release=str(go))
        until(Path(f"{go}.begun").exists, "it runs")
        if pair.launches(pair.goes) > 0:
            return run, go
        go.touch()
        pair.sdk.finish(run)
    raise AssertionError("every action fell to the same server")
