"""Apps through the unmodified command line, as processes behind the server's own address."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.sdk.command_line import Flyte
from tests.sdk.serving import Server, free_port
from tests.sdk.stores import Store

SECONDS = 30


def app_url(server: Server, name: str) -> str:
    return f"{server.url}/apps/flytesnacks/development/{name}"


def deployed(flyte: Flyte, variable: str) -> None:
    done = flyte("serve", "apps.py", variable)
    assert done.code == 0, done.text


def shown_app(flyte: Flyte, name: str) -> dict[str, Any]:
    """Of the list of apps."""
    apps = flyte("--output-format", "json-raw", "get", "app").json()
    return next(app for app in apps if app["metadata"]["id"]["name"] == name)


@pytest.fixture
def nothing_left(flyte: Flyte) -> Iterator[None]:
    """Processes of apps outlive the server that started them."""
    yield
    for app in flyte("--output-format", "json-raw", "get", "app").json():
        flyte("delete", "app", app["metadata"]["id"]["name"])


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("store", ["disk"], indirect=True)
class TestApps:
    def test_a_fastapi_app_is_served_with_its_documentation_stopped_started_and_deleted(
        self, server: Server, flyte: Flyte
    ) -> None:
        deployed(flyte, "greeter")
        url = app_url(server, "greeter")
        assert httpx.get(f"{url}/").json()["says"] == "hello"
        assert '"/apps/flytesnacks/development/greeter/openapi.json"' in httpx.get(f"{url}/docs").text.replace("'", '"')
        assert httpx.get(f"{url}/openapi.json").json()["info"]["title"] == "greeter"

        shown = shown_app(flyte, "greeter")
        assert shown["status"]["ingress"]["publicUrl"] == url

        stopped = flyte("update", "app", "greeter", "--deactivate", "--wait")
        assert stopped.code == 0, stopped.text
        assert httpx.get(f"{url}/").status_code == 503
        started = flyte("update", "app", "greeter", "--activate", "--wait")
        assert started.code == 0, started.text
        assert httpx.get(f"{url}/", timeout=SECONDS).status_code == 200

        gone = flyte("delete", "app", "greeter")
        assert gone.code == 0, gone.text
        assert httpx.get(f"{url}/").status_code == 404

    def test_an_app_calls_another_and_survives_a_killed_server(self, server: Server, flyte: Flyte) -> None:
        deployed(flyte, "greeter")
        deployed(flyte, "server_app")
        url = app_url(server, "greeter")
        assert httpx.get(f"{app_url(server, 'function-server')}/").text == "the parameter"
        assert httpx.get(f"{url}/call/function-server", timeout=SECONDS).json() == {"other": "the parameter"}
        before = httpx.get(f"{url}/").json()["pid"]
        server.kill()
        server.start()
        assert httpx.get(f"{url}/", timeout=SECONDS).json()["pid"] == before

    def test_a_command_with_a_port_of_its_own_is_one_replica_and_says_so(
        self, server: Server, client_config: Path, store: Store
    ) -> None:
        flyte = Flyte(client_config, client_config.parent, {**store.client, "PLAIN_PORT": str(free_port())})
        deployed(flyte, "plain")
        assert "Directory listing" in httpx.get(f"{app_url(server, 'plain-command')}/").text
        shown = shown_app(flyte, "plain-command")
        assert "port of its own" in shown["status"]["conditions"][-1]["message"]

    def test_an_app_that_does_not_start_has_failed_with_the_end_of_its_log(self, server: Server, flyte: Flyte) -> None:
        done = flyte("serve", "apps.py", "broken")
        assert done.code != 0
        deadline = time.monotonic() + SECONDS
        while "nothing_of_the_sort" not in httpx.get(f"{app_url(server, 'broken')}/", timeout=SECONDS).text:
            assert time.monotonic() < deadline
        shown = shown_app(flyte, "broken")
        last = shown["status"]["conditions"][-1]
        assert last["deploymentStatus"] == "DEPLOYMENT_STATUS_FAILED"
        assert "nothing_of_the_sort" in last["message"]
