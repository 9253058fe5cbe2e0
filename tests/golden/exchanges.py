"""A conversation reduced to exchanges, one for each thing that was asked.

How often a client polled or reopened a watch is its own affair and depends on speed, therefore: reads of a state count
by their last answer, and watches of one action are read as one watch.
"""

from __future__ import annotations

from tests.golden.phases import Json
from tests.golden.watch import watch

_STATE_READS = frozenset(
    {"GetRunDetails", "GetActionDetails", "GetActionData", "GetTaskDetails", "ListActions", "ListRuns", "ListTasks"}
)


def numbered(calls: list[Json]) -> dict[str, Json]:
    """Every call for itself, named by its method and how many times that was called before."""
    exchanges: dict[str, Json] = {}
    seen: dict[str, int] = {}
    for call in calls:
        name = f"{call['from']}/{_short(call['method'])}"
        seen[name] = seen.get(name, 0) + 1
        exchanges[f"{name}/{seen[name]}"] = {**_answer(call), **({"http": call["http"]} if "http" in call else {})}
    return exchanges


def grouped(calls: list[Json]) -> dict[str, Json]:
    """Calls that ask for the same thing together."""
    groups: dict[str, list[Json]] = {}
    for call in calls:
        groups.setdefault(exchange_of(call), []).append(call)
    exchanges: dict[str, Json] = {}
    for name, members in groups.items():
        if any("stream" in member for member in members):
            exchanges[name] = {"stream": watch(members)}
        elif reads_state(members[0]):
            exchanges[f"{name}/last"] = _unordered(_answer(members[-1]))
        else:
            exchanges.update({f"{name}/{n}": answer for n, answer in enumerate(_changes(members), start=1)})
    return exchanges


def exchange_of(call: Json) -> str:
    """The name of the exchange that a call of a driven conversation belongs to."""
    return f"{call['from']}/{_short(call['method'])}{_subject(call['request'])}"


def reads_state(call: Json) -> bool:
    """Whether only the last of several such calls counts."""
    return call["method"].rpartition("/")[2] in _STATE_READS


def _unordered(answer: dict[str, Json]) -> dict[str, Json]:
    """An answer whose actions stand in the order of their names: the order is what each client asked for."""
    actions = answer.get("response", {}).get("actions")
    if not actions:
        return answer
    in_order = sorted(actions, key=lambda action: action["id"]["name"])
    return {**answer, "response": {**answer["response"], "actions": in_order}}


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
        return {"stream": watch([call])}
    return {key: call[key] for key in ("response", "error", "aborted") if key in call}


def _changes(calls: list[Json]) -> list[Json]:
    found: list[Json] = []
    for answer in map(_answer, calls):
        if not found or found[-1] != answer:
            found.append(answer)
    return found
