"""Runs a task of `leaves.py` with the unmodified SDK, in a process of its own, and prints what it took as JSON.

`python drive.py HOST:PORT fan 100` waits for the result; `python drive.py HOST:PORT hold 60` only starts it.
"""

import json
import sys
import time
from pathlib import Path

import flyte
import leaves


def main(endpoint: str, task: str, argument: str) -> None:
    flyte.init(
        endpoint=endpoint,
        insecure=True,
        project="flytesnacks",
        domain="development",
        root_dir=Path(__file__).parent,
        log_level=40,
    )
    began = time.perf_counter()
    if task == "hold":
        run = flyte.run(leaves.hold, seconds=float(argument))
        print(json.dumps({"run": run.name}))
        return
    run = flyte.run(leaves.fan, n=int(argument))
    run.wait(quiet=True)
    result = run.outputs()[0]
    seconds = time.perf_counter() - began
    print(json.dumps({"run": run.name, "seconds": seconds, "result": result}))


if __name__ == "__main__":
    main(*sys.argv[1:])
