"""The tree of a run's actions as one watcher sees it: a pure fold of rows into what there is to tell.

An action is visible if it meets the filter or has a descendant that does. Whatever becomes visible, changes while it is
visible, or stops being visible is told once; counters of an action cover all of its descendants.
(Behaviour of the reference backend; unlike there a child may arrive before its parent, and waits.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from flyteidl2.common import list_pb2
from flyteidl2.workflow import run_definition_pb2

from flyte_binary.db.rows import ActionRow
from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.domain.names import short_name_of
from flyte_binary.runs.view.action import action_of


@dataclass(frozen=True, slots=True)
class TreeFilter:
    phases: frozenset[int] = frozenset()
    """Empty means all."""

    name_part: str = ""
    """In lower case; empty means all."""

    def meets(self, row: ActionRow) -> bool:
        if self.phases and int(row.phase) not in self.phases:
            return False
        return self.name_part in shown_name(row).lower()


def tree_filter_from_proto(filters: Iterable[list_pb2.Filter]) -> TreeFilter:
    """Phases of several filters are united, of names the last counts. Raises `InvalidArgument`."""
    phases: set[int] = set()
    name_part = ""
    for message in filters:
        match message.field, message.function:
            case "PHASE", list_pb2.Filter.VALUE_IN:
                phases.update(_phase(value) for value in message.values)
            case "NAME", list_pb2.Filter.CONTAINS_CASE_INSENSITIVE:
                name_part = message.values[0].lower() if message.values else name_part
            case _:
                raise InvalidArgument(
                    f"filter on {message.field!r} with {_function(message)} is not supported here: "
                    "use PHASE with VALUE_IN, or NAME with CONTAINS_CASE_INSENSITIVE"
                )
    return TreeFilter(frozenset(phases), name_part)


def shown_name(row: ActionRow) -> str:
    return short_name_of(row.function_name) or row.short_name or row.id.name


@dataclass(slots=True)
class _Node:
    row: ActionRow
    parent: _Node | None
    depth: int
    counts: dict[int, int] = field(default_factory=dict[int, int])
    """Descendants by phase; a phase that nobody is in any more stays with 0, so that merging clients see it."""

    meets: bool = False
    meeting_below: int = 0
    visible: bool = False
    shown: run_definition_pb2.Action | None = None
    """The row as it is told; kept for parents, which are told with every change below them."""

    def ancestors(self) -> Iterator[_Node]:
        above = self.parent
        while above is not None:
            yield above
            above = above.parent


class ActionTree:
    def __init__(self, wanted: TreeFilter) -> None:
        self._wanted = wanted
        self._nodes: dict[str, _Node] = {}
        self._orphans: dict[str, dict[str, ActionRow]] = {}
        """By the name of the parent that is not there yet."""

    def feed(self, rows: Iterable[ActionRow]) -> list[run_definition_pb2.EnrichedAction]:
        """Take new states of actions; what there is to tell, oldest action first. Old states are ignored."""
        changed: dict[str, _Node] = {}
        for row in rows:
            self._take(row, changed)
        affected = dict(changed)
        for node in changed.values():
            self._judge(node, affected)
        told = [node for node in affected.values() if _is_news(node, node.row.id.name in changed)]
        told.sort(key=lambda node: (node.row.created_at, node.depth, node.row.id.name))
        return [_enriched(node) for node in told]

    def _take(self, row: ActionRow, changed: dict[str, _Node]) -> None:
        waiting = [row]
        while waiting:
            row = waiting.pop()
            name = row.id.name
            node = self._nodes.get(name)
            if node is not None:
                if row.version > node.row.version:
                    _replace(node, row, changed)
                continue
            parent = None if row.parent is None else self._nodes.get(row.parent)
            if row.parent is not None and parent is None:
                self._keep_waiting(row, row.parent)
                continue
            self._nodes[name] = self._add(row, parent, changed)
            waiting.extend(self._orphans.pop(name, {}).values())

    def _keep_waiting(self, row: ActionRow, parent: str) -> None:
        waiting = self._orphans.setdefault(parent, {})
        known = waiting.get(row.id.name)
        if known is None or row.version > known.version:
            waiting[row.id.name] = row

    def _add(self, row: ActionRow, parent: _Node | None, changed: dict[str, _Node]) -> _Node:
        node = _Node(row, parent, depth=0 if parent is None else parent.depth + 1)
        changed[row.id.name] = node
        _count(node, int(row.phase), 1, changed)
        return node

    def _judge(self, node: _Node, affected: dict[str, _Node]) -> None:
        meets = self._wanted.meets(node.row)
        if meets == node.meets:
            return
        node.meets = meets
        for above in node.ancestors():
            above.meeting_below += 1 if meets else -1
            affected.setdefault(above.row.id.name, above)


def _replace(node: _Node, row: ActionRow, changed: dict[str, _Node]) -> None:
    before = int(node.row.phase)
    node.row = row
    node.shown = None
    changed[row.id.name] = node
    if before != int(row.phase):
        _count(node, before, -1, changed)
        _count(node, int(row.phase), 1, changed)


def _count(node: _Node, phase: int, step: int, changed: dict[str, _Node]) -> None:
    for above in node.ancestors():
        above.counts[phase] = above.counts.get(phase, 0) + step
        changed[above.row.id.name] = above


def _is_news(node: _Node, changed: bool) -> bool:
    was, node.visible = node.visible, node.meets or node.meeting_below > 0
    return node.visible != was or (changed and node.visible)


def _enriched(node: _Node) -> run_definition_pb2.EnrichedAction:
    action = node.shown or action_of(node.row)
    if node.counts:
        node.shown = action
    return run_definition_pb2.EnrichedAction(
        action=action, meets_filter=node.visible, children_phase_counts=node.counts
    )


def _phase(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidArgument(f"filter on PHASE: {text!r} is not the number of a phase") from None


def _function(message: list_pb2.Filter) -> str:
    known = dict(zip(list_pb2.Filter.Function.values(), list_pb2.Filter.Function.keys(), strict=True))
    return known.get(message.function, str(message.function))
