"""Secrets by the command line, and tasks that ask for them."""

from __future__ import annotations

import hashlib
import secrets
from base64 import b64encode
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.sdk.command_line import Flyte
from tests.sdk.sdk import Sdk
from tests.sdk.serving import Server

PROJECT = ("--project", "flytesnacks", "--domain", "development")


def new_value(note: str = "") -> str:
    """Found again wherever it was written to, and in no test before."""
    return f"value{note}-{secrets.token_hex(16)}"


def digest(value: str | bytes) -> str:
    return hashlib.sha256(value.encode() if isinstance(value, str) else value).hexdigest()


def create(flyte: Flyte, name: str, value: str, *options: str) -> None:
    done = flyte("create", "secret", name, "--value", value, *options)
    assert done.code == 0, done.text


def delete(flyte: Flyte, name: str, *options: str) -> None:
    assert flyte("delete", "secret", name, *options).code == 0


@pytest.fixture
def in_variable(flyte: Flyte) -> Iterator[str]:
    value = new_value()
    create(flyte, "in-variable", value)
    yield value
    delete(flyte, "in-variable")


def test_a_secret_is_created_shown_listed_and_deleted(flyte: Flyte) -> None:
    value = new_value()
    create(flyte, "shown", value)
    create(flyte, "shown-too", value, *PROJECT)

    clash = flyte("create", "secret", "shown", "--value", "other")
    one, every, here = flyte.all(
        "--output-format json get secret shown",
        "--output-format json get secret",
        f"--output-format json get secret {' '.join(PROJECT)}",
    )
    assert clash.code != 0 and "already exists" in clash.text.lower(), clash.text
    assert "'name': 'shown'" in one.text and "'overallStatus': 'FULLY_PRESENT'" in one.text
    assert "'name': 'shown'" in every.text and "'name': 'shown-too'" in every.text
    assert "'name': 'shown-too'" in here.text and "'name': 'shown'" not in here.text
    assert not [done for done in (one, every, here, clash) if value in done.text]

    delete(flyte, "shown")
    delete(flyte, "shown-too", *PROJECT)
    gone, again = flyte.all("get secret shown", "delete secret shown")
    assert gone.code != 0 and "secret shown not found" in gone.text
    assert again.code != 0 and "secret shown not found" in again.text


def test_an_image_pull_secret_keeps_its_type(flyte: Flyte) -> None:
    made = flyte(
        *("create", "secret", "registry", "--type", "image_pull"),
        *("--registry", "registry.test", "--username", "ada", "--password", "unused"),
    )
    assert made.code == 0, made.text

    shown = flyte("--output-format", "json", "get", "secret", "registry")
    assert "'type': 'SECRET_TYPE_IMAGE_PULL_SECRET'" in shown.text
    delete(flyte, "registry")


def test_a_task_has_its_secret_in_a_variable_and_the_next_run_the_new_value(flyte: Flyte, sdk: Sdk) -> None:
    old, new = new_value(), new_value("☂")
    create(flyte, "in-variable", old)
    assert sdk.run("secretive.variable").result() == digest(old)

    delete(flyte, "in-variable")
    create(flyte, "in-variable", new)
    assert sdk.run("secretive.variable").result() == digest(new)
    delete(flyte, "in-variable")


def test_the_secret_of_the_project_goes_before_that_of_the_organization(flyte: Flyte, sdk: Sdk) -> None:
    wide, domain, narrow = new_value("wide"), new_value("domain"), new_value("narrow")
    create(flyte, "wide", wide)
    create(flyte, "narrow", wide)
    create(flyte, "narrow", domain, "--domain", "development")
    assert sdk.run("secretive.variables").result() == [digest(wide), digest(domain)]

    create(flyte, "narrow", narrow, *PROJECT)
    assert sdk.run("secretive.variables").result() == [digest(wide), digest(narrow)]
    for name, options in (("wide", ()), ("narrow", ()), ("narrow", ("--domain", "development")), ("narrow", PROJECT)):
        delete(flyte, name, *options)


def test_a_task_has_its_secrets_in_files_that_go_with_the_attempt(
    flyte: Flyte, sdk: Sdk, server: Server, tmp_path: Path
) -> None:
    binary = b"\xff\x00" + secrets.token_bytes(64)
    (tmp_path / "binary").write_bytes(binary)
    named = new_value()
    assert flyte("create", "secret", "in-file", "--from-file", str(tmp_path / "binary")).code == 0
    create(flyte, "of-group", named)

    run = sdk.run("secretive.files")
    first, second, folder_mode, file_mode, folder = run.result()
    assert [first, second] == [digest(binary), digest(named)]
    assert (folder_mode, file_mode) == ("0o700", "0o400")
    assert Path(folder).is_relative_to(server.data_dir)
    assert f"the files of secrets are in {folder}" in "".join(sdk.call("logs", run=run.run))
    for name in ("in-file", "of-group"):
        delete(flyte, name)


def test_a_process_that_is_not_forked_has_its_secret_too(sdk: Sdk, in_variable: str) -> None:
    assert sdk.run("secretive.cold_variable").result() == digest(in_variable)


def test_a_missing_secret_fails_the_action_and_is_named_with_its_scopes(sdk: Sdk, in_variable: str) -> None:
    failed = sdk.run("secretive.never")

    assert failed.phase == "failed"
    assert len(failed.attempts) == 1
    assert "the secret 'never-made' does not exist in the project flytesnacks/development" in failed.error
    assert "in the domain development or in the organization" in failed.error
    assert in_variable not in str(failed.details)


def test_a_secret_does_not_replace_a_variable_of_the_server(sdk: Sdk, in_variable: str) -> None:
    assert "RUN_NAME, a variable that the server sets itself" in sdk.run("secretive.refused").error


def test_a_value_is_nowhere_but_in_the_attempt(sdk: Sdk, server: Server, in_variable: str) -> None:
    """Neither in the data folder (database, store, logs, attempts), nor in the server's log, nor in `ps`."""
    run = sdk.start("secretive.variable_while", seconds=2.0)
    sdk.until(run, lambda lines: lines[0].phase == "running")

    assert found([*Path("/proc").glob("[0-9]*/cmdline")], in_variable) == []
    assert found(server.folder.rglob("*"), in_variable) == []
    assert sdk.finish(run).result() == digest(in_variable)
    assert found(server.folder.rglob("*"), in_variable) == []


def found(paths: Iterable[Path], value: str) -> list[Path]:
    """Those whose content has the value, as it is or as JSON would carry its bytes."""
    encoded = value.encode()
    return [
        path for path in paths for content in [content_of(path)] if encoded in content or b64encode(encoded) in content
    ]


def content_of(path: Path) -> bytes:
    """Nothing for a folder, a pipe, and what has gone meanwhile."""
    try:
        return path.read_bytes() if path.is_file() else b""
    except OSError:
        return b""
