"""A person in the loop: the run waits, without holding a core, until somebody answers.

flyte run examples/approval.py main --amount 5000
flyte signal condition RUN ACTION true        (`flyte get action RUN` lists the waiting action)
"""

import flyte

env = flyte.TaskEnvironment(name="approval")


@env.task
async def pay(amount: int) -> str:
    return f"paid {amount}"


@env.task
async def main(amount: int = 5000, limit: int = 1000) -> str:
    if amount > limit:
        condition = await flyte.new_condition.aio("approve", prompt=f"Pay {amount}?", data_type=bool)
        if not await condition.wait.aio():
            return "refused"
    return await pay(amount)
