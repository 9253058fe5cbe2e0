"""What is too old goes, what somebody still refers to stays, and a sweep that is cut off is gone on with."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest
from flyteidl2.core import catalog_pb2, tasks_pb2
from flyteidl2.task import task_definition_pb2
from flyteidl2.workflow import run_definition_pb2, run_service_pb2

from flyte_binary.db.artifacts import ArtifactName, ArtifactRow
from flyte_binary.db.database import Database
from flyte_binary.db.rows import ActionRow, AttemptRow, CacheRow, TaskRow
from flyte_binary.db.tasks import digest_of
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.errors import AlreadyExists
from flyte_binary.domain.ids import RunId, TaskId
from flyte_binary.domain.phases import Phase
from flyte_binary.rpc.identity import ANONYMOUS
from flyte_binary.runs.create import RunCreator
from flyte_binary.runs.projects.service import seed_projects
from flyte_binary.runs.retention.sweeper import KeptFor, Sweeper
from flyte_binary.storage.disk import DiskStore
from flyte_binary.storage.signed import UrlSigner
from tests.db_fixtures import Storage
from tests.fakes.manual_clock import ManualClock

DAY = 24 * 3600 * 1_000_000
KEPT = timedelta(days=7)


def is_there(uri: str) -> bool:
    return Path(uri).exists()


@dataclass
class World:
    database: Database
    store: DiskStore
    clock: ManualClock
    root: Path

    def sweeper(self, **kept_for: timedelta) -> Sweeper:
        return Sweeper(
            database=self.database,
            store=self.store,
            clock=self.clock,
            kept_for=KeptFor(**kept_for),
            uploads_prefix="uploads",
            interval=timedelta(hours=1),
            pause_seconds=0,
        )

    def folder(self, run: str) -> Path:
        return self.root / "p" / "d" / run

    async def run(self, name: str, *, days: float, children: int = 1, **changes: object) -> RunId:
        """A run that ended so many days ago, with a file for each action."""
        run = RunId("p", "d", name)
        ended = self.clock.now() - int(days * DAY)
        row = ActionRow(
            id=run.root(),
            parent=None,
            phase=Phase.SUCCEEDED,
            action_type=run_definition_pb2.ACTION_TYPE_TASK,
            run_output_base=str(self.folder(name)),
            output_uri=f"{self.folder(name)}/a0/1",
            created_at=ended - 1_000_000,
            updated_at=ended,
            queued_at=ended - 1_000_000,
            ended_at=ended,
        )
        root = replace(row, **changes)  # pyright: ignore[reportArgumentType]
        below = [replace(row, id=run.action(f"c{number}"), parent="a0") for number in range(children)]

        def operation(tx: Transaction) -> None:
            for each in (root, *below):
                assert tx.actions.insert(each)
            attempt = AttemptRow(id=run.root().attempt(1), nonce="n", node="here", output_prefix="", launched_at=1)
            tx.attempts.insert(attempt)
            tx.attempts.update(attempt.id, archived_at=2)

        await self.database.write(operation)
        for each in (root, *below):
            await self.store.put(f"{self.folder(name)}/{each.id.name}/1/outputs.pb", b"x")
        return run

    async def upload(self, path: str, *, days: float) -> str:
        uri = f"{self.root}/{path}"
        await self.store.put(uri, b"code")
        at = self.clock.now() / 1_000_000 - days * 24 * 3600
        os.utime(uri, (at, at))
        return uri

    async def names(self) -> set[str]:
        rows = await self.database.read(
            lambda tx: tx.retention.ended_runs(self.clock.now() + 1, after=None, limit=1000)
        )
        return {row.run.name for row in rows}


@pytest.fixture
async def world(storage: Storage, tmp_path: Path) -> AsyncIterator[World]:
    database = storage.open(lambda _changes: None)
    root = tmp_path / "store"
    store = DiskStore(root, UrlSigner(b"k" * 32))
    await store.prepare()
    yield World(database, store, ManualClock(), root)
    store.close()
    await database.close()


async def test_old_runs_go_with_their_rows_and_files_and_young_ones_stay(world: World) -> None:
    old = await world.run("old", days=8, children=3)
    await world.run("young", days=6)
    sweeper = world.sweeper(runs=KEPT)
    await sweeper.sweep()
    assert world.folder("old").exists(), "somebody may be reading it"
    world.clock.advance(seconds=601)
    await sweeper.sweep()

    assert await world.names() == {"young"}
    assert await world.database.read(lambda tx: tx.actions.get(old.action("c0"))) is None
    assert await world.database.read(lambda tx: tx.attempts.of_action(old.root())) == []
    assert not world.folder("old").exists()
    assert (world.folder("young") / "a0/1/outputs.pb").exists()
    assert (sweeper.removed.runs, sweeper.removed.objects) == (1, 4)


async def test_without_a_limit_nothing_goes(world: World) -> None:
    await world.run("old", days=8000)
    await world.upload("uploads/p/d/ABC/fast.tar.gz", days=8000)
    await world.sweeper().sweep()

    assert await world.names() == {"old"}
    assert (world.root / "uploads/p/d/ABC/fast.tar.gz").exists()


async def test_a_run_at_work_stays_however_old_it_is(world: World) -> None:
    busy = await world.run("busy", days=8)
    owing = await world.run("owing", days=8)
    unfinished = replace(
        await _row(world, busy), id=busy.action("late"), parent="a0", phase=Phase.RUNNING, ended_at=None
    )
    await world.database.write(lambda tx: tx.actions.insert(unfinished))
    await world.database.write(lambda tx: tx.attempts.update(owing.root().attempt(1), archived_at=None))
    await world.sweeper(runs=KEPT).sweep()

    assert await world.names() == {"busy", "owing"}


async def test_what_the_cache_refers_to_stays_until_the_entry_has_gone(world: World) -> None:
    await world.run("cached", days=30)
    entry = CacheRow(
        key="k", output_uri=f"{world.folder('cached')}/c0/1", metadata=b"", created_at=1, updated_at=world.clock.now()
    )
    await world.database.write(lambda tx: tx.cache.put(entry))
    sweeper = world.sweeper(runs=KEPT, cache=KEPT)
    await sweeper.sweep()
    assert await world.names() == {"cached"}

    world.clock.advance(seconds=8 * 24 * 3600)
    await sweeper.sweep()
    assert await world.database.read(lambda tx: tx.cache.get("k")) is None
    assert await world.names() == {"cached"}, "somebody may have read the entry just before"
    await sweeper.sweep()
    assert await world.names() == set()
    world.clock.advance(seconds=601)
    await sweeper.sweep()
    assert not world.folder("cached").exists()


async def test_what_a_recovered_run_refers_to_stays_as_long_as_that_run(world: World) -> None:
    await world.run("origin", days=30)
    await world.run("origin-2", days=30)
    uri = f"{world.folder('origin')}/c0/1"
    await world.run("again", days=1, output_uri=uri, recovered_from=b"x", phase=Phase.RECOVERED)
    sweeper = world.sweeper(runs=KEPT)
    await sweeper.sweep()
    assert await world.names() == {"origin", "again"}

    world.clock.advance(seconds=8 * 24 * 3600)
    await sweeper.sweep()
    await sweeper.sweep()
    assert await world.names() == set()


async def test_outputs_that_another_run_has_from_the_cache_stay_although_the_entry_has_gone(world: World) -> None:
    await world.run("computed", days=30)
    await world.run("hit", days=1, output_uri=f"{world.folder('computed')}/c0/1", cache_status=catalog_pb2.CACHE_HIT)
    await world.sweeper(runs=KEPT).sweep()

    assert await world.names() == {"computed", "hit"}


async def test_inputs_that_a_rerun_has_from_another_run_stay(world: World) -> None:
    await world.run("first", days=30)
    await world.run("rerun", days=1, input_uri=f"{world.folder('first')}/inputs/abc/inputs.pb")
    await world.run("first1", days=30)
    await world.sweeper(runs=KEPT).sweep()

    assert await world.names() == {"first", "rerun"}


async def test_the_run_of_an_artifact_and_its_uploads_stay(world: World) -> None:
    await world.run("source", days=30)
    model = await world.upload("uploads/p/d/MODEL/model.bin", days=30)
    artifact = ArtifactRow(
        name=ArtifactName("p", "d", "m"),
        version="1",
        spec=b"\n" + model.encode(),
        partition="",
        source_run="source",
        created_at=1,
    )
    await world.database.write(lambda tx: tx.artifacts.insert(artifact, {}, {}))
    await world.sweeper(runs=KEPT, uploads=KEPT).sweep()

    assert await world.names() == {"source"}
    assert (world.root / "uploads/p/d/MODEL/model.bin").exists()


async def test_the_name_of_a_removed_run_is_free_when_its_files_are_gone(world: World) -> None:
    """Else the files of the new run would go with those of the old one."""
    await world.run("nightly", days=8)
    await world.database.write(lambda tx: seed_projects(tx, ["p"], 1))
    creator = RunCreator(world.database, world.store, world.clock, ["d"])
    request = run_service_pb2.CreateRunRequest(run_id=RunId("p", "d", "nightly").to_proto())
    request.task_spec.task_template.container.image = "auto"
    request.task_spec.task_template.id.name = "main"
    sweeper = world.sweeper(runs=KEPT)
    await sweeper.sweep()
    for inline in (True, False):
        if not inline:
            request.offloaded_input_data.uri = f"{world.root}/offloaded-inputs/p/d/x"
        with pytest.raises(AlreadyExists, match="still being removed"):
            await creator.create(request, ANONYMOUS)
    assert await world.names() == set()

    world.clock.advance(seconds=601)
    await sweeper.sweep()
    await creator.create(request, ANONYMOUS)
    assert not world.folder("nightly").exists()


async def test_files_stay_if_an_action_took_them_while_the_rows_went(world: World) -> None:
    """It had read the row, or the cache entry, before and committed after."""
    origin = await world.run("origin", days=8)
    sweeper = world.sweeper(runs=KEPT)
    await sweeper.sweep()
    await world.run("late", days=0, output_uri=f"{world.folder('origin')}/c0/1")
    world.clock.advance(seconds=601)
    await sweeper.sweep()
    assert (world.folder("origin") / "c0/1/outputs.pb").exists()
    assert await world.database.read(lambda tx: tx.retention.is_being_removed(origin))

    world.clock.advance(seconds=8 * 24 * 3600)
    for _ in range(2):
        await sweeper.sweep()
        world.clock.advance(seconds=601)
    assert not world.folder("origin").exists()


async def test_a_large_run_goes_in_steps_and_a_sweep_that_was_cut_off_is_gone_on_with(world: World) -> None:
    run = await world.run("large", days=8, children=1200)
    await world.database.write(lambda tx: tx.retention.remove_actions(run, limit=500))
    sweeper = world.sweeper(runs=KEPT)
    await sweeper.sweep()
    assert await world.names() == set()
    world.clock.advance(seconds=601)
    await sweeper.sweep()
    assert not world.folder("large").exists()


async def test_files_of_a_removed_run_go_although_the_server_fell_before(world: World) -> None:
    run = await world.run("fallen", days=8, children=0)
    (ended,) = await world.database.read(lambda tx: tx.retention.ended_runs(world.clock.now(), after=None, limit=10))
    await world.database.write(lambda tx: tx.retention.remove_root(ended, at=1))
    assert (world.folder("fallen") / "a0/1/outputs.pb").exists()
    await world.sweeper(runs=KEPT).sweep()

    assert run == ended.run
    assert not world.folder("fallen").exists()
    assert not await world.database.read(lambda tx: tx.retention.is_being_removed(run))


async def test_a_folder_that_is_no_runs_is_never_emptied(world: World) -> None:
    strange = await world.run("strange", days=8, run_output_base=str(world.root))
    await world.run("other", days=1)
    sweeper = world.sweeper(runs=KEPT)
    await sweeper.sweep()
    world.clock.advance(seconds=601)
    await sweeper.sweep()

    assert not await world.database.read(lambda tx: tx.retention.is_being_removed(strange))
    assert (world.folder("other") / "a0/1/outputs.pb").exists()
    assert (world.folder("strange") / "a0/1/outputs.pb").exists()


async def test_uploads_that_nobody_uses_go(world: World) -> None:
    free = await world.upload("uploads/p/d/FREE/fast.tar.gz", days=30)
    young = await world.upload("uploads/p/d/YOUNG/fast.tar.gz", days=1)
    inputs = await world.upload("offloaded-inputs/p/d/hash/inputs.pb", days=30)
    sweeper = world.sweeper(uploads=KEPT)
    await sweeper.sweep()

    assert [is_there(each) for each in (free, young, inputs)] == [False, True, False]
    assert sweeper.removed.objects == 2


async def test_code_of_a_deployed_task_stays(world: World) -> None:
    used = await world.upload("uploads/p/d/USED/fast.tar.gz", days=30)
    folder = await world.upload("uploads/p/d/tree/of/files/a.txt", days=30)
    container = tasks_pb2.Container(args=["a0", "--tgz", used, f"--data={world.root}/uploads/p/d/tree"])
    spec = task_definition_pb2.TaskSpec(task_template=tasks_pb2.TaskTemplate(container=container))
    digest, body = digest_of(spec)
    task = TaskRow(id=TaskId("p", "d", "t", "v1"), spec_digest=digest, created_at=1, updated_at=1)

    def deploy(tx: Transaction) -> None:
        tx.specs.put(digest, body, at=1)
        tx.tasks.upsert(task)

    await world.database.write(deploy)
    await world.sweeper(uploads=KEPT).sweep()

    assert is_there(used) and is_there(folder)


async def test_inputs_of_a_kept_run_stay(world: World) -> None:
    inputs = await world.upload("offloaded-inputs/p/d/hash/inputs.pb", days=30)
    await world.run("kept", days=1, input_uri=inputs)
    await world.sweeper(uploads=KEPT).sweep()

    assert is_there(inputs)


async def test_a_file_that_was_uploaded_for_a_kept_run_stays(world: World) -> None:
    """Its location stands among the values of the run's inputs, which nobody reads for this."""
    value = await world.upload("uploads/p/d/VALUE/data.csv", days=30)
    await world.run("kept", days=29.9)
    await world.sweeper(uploads=KEPT).sweep()

    assert is_there(value)


async def _row(world: World, run: RunId) -> ActionRow:
    row = await world.database.read(lambda tx: tx.actions.get(run.root()))
    assert row is not None
    return row
