"""What runs or lies about without a row that wants it is removed, however often that fails at first."""

from __future__ import annotations

import pytest

from flyte_binary.domain.errors import Unavailable
from flyte_binary.domain.phases import Phase
from tests.fakes.faults import Mode
from tests.flows.world import World


@pytest.mark.parametrize("error", [OSError("no room"), Unavailable("it still runs")], ids=["disk", "running"])
@pytest.mark.parametrize("name", ["stop", "forget"])
async def test_what_could_not_be_removed_at_first_is_removed_later(world: World, name: str, error: Exception) -> None:
    world.backend.script = lambda process: process.succeed()
    action = await world.create()
    await world.phase(action, Phase.SUCCEEDED)
    await world.idle()
    leftovers = world.server.leftovers
    strays = {action.attempt(number) for number in (7, 8, 9)}
    for stray in strays:
        leftovers.exists(stray)
    world.faults.plan(name, Mode.FAILS, error=error)

    first = await leftovers.settle(action, [], [])
    forgotten = world.faults.calls.count("forget")
    second = await leftovers.settle(action, [], [])

    assert first.look_again is not None
    assert second.look_again is None
    # The one that failed, once more; the others were removed meanwhile and are not looked for again.
    assert world.faults.calls.count("forget") == forgotten + 1
