"""Settings that could only make runs fail later are refused when they are made."""

from __future__ import annotations

import re
from collections.abc import Callable

from flyteidl2.settings import settings_definition_pb2 as pb
from google.protobuf.message import Message

from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.runs.settings.resolve import VALUE, is_setting

_QUANTITY = re.compile(r"\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)(m|k|[KMGTPE]i?|[eE][+-]?[0-9]+)?")
_ABSOLUTE = re.compile(r"/|[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_MOST_CONCURRENT = 2**32 - 1


def check_settings(settings: pb.Settings, covers: Callable[[str], bool]) -> None:
    """`covers` tells whether a URI lies in the object store. Raises `InvalidArgument` naming the setting."""
    _check_group(settings, "")
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
            _check_text(value.string_value, name)
        elif isinstance(value, pb.StringMapSetting):
            _check_entries(value, name)
        elif isinstance(value, pb.QuantitySetting) and value.state == VALUE:
            _check_quantity(value.quantity_value, name)


def _check_entries(setting: pb.StringMapSetting, name: str) -> None:
    for key, value in setting.map_value.entries.items():
        if not key:
            raise InvalidArgument(f"settings{name}: a key is empty")
        if name == ".environment_variables" and "=" in key:
            raise InvalidArgument(f"settings{name}: {key!r} is no name of a variable")
        _check_text(key, name)
        _check_text(value, name)


def _check_quantity(text: str, name: str) -> None:
    if not _QUANTITY.fullmatch(text):
        raise InvalidArgument(f'settings{name}: {text!r} is no quantity such as "500m", "2" or "512Mi"')


def _check_concurrency(setting: pb.Int64Setting) -> None:
    if setting.state != VALUE:
        return
    if setting.int_value == 1 or not 0 <= setting.int_value <= _MOST_CONCURRENT:
        raise InvalidArgument(
            f"settings.run.max_action_concurrency is {setting.int_value}: use 0 for no limit, or at least 2, "
            "because a parent takes one place beside its children"
        )


def _check_text(text: str, name: str) -> None:
    if "\0" in text:
        raise InvalidArgument(f"settings{name} contains a NUL character")
