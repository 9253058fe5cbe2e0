"""The log of an ended attempt goes into the object store, where it outlives process and folder."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from flyte_binary.domain import locations
from flyte_binary.domain.ids import AttemptId
from flyte_binary.domain.log_archive import ArchiveWriter
from flyte_binary.executor.backend import LogPage, LogSource
from flyte_binary.storage.store import ObjectStore

PAGE_LINES = 5_000
IN_MEMORY_BYTES = 1024 * 1024


class LogArchiver:
    def __init__(self, store: ObjectStore, logs: LogSource) -> None:
        self._store = store
        self._logs = logs

    async def archive(self, attempt: AttemptId, prefix: str) -> str:
        """The URI of the archive, empty if the attempt printed nothing. Again is harmless.

        Memory stays at a page of lines; a log that is not small goes through a temporary file.
        """
        page = await self._logs.read(attempt, 0, limit_lines=PAGE_LINES)
        if not page.lines:
            return ""
        uri = locations.log_archive(prefix)
        writer = ArchiveWriter()
        start = await asyncio.to_thread(writer.add, page.lines) if len(page.lines) > 200 else writer.add(page.lines)
        if page.ended or len(page.lines) < PAGE_LINES:
            await self._store.put(uri, start + writer.finish())
            return uri
        await self._archive_long(attempt, uri, writer, start, page)
        return uri

    async def _archive_long(
        self, attempt: AttemptId, uri: str, writer: ArchiveWriter, start: bytes, page: LogPage
    ) -> None:
        with tempfile.TemporaryDirectory(prefix="flyte-log-") as folder:
            path = Path(folder) / "log"
            with path.open("wb") as file:
                file.write(start)
                while page.lines:
                    page = await self._logs.read(attempt, page.position, limit_lines=PAGE_LINES)
                    file.write(await asyncio.to_thread(writer.add, page.lines))
                file.write(writer.finish())
            await self._store.put_file(uri, path)
