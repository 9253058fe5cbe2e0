"""What settings mean for the runs that are created."""

from __future__ import annotations

from flyteidl2.common import identifier_pb2
from flyteidl2.core import identifier_pb2 as core_identifier_pb2
from flyteidl2.core import tasks_pb2
from flyteidl2.settings import settings_definition_pb2 as pb
from flyteidl2.task import run_pb2, task_definition_pb2
from flyteidl2.workflow import run_service_pb2

from flyte_binary.dataproxy.lookups import RunBaseLookup
from flyte_binary.domain.ids import ProjectId
from tests.rpc.settings.conftest import World
from tests.rpc.settings.test_settings import DOMAIN, ORG, VALUE, create, labels

Names = tasks_pb2.Resources.ResourceName


def text(value: str) -> pb.StringSetting:
    return pb.StringSetting(state=VALUE, string_value=value)


def everything(base: str) -> pb.Settings:
    settings = labels(team="a", cost="1")
    settings.run.default_queue.CopyFrom(text("slow"))
    settings.run.run_base_dir.CopyFrom(text(f"{base}/runs-of-org"))
    settings.run.max_action_concurrency.CopyFrom(pb.Int64Setting(state=VALUE, int_value=5))
    settings.storage.raw_data_path.CopyFrom(text("s3://raw/of-org"))
    settings.security.service_account.CopyFrom(text("runner"))
    settings.pod_template_name.CopyFrom(text("small"))
    settings.annotations.CopyFrom(labels(note="org").labels)
    settings.environment_variables.CopyFrom(labels(MODE="org", LEVEL="1").labels)
    return settings


async def spec_of_run(world: World, run_spec: run_pb2.RunSpec) -> run_pb2.RunSpec:
    template = tasks_pb2.TaskTemplate(type="python", id=core_identifier_pb2.Identifier(name="main.task"))
    request = run_service_pb2.CreateRunRequest(
        project_id=identifier_pb2.ProjectIdentifier(name="flytesnacks", domain="development"),
        task_spec=task_definition_pb2.TaskSpec(task_template=template),
        run_spec=run_spec,
    )
    created = (await world.runs.create_run(request)).run.action.id
    details = await world.runs.get_run_details(run_service_pb2.GetRunDetailsRequest(run_id=created.run))
    return details.details.run_spec


async def test_a_run_takes_over_what_it_does_not_say_itself(world: World) -> None:
    base = world.store.base_uri
    await create(world, ORG, everything(base))
    spec = await spec_of_run(world, run_pb2.RunSpec())
    assert (spec.queue, spec.max_action_concurrency) == ("slow", 5)
    assert spec.run_base_dir == f"{base}/runs-of-org"
    assert spec.raw_data_storage.raw_data_prefix == "s3://raw/of-org"
    assert spec.security_context.run_as.k8s_service_account == "runner"
    assert spec.default_settings.pod_template_name == "small"
    assert dict(spec.labels.values) == {"team": "a", "cost": "1"}
    assert dict(spec.annotations.values) == {"note": "org"}
    assert {variable.key: variable.value for variable in spec.envs.values} == {"MODE": "org", "LEVEL": "1"}


async def test_what_the_run_says_itself_wins(world: World) -> None:
    await create(world, ORG, everything(world.store.base_uri))
    own = run_pb2.RunSpec(queue="fast", max_action_concurrency=9, run_base_dir=f"{world.store.base_uri}/mine")
    own.labels.values["team"] = "mine"
    own.raw_data_storage.raw_data_prefix = "s3://raw/mine"
    own.security_context.run_as.k8s_service_account = "me"
    own.envs.values.add(key="MODE", value="mine")
    spec = await spec_of_run(world, own)
    assert (spec.queue, spec.max_action_concurrency) == ("fast", 9)
    assert spec.run_base_dir == f"{world.store.base_uri}/mine"
    assert spec.raw_data_storage.raw_data_prefix == "s3://raw/mine"
    assert spec.security_context.run_as.k8s_service_account == "me"
    assert dict(spec.labels.values) == {"team": "mine", "cost": "1"}
    assert {variable.key: variable.value for variable in spec.envs.values} == {"MODE": "mine", "LEVEL": "1"}


async def test_what_a_narrower_scope_unsets_reaches_no_run(world: World) -> None:
    await create(world, ORG, everything(world.store.base_uri))
    unset = pb.StringSetting(state=pb.SETTING_STATE_UNSET)
    await create(world, DOMAIN, pb.Settings(run=pb.RunSettings(default_queue=unset)))
    spec = await spec_of_run(world, run_pb2.RunSpec())
    assert (spec.queue, spec.max_action_concurrency) == ("", 5)


def quantity(text: str) -> pb.QuantitySetting:
    return pb.QuantitySetting(state=VALUE, quantity_value=text)


def resources() -> pb.Settings:
    accelerator = tasks_pb2.GPUAccelerator(device="nvidia-t4")
    return pb.Settings(
        task_resource=pb.TaskResourceSettings(
            min=pb.TaskResourceDefaults(cpu=quantity("500m"), memory=quantity("1Gi"), storage=quantity("5Gi")),
            max=pb.TaskResourceDefaults(cpu=quantity("4"), gpu=quantity("2")),
            default_accelerator=pb.AcceleratorSetting(state=VALUE, accelerator_value=accelerator),
        )
    )


async def test_a_run_carries_the_resources_that_its_tasks_are_given(world: World) -> None:
    await create(world, ORG, resources())
    narrower = pb.TaskResourceDefaults(cpu=quantity("2"), memory=pb.QuantitySetting(state=pb.SETTING_STATE_UNSET))
    await create(world, DOMAIN, pb.Settings(task_resource=pb.TaskResourceSettings(min=narrower)))
    own = run_pb2.RunSpec()
    own.default_settings.task_resource_defaults.max.add(name=Names.CPU, value="16")
    defaults = (await spec_of_run(world, own)).default_settings.task_resource_defaults
    assert {entry.name: entry.value for entry in defaults.requests} == {Names.CPU: "2", Names.EPHEMERAL_STORAGE: "5Gi"}
    assert {entry.name: entry.value for entry in defaults.max} == {Names.CPU: "16", Names.GPU: "2"}
    assert defaults.default_accelerator.device == "nvidia-t4"


async def test_inputs_are_uploaded_to_where_the_runs_of_the_scope_lie(world: World) -> None:
    bases = RunBaseLookup(world.database)
    here = ProjectId("flytesnacks", "development")
    assert await bases.of(here) == ""
    await create(world, ORG, everything(world.store.base_uri))
    assert await bases.of(here) == f"{world.store.base_uri}/runs-of-org"
    unset = pb.StringSetting(state=pb.SETTING_STATE_UNSET)
    await create(world, DOMAIN, pb.Settings(run=pb.RunSettings(run_base_dir=unset)))
    assert await bases.of(here) == ""
    assert await bases.of(ProjectId("flytesnacks", "production")) == f"{world.store.base_uri}/runs-of-org"


async def test_a_run_in_a_scope_without_settings_is_left_alone(world: World) -> None:
    await create(world, pb.SettingsKey(domain="production"), everything(world.store.base_uri))
    spec = await spec_of_run(world, run_pb2.RunSpec())
    assert (spec.queue, spec.run_base_dir, dict(spec.labels.values)) == ("", "", {})
