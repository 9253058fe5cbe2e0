"""A web service: `flyte serve` starts it, the first request after a pause wakes it.

flyte serve examples/app_fastapi.py env
curl http://127.0.0.1:30080/apps/flytesnacks/development/greeter/hello/Ada

It needs FastAPI where tasks run (`pip install fastapi`), or an image that has it.
"""

import fastapi
import flyte.app
from flyte.app.extras import FastAPIAppEnvironment

api = fastapi.FastAPI(title="Greeter")


@api.get("/hello/{name}")
async def hello(name: str) -> dict[str, str]:
    return {"greeting": f"Hello, {name}!"}


env = FastAPIAppEnvironment(
    name="greeter",
    app=api,
    scaling=flyte.app.Scaling(replicas=(0, 2)),
)
