"""Tasks with triggers: one that fires every other second, one that nobody lives to see, one without a schedule."""

from datetime import UTC, datetime

import flyte

env = flyte.TaskEnvironment(name="triggering")

often = flyte.Trigger(
    name="often",
    automation=flyte.Cron("@every 2s"),
    inputs={"t": flyte.TriggerTime, "x": 5},
    env_vars={"GREETING": "hello"},
)
yearly = flyte.Trigger(
    name="yearly",
    automation=flyte.FixedRate(interval_minutes=525600),
    inputs={"t": flyte.TriggerTime},
    auto_activate=False,
)
by_hand = flyte.Trigger(name="by-hand", inputs={"t": datetime(2020, 1, 1, tzinfo=UTC), "x": 3})


@env.task(triggers=(often, yearly, by_hand))
async def tick(t: datetime, x: int = 1) -> str:
    return f"{t.isoformat()} {x}"


@env.task
async def plain(t: datetime) -> str:
    return t.isoformat()
