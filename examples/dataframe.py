"""Tables between tasks. Needs pandas and pyarrow where the tasks run: pip install pandas pyarrow

flyte run examples/dataframe.py main --rows 1000
"""

import flyte
import pandas as pd

env = flyte.TaskEnvironment(name="dataframe")


@env.task
async def measure(rows: int) -> pd.DataFrame:
    return pd.DataFrame(
        {"city": ["Oslo", "Quito"] * (rows // 2), "celsius": [float(n % 30) for n in range(rows // 2 * 2)]}
    )


@env.task
async def average(table: pd.DataFrame) -> dict[str, float]:
    return {str(city): float(mean) for city, mean in table.groupby("city")["celsius"].mean().items()}


@env.task
async def main(rows: int = 100) -> dict[str, float]:
    return await average(await measure(rows))
