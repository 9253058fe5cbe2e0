"""What settings mean for a run: they fill in what the run itself leaves open."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

from flyteidl2.core import tasks_pb2
from flyteidl2.settings import settings_definition_pb2 as pb
from flyteidl2.task import run_pb2

from flyte_binary.domain.settings import VALUE

_Resource = tasks_pb2.Resources.ResourceName


def with_settings(run_spec: run_pb2.RunSpec, settings: pb.Settings) -> run_pb2.RunSpec:
    """A copy. What the run says itself wins; maps are merged entry by entry. `settings` are resolved."""
    filled = run_pb2.RunSpec()
    filled.CopyFrom(run_spec)
    filled.queue = filled.queue or _text(settings.run.default_queue)
    filled.run_base_dir = filled.run_base_dir or _text(settings.run.run_base_dir)
    if settings.run.max_action_concurrency.state == VALUE and not filled.max_action_concurrency:
        filled.max_action_concurrency = settings.run.max_action_concurrency.int_value
    _fill_places(filled, settings)
    _fill_resources(filled, settings.task_resource)
    _add(filled.labels.values, settings.labels)
    _add(filled.annotations.values, settings.annotations)
    _add_variables(filled.envs, settings.environment_variables)
    return filled


def _fill_places(filled: run_pb2.RunSpec, settings: pb.Settings) -> None:
    """Leaves messages unset that have nothing to say."""
    prefix = _text(settings.storage.raw_data_path)
    if prefix and not filled.raw_data_storage.raw_data_prefix:
        filled.raw_data_storage.raw_data_prefix = prefix
    account = _text(settings.security.service_account)
    if account and not filled.security_context.run_as.k8s_service_account:
        filled.security_context.run_as.k8s_service_account = account
    template = _text(settings.pod_template_name)
    if template and not filled.default_settings.pod_template_name:
        filled.default_settings.pod_template_name = template


def _fill_resources(filled: run_pb2.RunSpec, settings: pb.TaskResourceSettings) -> None:
    """`domain/task_limits.py` says what they mean for the run's tasks. `mirror_limits_request` has no place in a run's
    specification: the executor asks for it (`executor/facts.py`)."""
    requests, most = _quantities(settings.min), _quantities(settings.max)
    accelerator = settings.default_accelerator
    if not requests and not most and accelerator.state != VALUE:
        return
    defaults = filled.default_settings.task_resource_defaults
    for entries, quantities in ((defaults.requests, requests), (defaults.max, most)):
        given = {entry.name for entry in entries}
        entries.extend(entry for entry in quantities if entry.name not in given)
    if accelerator.state == VALUE and not defaults.HasField("default_accelerator"):
        defaults.default_accelerator.CopyFrom(accelerator.accelerator_value)


def _quantities(settings: pb.TaskResourceDefaults) -> list[tasks_pb2.Resources.ResourceEntry]:
    named = (
        (_Resource.CPU, settings.cpu),
        (_Resource.GPU, settings.gpu),
        (_Resource.MEMORY, settings.memory),
        (_Resource.EPHEMERAL_STORAGE, settings.storage),
    )
    return [
        tasks_pb2.Resources.ResourceEntry(name=name, value=setting.quantity_value)
        for name, setting in named
        if setting.state == VALUE
    ]


def _text(setting: pb.StringSetting) -> str:
    return setting.string_value if setting.state == VALUE else ""


def _entries(setting: pb.StringMapSetting) -> Mapping[str, str]:
    return setting.map_value.entries if setting.state == VALUE else {}


def _add(own: MutableMapping[str, str], setting: pb.StringMapSetting) -> None:
    for key, value in _entries(setting).items():
        if key not in own:
            own[key] = value


def _add_variables(own: run_pb2.Envs, setting: pb.StringMapSetting) -> None:
    given = {variable.key for variable in own.values}
    for key, value in sorted(_entries(setting).items()):
        if key not in given:
            own.values.add(key=key, value=value)
