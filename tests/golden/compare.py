"""Compares two normalised conversations field by field: presence, kinds, enum values, error codes, order on streams.

Both are first reduced to exchanges (`exchanges.py`). Of a watch the order of first appearance of each phase and the
last state count; repeated and intermediate messages may be left out by either side.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tests.golden.exchanges import grouped, numbered
from tests.golden.normalise import ONE_OF_EACH
from tests.golden.phases import TERMINAL, Json, Phases, phase_of

_CLIENTS_CHOICE = (
    "ClusterService.SelectCluster",
    "DataProxyService.CreateUploadLocation",
    "RunService.WatchActionDetails",
)


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that is not the same on both sides."""

    path: str
    """Caller, method and field, separated by slashes, for instance `sdk/RunService.GetRunDetails/last/response/…`."""
    kind: Literal["missing", "extra", "changed"]
    """Missing: only the reference has it. Extra: only we have it."""
    reference: Json
    ours: Json


def differences(reference: list[Json], ours: list[Json], *, call_by_call: bool) -> list[Difference]:
    """All differences between two normalised conversations.

    `call_by_call` is for a replay of the same requests: every call is compared with its counterpart.
    """
    if call_by_call:
        return list(_compare("", numbered(reference), numbered(ours)))
    expected, actual = grouped(reference), grouped(ours)
    for name in expected.keys() & actual.keys():
        expected[name], actual[name] = _at_the_same_time(expected[name], actual[name])
    optional = {name for name in expected.keys() ^ actual.keys() if _client_decides(name)}
    return [found for found in _compare("", expected, actual) if found.path not in optional]


def _at_the_same_time(reference: Json, ours: Json) -> tuple[Json, Json]:
    """Two answers about one action; how far it was counts only when it had ended on both sides."""
    about = [_details(answer) for answer in (reference, ours)]
    if None in about or all(phase_of(details["status"]) in TERMINAL for details in about):
        return reference, ours
    return _without_progress(reference), _without_progress(ours)


def _details(answer: Json) -> Json:
    """The ActionDetails in an answer to GetActionDetails or GetRunDetails, or None."""
    details = answer.get("response", {}).get("details", {})
    return details if "status" in details else details.get("action")


def _without_progress(answer: Json) -> Json:
    details = answer["response"]["details"]
    kept = {key: value for key, value in details.items() if key not in ("status", "attempts", "action")}
    if "action" in details:
        kept["action"] = {k: value for k, value in details["action"].items() if k not in ("status", "attempts")}
    return {"response": {"details": kept}}


def _client_decides(exchange: str) -> bool:
    """Whether the SDK makes such a call only sometimes: when its cache has no answer, or the action is not running."""
    return any(f"/{method}/" in exchange for method in _CLIENTS_CHOICE)


def _compare(path: str, reference: Json, ours: Json) -> Iterator[Difference]:
    if isinstance(reference, Phases) and isinstance(ours, Phases):
        if not ours.agrees_with(reference):
            yield Difference(path, "changed", list(reference), list(ours))
    elif isinstance(reference, dict) and isinstance(ours, dict):
        yield from _compare_messages(path, reference, ours)
    elif path.endswith("/actions") and isinstance(reference, list):
        yield from _compare_messages(path, _by_name(reference), _by_name(ours))
    elif path.endswith("/phaseTransitions") and reference and ours:
        yield from _compare_messages(path, _transitions(reference), _transitions(ours))
    elif isinstance(reference, list) and isinstance(ours, list):
        if len(reference) != len(ours):
            yield Difference(f"{path}/length", "changed", len(reference), len(ours))
        for n, (one, other) in enumerate(zip(reference, ours, strict=False)):
            yield from _compare(f"{path}/{n}", one, other)
    elif type(reference) is not type(ours) or reference != ours:
        yield Difference(path, "changed", reference, ours)


def _compare_messages(path: str, reference: dict[str, Json], ours: dict[str, Json]) -> Iterator[Difference]:
    if ONE_OF_EACH in reference and ONE_OF_EACH in ours:
        yield from _compare_samples(path, reference[ONE_OF_EACH], ours[ONE_OF_EACH])
        return
    for key in sorted(reference.keys() | ours.keys()):
        inner = f"{path}/{key}" if path else key
        if key not in ours:
            yield Difference(inner, "missing", reference[key], None)
        elif key not in reference:
            yield Difference(inner, "extra", None, ours[key])
        else:
            yield from _compare(inner, reference[key], ours[key])


def _transitions(transitions: list[Json]) -> dict[str, Json]:
    phases = Phases([phase_of(transition) for transition in transitions])
    fields = {key for transition in transitions for key in transition}
    return {"order": phases, "fields": sorted(fields), "last": transitions[-1]}


def _by_name(actions: list[Json]) -> dict[str, Json]:
    names = [action["id"]["name"] for action in actions]
    return {"order": names, **dict(zip(names, actions, strict=True))}


def _compare_samples(path: str, reference: dict[str, Json], ours: dict[str, Json]) -> Iterator[Difference]:
    if bool(reference) != bool(ours):
        yield Difference(path, "changed", sorted(reference), sorted(ours))
    for kind in sorted(reference.keys() & ours.keys()):
        yield from _compare(f"{path}/{kind}", reference[kind], ours[kind])
