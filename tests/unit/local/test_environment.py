from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from connectrpc.errors import ConnectError
from flyte._internal.controllers.remote._client import ControllerClient
from flyteidl2.workflow.queue_service_pb2 import AbortQueuedActionRequest

from flyte_binary.executor.local.environment import (
    attempt_environment,
    base_environment,
    endpoint_for,
    reason_to_run_cold,
)
from flyte_binary.executor.local.settings import LocalSettings

PYTHON = Path("/venv/bin/python")
FOLDER = Path("/data/attempts/p/d/r/a0/1")


def settings(**changes: object) -> LocalSettings:
    return LocalSettings(folder=Path("/data"), endpoint="127.0.0.1:30080", **changes)  # type: ignore[arg-type]


def test_nothing_of_the_servers_own_environment_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYTHONPATH", "FLYTE_PLATFORM_URL", "UCTL_CONFIG", "AWS_SECRET_ACCESS_KEY", "HOME", "LD_PRELOAD"):
        monkeypatch.setenv(name, "of the server")

    assert "of the server" not in attempt_environment(settings(), PYTHON, FOLDER, {}).values()


def test_a_bare_attempt_has_what_every_process_needs() -> None:
    assert attempt_environment(settings(), PYTHON, FOLDER, {}) == {
        "PATH": "/venv/bin:/usr/local/bin:/usr/bin:/bin",
        "HOME": f"{FOLDER}/home",
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "DO_NOT_TRACK": "1",
        "FLYTE_DISABLE_TELEMETRY": "true",
        "GIT_CEILING_DIRECTORIES": str(FOLDER),
        "FSSPEC_FILE_AUTO_MKDIR": "true",
        "_U_EP_OVERRIDE": "127.0.0.1:30080",
        "_U_INSECURE": "true",
    }


def test_a_task_wins_over_the_settings_and_both_over_the_base() -> None:
    made = attempt_environment(
        settings(environment={"LANG": "de_DE.UTF-8", "A": "settings", "B": "settings"}), PYTHON, FOLDER, {"B": "task"}
    )

    assert (made["LANG"], made["A"], made["B"]) == ("de_DE.UTF-8", "settings", "task")


@pytest.mark.parametrize("name", ["_U_EP_OVERRIDE", "_U_INSECURE", "FSSPEC_FILE_AUTO_MKDIR"])
def test_neither_settings_nor_a_task_can_lead_the_attempt_elsewhere(name: str) -> None:
    expected = attempt_environment(settings(), PYTHON, FOLDER, {})[name]
    made = attempt_environment(settings(environment={name: "x"}), PYTHON, FOLDER, {name: "y"})

    assert made[name] == expected


def test_a_home_from_the_settings_is_used() -> None:
    assert attempt_environment(settings(home=Path("/home/me")), PYTHON, FOLDER, {})["HOME"] == "/home/me"


@pytest.mark.parametrize(
    ("insecure", "token", "expected"),
    [
        (True, "", "127.0.0.1:30080"),
        (True, "abc", "http://127.0.0.1:30080/_task/abc"),
        (False, "abc", "https://127.0.0.1:30080/_task/abc"),
    ],
)
def test_a_token_travels_in_the_path_of_the_endpoint(insecure: bool, token: str, expected: str) -> None:
    assert endpoint_for(settings(insecure=insecure), token) == expected


async def test_the_sdk_keeps_the_path_of_its_endpoint_so_a_token_in_it_arrives() -> None:
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        local = LocalSettings(folder=Path("/data"), endpoint=f"127.0.0.1:{server.server_port}")
        client = await ControllerClient.for_endpoint(endpoint_for(local, "abc"), insecure=True)
        with pytest.raises(ConnectError):
            await client.queue_service.abort_queued_action(AbortQueuedActionRequest())
        server.shutdown()

    assert asked == ["/_task/abc/flyteidl2.workflow.QueueService/AbortQueuedAction"]


FORKED_FROM = base_environment(settings(), PYTHON, Path("/data"))


def reason(variables: dict[str, str], read_at_import: dict[str, str | None] | None = None) -> str:
    return reason_to_run_cold(
        attempt_environment(settings(), PYTHON, FOLDER, variables), FORKED_FROM, read_at_import or {}
    )


@pytest.mark.parametrize(
    "name",
    ["PYTHONPATH", "PYTHONHASHSEED", "LD_PRELOAD", "LD_LIBRARY_PATH", "MALLOC_ARENA_MAX", "LC_ALL", "FSSPEC_S3_KEY"],
)
def test_what_is_fixed_at_the_start_of_a_process_makes_it_cold(name: str) -> None:
    assert reason({name: "x"}) == name


def test_the_base_itself_can_be_forked() -> None:
    assert reason({"MY_OWN": "x", "LOG_LEVEL": "30", "AWS_REGION": "eu", "OMP_NUM_THREADS": "4"}) == ""


def test_switching_off_a_variable_of_the_base_makes_it_cold() -> None:
    assert reason({"PYTHONUNBUFFERED": ""}) == "PYTHONUNBUFFERED"


def test_a_variable_that_the_sdk_read_at_import_must_be_as_it_was() -> None:
    read: dict[str, str | None] = {"FLYTE_IO_BATCH_SIZE": None, "HOME": "/elsewhere", "LOG_LEVEL": None}

    assert reason({}, read) == ""
    assert reason({"FLYTE_IO_BATCH_SIZE": "3"}, read) == "FLYTE_IO_BATCH_SIZE"


@pytest.mark.parametrize(
    ("level", "cold"), [("30", False), ("20", False), ("warning", False), ("10", True), ("DEBUG", True)]
)
def test_debug_logging_makes_it_cold(level: str, cold: bool) -> None:
    assert bool(reason({"LOG_LEVEL": level})) is cold
