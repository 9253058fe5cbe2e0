"""The same leaf as a cold `a0` process without any server around it: what forking is compared with."""

from __future__ import annotations

import asyncio
import secrets
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from flyteidl2.common import identifier_pb2
from flyteidl2.task import common_pb2, run_pb2, task_definition_pb2
from flyteidl2.workflow import run_service_pb2

from benchmarks.client import Connection
from benchmarks.server_process import ServerProcess, clean_environment
from flyte_binary.db.rows import ActionRow
from flyte_binary.domain.ids import ActionId, RunId
from flyte_binary.domain.phases import Phase
from flyte_binary.domain.task_limits import limits_of, resources_of
from flyte_binary.executor.backend import AttemptSpec
from flyte_binary.executor.facts import RunFacts, TaskFacts
from flyte_binary.executor.task_types import Machine, make_attempt

_RUN_SERVICE = "flyteidl2.workflow.RunService"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A leaf that ran on the server: what it takes to run it again."""

    run: identifier_pb2.RunIdentifier
    spec: task_definition_pb2.TaskSpec
    run_spec: run_pb2.RunSpec
    input_uri: str
    run_output_base: str


async def leaf_of(server: ServerProcess, run: identifier_pb2.RunIdentifier, name: str) -> Leaf:
    connection = await Connection(server.port).open()
    action = identifier_pb2.ActionIdentifier(run=run, name=name)
    details = await connection.call(
        f"{_RUN_SERVICE}/GetActionDetails",
        run_service_pb2.GetActionDetailsRequest(action_id=action),
        run_service_pb2.GetActionDetailsResponse,
    )
    run_details = await connection.call(
        f"{_RUN_SERVICE}/GetRunDetails",
        run_service_pb2.GetRunDetailsRequest(run_id=run),
        run_service_pb2.GetRunDetailsResponse,
    )
    uris = await connection.call(
        f"{_RUN_SERVICE}/GetActionDataURIs",
        run_service_pb2.GetActionDataURIsRequest(action_id=action),
        run_service_pb2.GetActionDataURIsResponse,
    )
    connection.close()
    return Leaf(
        run=run,
        spec=details.details.task,
        run_spec=run_details.details.run_spec,
        input_uri=uris.inputs_uri,
        run_output_base=f"{server.store}/{run.project}/{run.domain}/{run.name}",
    )


async def run_cold(server: ServerProcess, leaf: Leaf, folder: Path) -> float:
    """Seconds from the start of the process to the first line of the user's code. Raises `RuntimeError`."""
    name = f"cold{secrets.token_hex(6)}"
    attempt = _attempt(leaf, name)
    home = folder / name
    home.mkdir(parents=True)
    began = time.time()
    process = await asyncio.create_subprocess_exec(
        *(str(Path(sys.executable).parent / "a0"), *attempt.argv[1:]),
        cwd=home,
        env=_environment(attempt, server.port, home),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    if process.returncode != 0:
        raise RuntimeError(output.decode(errors="replace"))
    return started_at(Path(leaf.run_output_base) / name / "1") - began


def started_at(output_folder: Path) -> float:
    """What the leaf returned: the time at which it began."""
    outputs = common_pb2.Outputs.FromString((output_folder / "outputs.pb").read_bytes())
    return outputs.literals[0].value.scalar.primitive.float_value


def _attempt(leaf: Leaf, name: str) -> AttemptSpec:
    template = leaf.spec.task_template
    row = ActionRow(
        id=ActionId(leaf.run.project, leaf.run.domain, leaf.run.name, name),
        parent="a0",
        phase=Phase.QUEUED,
        action_type=1,
        input_uri=leaf.input_uri,
        run_output_base=leaf.run_output_base,
    )
    task = TaskFacts(spec=leaf.spec, limits=limits_of(template), resources=resources_of(template))
    spawned_by: RunId | None = None
    run = RunFacts(run_spec=leaf.run_spec, created_at=0, spawned_by=spawned_by)
    return make_attempt(
        row, task, run, nonce="cold", log_limit_bytes=0, machine=Machine(cores=1.0, memory_bytes=1 << 40)
    )


def _environment(attempt: AttemptSpec, port: int, home: Path) -> dict[str, str]:
    return {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "DO_NOT_TRACK": clean_environment()["DO_NOT_TRACK"],
        **attempt.env,
        "FSSPEC_FILE_AUTO_MKDIR": "true",
        "_U_EP_OVERRIDE": f"127.0.0.1:{port}",
        "_U_INSECURE": "true",
    }
