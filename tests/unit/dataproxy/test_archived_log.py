"""How much of a large archive is read for a small part of the log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from flyte_binary.dataproxy.archived_log import ArchivedLog
from flyte_binary.domain.log_archive import encode
from flyte_binary.domain.logs import LogLine
from tests.fakes.memory_store import MemoryStore

URI = "/store/log.gz"


async def test_the_last_thousand_lines_of_a_long_log_cost_a_few_frames() -> None:
    start = datetime(2026, 11, 30, tzinfo=UTC)
    lines = [LogLine(f"line {n} {hash((n, 'noise')):x}\n", start + timedelta(milliseconds=n)) for n in range(50_000)]
    store = MemoryStore()
    await store.put(URI, encode(lines))
    log = await ArchivedLog.open(store, URI)
    assert log.total_lines == 50_000
    read = [line async for frame in log.lines_from(49_000) for line in frame]
    assert read == lines[-1000:]
    assert store.bytes_read < len(store.objects[URI]) / 8


async def test_an_empty_log_can_be_opened() -> None:
    store = MemoryStore()
    await store.put(URI, encode([]))
    log = await ArchivedLog.open(store, URI)
    assert [line async for frame in log.lines_from(0) for line in frame] == []
