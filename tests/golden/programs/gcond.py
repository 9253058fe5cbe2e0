"""Tasks of the condition scenarios: four kinds of answers, and an answer that never comes."""

import flyte
from sizes import SMALL

env = flyte.TaskEnvironment(name="gcond", resources=SMALL)

KINDS: dict[str, type] = {"cond-b": bool, "cond-i": int, "cond-f": float, "cond-s": str}


@env.task
async def four() -> str:
    answers = []
    for name, kind in KINDS.items():
        condition = await flyte.new_condition.aio(name, prompt="ok?", data_type=kind)
        answers.append(await condition.wait.aio())
    return str(answers)


@env.task
async def timed() -> str:
    condition = await flyte.new_condition.aio("late", prompt="ok?", data_type=bool, timeout=1)
    try:
        await condition.wait.aio()
    except Exception as error:  # noqa: BLE001 - the outcome is the result, whatever it is
        name = type(error).__name__
        return f"{name} {name}: {error}"
    return "answered"
