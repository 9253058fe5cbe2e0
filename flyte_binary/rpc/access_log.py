"""One line and one measurement for each call."""

from __future__ import annotations

import structlog
from prometheus_client import CollectorRegistry, Counter, Histogram

_log = structlog.get_logger("flyte_binary.access")
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600)


class AccessLog:
    """Calls that succeed are logged at `debug`, those that fail at `info`, our own failures at `warning` (the line with
    the traceback is written by `errors.py`).

    The labels are bounded: only mounted methods and Connect's seventeen codes are recorded.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """Without a registry the measurements go to one of its own that nobody reads."""
        registry = registry or CollectorRegistry()
        self._requests = Counter("flyte_rpc_requests", "RPC calls that ended.", ("method", "code"), registry=registry)
        self._seconds = Histogram(
            "flyte_rpc_seconds", "Duration of RPC calls.", ("method",), buckets=_BUCKETS, registry=registry
        )
        self._counters: dict[tuple[str, str], Counter] = {}
        self._timers: dict[str, Histogram] = {}

    def record(self, method: str, code: str, seconds: float, request_id: str) -> None:
        counter = self._counters.get((method, code))
        if counter is None:
            counter = self._counters[method, code] = self._requests.labels(method, code)
        timer = self._timers.get(method)
        if timer is None:
            timer = self._timers[method] = self._seconds.labels(method)
        counter.inc()
        timer.observe(seconds)
        milliseconds = round(seconds * 1000, 2)
        match code:
            case "ok" | "canceled":
                _log.debug("rpc", method=method, code=code, ms=milliseconds, request_id=request_id)
            case "internal" | "unknown" | "data_loss":
                _log.warning("rpc", method=method, code=code, ms=milliseconds, request_id=request_id)
            case _:
                _log.info("rpc", method=method, code=code, ms=milliseconds, request_id=request_id)
