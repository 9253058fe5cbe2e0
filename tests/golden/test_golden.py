"""Our answers against the reference's recordings, conversation by conversation.

Each difference is a defect of ours or stands in `expected_differences.yaml` with its reason; an entry there that no
longer occurs is an error too, so that the file, and the page made from it, stay true.
"""

from __future__ import annotations

import json

import pytest

from tests.golden import expected, scenarios
from tests.golden.compare import Difference, differences
from tests.golden.played import Played, fixture

pytestmark = [pytest.mark.sdk, pytest.mark.timeout(300)]

EVERY = (*scenarios.DRIVEN, *scenarios.REPLAYED)


@pytest.fixture(scope="session")
def compared(played: Played) -> Compared:
    return Compared(played)


class Compared:
    """Differences of the scenarios compared so far, and which expectations they used."""

    def __init__(self, played: Played) -> None:
        self._played = played
        self._found: dict[str, list[Difference]] = {}
        self.expectations = expected.load()
        self.used: set[int] = set()

    def unexplained(self, scenario: str) -> list[Difference]:
        """Differences of a scenario that no expectation covers."""
        if scenario not in self._found:
            self._found[scenario] = differences(
                fixture(scenario), self._played.calls(scenario), call_by_call=scenario in scenarios.REPLAYED
            )
        left: list[Difference] = []
        for difference in self._found[scenario]:
            covering = {n for n, entry in enumerate(self.expectations) if entry.covers(scenario, difference)}
            self.used |= covering
            left += [] if covering else [difference]
        return left

    @property
    def scenarios(self) -> set[str]:
        """The scenarios compared so far."""
        return set(self._found)


@pytest.mark.parametrize("scenario", EVERY)
def test_we_answer_as_the_reference_does_but_for_the_deliberate_differences(scenario: str, compared: Compared) -> None:
    left = compared.unexplained(scenario)
    assert not left, "\n".join(_shown(difference) for difference in left)


def test_every_deliberate_difference_still_occurs(compared: Compared) -> None:
    stale = [
        f"{entry.title}: {entry.path}"
        for n, entry in enumerate(compared.expectations)
        if n not in compared.used and compared.scenarios >= {name for name in EVERY if entry.concerns(name)}
    ]
    assert not stale, "no longer seen, remove from expected_differences.yaml:\n" + "\n".join(stale)


def _shown(difference: Difference) -> str:
    reference, ours = (json.dumps(side, ensure_ascii=False)[:300] for side in (difference.reference, difference.ours))
    return f"{difference.kind} {difference.path}\n    reference {reference}\n    ours      {ours}"
