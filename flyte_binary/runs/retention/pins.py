"""Which runs are kept although they are old: others refer to their outputs."""

from __future__ import annotations

import bisect
from collections.abc import Iterable

from flyte_binary.domain.ids import RunId
from flyte_binary.domain.locations import join


class Pins:
    def __init__(
        self, *, cached: Iterable[str], borrowed: Iterable[tuple[RunId, str]], of_artifacts: set[RunId]
    ) -> None:
        """Locations that the cache refers to, and those that runs do beside their own, with the run of each; the runs
        that artifacts come from."""
        self._of_artifacts = of_artifacts
        self._cached = sorted(cached)
        self._borrowed = sorted((uri, run) for run, uri in borrowed)

    def hold(self, run: RunId, folder: str) -> bool:
        """Whether an artifact, the cache or another run refers to something in the folder of the run."""
        if run in self._of_artifacts:
            return True
        if not folder:
            return False
        base = join(folder, "")
        first = bisect.bisect_left(self._cached, base)
        if first < len(self._cached) and self._cached[first].startswith(base):
            return True
        for place in range(bisect.bisect_left(self._borrowed, base, key=_uri), len(self._borrowed)):
            uri, borrower = self._borrowed[place]
            if not uri.startswith(base):
                return False
            if borrower != run:
                return True
        return False


def _uri(borrowed: tuple[str, RunId]) -> str:
    return borrowed[0]
