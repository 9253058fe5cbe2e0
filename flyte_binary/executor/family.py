"""Who waits for whom: unfinished children by parent, unfinished runs by the run that started them.

Kept from the executor's own passes (it sees every change of every action), so that admission can
tell a parent that only waits from one that computes.
"""

from __future__ import annotations

from flyte_binary.domain.ids import ActionId, RunId


class Family:
    def __init__(self) -> None:
        self._children: dict[ActionId, set[str]] = {}
        self._spawned: dict[RunId, set[RunId]] = {}
        self._spawner: dict[RunId, RunId] = {}

    def child_lives(self, parent: ActionId, child: str) -> bool:
        """True if the parent had no unfinished child before."""
        children = self._children.setdefault(parent, set())
        first = not children
        children.add(child)
        return first

    def child_ended(self, parent: ActionId, child: str) -> bool:
        """True if it was the parent's last unfinished child."""
        children = self._children.get(parent)
        if children is None:
            return False
        children.discard(child)
        if children:
            return False
        del self._children[parent]
        return True

    def run_lives(self, run: RunId, spawned_by: RunId) -> None:
        self._spawned.setdefault(spawned_by, set()).add(run)
        self._spawner[run] = spawned_by

    def run_ended(self, run: RunId) -> RunId | None:
        """The run that started it, if any."""
        spawner = self._spawner.pop(run, None)
        if spawner is None:
            return None
        spawned = self._spawned.get(spawner, set())
        spawned.discard(run)
        if not spawned:
            self._spawned.pop(spawner, None)
        return spawner

    def has_children(self, parent: ActionId) -> bool:
        return parent in self._children

    def spawned_runs(self, run: RunId) -> int:
        return len(self._spawned.get(run, ()))
