"""The console's pages: real files, one page for every address below the base, never an API's path."""

from __future__ import annotations

import re
from urllib.parse import urljoin

import httpx
import pytest
from starlette.applications import Starlette

from flyte_binary.console.routes import BASE_PATH, console_folder, console_routes


@pytest.fixture
async def client():
    app = Starlette(routes=console_routes(console_folder()))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://localhost") as client:
        yield client


@pytest.mark.parametrize("path", ["/", BASE_PATH])
async def test_the_bare_address_leads_to_the_console(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path)
    assert answer.is_redirect
    assert answer.headers["location"] == "v2/"  # relative: a proxy in front may have taken off more of the path
    assert urljoin(str(answer.url), "v2/") == f"http://localhost{BASE_PATH}/"


async def test_the_link_that_the_cli_prints_for_a_run_is_a_page(client: httpx.AsyncClient) -> None:
    answer = await client.get(f"{BASE_PATH}/domain/development/project/flytesnacks/runs/r1?i=a0")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


async def test_every_file_that_the_page_names_is_served(client: httpx.AsyncClient) -> None:
    for path in ("", "domain/development/project/flytesnacks/runs/r1"):
        page = await client.get(f"{BASE_PATH}/{path}")
        names = re.findall(r'(?:src|href)="([^"]+)"', page.text)
        assert len(names) >= 3
        for name in names:
            file = urljoin(str(page.url), name)
            assert file.count("/") == f"http://localhost{BASE_PATH}/".count("/")
            assert (await client.get(file)).status_code == 200, name


async def test_a_file_that_is_not_there_is_not_found(client: httpx.AsyncClient) -> None:
    assert (await client.get(f"{BASE_PATH}/missing.js")).status_code == 404
    assert (await client.get(f"{BASE_PATH}/..%2f..%2fpyproject.toml")).status_code == 404


async def test_paths_outside_the_console_are_not_answered_by_it(client: httpx.AsyncClient) -> None:
    assert (await client.get("/flyteidl2.workflow.RunService/GetRunDetails")).status_code == 404


async def test_the_console_may_lie_elsewhere() -> None:
    app = Starlette(routes=console_routes(console_folder(), "/ui/flyte"))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://localhost") as client:
        for path in ("/", "/ui/flyte"):
            answer = await client.get(path)
            assert urljoin(str(answer.url), answer.headers["location"]) == "http://localhost/ui/flyte/"
        page = await client.get("/ui/flyte/domain/development")
        (root,) = re.findall(r'data-root="([^"]+)"', page.text)
        assert urljoin(str(page.url), root) == "http://localhost/"
        (script,) = re.findall(r'src="([^"]+)"', page.text)
        assert (await client.get(urljoin(str(page.url), script))).status_code == 200
        assert (await client.get(BASE_PATH)).status_code == 404
