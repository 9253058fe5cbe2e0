"""What settings come to in a scope: organization, then domain, then project (`spec/runs.md` 14).

Walks the messages of the contract, so that a setting which a later contract adds is resolved too.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from typing import Protocol, cast

from flyteidl2.settings import settings_definition_pb2 as pb
from google.protobuf.message import Message

INHERIT, UNSET, VALUE = pb.SETTING_STATE_INHERIT, pb.SETTING_STATE_UNSET, pb.SETTING_STATE_VALUE


def resolve(levels: Iterable[tuple[pb.ScopeLevel, pb.Settings]]) -> pb.Settings:
    """`levels` are broadest first. Each setting of the result says which scope it comes from; maps are merged entry by
    entry and say the narrowest. One that a scope unset is there as unset, one that nobody mentions is not."""
    resolved = pb.Settings()
    for scope, settings in levels:
        _merge(resolved, settings, scope)
    return resolved


class Setting(Protocol):
    """What the messages of all kinds of settings have in common."""

    state: pb.SettingState
    scope_level: pb.ScopeLevel


def is_setting(message: Message) -> bool:
    """Or else a group of them."""
    return "scope_level" in message.DESCRIPTOR.fields_by_name


def _merge(into: Message, level: Message, scope: pb.ScopeLevel) -> None:
    for field, value in level.ListFields():
        own = getattr(into, field.name)
        if is_setting(value):
            _take(own, value, scope)
        else:
            _merge(own, value, scope)


def _take(into: Message, setting: Message, scope: pb.ScopeLevel) -> None:
    state = cast("Setting", setting).state
    if state == INHERIT:
        return
    broader = dict(_entries(into))
    into.Clear()
    if state == VALUE:
        into.MergeFrom(setting)
        for key in broader.keys() - _entries(into).keys():
            _entries(into)[key] = broader[key]
    cast("Setting", into).state = state
    cast("Setting", into).scope_level = scope


def _entries(setting: Message) -> MutableMapping[str, str]:
    """Of a map; other settings have none to merge."""
    return setting.map_value.entries if isinstance(setting, pb.StringMapSetting) else {}
