"""Create, Update, Get, Delete and List of secrets."""

from __future__ import annotations

from collections.abc import Awaitable

import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from flyteidl2.secret import definition_pb2 as definitions
from flyteidl2.secret import payload_pb2 as pb
from flyteidl2.secret.secret_connect import SecretServiceClient

from flyte_binary.domain.secrets import LARGEST_VALUE_BYTES, SecretId, SecretScope
from flyte_binary.secret.table import TableVault
from flyte_binary.secret.values import ScopedValues
from tests.fakes.manual_clock import ManualClock

VALUE = "a-value-that-no-error-shows"


def named(name: str, *, project: str = "", domain: str = "", organization: str = "10") -> definitions.SecretIdentifier:
    return definitions.SecretIdentifier(name=name, project=project, domain=domain, organization=organization)


def create(
    identifier: definitions.SecretIdentifier, value: str = VALUE, *, kind: int = definitions.SECRET_TYPE_GENERIC
) -> pb.CreateSecretRequest:
    spec = definitions.SecretSpec(binary_value=value.encode(), type=kind)  # type: ignore[arg-type]  # any number
    return pb.CreateSecretRequest(id=identifier, secret_spec=spec)


def update(identifier: definitions.SecretIdentifier, value: str) -> pb.UpdateSecretRequest:
    return pb.UpdateSecretRequest(id=identifier, secret_spec=definitions.SecretSpec(string_value=value))


async def refused(call: Awaitable[object], code: Code) -> str:
    with pytest.raises(ConnectError) as caught:
        await call
    assert caught.value.code is code
    assert VALUE not in caught.value.message
    return caught.value.message


async def value_of(vault: TableVault, name: str, *, project: str = "p", domain: str = "d") -> bytes | None:
    return (await ScopedValues(vault).values(project, domain, [name])).get(name)


async def listed(secrets: SecretServiceClient, **request: str) -> list[tuple[str, str, str]]:
    found = (await secrets.list_secrets(pb.ListSecretsRequest(organization="10", limit=100, **request))).secrets
    return [(secret.id.domain, secret.id.project, secret.id.name) for secret in found]


async def test_a_created_secret_is_shown_without_its_value(secrets: SecretServiceClient, clock: ManualClock) -> None:
    await secrets.create_secret(create(named("token")))
    secret = (await secrets.get_secret(pb.GetSecretRequest(id=named("token")))).secret

    assert secret.id == named("token")
    assert secret.secret_metadata.created_time.ToMicroseconds() == clock.now()
    assert secret.secret_metadata.secret_status.overall_status == definitions.FULLY_PRESENT
    (cluster,) = secret.secret_metadata.secret_status.cluster_status
    assert (cluster.cluster.name, cluster.presence_status) == ("here", definitions.PRESENT)
    assert VALUE.encode() not in secret.SerializeToString()


async def test_a_name_that_is_taken_in_the_scope_already_exists(
    secrets: SecretServiceClient, vault: TableVault
) -> None:
    await secrets.create_secret(create(named("token"), "first"))
    message = await refused(secrets.create_secret(create(named("token", organization="other"))), Code.ALREADY_EXISTS)

    assert message == "secret token already exists in the organization"
    assert await value_of(vault, "token") == b"first"
    await secrets.create_secret(create(named("token", domain="d")))
    await secrets.create_secret(create(named("token", domain="d", project="p")))


async def test_an_update_replaces_value_and_type_and_keeps_the_time_of_creation(
    secrets: SecretServiceClient, vault: TableVault, clock: ManualClock
) -> None:
    await secrets.create_secret(create(named("token"), "first"))
    made_at = clock.now()
    clock.advance(seconds=60)
    spec = definitions.SecretSpec(string_value="zweiter ☂", type=definitions.SECRET_TYPE_IMAGE_PULL_SECRET)
    await secrets.update_secret(pb.UpdateSecretRequest(id=named("token"), secret_spec=spec))

    metadata = (await secrets.get_secret(pb.GetSecretRequest(id=named("token")))).secret.secret_metadata
    assert await value_of(vault, "token") == "zweiter ☂".encode()
    assert metadata.type == definitions.SECRET_TYPE_IMAGE_PULL_SECRET
    assert metadata.created_time.ToMicroseconds() == made_at


async def test_a_secret_that_is_not_there_is_not_found_by_its_own_name(secrets: SecretServiceClient) -> None:
    await secrets.create_secret(create(named("token", domain="d")))
    absent = named("token")

    for call in (
        secrets.get_secret(pb.GetSecretRequest(id=absent)),
        secrets.update_secret(update(absent, "x")),
        secrets.delete_secret(pb.DeleteSecretRequest(id=absent)),
    ):
        assert await refused(call, Code.NOT_FOUND) == "secret token not found"


async def test_a_deleted_secret_is_gone_and_its_name_free(secrets: SecretServiceClient, vault: TableVault) -> None:
    await secrets.create_secret(create(named("token")))
    await secrets.delete_secret(pb.DeleteSecretRequest(id=named("token")))

    assert await value_of(vault, "token") is None
    await secrets.create_secret(create(named("token"), "again"))
    assert await value_of(vault, "token") == b"again"


async def test_a_list_has_what_is_in_the_scope(secrets: SecretServiceClient) -> None:
    for domain, project in (("", ""), ("d", ""), ("d", "p"), ("d", "q"), ("e", "p")):
        await secrets.create_secret(create(named(f"in{domain}{project}", domain=domain, project=project)))

    every = [("", "", "in"), ("d", "", "ind"), ("d", "p", "indp"), ("d", "q", "indq"), ("e", "p", "inep")]
    assert await listed(secrets) == every
    assert await listed(secrets, domain="d") == every[1:4]
    assert await listed(secrets, domain="d", project="p") == every[2:3]
    assert await listed(secrets, domain="none") == []
    assert "domain" in await refused(secrets.list_secrets(pb.ListSecretsRequest(project="p")), Code.INVALID_ARGUMENT)


async def test_pages_show_each_secret_once_while_others_come_and_go(secrets: SecretServiceClient) -> None:
    names = [f"s{n:02}" for n in range(10)]
    for name in names:
        await secrets.create_secret(create(named(name)))
    seen: list[str] = []
    token = ""
    while True:
        page = await secrets.list_secrets(pb.ListSecretsRequest(limit=3, token=token))
        assert len(page.secrets) <= 3
        seen += [secret.id.name for secret in page.secrets]
        token = page.token
        if not token:
            break
        await secrets.create_secret(create(named(f"a{len(seen)}")))
    assert seen == names


@pytest.mark.parametrize("token", ["3", "nonsense", "WyIxIl0"])
async def test_a_token_of_another_list_is_refused(secrets: SecretServiceClient, token: str) -> None:
    call = secrets.list_secrets(pb.ListSecretsRequest(token=token))
    assert "token" in await refused(call, Code.INVALID_ARGUMENT)


async def test_a_list_without_a_limit_has_a_bounded_first_page(secrets: SecretServiceClient) -> None:
    for n in range(51):
        await secrets.create_secret(create(named(f"s{n}")))
    page = await secrets.list_secrets(pb.ListSecretsRequest())
    rest = await secrets.list_secrets(pb.ListSecretsRequest(token=page.token, limit=2_000_000_000))

    assert (len(page.secrets), len(rest.secrets), rest.token) == (50, 1, "")
    await refused(secrets.list_secrets(pb.ListSecretsRequest(limit=-1)), Code.INVALID_ARGUMENT)


@pytest.mark.parametrize(
    ("identifier", "field"),
    [
        (definitions.SecretIdentifier(), "id.name"),
        (named("with space"), "id.name"),
        (named("dots.in.it"), "id.name"),
        (named("nul\0"), "id.name"),
        (named("line\n"), "id.name"),
        (named("x" * 213), "id.name"),
        (named("token", project="p"), "id.domain"),
        (named("token", domain="a/b"), "id.domain"),
        (named("token", domain="d\0"), "id.domain"),
        (named("token", domain="d" * 64), "id.domain"),
        (named("token", domain="d", project=".."), "id.project"),
    ],
)
async def test_what_is_no_identifier_is_refused_by_every_method(
    secrets: SecretServiceClient, identifier: definitions.SecretIdentifier, field: str
) -> None:
    for call in (
        secrets.create_secret(create(identifier)),
        secrets.update_secret(update(identifier, VALUE)),
        secrets.get_secret(pb.GetSecretRequest(id=identifier)),
        secrets.delete_secret(pb.DeleteSecretRequest(id=identifier)),
    ):
        assert field in await refused(call, Code.INVALID_ARGUMENT)
    assert await listed(secrets) == []


@pytest.mark.parametrize(
    "spec",
    [
        definitions.SecretSpec(),
        definitions.SecretSpec(string_value=f"{VALUE}\0"),
        definitions.SecretSpec(binary_value=VALUE.encode() + b"x" * LARGEST_VALUE_BYTES),
        definitions.SecretSpec(string_value=VALUE, type=7),  # type: ignore[arg-type]  # of a newer client
    ],
)
async def test_what_is_no_value_is_refused_and_changes_nothing(
    secrets: SecretServiceClient, vault: TableVault, spec: definitions.SecretSpec
) -> None:
    await refused(
        secrets.create_secret(pb.CreateSecretRequest(id=named("token"), secret_spec=spec)), Code.INVALID_ARGUMENT
    )
    await secrets.create_secret(create(named("token"), "first"))
    await refused(
        secrets.update_secret(pb.UpdateSecretRequest(id=named("token"), secret_spec=spec)), Code.INVALID_ARGUMENT
    )
    assert await value_of(vault, "token") == b"first"


async def test_a_secret_may_be_empty_and_as_large_as_kubernetes_takes_it(
    secrets: SecretServiceClient, vault: TableVault
) -> None:
    await secrets.create_secret(create(named("empty"), ""))
    await secrets.create_secret(create(named("large"), "x" * LARGEST_VALUE_BYTES))

    assert await value_of(vault, "empty") == b""
    assert await value_of(vault, "large") == b"x" * LARGEST_VALUE_BYTES


async def test_a_task_gets_the_narrowest_of_its_own_scopes(secrets: SecretServiceClient, vault: TableVault) -> None:
    await secrets.create_secret(create(named("a", domain="d", project="other"), "another project's"))
    await secrets.create_secret(create(named("a", domain="other", project="p"), "another domain's"))
    assert await value_of(vault, "a") is None
    for identifier, value in (
        (named("a"), b"organization"),
        (named("a", domain="d"), b"domain"),
        (named("a", domain="d", project="p"), b"project"),
    ):
        await secrets.create_secret(create(identifier, value.decode()))
        assert await value_of(vault, "a") == value


async def test_names_are_found_whatever_case_they_have_and_only_so(
    secrets: SecretServiceClient, vault: TableVault
) -> None:
    await secrets.create_secret(create(named("Token"), "capital"))
    await secrets.create_secret(create(named("token"), "small"))

    assert await value_of(vault, "Token") == b"capital"
    assert await value_of(vault, "token") == b"small"
    assert await value_of(vault, "TOKEN") is None
    assert SecretId(SecretScope(), "Token") in await vault.reveal(["Token"], [SecretScope()])
