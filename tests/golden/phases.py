"""The phases of an action as a watch showed them, and when two such accounts tell of the same life."""

from __future__ import annotations

from typing import Any

Json = Any  # proto3 JSON documents of some sixty message types: their shape is what is under test, not a given

_PHASE = "ACTION_PHASE_"
TERMINAL = frozenset({"SUCCEEDED", "FAILED", "ABORTED", "TIMED_OUT", "RECOVERED"})
_LIFE = ("QUEUED", "WAITING_FOR_RESOURCES", "INITIALIZING", "RUNNING", "PAUSED")


class Phases(tuple[str, ...]):
    """Phases in order of first appearance. Two of them agree when they end alike and order what both saw alike.

    A phase that only one side saw may have been passed in between two messages; it must still stand in the order of
    an action's life.
    """

    __slots__ = ()

    def __new__(cls, phases: list[str]) -> Phases:
        return super().__new__(cls, dict.fromkeys(phases))

    def agrees_with(self, other: Phases) -> bool:
        """Whether both can be the same life, seen through different messages."""
        if self[-1:] != other[-1:]:
            return False
        if [phase for phase in self if phase in other] != [phase for phase in other if phase in self]:
            return False
        if not set(self[:-1]) & TERMINAL <= set(other):
            return False
        only = [phase for phase in self if phase in _LIFE]
        return only == sorted(only, key=_LIFE.index) or set(only) <= set(other)


def phase_of(holder: Json) -> str:
    """The phase in a message without its prefix; UNSPECIFIED when the field is absent."""
    return holder.get("phase", "UNSPECIFIED").removeprefix(_PHASE)
