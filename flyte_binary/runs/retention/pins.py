"""Which runs are kept although they are old: others refer to their outputs."""

from __future__ import annotations

import bisect
from collections.abc import Iterable

from flyte_binary.db.retention import EndedRun
from flyte_binary.domain.ids import RunId
from flyte_binary.domain.locations import join


class Pins:
    def __init__(self, cached: Iterable[str], recovered: Iterable[tuple[RunId, str]]) -> None:
        """Locations that the cache refers to, and those that recovered actions do, with the run of each."""
        self._cached = sorted(cached)
        self._recovered = sorted((uri, run) for run, uri in recovered)

    def holds(self, ended: EndedRun) -> bool:
        base = join(ended.output_base, "")
        first = bisect.bisect_left(self._cached, base)
        if first < len(self._cached) and self._cached[first].startswith(base):
            return True
        place = bisect.bisect_left(self._recovered, base, key=lambda each: each[0])
        for uri, run in self._recovered[place:]:
            if not uri.startswith(base):
                return False
            if run != ended.run:
                return True
        return False
