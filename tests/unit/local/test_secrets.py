"""Secrets of an attempt: variables and files, and what is said when one cannot be had."""

from __future__ import annotations

import stat
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from flyte_binary.domain.errors import FailedPrecondition, FlyteError, Unavailable
from flyte_binary.domain.ids import ActionId
from flyte_binary.executor.backend import AttemptSpec
from flyte_binary.executor.local.secrets import Placement, SecretProblem, place_secrets, write_files
from flyte_binary.executor.secrets import SecretRequest

FOLDER = Path("/data/attempt/secrets")
SPEC = AttemptSpec(
    id=ActionId("p", "d", "r1", "a0").attempt(1), nonce="n", argv=("a0",), env={"TOKEN": "of the task"}, image=""
)


class Values:
    def __init__(self, values: Mapping[str, bytes], failure: FlyteError | None = None) -> None:
        self._values = values
        self._failure = failure

    async def values(self, project: str, domain: str, names: Collection[str]) -> Mapping[str, bytes]:
        assert (project, domain) == ("p", "d")
        if self._failure is not None:
            raise self._failure
        return {name: self._values[name] for name in names if name in self._values}


async def placed(values: Mapping[str, bytes], *requests: SecretRequest) -> Placement:
    return await place_secrets(replace(SPEC, secrets=requests), Values(values), FOLDER)


async def problem(values: Mapping[str, bytes], *requests: SecretRequest) -> str:
    with pytest.raises(SecretProblem) as caught:
        await placed(values, *requests)
    return str(caught.value)


async def test_a_value_is_in_the_variable_that_was_asked_for_or_else_in_that_of_the_reference() -> None:
    made = await placed(
        {"one": b"1", "two-b": "☂".encode()},
        SecretRequest(key="one", variable="TOKEN"),
        SecretRequest(key="two-b", group="ignored"),
    )

    assert made.variables == {"TOKEN": "1", "_UNION_TWO-B": "☂", "FLYTE_SECRETS_ENV_PREFIX": "_UNION_"}
    assert not made.files


async def test_a_file_is_found_by_the_folder_and_by_the_variable_that_was_asked_for() -> None:
    made = await placed({"Cert": b"\0\xff"}, SecretRequest(key="Cert", group="team", variable="CERT", as_file=True))

    assert made.variables == {
        "FLYTE_SECRETS_DEFAULT_DIR": str(FOLDER),
        "FLYTE_SECRETS_FILE_PREFIX": "",
        "CERT": str(FOLDER / "Cert"),
    }
    assert made.files == {"Cert": b"\0\xff", "team/Cert": b"\0\xff"}


async def test_a_file_that_has_the_name_of_a_group_stays_a_file() -> None:
    made = await placed(
        {"team": b"1", "key": b"2"},
        SecretRequest(key="team", as_file=True),
        SecretRequest(key="key", group="team", as_file=True),
    )
    assert made.files == {"team": b"1", "key": b"2"}


async def test_a_task_without_secrets_needs_no_vault() -> None:
    assert await place_secrets(SPEC, None, FOLDER) == Placement()
    with pytest.raises(SecretProblem, match="this server has no secrets"):
        await place_secrets(replace(SPEC, secrets=(SecretRequest(key="a"),)), None, FOLDER)


async def test_missing_secrets_are_named_with_the_scopes_that_were_searched() -> None:
    one = await problem({"there": b""}, SecretRequest(key="there"), SecretRequest(key="gone", as_file=True))
    assert one == (
        "the secret 'gone' does not exist in the project p/d, in the domain d or in the organization: "
        "create it with `flyte create secret gone`"
    )
    assert "the secrets 'a', 'b' do not exist" in await problem({}, SecretRequest(key="b"), SecretRequest(key="a"))


@pytest.mark.parametrize("value", [b"\xff\xfe", b"with \0 inside"])
async def test_what_no_variable_can_hold_is_refused_and_not_shown(value: bytes) -> None:
    said = await problem({"k": value}, SecretRequest(key="k", variable="TOKEN"))
    assert said == "the secret 'k' is no text that the variable TOKEN could have: ask for it as a file"


async def test_what_is_too_long_for_a_variable_is_still_good_for_a_file() -> None:
    values = {"k": b"x" * 128 * 1024}
    assert "too many for a variable" in await problem(values, SecretRequest(key="k", variable="TOKEN"))
    assert (await placed(values, SecretRequest(key="k", as_file=True))).files == values


async def test_a_vault_that_cannot_decrypt_fails_the_attempt_and_one_that_is_away_is_asked_again() -> None:
    spec = replace(SPEC, secrets=(SecretRequest(key="k"),))
    with pytest.raises(SecretProblem, match="the key is gone"):
        await place_secrets(spec, Values({}, FailedPrecondition("the key is gone")), FOLDER)
    with pytest.raises(Unavailable):
        await place_secrets(spec, Values({}, Unavailable("no database")), FOLDER)


async def test_values_are_not_shown_with_what_carries_them() -> None:
    made = await placed(
        {"k": b"the value"}, SecretRequest(key="k", variable="TOKEN"), SecretRequest(key="k", as_file=True)
    )
    assert "the value" not in repr(made)


def test_files_are_for_their_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    write_files(Placement(files={"a": b"1", "team/b": b"2"}), folder)

    modes = {str(path.relative_to(tmp_path)): stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    assert modes == {"secrets": 0o700, "secrets/a": 0o400, "secrets/team": 0o700, "secrets/team/b": 0o400}
    assert (folder / "team" / "b").read_bytes() == b"2"


def test_without_files_there_is_no_folder(tmp_path: Path) -> None:
    write_files(Placement(variables={"TOKEN": "1"}), tmp_path / "secrets")
    assert not list(tmp_path.iterdir())
