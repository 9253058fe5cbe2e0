"""Tells admission which holders only wait: for unfinished children, open conditions or spawned runs."""

from __future__ import annotations

import time

from flyte_binary.db.rows import ActionRow
from flyte_binary.domain.ids import RunId
from flyte_binary.executor.admission import Admission
from flyte_binary.executor.facts import RunFacts
from flyte_binary.executor.family import Family


class Waiting:
    def __init__(self, admission: Admission, family: Family) -> None:
        self._admission = admission
        self._family = family

    def note(self, row: ActionRow, run: RunFacts) -> None:
        """Take in the state of an action, at every pass over it."""
        if not row.terminal and self._family.has_children(row.id):
            # A later attempt of a parent is a new holder, and finds unfinished children of the last one.
            self._admission.set_waiting(row.id, True, now=time.monotonic())
        parent = row.parent_id
        if parent is not None:
            if row.terminal:
                self.note_end(row, run)
            elif self._family.child_lives(parent, row.id.name):
                self.refresh(row.run_id)
        elif run.spawned_by is not None:
            self._note_spawned(row, run.spawned_by)

    def note_end(self, row: ActionRow, run: RunFacts) -> None:
        """The action has ended since `row` was read."""
        parent = row.parent_id
        if parent is not None:
            if self._family.child_ended(parent, row.id.name):
                self.refresh(row.run_id)
        elif run.spawned_by is not None:
            self._end_spawned(row.run_id)

    def _end_spawned(self, run: RunId) -> None:
        ended_for = self._family.run_ended(run)
        if ended_for is not None:
            self.refresh(ended_for)

    def _note_spawned(self, root: ActionRow, spawner: RunId) -> None:
        if root.terminal:
            self._end_spawned(root.run_id)
            return
        self._family.run_lives(root.run_id, spawner)
        self.refresh(spawner)

    def refresh(self, run: RunId) -> None:
        """Which holders of a run hold no core now.

        A run says which run started it, not which of its actions did; so as many holders as there
        are unfinished spawned runs count as waiting, the longest running first.
        """
        excused = self._family.spawned_runs(run)
        now = time.monotonic()
        for request in self._admission.holders_of(run):
            waits = self._family.has_children(request.action)
            if not waits and excused > 0:
                waits, excused = True, excused - 1
            self._admission.set_waiting(request.action, waits, now=now)
