"""The database is gone for a while in the middle of a run."""

from __future__ import annotations

import time
from pathlib import Path

from tests.postgres_server import PostgresServer, reachable_folder
from tests.sdk.marks import count
from tests.sdk.sdk import Look, Sdk, settled, until
from tests.sdk.serving import serving, write_client_config

FAN_OUT = 80
AWAY_SECONDS = 4


def test_a_fan_out_outlives_an_outage_of_the_database(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    with reachable_folder() as folder:
        postgres = PostgresServer.create(folder / "cluster", durable=True)
        postgres.start()
        with serving(tmp_path / "served", {"runs.database.postgres.url": postgres.url("flyte")}) as server:
            sdk = Sdk(write_client_config(server, server.folder / "client.yaml"), server.folder)
            run = sdk.start("fan.count", folder=str(marks), n=FAN_OUT)
            finishing = sdk.begin("finish", run=run)
            until(lambda: count(marks, "leaf-*") >= FAN_OUT // 8, "some of the leaves are done")
            postgres.stop()
            time.sleep(AWAY_SECONDS)
            assert count(marks, "leaf-*") < FAN_OUT, "not all were done before it went"
            postgres.start()

            assert Look(**settled(finishing, 100)).result() == sum(range(FAN_OUT))
            assert [count(marks, f"leaf-{x}") for x in range(FAN_OUT)] == [1] * FAN_OUT
            sdk.close()
            server.stop()
        postgres.stop()
