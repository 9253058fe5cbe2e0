"""Reading an archived log from the store, a frame at a time and from any line on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from flyte_binary.domain import log_archive
from flyte_binary.domain.errors import FailedPrecondition
from flyte_binary.domain.log_archive import BrokenArchive, Frame, Index
from flyte_binary.domain.logs import LogLine
from flyte_binary.storage.store import ObjectStore

_FRAME_LIMIT_BYTES = 4 * log_archive.FRAME_BYTES
_INDEX_LIMIT_BYTES = 16 * 1024 * 1024
"""An index of that size is one of hundreds of gigabytes of log."""


class ArchivedLog:
    def __init__(self, store: ObjectStore, uri: str, index: Index) -> None:
        self._store = store
        self._uri = uri
        self._index = index

    @staticmethod
    async def open(store: ObjectStore, uri: str) -> ArchivedLog:
        """Reads footer and index.

        Raises `FailedPrecondition` if the archive is gone or is none. Not `NotFound`, which the SDK takes
        for "not yet" and tries again.
        """
        info = await store.stat(uri)
        if info is None:
            raise FailedPrecondition(f"the log is no longer in storage: {uri}")
        size = log_archive.FOOTER_BYTES
        try:
            footer = await store.get(uri, limit_bytes=size, offset=max(info.size_bytes - size, 0), length=size)
            offset, length = log_archive.read_footer(footer)
            member = await store.get(uri, limit_bytes=_INDEX_LIMIT_BYTES, offset=offset, length=length)
            return ArchivedLog(store, uri, log_archive.read_index(member, offset=offset))
        except BrokenArchive as error:
            raise FailedPrecondition(f"{uri}: {error}") from error

    @property
    def total_lines(self) -> int:
        return self._index.total_lines

    async def lines_from(self, first: int) -> AsyncGenerator[list[LogLine]]:
        """All lines from number `first` (counted from 0) on, a list a frame."""
        for frame in self._index.frames_from(first):
            lines = await self._frame(frame)
            yield lines[max(first - frame.first_line, 0) :]

    async def _frame(self, frame: Frame) -> list[LogLine]:
        member = await self._store.get(
            self._uri, limit_bytes=_FRAME_LIMIT_BYTES, offset=frame.offset, length=frame.length
        )
        try:
            return await asyncio.to_thread(log_archive.read_frame, member)
        except BrokenArchive as error:
            raise FailedPrecondition(f"{self._uri}: {error}") from error
