"""The tree of actions as one watcher sees it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import permutations

import pytest
from flyteidl2.common import list_pb2
from flyteidl2.workflow import run_definition_pb2
from hypothesis import given
from hypothesis import strategies as st

from flyte_binary.db.rows import ActionRow
from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.domain.phases import Phase
from flyte_binary.runs.watches.tree import ActionTree, TreeFilter, tree_filter_from_proto
from tests.unit.runs.rows import SECOND, START, row

ALL = TreeFilter()
FAILED = TreeFilter(frozenset({int(Phase.FAILED)}))


def told(actions: Iterable[run_definition_pb2.EnrichedAction]) -> list[tuple[str, bool, dict[int, int]]]:
    return [(item.action.id.name, item.meets_filter, dict(item.children_phase_counts)) for item in actions]


def child(name: str, phase: Phase = Phase.QUEUED, *, parent: str = "a0", after: int = 1, version: int = 1) -> ActionRow:
    return row(name, phase, parent=parent, created_at=START + after * SECOND, version=version)


def moved(action: ActionRow, phase: Phase) -> ActionRow:
    return replace(action, phase=phase, version=action.version + 1)


def test_the_snapshot_is_told_oldest_first_with_counts_of_all_descendants() -> None:
    rows = [child("c", parent="b", after=2), child("b"), row(phase=Phase.RUNNING)]

    assert told(ActionTree(ALL).feed(rows)) == [("a0", True, {1: 2}), ("b", True, {1: 1}), ("c", True, {})]


def test_a_child_may_come_before_its_parent_and_before_its_grandparent() -> None:
    rows = [row(phase=Phase.RUNNING), child("b"), child("c", parent="b", after=1), child("d", parent="c", after=1)]
    for order in permutations(rows):
        tree = ActionTree(ALL)
        last: dict[str, dict[int, int]] = {}
        for action in order:
            last |= {name: counts for name, _, counts in told(tree.feed([action]))}
        assert last == {"a0": {1: 3}, "b": {1: 2}, "c": {1: 1}, "d": {}}


def test_a_child_of_the_same_moment_is_told_behind_its_parent_whatever_its_name() -> None:
    rows = [child("0first", after=0), row(phase=Phase.RUNNING)]
    assert [name for name, _, _ in told(ActionTree(ALL).feed(rows))] == ["a0", "0first"]


def test_a_change_of_phase_is_told_with_all_ancestors() -> None:
    tree = ActionTree(ALL)
    below, leaf = child("b"), child("c", parent="b", after=2)
    tree.feed([row(phase=Phase.RUNNING), below, leaf])

    assert told(tree.feed([moved(leaf, Phase.RUNNING)])) == [
        ("a0", True, {1: 1, 4: 1}),
        ("b", True, {1: 0, 4: 1}),
        ("c", True, {}),
    ]


def test_the_same_or_an_older_state_tells_nothing() -> None:
    tree = ActionTree(ALL)
    leaf = child("b")
    tree.feed([row(phase=Phase.RUNNING), moved(leaf, Phase.RUNNING)])

    assert tree.feed([leaf]) == []
    assert tree.feed([moved(leaf, Phase.RUNNING)]) == []


def test_what_meets_the_filter_brings_its_ancestors() -> None:
    tree = ActionTree(FAILED)
    leaf, other = child("c", parent="b", after=2), child("other")
    assert tree.feed([row(phase=Phase.RUNNING), child("b"), leaf, other]) == []

    assert [name for name, met, _ in told(tree.feed([moved(leaf, Phase.FAILED)])) if met] == ["a0", "b", "c"]


def test_what_stops_meeting_the_filter_is_told_once_and_so_are_its_ancestors() -> None:
    queued = TreeFilter(frozenset({int(Phase.QUEUED)}))
    tree = ActionTree(queued)
    leaf = child("c", parent="b", after=2)
    tree.feed([row(phase=Phase.RUNNING), child("b", Phase.RUNNING), leaf])
    running = moved(leaf, Phase.RUNNING)

    assert [(name, met) for name, met, _ in told(tree.feed([running]))] == [("a0", False), ("b", False), ("c", False)]
    assert tree.feed([moved(running, Phase.SUCCEEDED)]) == []


def test_an_ancestor_stays_as_long_as_another_descendant_meets_the_filter() -> None:
    queued = TreeFilter(frozenset({int(Phase.QUEUED)}))
    tree = ActionTree(queued)
    leaf = child("b")
    tree.feed([row(phase=Phase.RUNNING), leaf, child("c")])

    assert [(name, met) for name, met, _ in told(tree.feed([moved(leaf, Phase.RUNNING)]))] == [
        ("a0", True),
        ("b", False),
    ]


def test_names_are_found_without_case_in_the_last_part_of_the_task_name() -> None:
    wanted = tree_filter_from_proto(
        [list_pb2.Filter(field="NAME", function=list_pb2.Filter.CONTAINS_CASE_INSENSITIVE, values=["LeA"])]
    )
    rows = [
        row(phase=Phase.RUNNING),
        replace(child("b"), function_name="leaf.other", short_name=""),
        replace(child("c"), function_name="env.my_Leaf"),
        replace(child("a-leaf"), function_name="", short_name=""),
    ]
    assert [name for name, _, _ in told(ActionTree(wanted).feed(rows))] == ["a0", "a-leaf", "c"]


def test_phases_of_several_filters_are_united_and_the_name_must_match_too() -> None:
    wanted = tree_filter_from_proto(
        [
            list_pb2.Filter(field="PHASE", function=list_pb2.Filter.VALUE_IN, values=["6"]),
            list_pb2.Filter(field="PHASE", function=list_pb2.Filter.VALUE_IN, values=["8", "5"]),
            list_pb2.Filter(field="NAME", function=list_pb2.Filter.CONTAINS_CASE_INSENSITIVE, values=["x"]),
        ]
    )
    assert wanted == TreeFilter(frozenset({5, 6, 8}), "x")


@pytest.mark.parametrize(
    "wrong",
    [
        list_pb2.Filter(field="nosuch", values=["x"]),
        list_pb2.Filter(field="PHASE", function=list_pb2.Filter.EQUAL, values=["4"]),
        list_pb2.Filter(field="PHASE", function=list_pb2.Filter.VALUE_IN, values=["RUNNING"]),
        list_pb2.Filter(field="NAME", function=list_pb2.Filter.CONTAINS, values=["x"]),
    ],
)
def test_other_filters_are_refused(wrong: list_pb2.Filter) -> None:
    with pytest.raises(InvalidArgument, match=wrong.field):
        tree_filter_from_proto([wrong])


@given(st.data())
def test_whoever_keeps_what_was_told_has_the_tree(data: st.DataObject) -> None:
    """However the states are mixed and split, the last word about each action is what a fresh tree would say."""
    wanted = data.draw(st.sampled_from([ALL, FAILED, TreeFilter(frozenset({1, 4}))]))
    names = [f"n{number}" for number in range(data.draw(st.integers(1, 6)))]
    final = {"a0": row(phase=Phase.RUNNING)}
    states = [final["a0"]]
    for position, name in enumerate(names):
        parent = data.draw(st.sampled_from(["a0", *names[:position]]))
        action = child(name, parent=parent, after=position)
        for phase in data.draw(st.lists(st.sampled_from([Phase.RUNNING, Phase.FAILED, Phase.SUCCEEDED]), max_size=3)):
            states.append(action)
            action = moved(action, phase)
        states.append(action)
        final[name] = action
    tree, kept = ActionTree(wanted), dict[str, tuple[int, dict[int, int]]]()
    mixed = data.draw(st.permutations(states))
    size = data.draw(st.integers(1, 4))
    for start in range(0, len(mixed), size):
        for item in tree.feed(mixed[start : start + size]):
            if item.meets_filter:
                counts = {phase: count for phase, count in item.children_phase_counts.items() if count}
                kept[item.action.id.name] = (item.action.status.phase, counts)
            else:
                kept.pop(item.action.id.name, None)

    fresh = ActionTree(wanted).feed(final.values())
    assert kept == {item.action.id.name: (item.action.status.phase, dict(item.children_phase_counts)) for item in fresh}
