"""The files of an attempt's folder: names, atomic writing, and who writes them.

attempt.json   the server, once, at the claim; its `flock` is held for as long as the attempt lives
request.json   the server; argv, environment and working folder, read and removed by the child
started.json   the supervisor, once the child exists
environment.json   the server; which environment was built for the attempt's image, if one was
stop.json      the server; the control pipe only says "look"
exit.json      whoever saw the end (the supervisor; the server for an attempt that cannot start)
control        named pipe on which the supervisor is told to look
output.log     what the child printed; output.index: when
work, home     the child's working folder and HOME
secrets        files that the child asked for, for nobody else
"""

from __future__ import annotations

import json
import os
import resource
import sys
from typing import Any

ATTEMPT = "attempt.json"
REQUEST = "request.json"
STARTED = "started.json"
ENVIRONMENT = "environment.json"
STOP = "stop.json"
EXIT = "exit.json"
CONTROL = "control"
LOG = "output.log"
INDEX = "output.index"
WORK = "work"
HOME = "home"
SECRETS = "secrets"


def write_json(path: str, value: dict[str, Any]) -> None:  # Any: JSON
    """Replace the file as a whole; readable by its owner only, since environments hold secrets."""
    temporary = f"{path}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        data = json.dumps(value).encode()
        while data:
            data = data[os.write(descriptor, data) :]
    finally:
        os.close(descriptor)
    os.replace(temporary, path)


def read_json(path: str) -> dict[str, Any] | None:  # Any: JSON
    """None for a file that is absent, or broken (a machine that lost power while it was written)."""
    try:
        with open(path, "rb") as file:
            value = json.loads(file.read())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return value if isinstance(value, dict) else None  # pyright: ignore[reportUnknownVariableType]  # JSON


def close_from(first: int) -> None:
    """`os.closerange` makes a system call for each possible number where Python was built for an old C library."""
    for name in os.listdir("/dev/fd"):
        if int(name) >= first:
            try:
                os.close(int(name))
            except OSError:  # that of the listing itself
                continue


def usage_from(usage: resource.struct_rusage) -> dict[str, float]:
    """What the kernel counted for a process that was waited for, as `exit.json` holds it."""
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "max_resident_bytes": usage.ru_maxrss * unit,
        "user_seconds": usage.ru_utime,
        "system_seconds": usage.ru_stime,
    }


def send_hint(pipe: str, message: str) -> None:
    """Tell whichever server listens that something changed; lost when none does, or it is behind."""
    try:
        descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    try:
        os.write(descriptor, f"{message}\n".encode())
    except OSError:
        pass
    finally:
        os.close(descriptor)
