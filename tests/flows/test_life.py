"""From QUEUED to an end: what an action goes through, and what is left of it."""

from __future__ import annotations

from pathlib import Path

from flyte_binary.domain.phases import Phase
from tests.flows.tasks import task
from tests.flows.world import RUN, World, world_in


async def test_a_run_that_succeeds_is_succeeded_with_its_outputs_and_a_log(world: World) -> None:
    world.backend.script = lambda process: (process.print("hello"), process.succeed())
    root = await world.create()

    row = await world.phase(root, Phase.SUCCEEDED)
    await world.idle()

    assert row.output_uri == "/store/r1/a0/1"
    (attempt,) = await world.attempts(root)
    assert attempt.archived_at is not None
    assert attempt.log_uri in world.store.objects
    assert [(event.attempt, Phase(event.phase)) for event in await world.events(root)] == [
        (1, Phase.QUEUED),
        (1, Phase.INITIALIZING),
        (1, Phase.RUNNING),
        (1, Phase.SUCCEEDED),
    ]
    assert world.backend.processes == {}
    assert world.server.admission.holders() == []
