"""Makes the fixtures from a folder of recordings: `python -m tests.golden.distil RECORDINGS`.

Reads `<scenario>.jsonl` for every scenario of `scenarios.py` (one call a line: request, then response, error or
stream), passes it through the normaliser and writes `fixtures/<scenario>.json`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.golden import scenarios
from tests.golden.exchanges import exchange_of, reads_state
from tests.golden.normalise import Ids, normalise, value_of

Json = Any  # proto3 JSON documents of some sixty message types: their shape is what is under test, not a given

FIXTURES = Path(__file__).parent / "fixtures"
_SUBJECT = frozenset({"operation", "runId", "actionId", "parentActionId", "id", "action", "filter"})
"""What tells two requests of one method apart; the SDK's own requests are not sent again, so the rest is left out."""

_PLAIN_PATHS = {"well-known/oauth-authorization-server": ".well-known/oauth-authorization-server"}


def main(arguments: list[str]) -> int:
    """Writes all fixtures; returns the exit status."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m tests.golden.distil RECORDINGS\n")
        return 2
    FIXTURES.mkdir(exist_ok=True)
    for scenario in (*scenarios.DRIVEN, *scenarios.REPLAYED):
        lines = (Path(arguments[0]) / f"{scenario}.jsonl").read_text(encoding="utf-8").splitlines()
        calls = distil(scenario, [json.loads(line) for line in lines])
        text = (
            "[\n"
            + ",\n".join(json.dumps(call, ensure_ascii=False, sort_keys=True, separators=(",", ":")) for call in calls)
            + "\n]\n"
        )
        (FIXTURES / f"{scenario}.json").write_text(text, encoding="utf-8")
        sys.stdout.write(f"{scenario}: {len(calls)} calls, {len(text)} bytes\n")
    return 0


def distil(scenario: str, recorded: list[Json]) -> list[Json]:
    """The fixture of one recording. Requests that are sent again keep everything but generated names."""
    ids = Ids()
    replayed = scenario in scenarios.REPLAYED
    served = [call for call in recorded if _is_compared(scenario, call)]
    calls = normalise([{**call, "method": _PLAIN_PATHS.get(call["method"], call["method"])} for call in served], ids)
    for call, original in zip(calls, served, strict=True):
        if not replayed:
            call["request"] = value_of(_subject(call["request"]), ids)
            call.pop("http", None)
        elif not original.get("request_headers", {}).get("content-type"):
            call["get"] = True
        elif "json" in original["request_headers"]["content-type"]:
            call["json"] = True
    return calls if replayed else _without_polls(calls)


def _subject(request: Json) -> Json:
    kept = {key: part for key, part in request.items() if key in _SUBJECT}
    if "action" in kept:
        kept["action"] = {"actionId": kept["action"]["actionId"]}
    return kept


def _without_polls(calls: list[Json]) -> list[Json]:
    """Of repeated reads of one state the last, which is the one that is compared."""
    last = {exchange_of(call): n for n, call in enumerate(calls)}
    return [call for n, call in enumerate(calls) if not reads_state(call) or last[exchange_of(call)] == n]


def _is_compared(scenario: str, call: Json) -> bool:
    if call["n"] not in scenarios.KEPT.get(scenario, {call["n"]}):
        return False
    service, _, method = call["method"].rpartition("/")
    if not service.startswith("flyteidl2."):
        return True
    about = {method, call["request"].get("operation", "")}
    return service in scenarios.SERVED and not about & scenarios.OF_LATER_PARTS.get(scenario, frozenset())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
