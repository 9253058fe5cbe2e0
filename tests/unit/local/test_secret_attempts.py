"""Attempts that have secrets, forked and cold: where a value is while they run, and that nothing of it stays."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from flyte_binary.domain.errors import Unavailable
from flyte_binary.executor.backend import AttemptPhase, AttemptSpec
from flyte_binary.executor.local.backend import LocalBackend
from flyte_binary.executor.local.folders import Folders
from flyte_binary.executor.local.program import files
from flyte_binary.executor.secrets import SecretRequest
from tests.fakes.local_attempts import Attempts

pytestmark = pytest.mark.asyncio(loop_scope="module")

VALUE = "5ecret-of-the-test"
IN_VARIABLE = SecretRequest(key="in-variable", variable="TOKEN")
IN_FILE = SecretRequest(key="in-file", as_file=True)
KINDS = [pytest.param("forked", marks=pytest.mark.linux), "cold", "portable"]


class Values:
    def __init__(self) -> None:
        self.away = False

    async def values(self, _project: str, _domain: str, names: Collection[str]) -> Mapping[str, bytes]:
        if self.away:
            raise Unavailable("the database is away")
        return {name: VALUE.encode() for name in names if name.startswith("in-")}


class WithSecrets(Attempts):
    def __init__(self, folder: Path, kind: str) -> None:
        super().__init__(folder, kind)
        self.values = Values()
        self.backend = LocalBackend(self.settings, self.store, secrets=self.values)


@pytest_asyncio.fixture(params=KINDS, scope="module", loop_scope="module")
async def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[WithSecrets]:
    if request.param == "forked" and sys.platform != "linux":
        pytest.skip("needs Linux")
    attempts = WithSecrets(tmp_path_factory.mktemp(request.param), request.param)
    await attempts.backend.start()
    yield attempts
    await attempts.backend.stop_serving()


@pytest_asyncio.fixture(loop_scope="module")
async def attempts(served: WithSecrets) -> AsyncIterator[WithSecrets]:
    yield served
    await served.clear()


def folder_of(attempts: WithSecrets, spec: AttemptSpec) -> Path:
    return Folders(attempts.settings.attempts).path(spec.id)


def files_with_the_value(folder: Path) -> set[str]:
    found = [path for path in folder.rglob("*") if path.is_file() and VALUE.encode() in path.read_bytes()]
    return {str(path.relative_to(folder)) for path in found}


def command_lines() -> bytes:
    """Of all processes of this machine, as `ps` shows them."""
    found = b""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # ended meanwhile
            found += path.read_bytes()
    return found


async def test_while_an_attempt_runs_the_value_is_in_its_variable_and_its_file_and_nowhere_else(
    attempts: WithSecrets,
) -> None:
    code = (
        "import os, time\n"
        "value = os.environ['TOKEN']\n"
        "file = open(os.path.join(os.environ['FLYTE_SECRETS_DEFAULT_DIR'], 'in-file')).read()\n"
        "print('the same' if value == file else 'different', len(value), flush=True)\n"
        "time.sleep(600)"
    )
    spec = attempts.code(code, secrets=(IN_VARIABLE, IN_FILE))
    await attempts.backend.launch(spec)
    await attempts.printed(spec, f"the same {len(VALUE)}")

    folder = folder_of(attempts, spec)
    assert await asyncio.to_thread(files_with_the_value, attempts.folder) == {
        str((folder / files.SECRETS / "in-file").relative_to(attempts.folder))
    }
    if sys.platform == "linux":
        assert VALUE.encode() not in await asyncio.to_thread(command_lines)
    assert VALUE not in repr(spec)

    await attempts.clear()
    assert await asyncio.to_thread(files_with_the_value, attempts.folder) == set()


async def test_an_attempt_that_cannot_start_leaves_no_value_behind(attempts: WithSecrets) -> None:
    (attempts.folder / "broken.tar.gz").write_bytes(b"no archive")
    bundle = str(attempts.folder / "broken.tar.gz")
    spec = replace(attempts.leaf(secrets=(IN_VARIABLE, IN_FILE)), bundle_uri=bundle)
    state = await attempts.run(spec)

    assert state.invalid and VALUE not in state.reason
    assert await asyncio.to_thread(files_with_the_value, attempts.folder) == set()


async def test_a_missing_secret_ends_the_attempt_before_it_begins(attempts: WithSecrets) -> None:
    spec = attempts.code("print('not reached')", secrets=(IN_VARIABLE, SecretRequest(key="gone")))
    state = await attempts.run(spec)

    assert (state.phase, state.invalid) == (AttemptPhase.EXITED, True)
    assert "the secret 'gone' does not exist in the project flytesnacks/development" in state.reason
    log = "".join(await attempts.lines(spec.id))
    assert "the secret 'gone' does not exist" in log and "not reached" not in log


async def test_a_launch_without_the_vault_is_tried_again(attempts: WithSecrets) -> None:
    spec = attempts.code("print('ran')", secrets=(IN_VARIABLE,))
    attempts.values.away = True
    with pytest.raises(Unavailable, match="the database is away"):
        await attempts.backend.launch(spec)
    attempts.values.away = False

    assert (await attempts.run(spec)).exit_code == 0


async def test_a_restarted_server_finds_the_attempt_and_launches_it_no_second_time(attempts: WithSecrets) -> None:
    spec = attempts.code("import os; print(len(os.environ['TOKEN']))", secrets=(IN_VARIABLE,))
    await attempts.run(spec)
    await attempts.backend.launch(spec)

    assert (await attempts.lines(spec.id)).count(f"{len(VALUE)}\n") == 1
