"""People in the loop."""

import flyte

env = flyte.TaskEnvironment(name="conditions")


@env.task
async def approval() -> str:
    condition = await flyte.new_condition.aio("approve", prompt="Go on?", data_type=bool)
    return "approved" if await condition.wait.aio() else "rejected"


@env.task
async def survey() -> list[str]:
    answers: list[str] = []
    for kind in (int, float, str):
        condition = await flyte.new_condition.aio(f"a-{kind.__name__}", prompt="Which?", data_type=kind)
        answers.append(repr(await condition.wait.aio()))
    return answers


@env.task
async def impatient() -> str:
    condition = await flyte.new_condition.aio("never", prompt="Anybody?", data_type=bool, timeout=0.5)
    try:
        await condition.wait.aio()
    except flyte.errors.ConditionTimedoutError as error:
        return type(error).__name__
    return "answered"
