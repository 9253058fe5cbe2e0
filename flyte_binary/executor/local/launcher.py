"""From an `AttemptSpec` to a process: claim, folder, bundle, environment, order to the supervisor."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from flyte_binary.domain.apps import is_replica
from flyte_binary.domain.errors import Unavailable
from flyte_binary.executor.backend import AttemptSpec
from flyte_binary.executor.build_image import is_build
from flyte_binary.executor.compatibility import is_default_image
from flyte_binary.executor.local.bundles import Bundles, InvalidBundle
from flyte_binary.executor.local.environment import attempt_environment
from flyte_binary.executor.local.environments.environments import Environments
from flyte_binary.executor.local.folders import Folders, copy_missing, remove_tree
from flyte_binary.executor.local.fork_servers import ForkServers
from flyte_binary.executor.local.interpreter import Interpreter
from flyte_binary.executor.local.program import files
from flyte_binary.executor.local.program.output import Output
from flyte_binary.executor.local.program.programs import FORKABLE
from flyte_binary.executor.local.secrets import Placement, SecretProblem, place_secrets, write_files
from flyte_binary.executor.local.settings import LocalSettings
from flyte_binary.executor.local.supervisor import NotLaunched, Order, SupervisorLink
from flyte_binary.executor.local.threads import LocalThreads
from flyte_binary.executor.secrets import FOLDER_VARIABLE, SecretValues

_log = structlog.get_logger(__name__)

_MOUNT = "/etc/flyte/secrets"
"""Where they are in a container, as the SDK says."""


@dataclass(frozen=True, slots=True)
class _Impossible:
    """The attempt can never start as specified."""

    sentence: str
    """For the user."""


@dataclass(frozen=True, slots=True)
class _Program:
    command: list[str]
    environment: Mapping[str, str] = field(repr=False)
    secrets: Placement


class Launcher:
    def __init__(
        self,
        settings: LocalSettings,
        *,
        folders: Folders,
        bundles: Bundles,
        fork_servers: ForkServers,
        supervisor: Callable[[], Awaitable[SupervisorLink]],
        interpreter: Callable[[str], Awaitable[Interpreter]],
        threads: LocalThreads,
        environments: Environments | None,
        secrets: SecretValues | None,
    ) -> None:
        self._settings = settings
        self._folders = folders
        self._bundles = bundles
        self._fork_servers = fork_servers
        self._supervisor = supervisor
        self._interpreter = interpreter
        self._threads = threads
        self._environments = environments
        self._secrets = secrets

    async def launch(self, spec: AttemptSpec) -> bool:
        """False if this launch has been before. Raises `Unavailable`."""
        interpreter = await self._interpreter(spec.image)
        folder = self._folders.path(spec.id)
        program = await self._program_with_secrets(spec, interpreter, folder)
        reason = ""
        for forked in (True, False):
            lock = await self._threads.run(lambda: self._claim(spec, folder, interpreter, program))
            if lock is None:
                return False
            try:
                if isinstance(program, _Impossible):
                    await self._threads.run(lambda: _refuse(spec, folder, program))
                else:
                    await self._start(spec, lock, folder, interpreter, program, forked=forked)
                return True
            except InvalidBundle as error:
                _log.warning("code_bundle_refused", attempt=str(spec.id), reason=str(error))
                await self._threads.run(lambda error=error: _refuse(spec, folder, _Impossible(str(error))))
                return True
            except NotLaunched as error:
                reason = str(error)
                _log.warning("launch_failed", attempt=str(spec.id), reason=reason)
            except OSError as error:
                await self._threads.run(lambda: _withdraw(folder))
                raise Unavailable(f"attempt {spec.id} cannot be started now: {error}") from error
            finally:
                os.close(lock)
        await self._threads.run(lambda: _withdraw(folder))
        raise Unavailable(f"attempt {spec.id} cannot be started now: {reason}")

    async def _program_with_secrets(
        self, spec: AttemptSpec, interpreter: Interpreter, folder: Path
    ) -> _Program | _Impossible:
        try:
            secrets = await place_secrets(spec, self._secrets, folder / files.SECRETS)
        except SecretProblem as problem:
            return _Impossible(str(problem))
        return self._program(spec, interpreter, folder, secrets)

    def _program(
        self, spec: AttemptSpec, interpreter: Interpreter, folder: Path, secrets: Placement
    ) -> _Program | _Impossible:
        if is_build(spec.argv):
            if self._environments is None:
                return _Impossible("this server does not build images")
            environment = {**self._environments.variables(spec), **secrets.variables}
            return _Program(self._environments.command(), environment, secrets)
        environment = attempt_environment(
            self._settings, interpreter.path, folder, {**spec.env, **secrets.variables}, image=interpreter.variables
        )
        command = _command(interpreter, spec.argv, environment)
        return command if isinstance(command, _Impossible) else _Program(command, environment, secrets)

    def _claim(
        self,
        spec: AttemptSpec,
        folder: Path,
        interpreter: Interpreter,
        program: _Program | _Impossible,
    ) -> int | None:
        lock = self._folders.claim(spec.id, spec.nonce)
        if lock is None or isinstance(program, _Impossible):
            return lock
        sdk = interpreter.command(spec.argv) is not None
        request: dict[str, object] = {
            "executable": program.command[0],
            "argv": program.command,
            "env": dict(program.environment),
            "python": str(interpreter.path) if sdk else "",
        }
        try:
            write_files(program.secrets, folder / files.SECRETS)
            _prepare(folder, spec, request, self._notices(spec, interpreter, program.secrets, folder))
            if interpreter.work is not None:
                files.write_json(str(folder / files.ENVIRONMENT), {"folder": str(interpreter.work.parent)})
        except OSError as error:
            _withdraw(folder)
            os.close(lock)
            raise Unavailable(f"attempt {spec.id} cannot be started now: {error}") from error
        return lock

    def _notices(self, spec: AttemptSpec, interpreter: Interpreter, secrets: Placement, folder: Path) -> Sequence[str]:
        """The executor's, where files of secrets are, and once in a run that its image is not what runs."""
        notices = list(spec.notices)
        if secrets.files and spec.id.number == 1 and not is_build(spec.argv):
            notices.append(f"the files of secrets are in {folder / files.SECRETS} ({FOLDER_VARIABLE}), not in {_MOUNT}")
        image = spec.image
        is_first = (spec.id.action.is_root or is_replica(spec.id)) and spec.id.number == 1
        stands_for_all = interpreter.path == self._settings.interpreter and not is_build(spec.argv)
        if not image or is_default_image(image) or not (is_first and stands_for_all):
            return notices
        where = f"the image {image} is not built on this server; the task runs under {interpreter.path}"
        return [*notices, where]

    async def _start(
        self,
        spec: AttemptSpec,
        lock: int,
        folder: Path,
        interpreter: Interpreter,
        program: _Program,
        *,
        forked: bool,
    ) -> None:
        supervisor = await self._supervisor()
        # Without this program a cold process runs the module instead, and says so in its argv.
        forkable = {str(interpreter.path.with_name(name)) for name in FORKABLE}
        forked = forked and self._settings.fork_server and program.command[0] in forkable
        fork_server = await self._fork_servers.choose(interpreter, program.environment) if forked else None
        await self._fill(spec, interpreter, folder / files.WORK)
        order = Order(
            name=self._folders.name(spec.id),
            folder=folder,
            fork_server=fork_server,
            memory_limit_bytes=spec.memory_limit_bytes,
            log_limit_bytes=spec.log_limit_bytes,
        )
        await supervisor.launch(order, lock)

    async def _fill(self, spec: AttemptSpec, interpreter: Interpreter, work: Path) -> None:
        """The working folder: the code, and around it what the image brings. Raises `InvalidBundle`."""
        if is_build(spec.argv) and self._environments is not None:
            await self._environments.prepare(spec, work, interpreter)
            return
        await self._bundles.place(spec.bundle_uri, spec.argv, work)
        brought = interpreter.work
        if brought is not None:
            await self._threads.run(lambda: copy_missing(brought, work))


def _refuse(spec: AttemptSpec, folder: Path, why: _Impossible) -> None:
    """The attempt is over before it began, and its log and its state say why."""
    _withdraw(folder)
    now = time.time()
    output = Output(str(folder), spec.log_limit_bytes)
    output.note(why.sentence, now)
    output.close(now)
    files.write_json(
        str(folder / files.EXIT),
        {"exit_code": None, "out_of_memory": False, "reason": why.sentence, "invalid": True, "ended_at": now},
    )


def _withdraw(folder: Path) -> None:
    """What only the attempt's process may read, and no process will."""
    (folder / files.REQUEST).unlink(missing_ok=True)
    remove_tree(folder / files.SECRETS)


def _prepare(folder: Path, spec: AttemptSpec, request: dict[str, object], notices: Sequence[str]) -> None:
    for name in (files.WORK, files.HOME):
        (folder / name).mkdir(0o700)
    os.mkfifo(folder / files.CONTROL, 0o600)
    files.write_json(str(folder / files.REQUEST), {**request, "cwd": str(folder / files.WORK)})
    if notices:
        now = time.time()
        output = Output(str(folder), spec.log_limit_bytes)
        for notice in notices:
            output.note(notice, now)
        output.close(now)


def _command(
    interpreter: Interpreter, argv: tuple[str, ...], environment: Mapping[str, str]
) -> list[str] | _Impossible:
    command = interpreter.command(argv)
    if command is not None:
        if interpreter.problem:
            return _Impossible(interpreter.problem)
        return command
    if "/" in argv[0] and not argv[0].startswith("/"):
        return list(argv)  # in the working folder, from the bundle
    program = shutil.which(argv[0], path=environment["PATH"])
    if program is None:
        return _Impossible(
            f"the task's command {argv[0]!r} is not on this machine (PATH {environment['PATH']});"
            " the local executor runs processes, not containers"
        )
    return [program, *argv[1:]]
