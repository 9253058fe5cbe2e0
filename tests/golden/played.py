"""Plays conversations against a served backend, each once, after what it needs, and keeps our recordings of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import httpx

from tests.golden import scenarios
from tests.golden.distil import FIXTURES
from tests.golden.normalise import Ids, Json, normalise
from tests.golden.recorder import Recording
from tests.golden.replay import replay

ROOT = Path(__file__).parents[2]


class Played:
    """Our side of the comparison. `recording` is fed by recorders in front of the backend at `base_url`, whose data
    are in `home/data`."""

    def __init__(self, base_url: str, sdk_url: str, recording: Recording, home: Path) -> None:
        self._base_url = base_url
        self._store = str(home / "data" / "store")
        self._recording = recording
        self._names: dict[str, list[str]] = {}
        self._calls: dict[str, list[Json]] = {}
        self.raw: dict[str, list[Json]] = {}
        """Recordings of driven scenarios as they were made, with their times."""
        self._log = (home / "driver.log").open("w", encoding="utf-8")
        self._driver = subprocess.Popen(
            [sys.executable, "-m", "tests.golden.drivers", sdk_url, base_url, str(home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "HOME": str(home), "DO_NOT_TRACK": "1", "LANG": "C.UTF-8"},
        )

    def close(self) -> None:
        """Ends the driver."""
        assert self._driver.stdin is not None and self._driver.stdout is not None
        self._driver.stdin.close()
        try:
            self._driver.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._driver.kill()
            self._driver.wait()
        self._driver.stdout.close()
        self._log.close()

    def calls(self, scenario: str) -> list[Json]:
        """Our normalised recording of a scenario; plays it, and before it what it needs, if that has not happened."""
        if scenario not in self._calls:
            about = scenarios.REPLAYED.get(scenario, ())
            for needed in (*about, *scenarios.NEEDS.get(scenario, ())):
                self.calls(needed)
            replayed = scenario in scenarios.REPLAYED
            self._calls[scenario] = self._replay(scenario) if replayed else self._drive(scenario)
        return self._calls[scenario]

    def _replay(self, scenario: str) -> list[Json]:
        names: list[str] = []
        for about in scenarios.REPLAYED[scenario]:
            run, *children = self._names[about]
            names += [run, *(children if scenario in scenarios.OLDEST_FIRST else reversed(children))]
        return replay(self._base_url, fixture(scenario), Ids.numbering(names), store=self._store)

    def _drive(self, scenario: str) -> list[Json]:
        self._recording.take()
        answer = self._ask(scenario)
        if "failed" in answer:
            raise AssertionError(f"the SDK could not play {scenario}:\n{answer['failed']}")
        self._settle()
        recorded = self._recording.take()
        children = [call["request"]["action"]["actionId"]["name"] for call in recorded if "Enqueue" in call["method"]]
        self._names[scenario] = [answer["run"] or "", *children]
        self.raw[scenario] = recorded
        return normalise(recorded)

    def _ask(self, scenario: str) -> Json:
        assert self._driver.stdin is not None and self._driver.stdout is not None
        self._driver.stdin.write(f"{scenario}\n")
        self._driver.stdin.flush()
        for line in self._driver.stdout:
            if line.startswith(scenarios.MARK):
                return json.loads(line.removeprefix(scenarios.MARK))
        raise AssertionError(f"the driver ended during {scenario}, see {self._log.name}")

    def _settle(self) -> None:
        """Waits for runs that the driver did not wait for, and for calls of tasks whose processes are about to go."""
        deadline = time.monotonic() + 10
        while (self._recording.open or self._unfinished()) and time.monotonic() < deadline:
            time.sleep(0.02)

    def _unfinished(self) -> bool:
        """Whether any run is not final, asked past the recorder."""
        going = {"field": "phase", "function": "VALUE_IN", "values": ["1", "2", "3", "4", "9"]}
        request = {"request": {"limit": 1, "filters": [going]}}
        answer = httpx.post(f"{self._base_url}/flyteidl2.workflow.RunService/ListRuns", json=request)
        return bool(answer.raise_for_status().json().get("runs"))


def fixture(scenario: str) -> list[Json]:
    """The reference's side: its normalised recording."""
    return json.loads((FIXTURES / f"{scenario}.json").read_text(encoding="utf-8"))
