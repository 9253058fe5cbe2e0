"""Who may run: limits, turns, waiting parents, and the way out of a standstill."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from flyte_binary.domain.ids import ActionId, RunId
from flyte_binary.executor.admission import AGEING_SECONDS, Admission, Request


@dataclass
class Desk:
    cores: float = 2
    memory_bytes: int = 1000
    slack_cores: float = 0
    woken: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.admission = Admission(
            cores=self.cores,
            memory_bytes=self.memory_bytes,
            wake=lambda action: self.woken.append(action.name),
            slack_cores=self.slack_cores,
        )

    def asks(
        self,
        name: str,
        *,
        cores: float = 1,
        memory: int = 0,
        run: str = "r",
        limit: int = 0,
        at: float = 0,
        named: bool = True,
    ) -> bool:
        return self.admission.admit(
            Request(
                action=action(name, run),
                cores=cores,
                memory_bytes=memory,
                run_limit=limit,
                asked_at=at,
                named=named,
            )
        )

    def ends(self, name: str, run: str = "r", now: float = 0) -> None:
        self.admission.release(action(name, run), now=now)

    def waits(self, name: str, waiting: bool = True, run: str = "r") -> None:
        self.admission.set_waiting(action(name, run), waiting, now=0)

    @property
    def holders(self) -> set[str]:
        return {request.action.name for request in self.admission.holders()}


def action(name: str, run: str = "r") -> ActionId:
    return RunId("p", "d", run).action(name)


def test_as_many_run_as_there_are_cores_and_the_next_when_one_ends() -> None:
    desk = Desk(cores=2)
    assert [desk.asks(name) for name in "abc"] == [True, True, False]
    desk.ends("a")
    assert desk.woken == ["c"]
    assert desk.holders == {"b", "c"}


def test_asking_again_keeps_share_and_place() -> None:
    desk = Desk(cores=1)
    assert desk.asks("a")
    assert desk.asks("a")
    assert not desk.asks("b", at=1)
    assert not desk.asks("c", at=2)
    assert not desk.asks("b", at=3)
    desk.ends("a")
    assert desk.holders == {"b"}


def test_memory_counts_as_well() -> None:
    desk = Desk(cores=8, memory_bytes=100)
    assert desk.asks("a", memory=60)
    assert not desk.asks("b", memory=60)
    desk.ends("a")
    assert desk.holders == {"b"}


def test_what_is_more_than_the_machine_has_is_cut_to_it() -> None:
    desk = Desk(cores=2, memory_bytes=100)
    assert desk.asks("a", cores=64, memory=10**12)
    assert not desk.asks("b")


def test_who_only_waits_holds_no_core_but_keeps_its_memory() -> None:
    desk = Desk(cores=1, memory_bytes=100)
    assert desk.asks("parent", memory=60)
    assert not desk.asks("child", memory=30)
    desk.waits("parent")
    assert desk.woken == ["child"]
    assert not desk.asks("large", memory=30)


def test_recursion_of_any_depth_ends_on_two_cores() -> None:
    desk = Desk(cores=2)
    for depth in range(30):
        assert desk.asks(f"a{depth}")
        desk.waits(f"a{depth}")
    for depth in reversed(range(30)):
        desk.waits(f"a{depth}", False)
        desk.ends(f"a{depth}")
    assert desk.holders == set()


def test_runs_take_turns() -> None:
    desk = Desk(cores=1)
    desk.asks("first", run="big")
    for number in range(5):
        desk.asks(f"big{number}", run="big", at=number)
    desk.asks("small", run="small", at=9)
    desk.ends("first", run="big")
    desk.ends("big0", run="big")
    assert desk.holders == {"small"}


def test_a_large_request_that_has_waited_long_is_not_overtaken_for_ever() -> None:
    desk = Desk(cores=2)
    desk.asks("a")
    desk.asks("b")
    assert not desk.asks("large", cores=2, run="one", at=0)
    assert not desk.asks("small", run="two", at=1)
    desk.ends("a", now=AGEING_SECONDS + 1)
    assert desk.holders == {"b"}, "kept free for the large one"
    desk.ends("b", now=AGEING_SECONDS + 2)
    assert desk.holders == {"large"}


def test_a_run_has_no_more_active_actions_than_it_may() -> None:
    desk = Desk(cores=8)
    assert [desk.asks(name, limit=2) for name in "abc"] == [True, True, False]
    assert desk.asks("other", run="q")
    desk.waits("a")
    assert "c" in desk.holders


def test_while_it_is_closed_nothing_is_admitted() -> None:
    desk = Desk()
    desk.admission.closed = True
    assert not desk.asks("a")
    assert desk.admission.admit_one_more() is None
    desk.admission.closed = False
    desk.admission.serve(now=0)
    assert desk.holders == {"a"}


def test_a_standstill_is_ended_by_one_more_beyond_the_limits() -> None:
    desk = Desk(cores=1, memory_bytes=100)
    assert desk.asks("a", memory=100)
    assert not desk.asks("b", memory=100)
    assert desk.admission.admit_one_more() == action("b")
    assert desk.holders == {"a", "b"}
    assert desk.admission.admit_one_more() is None


def test_slack_is_only_for_those_who_name_no_resources() -> None:
    desk = Desk(cores=1, slack_cores=1)
    assert desk.asks("a", named=False)
    assert not desk.asks("b", named=True, run="one")
    assert desk.asks("c", named=False, run="two")


def test_what_runs_already_is_counted_whatever_the_limits_say() -> None:
    desk = Desk(cores=1)
    for name in "ab":
        desk.admission.adopt(Request(action=action(name), cores=1, memory_bytes=0, asked_at=0))
    assert not desk.asks("c")
    desk.ends("a")
    assert desk.holders == {"b"}
    desk.ends("b")
    assert desk.holders == {"c"}


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(["ask", "end", "wait", "work"]), st.integers(1, 3)),
        max_size=60,
    )
)
def test_limits_hold_and_everybody_gets_a_turn(steps: list[tuple[str, str, int]]) -> None:
    desk = Desk(cores=3, memory_bytes=10)
    asking: deque[str] = deque()
    for name, step, size in steps:
        if step == "ask" and name not in desk.holders:
            asking.append(name)
            desk.asks(name, cores=size, memory=size)
        elif step == "end" and name in desk.holders:
            desk.ends(name)
        elif step == "wait":
            desk.waits(name)
        # "work" again may exceed the cores for a moment, as a parent does whose children are done
        held = sum(r.memory_bytes for r in desk.admission.holders())
        assert held <= 10
    for _ in range(200):
        if not desk.admission.is_asking():
            break
        holders = sorted(desk.holders)
        assert holders, "somebody asks, nobody holds, and nobody was admitted"
        desk.ends(holders[0], now=1000)
    assert not desk.admission.is_asking()
