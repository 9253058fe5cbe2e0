"""Streams about one thing, reduced to what counts in them: order of first appearance, last state, how they end."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.golden.normalise import SAME_TASK, without_system_lines
from tests.golden.phases import TERMINAL, Json, Phases, phase_of


def watch(calls: list[Json]) -> dict[str, Json]:
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
            attempts.setdefault(str(attempt.get("attempt", 0)), []).append(phase_of(attempt))
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
        shown += [phase_of(detail["status"])] if attempt == last else []
    return shown


def _closed_stale(call: Json) -> bool:
    """Whether the server ended the watch although the phase it had shown last was not a final one."""
    messages = [entry["msg"] for entry in call["stream"] if "msg" in entry]
    ended = any(entry.get("end") == {} for entry in call["stream"])
    return bool(ended and messages and phase_of(messages[-1]["details"]["status"]) not in TERMINAL)


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
            "phases": Phases([phase_of(update) for update in own if "phase" in update]),
            "last": own[-1],
        }
    return reduced


def _enriched(messages: list[Json], _calls: list[Json], _all: list[Json]) -> dict[str, Json]:
    reduced: dict[str, Json] = {}
    items = [item for message in messages for item in message["enrichedActions"]]
    for name in dict.fromkeys(item["action"]["id"]["name"] for item in items):
        own = [item for item in items if item["action"]["id"]["name"] == name]
        reduced[name] = {"phases": Phases([phase_of(item["action"]["status"]) for item in own]), "last": own[-1]}
    return {"actions": reduced}


def _run_changes(messages: list[Json], _calls: list[Json], _all: list[Json]) -> dict[str, Json]:
    changes = [message["runs"][0] for message in messages if isinstance(message["runs"], list)]
    snapshots = [message["runs"] for message in messages if not isinstance(message["runs"], list)]
    reduced: dict[str, Json] = {"snapshot": snapshots[:1]}
    for name in dict.fromkeys(run["action"]["id"]["run"]["name"] for run in changes):
        own = [run for run in changes if run["action"]["id"]["run"]["name"] == name]
        reduced[name] = {"phases": Phases([phase_of(run["action"]["status"]) for run in own]), "last": own[-1]}
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


def _distinct(values: list[Json]) -> list[Json]:
    found: list[Json] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found
