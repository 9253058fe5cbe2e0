"""From a fresh fork to the attempt's own process: session, output, signals, environment, folder.

Warm and cold attempts go through the same steps; a cold one then executes its command, a warm one
returns into the interpreter that has the SDK imported (`main.run`).
"""

from __future__ import annotations

import atexit
import os
import random
import resource
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

from . import cold, files
from .platforms import Platform

_CANNOT_EXECUTE = 127
_CANNOT_FLUSH = 120
"""What Python itself exits with when its standard output cannot be written at the end."""
_DEFAULT_SIGNALS = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGCHLD,
    signal.SIGPIPE,
    signal.SIGXFSZ,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


def run_cold(folder: str, output: int, platform: Platform, files_limit: tuple[int, int]) -> NoReturn:
    """In a fork of the supervisor; does not return."""
    try:
        signal.set_wakeup_fd(-1)
        resource.setrlimit(resource.RLIMIT_NOFILE, files_limit)
        request = _enter(folder, output, platform)
        executable, argv = request["executable"], request["argv"]
        if request["python"]:
            executable, argv = request["python"], cold.command(request["python"], argv)
        os.execve(executable, argv, request["env"])
    except BaseException as error:  # noqa: BLE001  # whatever it is, this process must not go on as a second supervisor
        os.write(2, f"[flyte-binary] The attempt could not be started: {error}\n".encode())
    finally:
        os._exit(_CANNOT_EXECUTE)


def enter_warm(folder: str, output: int, platform: Platform) -> None:
    """In a fork of the fork server: afterwards this process is what a cold `a0` is when it comes to its `main`."""
    request = _enter(folder, output, platform)
    argv: list[str] = request["argv"]
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    tempfile.tempdir = None
    random.seed()
    sys.argv[:] = [request["executable"], *argv[1:]]
    sys.orig_argv[:] = [sys.executable, *sys.argv]
    sys.path.insert(0, os.path.dirname(request["executable"]))
    sys.path_importer_cache.pop("", None)
    platform.show_as([sys.executable, *sys.argv])
    main = ModuleType("__main__")  # multiprocessing's spawn looks here for what to import again
    main.__file__ = request["executable"]
    sys.modules["__main__"] = main


def _enter(folder: str, output: int, platform: Platform) -> dict[str, Any]:  # Any: JSON
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.setsid()
    platform.contain()
    _reset_signals()
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    path = os.path.join(folder, files.REQUEST)
    request = files.read_json(path)
    files.close_from(3)
    if request is None:
        raise FileNotFoundError(path)
    os.unlink(path)
    os.chdir(request["cwd"])
    return request


def _reset_signals() -> None:
    for number in _DEFAULT_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def python_signals() -> None:
    """What an interpreter sets at its own start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def run_to_exit(main: Callable[[], object]) -> NoReturn:
    """Run and leave as the interpreter does, but for taking the modules apart, which costs 30 ms
    and unshares the memory that the fork shares."""
    code = _exit_code(main)
    interpreter: Any = threading  # Any: what follows is Python's own way out, and has no public names
    interpreter._shutdown()  # waits for the threads that are no daemons
    interpreter = atexit
    interpreter._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            code = code or _CANNOT_FLUSH
    os._exit(code)


def _exit_code(main: Callable[[], object]) -> int:
    try:
        main()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 0xFF
        print(end.code, file=sys.stderr)  # noqa: T201  # what the interpreter does with it
        return 1
    except BaseException as error:  # noqa: BLE001  # the interpreter's own last resort
        below = error.__traceback__.tb_next if error.__traceback__ else None
        try:
            sys.excepthook(type(error), error, below)
        except Exception:  # noqa: BLE001  # of a hook that user code has set
            traceback.print_exc()
        return 1
    return 0
