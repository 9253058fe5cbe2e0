"""What tests ask the SDK to do, and what they get to see: the near end of the driver process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
DEADLINE_SECONDS = 60
_POLL_SECONDS = 0.05


class SdkError(AssertionError):
    """The SDK raised; `type`, `code` and `message` are those of its exception."""

    def __init__(self, failed: dict[str, Any], trace: str) -> None:
        super().__init__(trace)
        self.type: str = failed["type"]
        self.code: str | None = failed["code"]
        self.message: str = failed["message"]


@dataclass(frozen=True)
class Look:
    """An action as `flyte.remote` shows it."""

    details: dict[str, Any]
    """The message in its JSON form, with words instead of `ACTION_PHASE_` and the like where properties say so."""
    inputs: dict[str, Any]
    outputs: list[Any]
    raised: str | None = None
    """The class that `raise_for_status` raised."""

    @property
    def run(self) -> str:
        return self.details["id"]["run"]["name"]

    @property
    def name(self) -> str:
        return self.details["id"]["name"]

    @property
    def phase(self) -> str:
        return phase(self.details["status"])

    @property
    def error(self) -> str:
        """`kind: message`, or nothing."""
        info = self.details.get("errorInfo")
        return f"{info.get('kind', '').removeprefix('KIND_').lower()}: {info.get('message', '')}" if info else ""

    @property
    def attempts(self) -> list[dict[str, Any]]:
        return self.details.get("attempts", [])

    @property
    def cache_status(self) -> str:
        return self.details["status"].get("cacheStatus", "")

    def result(self) -> Any:
        """The only output. Raises `AssertionError` that tells what went wrong instead."""
        assert self.phase in ("succeeded", "recovered"), f"{self.phase}: {self.error or self.details}"
        (output,) = self.outputs
        return output


@dataclass(frozen=True)
class Line:
    """An action as the list of a run's actions shows it."""

    name: str
    task: str
    """Short name of the task, trace or condition."""
    phase: str
    parent: str
    group: str
    attempts: int

    @classmethod
    def from_dict(cls, action: dict[str, Any]) -> Line:
        metadata = action["metadata"]
        kind: dict[str, Any] = metadata.get("task") or metadata.get("trace") or metadata.get("condition") or {}
        return cls(
            name=action["id"]["name"],
            task=kind.get("shortName") or kind.get("name", ""),
            phase=phase(action["status"]),
            parent=metadata.get("parent", ""),
            group=metadata.get("group", ""),
            attempts=action["status"].get("attempts", 0),
        )


def phase(status: dict[str, Any]) -> str:
    return status["phase"].removeprefix("ACTION_PHASE_").lower()


class Sdk:
    """A driver process that talks to one server."""

    def __init__(self, config: Path, home: Path, variables: Mapping[str, str] | None = None) -> None:
        """`variables` are more of the driver's environment."""
        self._pending: dict[int, Future[dict[str, Any]]] = {}
        self._stderr = (home / "driver.log").open("a", encoding="utf-8")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.sdk.driver", str(config)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
            encoding="utf-8",
            cwd=ROOT,
            env={**client_environment(home), **(variables or {})},
        )
        self._reader = threading.Thread(target=self._read, name="driver-answers", daemon=True)
        self._reader.start()

    def begin(self, verb: str, /, **arguments: Any) -> Future[dict[str, Any]]:
        """Asks, without waiting for the answer: a dictionary with `answer` or `failed`, and `seconds`."""
        number = len(self._pending)
        future = self._pending[number] = Future[dict[str, Any]]()
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"id": number, "verb": verb, "arguments": arguments}) + "\n")
        self._process.stdin.flush()
        return future

    def call(self, verb: str, /, **arguments: Any) -> Any:
        return settled(self.begin(verb, **arguments))

    def start(self, task: str, /, options: dict[str, Any] | None = None, **inputs: Any) -> str:
        """The name of a new run of `module.task` in `programs/`."""
        return self.call("start", task=task, inputs=inputs, options=options)

    def run(self, task: str, /, options: dict[str, Any] | None = None, **inputs: Any) -> Look:
        """A run from its start to its end."""
        return self.finish(self.start(task, options=options, **inputs))

    def finish(self, run: str) -> Look:
        return Look(**self.call("finish", run=run))

    def look(self, run: str, action: str = "a0") -> Look:
        return Look(**self.call("look", run=run, action=action))

    def actions(self, run: str) -> list[Line]:
        """In the order of their creation, the root first."""
        return [Line.from_dict(action) for action in self.call("actions", run=run)]

    def until(self, run: str, condition: Callable[[list[Line]], Any], seconds: float = DEADLINE_SECONDS) -> list[Line]:
        """The run's actions as soon as they are so. Raises `AssertionError` with what they are at the deadline."""
        deadline = time.monotonic() + seconds
        while not condition(actions := self.actions(run)):
            assert time.monotonic() < deadline, f"not within {seconds} s: {actions}"
            time.sleep(_POLL_SECONDS)
        return actions

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:  # a test that failed left a request without an answer
            self._process.kill()
            self._process.wait()
        self._reader.join()
        self._process.stdout.close()
        self._stderr.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            self._pending[answer["id"]].set_result(answer)
        for future in self._pending.values():
            if not future.done():
                future.set_exception(AssertionError(f"the driver ended, see {self._stderr.name}"))


def settled(future: Future[dict[str, Any]], seconds: float = DEADLINE_SECONDS) -> Any:
    """The answer. Raises `SdkError`, and `TimeoutError` after the deadline."""
    answer = future.result(timeout=seconds)
    if "failed" in answer:
        raise SdkError(answer["failed"], answer["traceback"])
    return answer["answer"]


def until(condition: Callable[[], Any], what: str, seconds: float = DEADLINE_SECONDS) -> None:
    """Waits for something outside of the SDK's reach. Raises `AssertionError` at the deadline."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(_POLL_SECONDS)


def client_environment(home: Path) -> dict[str, str]:
    """Of the SDK and the CLI: a home of their own, and nothing of the developer's settings."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "DO_NOT_TRACK": "1",
        "COLUMNS": "4000",
    }
