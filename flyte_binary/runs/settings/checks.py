"""Settings that could only make runs fail later are refused when they are made."""

from __future__ import annotations

import re
from collections.abc import Callable

from flyteidl2.settings import settings_definition_pb2 as pb
from google.protobuf.message import Message

from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.domain.names import TEXT_LIMIT, check_text
from flyte_binary.domain.settings import VALUE, is_setting
from flyte_binary.domain.task_limits import quantity
from flyte_binary.runs.order import URI_LIMIT

_LOCATIONS = (".run.run_base_dir", ".storage.raw_data_path")
_VALUE_LIMIT = 256 * 1024
_ABSOLUTE = re.compile(r"/|[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_MOST_CONCURRENT = 2**32 - 1


def check_settings(settings: pb.Settings, covers: Callable[[str], bool]) -> None:
    """`covers` tells whether a URI lies in the object store. Raises `InvalidArgument` naming the setting."""
    _check_group(settings, "")
    _check_bounds(settings.task_resource)
    _check_concurrency(settings.run.max_action_concurrency)
    base = settings.run.run_base_dir
    if base.state == VALUE and base.string_value and not covers(base.string_value):
        raise InvalidArgument(f"settings.run.run_base_dir {base.string_value!r} is outside the object store")
    raw = settings.storage.raw_data_path
    if raw.state == VALUE and raw.string_value and not _ABSOLUTE.match(raw.string_value):
        raise InvalidArgument("settings.storage.raw_data_path must be an absolute path or a URI with a scheme")


def _check_group(group: Message, path: str) -> None:
    for field, value in group.ListFields():
        name = f"{path}.{field.name}"
        if not is_setting(value):
            _check_group(value, name)
        elif isinstance(value, pb.StringSetting):
            check_text(f"settings{name}", value.string_value, limit=URI_LIMIT if name in _LOCATIONS else TEXT_LIMIT)
        elif isinstance(value, pb.StringMapSetting):
            _check_entries(value, name)
        elif isinstance(value, pb.QuantitySetting) and value.state == VALUE:
            _quantity(value, name)


def _check_entries(setting: pb.StringMapSetting, name: str) -> None:
    """Labels are bounded as those of runs are; nobody bounds values of annotations and variables there."""
    for key, value in setting.map_value.entries.items():
        check_text(f"settings{name}: a key", key, required=True)
        if name == ".environment_variables" and "=" in key:
            raise InvalidArgument(f"settings{name}: {key!r} is no name of a variable")
        check_text(f"settings{name}[{key!r}]", value, limit=URI_LIMIT if name == ".labels" else _VALUE_LIMIT)


def _check_bounds(settings: pb.TaskResourceSettings) -> None:
    for name in ("cpu", "gpu", "memory", "storage"):
        least, most = getattr(settings.min, name), getattr(settings.max, name)
        if least.state != VALUE or most.state != VALUE:
            continue
        if _quantity(least, f".task_resource.min.{name}") > _quantity(most, f".task_resource.max.{name}"):
            raise InvalidArgument(
                f"settings.task_resource.min.{name} is {least.quantity_value}, more than the maximum, "
                f"{most.quantity_value}"
            )


def _quantity(setting: pb.QuantitySetting, name: str) -> float:
    found = quantity(setting.quantity_value)
    if found is None:
        raise InvalidArgument(
            f'settings{name}: {setting.quantity_value!r} is no quantity such as "500m", "2" or "512Mi"'
        )
    return found


def _check_concurrency(setting: pb.Int64Setting) -> None:
    if setting.state != VALUE:
        return
    if setting.int_value == 1 or not 0 <= setting.int_value <= _MOST_CONCURRENT:
        raise InvalidArgument(
            f"settings.run.max_action_concurrency is {setting.int_value}: use 0 for no limit, or at least 2, "
            "because a parent takes one place beside its children"
        )
