"""Publishes partitioned artifacts from this machine, finds them again, and prints what it found as JSON."""

import asyncio
import json
import sys
from datetime import date
from pathlib import Path

import flyte
from flyte.io import File
from flyte.remote import Artifact


async def main(config: str, folder: str) -> None:
    await flyte.init_from_config.aio(config)
    source = Path(folder) / "events.txt"
    await asyncio.to_thread(source.write_text, "events")
    await Artifact.declare.aio("events", partitions={"date": date, "region": str})
    for version, region in (("v1", "eu"), ("v2", "us"), ("v3", "eu")):
        value = await File.from_local(str(source))
        partitions = {"date": date(2026, 9, 17), "region": region}
        await Artifact.create.aio(
            value, name="events", version=version, partitions=partitions, kind="data", attrs={"team": "a"}
        )
    latest = await Artifact.get.aio("events", date=date(2026, 9, 17), region="eu")
    value = await latest.to_python()
    copy = await value.download()
    found = {
        "latest": latest.version,
        "content": await asyncio.to_thread(Path(copy).read_text),
        "partitions": {key: str(part) for key, part in latest.partitions.items()},
        "per_partition": sorted(
            [one.version async for one in Artifact.listall.aio("events", latest_per_partition=True)]
        ),
        "of_team": sorted([one.version async for one in Artifact.listall.aio(kind="data", attrs={"team": ["a", "b"]})]),
        "names": [(group.name, group.versions) async for group in Artifact.list_names.aio(search="ven")],
        "regions": await Artifact.partition_values.aio("events", "region"),
        "dates": [str(day) for day in await Artifact.partition_values.aio("events", "date", region="us")],
        "schema": list((await Artifact.get_schema.aio("events")).all_keys),
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
