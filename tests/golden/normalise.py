"""The one normaliser of recorded calls: the reference's recordings and ours pass through it before the comparison.

What differs between any two runs (ids, times, locations, hashes) becomes a typed placeholder; what is an echo of the
client's own task template is cut to the parts that matter; lists whose members depend on what ran before (all runs of
a project) become one sample of each kind. Presence, kinds, enum values, error codes and order stay. Pure, and applying
it twice is applying it once: the fixtures are stored normalised and pass through again when they are compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Json = Any  # proto3 JSON documents of some sixty message types: their shape is what is under test, not a given

ONE_OF_EACH = "<one of each kind>"
"""Key that marks a list reduced to a sample of each kind; the comparer looks at the kinds both sides have."""

SAME_TASK = "<as in the first message of this stream>"
"""Stands for `details.task` in the later messages of a WatchActionDetails stream as long as it does not change."""

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_LOCATION = re.compile(r"([a-z][a-z0-9+.-]*):/\S+|/\S+/\S*")
_RUN = re.compile(r"\b(r[0-9a-z]{19}|r[0-9a-f]{16}|rgolden\d+)\b")
_ACTION = re.compile(r"\b(?=[0-9a-z]*\d)[0-9a-z]{22,25}\b")
_HEX_VERSION = re.compile(r"[0-9a-f]{32}")

_HASHES = frozenset(
    {"contentMd5", "inputsHash", "discoveryVersion", "cacheKey", "Content-MD5", "x-amz-meta-flyteContentMD5"}
)
_NAMES = frozenset({"podName", "primaryPodName", "containerName", "primaryContainerName", "namespace"})
_DURATIONS = frozenset({"durationMs", "timeout", "expiresIn"})
_COUNTS = frozenset({"total", "filteredTotal", "totalRuns", "count"})
_ORGANISATIONS = frozenset({"org", "organization"})
_OF_ONE_TASK = frozenset({"cacheStatus", "relation", "errorCounts"})
_ECHOED = frozenset({"runtime", "codeBundleUri", "discoveryVersion"})


class Ids:
    """Generated run and action names, numbered in order of first appearance in one conversation.

    `known` fixes names beforehand: actual name → placeholder, for a conversation about runs made elsewhere.
    """

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        self._placeholders: dict[str, str] = dict(known or {})

    @classmethod
    def numbering(cls, names: Iterable[str]) -> Ids:
        """Numbers generated names in the order given, before they appear."""
        ids = cls()
        for name in names:
            ids.without(name)
        return ids

    def without(self, text: str) -> str:
        """The text with each generated name replaced by its placeholder."""
        text = _RUN.sub(lambda found: self._placeholder(found.group(0), "run"), text)
        return _ACTION.sub(lambda found: self._placeholder(found.group(0), "action"), text)

    def actual(self, text: str) -> str:
        """The text with each placeholder replaced by the name it stands for; unknown placeholders stay."""
        for name, placeholder in self._placeholders.items():
            text = text.replace(placeholder, name)
        return text

    def _placeholder(self, name: str, kind: str) -> str:
        if name not in self._placeholders:
            number = 1 + sum(1 for taken in self._placeholders.values() if taken.startswith(f"<{kind}:"))
            self._placeholders[name] = f"<{kind}:{number}>"
        return self._placeholders[name]


def normalise(calls: list[Json], ids: Ids | None = None) -> list[Json]:
    """A recorded conversation with everything volatile replaced; the order of calls and of stream messages stays."""
    numbering = ids or Ids()
    return [normalise_call(call, numbering) for call in calls]


def normalise_call(call: Json, ids: Ids) -> Json:
    """One call. Requests keep everything but generated names, so that they can be sent again."""
    kept: dict[str, Json] = {"from": call["from"], "method": call["method"]}
    kept["request"] = _each_string(call.get("request", {}), ids.without)
    if "http" in call:
        kept["http"] = call["http"]
    if "aborted" in call:
        kept["aborted"] = True
    if "response" in call:
        kept["response"] = _page(call, value_of(call["response"], ids))
    if "error" in call:
        kept["error"] = _error(call["error"])
    if "stream" in call:
        kept["stream"] = _stream(call["stream"], ids)
    if "closed_by" in call:
        kept["closed_by"] = call["closed_by"]
    return kept


def _page(call: Json, response: Json) -> Json:
    """A page without its token if the caller did not limit it: whether there is more depends on what ran before."""
    limited = "limit" in call.get("request", {}).get("request", {})
    return response if limited or "runs" not in response else {k: v for k, v in response.items() if k != "token"}


def value_of(value: Json, ids: Ids, key: str = "") -> Json:
    """A field's value without what is volatile in it; `key` is the field's JSON name."""
    if isinstance(value, dict):
        return _message(value, ids)
    if isinstance(value, list):
        return _repeated(value, ids, key)
    if key in _COUNTS:
        return "<count>"
    if isinstance(value, str):
        return _text(value, ids, key)
    return value


def without_system_lines(lines: list[Json]) -> list[Json]:
    """Log lines printed by the task itself: the SDK's own lines name runs and depend on how the process was started."""
    return [line for line in lines if "[flyte]" not in line.get("message", "")]


def _message(value: Json, ids: Ids) -> Json:
    kept: dict[str, Json] = {}
    for key, inner in value.items():
        if key == "taskTemplate":
            kept[key] = _template(inner, ids)
        elif key == "errorInfo" and isinstance(inner, dict):
            kept[key] = {name: ids.without(part) for name, part in inner.items()}
        elif key == "base64":
            kept[key] = "<body>"
        elif key == "childrenPhaseCounts":  # counters that went back to zero tell which messages were merged
            kept[key] = {phase: count for phase, count in inner.items() if count}
        else:
            kept[key] = value_of(inner, ids, key)
    if value.get("key") == "_F_SYS_PATH":
        kept["value"] = "<path>"
    return kept


def _template(template: Json, ids: Ids) -> Json:
    kept: dict[str, Json] = {}
    for key, inner in template.items():
        if key in ("container", "k8sPod", "custom", "config"):
            kept[key] = f"<{key}>"
        elif key == "metadata" and isinstance(inner, dict):
            kept[key] = {name: value_of(part, ids, name) for name, part in inner.items() if name not in _ECHOED}
        else:
            kept[key] = value_of(inner, ids, key)
    return kept


def _repeated(values: list[Json], ids: Ids, key: str) -> Json:
    if key == "clusterEvents":
        names = sorted({name for event in values for name in event})
        return [{name: "<time>" if name == "occurredAt" else "<text>" for name in names}] if names else []
    if key == "runs":
        return _one_of_each(values, lambda run: run["action"]["status"]["phase"])
    if key == "tasks":
        return _one_of_each(values, lambda task: "triggered" if "triggersSummary" in task["metadata"] else "plain")
    if key == "taskGroups":
        return _one_of_each(values, lambda _group: "group")
    return [value_of(inner, ids, key) for inner in values]


def _one_of_each(values: list[Json], kind: Callable[[Json], str]) -> Json:
    """Names in the samples are not numbered: which runs there were before is not part of the conversation."""
    samples: dict[str, Json] = {}
    for value in values:
        samples.setdefault(kind(value), _sample(value_of(value, Ids())))
    return {ONE_OF_EACH: {name: samples[name] for name in sorted(samples)}}


def _sample(value: Json, key: str = "") -> Json:
    """What is alike in all values of a kind: fields that depend on the task that ran are left out."""
    if isinstance(value, dict):
        return {name: _sample(inner, name) for name, inner in value.items() if name not in _OF_ONE_TASK}
    if isinstance(value, list):
        return [_sample(inner, key) for inner in value[:1]]
    if isinstance(value, str) and (value == "<version>" or not (value.startswith("<") or value.isupper())):
        return "<string>"
    return "<number>" if isinstance(value, int) and not isinstance(value, bool) else value


def _text(text: str, ids: Ids, key: str) -> str:
    if text.startswith("<") or text == "":
        return text
    if key in _HASHES:
        return "<hash>"
    if key in _NAMES:
        return "<name>"
    if key in _DURATIONS:
        return "<duration>"
    if key in _ORGANISATIONS:
        return "<org>"
    if key == "version" and _HEX_VERSION.fullmatch(text):
        return "<version>"
    if _TIME.fullmatch(text):
        return "<time>"
    if _LOCATION.fullmatch(text):
        return _location(text)
    return ids.without(text)


def _location(text: str) -> str:
    if text.startswith(("http:", "https:")):
        return "<url>"
    last = text.rstrip("/").rpartition("/")[2]
    if last.endswith(".tar.gz"):
        return "<uri */*.tar.gz>"
    return f"<uri */{last}>" if "." in last or last.isdigit() else "<uri>"


def _error(error: Json) -> Json:
    if "code" in error:
        return {"code": error["code"], "message": "<text>"}
    return {"raw": "<text>"}


def _stream(stream: list[Json], ids: Ids) -> list[Json]:
    kept: list[Json] = []
    task: Json = None
    for entry in stream:
        if "end" in entry:
            error = entry["end"].get("error")
            kept.append({"end": {"error": _error(error)} if error else {}})
            continue
        message = _streamed(entry["msg"], ids)
        details = message.get("details")
        if isinstance(details, dict) and "task" in details:
            if details["task"] == task:
                message = {**message, "details": {**details, "task": SAME_TASK}}
            elif details["task"] != SAME_TASK:
                task = details["task"]
        cleaned = {"msg": message}
        if not kept or kept[-1] != cleaned:
            kept.append(cleaned)
    return kept


def _streamed(message: Json, ids: Ids) -> Json:
    runs = message.get("runs")
    if isinstance(runs, list) and len(runs) == 1:  # a change of one run, not the snapshot of all
        return {**value_of(message, ids), "runs": [value_of(runs[0], ids)]}
    return value_of(message, ids)


def _each_string(value: Json, change: Callable[[str], str]) -> Json:
    if isinstance(value, dict):
        return {key: _each_string(inner, change) for key, inner in value.items()}
    if isinstance(value, list):
        return [_each_string(inner, change) for inner in value]
    return change(value) if isinstance(value, str) else value
