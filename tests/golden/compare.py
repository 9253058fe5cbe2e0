"""Compares two normalised conversations field by field: presence, kinds, enum values, error codes, order on streams.

A conversation is first reduced to exchanges, one for each thing that was asked. How often a client polled or reopened
a watch is its own affair and depends on speed, therefore: reads of a state count by their last answer, watches of one
action are read as one watch, and of a watch the order of first appearance of each phase and the last state count
(repeated and intermediate messages may be left out by either side).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from tests.golden.normalise import ONE_OF_EACH, SAME_TASK, without_system_lines

Json = Any  # proto3 JSON documents of some sixty message types: their shape is what is under test, not a given

_PHASE = "ACTION_PHASE_"
_TERMINAL = frozenset({"SUCCEEDED", "FAILED", "ABORTED", "TIMED_OUT", "RECOVERED"})
_LIFE = ("QUEUED", "WAITING_FOR_RESOURCES", "INITIALIZING", "RUNNING", "PAUSED")
_STATE_READS = frozenset(
    {"GetRunDetails", "GetActionDetails", "GetActionData", "GetTaskDetails", "ListActions", "ListRuns", "ListTasks"}
)


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
        return list(_compare("", _numbered(reference), _numbered(ours)))
    expected, actual = _grouped(reference), _grouped(ours)
    for name in expected.keys() & actual.keys():
        expected[name], actual[name] = _at_the_same_time(expected[name], actual[name])
    optional = {name for name in expected.keys() ^ actual.keys() if _client_decides(name)}
    return [found for found in _compare("", expected, actual) if found.path not in optional]


def _at_the_same_time(reference: Json, ours: Json) -> tuple[Json, Json]:
    """Two answers about one action; how far it was counts only when it had ended on both sides."""
    about = [_details(answer) for answer in (reference, ours)]
    if None in about or all(_phase(details["status"]) in _TERMINAL for details in about):
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


def _unordered(answer: dict[str, Json]) -> dict[str, Json]:
    """An answer whose actions stand in the order of their names: the order is what each client asked for."""
    actions = answer.get("response", {}).get("actions")
    if not actions:
        return answer
    in_order = sorted(actions, key=lambda action: action["id"]["name"])
    return {**answer, "response": {**answer["response"], "actions": in_order}}


def exchange_of(call: Json) -> str:
    """The name of the exchange that a call of a driven conversation belongs to."""
    return f"{call['from']}/{_short(call['method'])}{_subject(call['request'])}"


def reads_state(call: Json) -> bool:
    """Whether only the last of several such calls counts."""
    return call["method"].rpartition("/")[2] in _STATE_READS


def _numbered(calls: list[Json]) -> dict[str, Json]:
    exchanges: dict[str, Json] = {}
    seen: dict[str, int] = {}
    for call in calls:
        name = f"{call['from']}/{_short(call['method'])}"
        seen[name] = seen.get(name, 0) + 1
        exchanges[f"{name}/{seen[name]}"] = {**_answer(call), **({"http": call["http"]} if "http" in call else {})}
    return exchanges


def _grouped(calls: list[Json]) -> dict[str, Json]:
    groups: dict[str, list[Json]] = {}
    for call in calls:
        groups.setdefault(exchange_of(call), []).append(call)
    exchanges: dict[str, Json] = {}
    for name, members in groups.items():
        if any("stream" in member for member in members):
            exchanges[name] = {"stream": _watch(members)}
        elif reads_state(members[0]):
            exchanges[f"{name}/last"] = _unordered(_answer(members[-1]))
        else:
            exchanges.update({f"{name}/{n}": answer for n, answer in enumerate(_changes(members), start=1)})
    return exchanges


def _short(method: str) -> str:
    service, _, name = method.rpartition("/")
    return f"{service.rpartition('.')[2]}.{name}" if service else name


def _subject(request: Json) -> str:
    """What a request is about: the operation of SelectCluster, else the action or run it names."""
    if "operation" in request:
        return f"/{request['operation'].removeprefix('OPERATION_')}"
    holder = request.get("action", request)
    action = next((holder[key] for key in ("actionId", "parentActionId", "id") if _names_action(holder.get(key))), None)
    if action is not None:
        return f"/{action['run']['name']}/{action['name']}"
    run = request.get("runId")
    filtered = "/filtered" if "filter" in request else ""
    return f"/{run['name']}{filtered}" if run else ""


def _names_action(value: Json) -> bool:
    return isinstance(value, dict) and "run" in value and "name" in value


def _answer(call: Json) -> dict[str, Json]:
    if "stream" in call:
        return {"stream": _watch([call])}
    return {key: call[key] for key in ("response", "error", "aborted") if key in call}


def _changes(calls: list[Json]) -> list[Json]:
    found: list[Json] = []
    for answer in map(_answer, calls):
        if not found or found[-1] != answer:
            found.append(answer)
    return found


def _watch(calls: list[Json]) -> dict[str, Json]:
    """Streams about one thing, read as one stream."""
    messages = [message for call in calls for message in _messages(call)]
    errors = [
        entry["end"]["error"] for call in calls for entry in call.get("stream", []) if entry.get("end", {}).get("error")
    ]
    reduced: dict[str, Json] = {"error": errors[-1]} if errors else {}
    if any(call.get("aborted") for call in calls):
        reduced["aborted"] = True
    for applies, reduction in _REDUCTIONS:
        if messages and any(applies in message for message in messages):
            return {**reduced, **reduction([message for message in messages if applies in message], calls, messages)}
    return {**reduced, "messages": _distinct(messages)} if messages else reduced


def _messages(call: Json) -> Iterator[Json]:
    """The messages of a stream, each with the task that its first message stands for."""
    task: Json = None
    for entry in call.get("stream", []):
        message = entry.get("msg")
        details = message.get("details") if message else None
        if isinstance(details, dict) and "task" in details:
            task = task if details["task"] == SAME_TASK else details["task"]
            message = {**message, "details": {**details, "task": task}}
        if message is not None:
            yield message


def _action_details(messages: list[Json], calls: list[Json], _all: list[Json]) -> dict[str, Json]:
    details = [message["details"] for message in messages]
    if not any("status" in detail for detail in details):
        return {"last": details[-1]}
    attempts: dict[str, list[str]] = {}
    for detail in details:
        for attempt in detail.get("attempts", []):
            attempts.setdefault(str(attempt.get("attempt", 0)), []).append(_phase(attempt))
    return {
        "phases": Phases(_phases_of_the_last_attempt(details)),
        "attempts": {number: Phases(phases) for number, phases in attempts.items()},
        "status without attempts": any("attempts" not in detail["status"] for detail in details),
        "closes": "stale" if any(_closed_stale(call) for call in calls) else "up to date",
        "last": details[-1],
    }


def _phases_of_the_last_attempt(details: list[Json]) -> list[str]:
    """With each new attempt an action may begin anew; what it showed during the earlier ones is in `attempts`."""
    last = max(detail["status"].get("attempts", 0) for detail in details)
    shown: list[str] = []
    attempt = 0
    for detail in details:
        attempt = detail["status"].get("attempts", attempt)
        shown += [_phase(detail["status"])] if attempt == last else []
    return shown


def _closed_stale(call: Json) -> bool:
    """Whether the server ended the watch although the phase it had shown last was not a final one."""
    messages = [entry["msg"] for entry in call["stream"] if "msg" in entry]
    ended = any(entry.get("end") == {} for entry in call["stream"])
    return bool(ended and messages and _phase(messages[-1]["details"]["status"]) not in _TERMINAL)


def _action_updates(messages: list[Json], _calls: list[Json], every: list[Json]) -> dict[str, Json]:
    sentinel = next((n for n, message in enumerate(every) if "controlMessage" in message), len(every))
    parent = every[0].get("actionUpdate", {}).get("actionId", {}).get("name") if sentinel else None
    updates = [message["actionUpdate"] for message in messages]
    reduced: dict[str, Json] = {
        "snapshot": sorted({message["actionUpdate"]["actionId"]["name"] for message in every[:sentinel]}),
        "sentinels": sum(1 for message in every if "controlMessage" in message) and "at least one",
    }
    for name in dict.fromkeys(update["actionId"]["name"] for update in updates):
        own = [update for update in updates if update["actionId"]["name"] == name]
        if name == parent:
            reduced[f"itself {name}"] = {key: value for key, value in own[0].items() if key != "phase"}
            continue
        reduced[f"child {name}"] = {
            "announced without a phase": any("phase" not in update for update in own),
            "phases": Phases([_phase(update) for update in own if "phase" in update]),
            "last": own[-1],
        }
    return reduced


def _enriched(messages: list[Json], _calls: list[Json], _all: list[Json]) -> dict[str, Json]:
    reduced: dict[str, Json] = {}
    items = [item for message in messages for item in message["enrichedActions"]]
    for name in dict.fromkeys(item["action"]["id"]["name"] for item in items):
        own = [item for item in items if item["action"]["id"]["name"] == name]
        reduced[name] = {"phases": Phases([_phase(item["action"]["status"]) for item in own]), "last": own[-1]}
    return {"actions": reduced}


def _run_changes(messages: list[Json], _calls: list[Json], _all: list[Json]) -> dict[str, Json]:
    changes = [message["runs"][0] for message in messages if isinstance(message["runs"], list)]
    snapshots = [message["runs"] for message in messages if not isinstance(message["runs"], list)]
    reduced: dict[str, Json] = {"snapshot": snapshots[:1]}
    for name in dict.fromkeys(run["action"]["id"]["run"]["name"] for run in changes):
        own = [run for run in changes if run["action"]["id"]["run"]["name"] == name]
        reduced[name] = {"phases": Phases([_phase(run["action"]["status"]) for run in own]), "last": own[-1]}
    return reduced


def _log_lines(messages: list[Json], _calls: list[Json], _all: list[Json]) -> dict[str, Json]:
    lines = [line for message in messages for part in message["logs"] for line in part["lines"]]
    return {"lines": without_system_lines(lines)}


def _cluster_events(messages: list[Json], _calls: list[Json], _all: list[Json]) -> dict[str, Json]:
    return {"clusterEvents": messages[0]["clusterEvents"]}


def _groups(messages: list[Json], _calls: list[Json], _all: list[Json]) -> dict[str, Json]:
    return {"first": messages[0]}


_REDUCTIONS: tuple[tuple[str, Callable[[list[Json], list[Json], list[Json]], dict[str, Json]]], ...] = (
    ("details", _action_details),
    ("actionUpdate", _action_updates),
    ("enrichedActions", _enriched),
    ("runs", _run_changes),
    ("logs", _log_lines),
    ("clusterEvents", _cluster_events),
    ("taskGroups", _groups),
)


class Phases(tuple[str, ...]):
    """Phases in order of first appearance. Two of them agree when they end alike and order what both saw alike.

    A phase that only one side saw may have been passed in between two messages; it must still stand in the order of
    an action's life.
    """

    __slots__ = ()

    def __new__(cls, phases: list[str]) -> Phases:
        return super().__new__(cls, dict.fromkeys(phases))

    def agrees_with(self, other: Phases) -> bool:
        """Whether both can be the same life, seen through different messages."""
        if self[-1:] != other[-1:]:
            return False
        if [phase for phase in self if phase in other] != [phase for phase in other if phase in self]:
            return False
        if not set(self[:-1]) & _TERMINAL <= set(other):
            return False
        only = [phase for phase in self if phase in _LIFE]
        return only == sorted(only, key=_LIFE.index) or set(only) <= set(other)


def _phase(holder: Json) -> str:
    return holder.get("phase", "UNSPECIFIED").removeprefix(_PHASE)


def _distinct(values: list[Json]) -> list[Json]:
    found: list[Json] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


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
    phases = Phases([_phase(transition) for transition in transitions])
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
