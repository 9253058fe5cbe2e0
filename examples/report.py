"""A report: HTML that a task writes while it runs, and that the console shows next to its outputs.

flyte run examples/report.py main --steps 5
"""

import flyte
import flyte.report

env = flyte.TaskEnvironment(name="report")


@env.task(report=True)
async def main(steps: int = 5) -> int:
    total = 0
    await flyte.report.log.aio("<h2>Squares</h2>")
    for step in range(1, steps + 1):
        total += step * step
        bar = f'<div style="background: #7652a2; width: {total * 4}px; height: 12px"></div>'
        await flyte.report.log.aio(f"<p>1² + … + {step}² = {total}</p>{bar}", do_flush=True)
    return total
