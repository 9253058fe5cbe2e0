"""Which app a request is for, and what of its path is the app's."""

from __future__ import annotations

import pytest

from flyte_binary.app.ingress.target import NotAnApp, Target, target_of
from flyte_binary.domain.ids import AppId
from tests.unit.app.ingress.scopes import scope_of

APP = AppId("p", "d", "n")


def resolve(label: str) -> AppId | None:
    return APP if label == "n-p-d" else None


@pytest.mark.parametrize(
    ("path", "query", "expected"),
    [
        ("/apps/p/d/n/", "", Target(APP, "/apps/p/d/n", b"/")),
        ("/apps/p/d/n", "", Target(APP, "/apps/p/d/n", b"/", needs_slash=True)),
        ("/apps/p/d/n", "a=1", Target(APP, "/apps/p/d/n", b"/?a=1", needs_slash=True)),
        ("/apps/p/d/n/a%2Fb//c/", "a=1&a=%20", Target(APP, "/apps/p/d/n", b"/a%2Fb//c/?a=1&a=%20")),
        ("/apps/p/d/n/../../x/y/z", "", Target(APP, "/apps/p/d/n", b"/../../x/y/z")),
        ("/apps/p/d/%6e/x", "", Target(APP, "/apps/p/d/n", b"/x")),
        ("/apps/p/d/a%2F..%0d/", "", Target(AppId("p", "d", "a/..\r"), "/apps/p/d/a%2F..%0D", b"/")),
        ("/apps/../v2/x/", "", Target(AppId("..", "v2", "x"), "/apps/../v2/x", b"/")),
    ],
)
def test_the_first_three_parts_name_the_app_and_the_rest_stays_as_it_came(
    path: str, query: str, expected: Target
) -> None:
    assert target_of(scope_of(path, query=query), resolve) == expected


@pytest.mark.parametrize("path", ["/apps", "/apps/", "/apps/p", "/apps/p/d", "/apps/p/d/", "/apps//d/n/", "/apps/p//n"])
def test_below_apps_nothing_is_the_servers(path: str) -> None:
    with pytest.raises(NotAnApp, match="/apps/<project>/<domain>/<name>/"):
        target_of(scope_of(path), resolve)


@pytest.mark.parametrize("path", ["/", "/v2/", "/appstore", "/x/apps/p/d/n/", "//apps/p/d/n/", "/flyteidl2.X/Y"])
def test_the_rest_is(path: str) -> None:
    assert target_of(scope_of(path), resolve) is None


@pytest.mark.parametrize("path", ["/", "/v2/", "/apps/x/y/z/", "/flyteidl2.X/Y"])
@pytest.mark.parametrize("host", ["n-p-d.localhost", "N-P-D.LocalHost:30080", "n-p-d.localhost.:80"])
def test_by_its_host_an_app_gets_every_path(path: str, host: str) -> None:
    assert target_of(scope_of(path, host=host), resolve) == Target(APP, "", path.encode())


@pytest.mark.parametrize("host", ["gone.localhost", "x.n-p-d.localhost", ".localhost", "n-p-d.localhost.localhost"])
def test_a_host_below_localhost_that_is_no_apps_is_nobodys(host: str) -> None:
    for path in ("/", "/apps/p/d/n/", "/v2/"):
        with pytest.raises(NotAnApp):
            target_of(scope_of(path, host=host), resolve)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:30080", "[::1]:80", "n-p-d.example.com", "flyte.localhost"])
def test_other_hosts_are_the_servers(host: str) -> None:
    assert target_of(scope_of("/v2/", host=host), resolve, {"flyte.localhost"}) is None
