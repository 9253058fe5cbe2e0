"""What the server says to the person who started it at a terminal, and the one thing it asks: what Ctrl-C should do."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TextIO
from urllib.parse import urlsplit

from flyte_binary import __version__


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a user needs to know to go on, known once the server is ready."""

    url: str
    """Scheme, host and port that it listens on."""
    data_dir: Path
    interpreter: Path
    interpreter_note: str = ""
    """About the interpreter, such as `Python 3.11.7, flyte 2.12.1`."""
    console_path: str = "/v2"
    project: str = "flytesnacks"
    domain: str = "development"
    adopted: int = 0
    """Attempts that an earlier server had left running."""


def banner(facts: Facts) -> str:
    """One block of lines to print at start."""
    note = f" ({facts.interpreter_note})" if facts.interpreter_note else ""
    rows = [
        ("Address", facts.url),
        ("Console", facts.url + facts.console_path),
        ("Connect", config_command(facts.url, project=facts.project, domain=facts.domain)),
        ("Data", str(facts.data_dir)),
        ("Tasks run", f"under {facts.interpreter}{note}"),
    ]
    if facts.adopted:
        rows.append(("Adopted", f"{_tasks(facts.adopted)} that an earlier start had left running"))
    lines = [f"  {name:<11}{text}" for name, text in rows]
    return "\n".join([f"flyte-binary {__version__} is ready.", *lines, ""])


def config_command(url: str, *, project: str, domain: str) -> str:
    """The command that points the unmodified CLI here.

    A loopback address is written `localhost`: from an address like `127.0.0.1` the CLI derives the organisation "127".
    The remote builder asks this server for images, so that an image with packages needs no Docker.
    """
    parts = urlsplit(url)
    host = "localhost" if parts.hostname in ("127.0.0.1", "::1") else parts.hostname
    host = f"[{host}]" if host and ":" in host else host
    endpoint = f"{host}:{parts.port}" if parts.port else f"{host}"
    insecure = "" if parts.scheme == "https" else " --insecure"
    return f"flyte create config --endpoint {endpoint}{insecure} --project {project} --domain {domain} --builder remote"


class Quit(Enum):
    """What to do after Ctrl-C."""

    STOP = "stop"
    """Stop the running tasks, then the server."""
    KEEP = "keep"
    """Stop the server only; the tasks go on and the next start takes them over."""
    GO_ON = "go on"
    """Not to stop at all."""


_ANSWERS = {
    **dict.fromkeys(("", "s", "stop", "y", "yes"), Quit.STOP),
    **dict.fromkeys(("k", "keep"), Quit.KEEP),
    **dict.fromkeys(("c", "continue", "n", "no"), Quit.GO_ON),
}


def is_interactive(stdin: TextIO, stdout: TextIO) -> bool:
    """Whether there is a person to ask."""
    return not stdin.closed and not stdout.closed and stdin.isatty() and stdout.isatty()


async def ask_to_quit(running: int, *, stdin: TextIO, stdout: TextIO, again: asyncio.Event) -> Quit:
    """Ask until there is an answer; the server goes on serving meanwhile.

    `running` is the number of tasks; with none there is nothing to ask. `again` is set by a second Ctrl-C, which, like
    the end of the input, means stop. The input must be a file descriptor of its own (a terminal or a pipe).
    """
    if running == 0:
        return Quit.STOP
    question = f"\n{_tasks(running)} still running: [s]top and quit, [k]eep running and quit, or [c]ontinue serving? "
    lines = _LineReader(stdin.fileno())
    try:
        while True:
            stdout.write(question)
            stdout.flush()
            line = await lines.next_or(again)
            if line is None:
                return Quit.STOP
            if (answer := _ANSWERS.get(line.strip().lower())) is not None:
                return answer
            question = "Please answer s, k or c: "
    finally:
        lines.close()


class _LineReader:
    """Lines of a descriptor as the event loop sees them: no thread that a silent terminal could block for ever."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._buffer = b""
        self._ended = False
        self._changed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(descriptor, self._read)

    async def next_or(self, again: asyncio.Event) -> str | None:
        """The next line, or None at the end of the input or once `again` is set."""
        interrupted = asyncio.create_task(again.wait(), name="second-interrupt")
        try:
            while b"\n" not in self._buffer and not self._ended and not again.is_set():
                self._changed.clear()
                changed = asyncio.create_task(self._changed.wait(), name="terminal-line")
                try:
                    await asyncio.wait({changed, interrupted}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    changed.cancel()
        finally:
            interrupted.cancel()
        if again.is_set() or b"\n" not in self._buffer:
            return None
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode(errors="replace")

    def close(self) -> None:
        self._loop.remove_reader(self._descriptor)

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, 4096)
        except OSError:  # the terminal is gone
            data = b""
        self._buffer += data
        if not data:
            self._ended = True
            self.close()
        self._changed.set()


def _tasks(count: int) -> str:
    return "1 task" if count == 1 else f"{count} tasks"
