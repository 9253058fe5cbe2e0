"""Ending what a killed supervisor left running, before its attempt is called absent."""

from __future__ import annotations

import os
import signal

from flyte_binary.executor.local.folders import Found
from flyte_binary.executor.local.program.platforms import Platform


def kill_remains(found: Found, platform: Platform) -> None:
    """The process is the one noted at the start only if its birth is the same, so no other is hit."""
    if found.started is None:
        return
    pid, birth = found.started["pid"], found.started["birth"]
    if not birth or platform.birth(pid) != birth:
        return
    for member in (*platform.descendants(pid), pid):
        try:
            os.kill(member, signal.SIGKILL)
        except ProcessLookupError:
            continue
