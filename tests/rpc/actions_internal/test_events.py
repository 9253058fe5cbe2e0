"""Events of attempts from outside, through EventsProxyService and InternalRunService."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from flyteidl2.common import phase_pb2
from flyteidl2.workflow import events_proxy_service_pb2 as proxy_pb2
from flyteidl2.workflow import internal_run_service_pb2 as internal_pb2
from flyteidl2.workflow import run_definition_pb2
from flyteidl2.workflow.events_proxy_service_connect import EventsProxyServiceClient
from flyteidl2.workflow.internal_run_service_connect import InternalRunServiceClient
from google.rpc import code_pb2

from flyte_binary.domain import topics
from flyte_binary.domain.phases import Phase
from flyte_binary.live.hub import Hub
from tests.rpc.actions_internal.world import CHILD, RUN, World


def event(
    attempt: int = 1, phase: int = phase_pb2.ACTION_PHASE_RUNNING, **fields: Any
) -> run_definition_pb2.ActionEvent:
    fields = {"id": CHILD.to_proto(), "cluster": "far", **fields}
    return run_definition_pb2.ActionEvent(attempt=attempt, phase=phase_pb2.ActionPhase.Name(phase), **fields)


async def test_recorded_events_are_stored_as_sent_and_watches_of_the_run_are_told(
    events_proxy: EventsProxyServiceClient, world: World, hub: Hub
) -> None:
    sent = [event(1), event(2), event(1, id=RUN.action("other").to_proto())]
    with hub.subscribe(topics.run(RUN)) as subscription:
        await events_proxy.record(proxy_pb2.RecordRequest(events=sent))
        assert subscription.take() == {("child",), ("other",)}

    stored = await world.events()
    assert [row.attempt for row in stored] == [1, 2]
    assert run_definition_pb2.ActionEvent.FromString(stored[0].info) == sent[0]
    assert len(await world.events(RUN.action("other"))) == 1


async def test_events_never_change_the_phase(events_proxy: EventsProxyServiceClient, world: World) -> None:
    await world.insert(CHILD)

    await events_proxy.record(proxy_pb2.RecordRequest(events=[event(phase=phase_pb2.ACTION_PHASE_SUCCEEDED)]))

    assert (await world.row()).phase is Phase.RUNNING


async def test_of_a_repeated_event_the_first_stands(events_proxy: EventsProxyServiceClient, world: World) -> None:
    await events_proxy.record(proxy_pb2.RecordRequest(events=[event(cluster="first")]))
    await events_proxy.record(proxy_pb2.RecordRequest(events=[event(cluster="second"), event(version=1)]))

    clusters = [run_definition_pb2.ActionEvent.FromString(row.info).cluster for row in await world.events()]
    assert clusters == ["first", "far"]


async def test_a_list_of_no_events_is_fine(
    events_proxy: EventsProxyServiceClient, internal: InternalRunServiceClient
) -> None:
    await events_proxy.record(proxy_pb2.RecordRequest())

    answer = await internal.record_action_events(internal_pb2.RecordActionEventsRequest())
    assert answer.status.code == code_pb2.OK


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (event(0), "events[1].attempt"),
        (event(2**31), "events[1].attempt"),
        (event(version=2**31), "events[1].version"),
        (run_definition_pb2.ActionEvent(attempt=1), "events[1].id"),
    ],
)
async def test_one_bad_event_keeps_all_of_its_batch_out_and_is_named(
    events_proxy: EventsProxyServiceClient,
    internal: InternalRunServiceClient,
    world: World,
    bad: run_definition_pb2.ActionEvent,
    field: str,
) -> None:
    batch = [event(), bad]

    with pytest.raises(ConnectError) as caught:
        await events_proxy.record(proxy_pb2.RecordRequest(events=batch))
    answer = await internal.record_action_events(internal_pb2.RecordActionEventsRequest(events=batch))

    assert caught.value.code is Code.INVALID_ARGUMENT
    assert answer.status.code == code_pb2.INVALID_ARGUMENT
    assert field in caught.value.message
    assert field in answer.status.message
    assert await world.events() == []


async def test_six_thousand_events_come_in_at_once(events_proxy: EventsProxyServiceClient, world: World) -> None:
    batch = [event(version=number) for number in range(6000)]

    await events_proxy.record(proxy_pb2.RecordRequest(events=batch))

    assert len(await world.events()) == 6000


async def test_a_stream_of_events_answers_each_and_echoes_its_nonce(
    internal: InternalRunServiceClient, world: World
) -> None:
    async def requests() -> AsyncIterator[internal_pb2.RecordActionEventStreamRequest]:
        for nonce, attempt in [(5, 1), (6, 0), (7, 2)]:
            request = internal_pb2.RecordActionEventRequest(event=event(attempt))
            yield internal_pb2.RecordActionEventStreamRequest(request=request, nonce=nonce)

    answers = [answer async for answer in internal.record_action_event_stream(requests())]

    assert [(answer.nonce, answer.response.status.code) for answer in answers] == [(5, 0), (6, 3), (7, 0)]
    assert answers[0].response.action_id == CHILD.to_proto()
    assert "event.attempt" in answers[1].response.status.message
    assert [row.attempt for row in await world.events()] == [1, 2]
