"""Who may run now: cores, memory and the limit of a run, for one node.

Whoever only waits for others holds no core, so recursion cannot deadlock. Waiting requests are
served in turns by run; one that has waited long and does not fit keeps smaller ones back. Memory
always counts, but for the single extra admission that ends a standstill (`admit_one_more`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

from flyte_binary.domain.ids import ActionId, RunId

AGEING_SECONDS = 10.0
_EPSILON = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    action: ActionId
    cores: float
    memory_bytes: int
    named: bool = True
    """The task names what it needs; otherwise it counts as one core."""
    run_limit: int = 0
    """`max_action_concurrency` of the run; 0 is unlimited."""
    asked_at: float
    """Seconds of a monotonic clock."""

    @property
    def run(self) -> RunId:
        return self.action.run_id


@dataclass(slots=True)
class _Holder:
    request: Request
    waiting: bool = False


class Admission:
    def __init__(
        self, *, cores: float, memory_bytes: int, wake: Callable[[ActionId], None], slack_cores: float = 0.0
    ) -> None:
        """`slack_cores` come on top for requests that name no resources: a task that starts, reads
        and writes leaves its core idle half of the time, and nobody has asked for a core of their own."""
        self.cores = cores
        self._all_cores, self._all_memory_bytes = cores, memory_bytes
        self._slack_cores = slack_cores
        self.memory_bytes = memory_bytes
        self.closed = False
        """While closed nothing is admitted; what runs goes on."""
        self._wake = wake
        self._holders: dict[ActionId, _Holder] = {}
        self._asking: OrderedDict[RunId, OrderedDict[ActionId, Request]] = OrderedDict()
        self._cores_held = 0.0
        self._memory_held = 0
        self._active_in_run: dict[RunId, int] = {}

    def admit(self, request: Request) -> bool:
        """True: the action holds its share until `release`. False: it is woken when its turn comes."""
        if request.action in self._holders:
            return True
        queue = self._asking.setdefault(request.run, OrderedDict())
        queue.setdefault(request.action, self._clamped(request))
        self._serve(request.asked_at, asker=request.action)
        return request.action in self._holders

    def adopt(self, request: Request) -> None:
        """Count an action that runs already, whatever the limits say."""
        if request.action not in self._holders:
            self._withdraw(request.action)
            self._hold(self._clamped(request))

    def release(self, action: ActionId, *, now: float) -> None:
        """Give back a share, or withdraw a request; absent is fine."""
        withdrawn = self._withdraw(action)
        holder = self._holders.pop(action, None)
        if holder is not None:
            self._memory_held -= holder.request.memory_bytes
            if not holder.waiting:
                self._deactivate(holder.request)
        if withdrawn or holder is not None:
            # A request that is gone may have kept others back.
            self._serve(now)

    def set_waiting(self, action: ActionId, waiting: bool, *, now: float) -> None:
        """Whether a holder only waits for children, conditions or runs that it started."""
        holder = self._holders.get(action)
        if holder is None or holder.waiting == waiting:
            return
        holder.waiting = waiting
        if not waiting:
            self._activate(holder.request)
            return
        self._deactivate(holder.request)
        self._serve(now)

    def admit_one_more(self) -> ActionId | None:
        """End a standstill: the request that is next in turn is admitted beyond the limits."""
        if self.closed:
            return None
        candidates = [request for queue in self._asking.values() for request in queue.values()]
        within = [request for request in candidates if not self._run_is_full(request)]
        if not within:
            return None
        chosen = next((request for request in within if self._fits(request)), min(within, key=lambda r: r.asked_at))
        self._grant(chosen)
        return chosen.action

    def shared_by(self, servers: int) -> None:
        """So many servers start attempts on this node; each takes an equal part of it."""
        part = max(1, servers)
        self.cores, self.memory_bytes = self._all_cores / part, self._all_memory_bytes // part

    def serve(self, *, now: float) -> None:
        self._serve(now)

    def holders(self) -> list[Request]:
        return [holder.request for holder in self._holders.values()]

    def holders_of(self, run: RunId) -> list[Request]:
        found = [holder.request for holder in self._holders.values() if holder.request.run == run]
        return sorted(found, key=lambda request: request.asked_at)

    def active(self) -> list[ActionId]:
        """Holders that hold a core."""
        return [action for action, holder in self._holders.items() if not holder.waiting]

    def is_asking(self) -> bool:
        return bool(self._asking)

    def _serve(self, now: float, asker: ActionId | None = None) -> None:
        if self.closed:
            return
        while (request := self._next_that_fits(now)) is not None:
            self._grant(request, wake=request.action != asker)

    def _next_that_fits(self, now: float) -> Request | None:
        """Turn by turn over the runs, the oldest request of each; an aged one bars the others."""
        if self._cores_held >= self.cores + self._slack_cores - _EPSILON:
            return None
        heads = [next(iter(queue.values())) for queue in self._asking.values()]
        open_heads = [request for request in heads if not self._run_is_full(request)]
        if not open_heads:
            return None
        oldest = min(open_heads, key=lambda request: request.asked_at)
        if not self._fits(oldest) and now - oldest.asked_at >= AGEING_SECONDS:
            return None
        return next((request for request in open_heads if self._fits(request)), None)

    def _grant(self, request: Request, *, wake: bool = True) -> None:
        self._withdraw(request.action)
        if request.run in self._asking:
            self._asking.move_to_end(request.run)
        self._hold(request)
        if wake:
            self._wake(request.action)

    def _hold(self, request: Request) -> None:
        self._holders[request.action] = _Holder(request)
        self._memory_held += request.memory_bytes
        self._activate(request)

    def _withdraw(self, action: ActionId) -> bool:
        queue = self._asking.get(action.run_id)
        if queue is None or queue.pop(action, None) is None:
            return False
        if not queue:
            del self._asking[action.run_id]
        return True

    def _activate(self, request: Request) -> None:
        self._cores_held += request.cores
        self._active_in_run[request.run] = self._active_in_run.get(request.run, 0) + 1

    def _deactivate(self, request: Request) -> None:
        self._cores_held -= request.cores
        left = self._active_in_run.get(request.run, 0) - 1
        if left > 0:
            self._active_in_run[request.run] = left
        else:
            self._active_in_run.pop(request.run, None)

    def _fits(self, request: Request) -> bool:
        limit = self.cores if request.named else self.cores + self._slack_cores
        cores = self._cores_held + request.cores <= limit + _EPSILON
        return cores and self._memory_held + request.memory_bytes <= self.memory_bytes

    def _run_is_full(self, request: Request) -> bool:
        return bool(request.run_limit) and self._active_in_run.get(request.run, 0) >= request.run_limit

    def _clamped(self, request: Request) -> Request:
        cores, memory = min(request.cores, self.cores), min(request.memory_bytes, self.memory_bytes)
        if (cores, memory) == (request.cores, request.memory_bytes):
            return request
        return replace(request, cores=cores, memory_bytes=memory)
