from __future__ import annotations

import base64
import json

import httpx
import pytest

from flyte_binary.rpc.identity import ANONYMOUS, Caller, TrustedPeers, caller_from_jwt
from tests.rpc.transport.conftest import World
from tests.rpc.transport.probe import Probe

DETAILS = "/flyteidl2.workflow.RunService/GetRunDetails"
PROXY = ("10.1.2.3", 5000)


def jwt(**claims: object) -> str:
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{payload}.c2ln"


async def call(world: World, peer: tuple[str, int], headers: dict[str, str]) -> Probe:
    transport = httpx.ASGITransport(world.app, client=peer)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:30080") as http:
        response = await http.post(DETAILS, headers={"content-type": "application/proto", **headers})
    assert response.status_code == 200
    return world.probe


@pytest.mark.parametrize(
    ("headers", "caller"),
    [
        ({}, ANONYMOUS),
        ({"x-subject": " ann "}, Caller(subject="ann")),
        ({"x-claims": jwt(sub="ann", email="a@b.c", given_name="Ann")}, Caller("ann", "a@b.c", "Ann")),
        ({"x-claims": jwt(sub="ann"), "x-subject": "bob"}, Caller("ann")),
        ({"authorization": "bearer " + jwt(sub="eve")}, Caller("eve")),
        ({"authorization": "Bearer opaque"}, ANONYMOUS),
        ({"authorization": "Basic " + jwt(sub="eve")}, ANONYMOUS),
    ],
)
async def test_a_trusted_proxy_names_the_caller(world: World, headers: dict[str, str], caller: Caller) -> None:
    probe = await call(world, PROXY, headers)
    assert probe.contexts[0].caller == caller


@pytest.mark.parametrize("name", ["x-subject", "x-claims", "authorization"])
async def test_anyone_else_who_sends_identity_headers_stays_anonymous(world: World, name: str) -> None:
    value = {"x-subject": "root", "x-claims": jwt(sub="root"), "authorization": "Bearer " + jwt(sub="root")}[name]
    probe = await call(world, ("192.0.2.7", 1), {name: value})
    assert probe.contexts[0].caller.is_anonymous


@pytest.mark.parametrize(
    ("peer", "forwarded", "origin"),
    [
        (PROXY, "https", "https://localhost:30080"),
        (PROXY, "https, http", "https://localhost:30080"),
        (PROXY, "javascript", "http://localhost:30080"),
        (("192.0.2.7", 1), "https", "http://localhost:30080"),
    ],
)
async def test_the_scheme_of_links_is_a_trusted_proxys_word(
    world: World, peer: tuple[str, int], forwarded: str, origin: str
) -> None:
    probe = await call(world, peer, {"x-forwarded-proto": forwarded})
    assert probe.contexts[0].origin == origin


async def test_the_request_id_is_the_clients_if_it_is_printable(world: World) -> None:
    probe = await call(world, PROXY, {"x-request-id": "p-d-r1-a0-x1y2"})
    await call(world, PROXY, {"x-request-id": "two words"})
    await call(world, PROXY, {})
    first, second, third = (context.request_id for context in probe.contexts)
    assert first == "p-d-r1-a0-x1y2"
    assert len({first, second, third}) == 3 and " " not in second


@pytest.mark.parametrize(
    "token", ["", "a.b", "a.b.c", "a.!!!.c", jwt(), jwt(sub=""), jwt(sub=7), jwt(name="x"), "e30.W10.x", "e30.MQ.x"]
)
def test_what_is_no_token_names_nobody(token: str) -> None:
    assert caller_from_jwt(token) is None


def test_peers_are_addresses_and_networks_of_both_kinds() -> None:
    peers = TrustedPeers(["10.0.0.0/8", "::1", "192.168.1.5"])
    assert [peer in peers for peer in ("10.9.9.9", "::1", "192.168.1.5", "192.168.1.6", "", "host", None)] == [
        True,
        True,
        True,
        False,
        False,
        False,
        False,
    ]
    assert "10.9.9.9" not in TrustedPeers()
    with pytest.raises(ValueError, match="proxy"):
        TrustedPeers(["proxy"])
