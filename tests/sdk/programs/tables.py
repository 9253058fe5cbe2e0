"""Tables, apart from other data because loading pandas takes a second."""

import flyte
import pandas as pd
from flyte.io import DataFrame

env = flyte.TaskEnvironment(name="tables")


@env.task
async def warmer(table: pd.DataFrame) -> pd.DataFrame:
    table["celsius"] = table["celsius"] + 1
    return table


@env.task
async def two_degrees(table: pd.DataFrame) -> DataFrame:
    return DataFrame.from_df(await warmer(await warmer(table)))
