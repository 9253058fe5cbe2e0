"""Reading what `program/output.py` writes: lines with their times, from the front or the end. Blocking."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from flyte_binary.domain.log_archive import MAX_LINE_BYTES
from flyte_binary.executor.backend import LogLine, LogPage
from flyte_binary.executor.local.program import files
from flyte_binary.executor.local.program.output import ENTRY

_BLOCK_BYTES = 256 * 1024
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def size_of(folder: Path) -> int:
    """0 if nothing was printed yet."""
    try:
        return (folder / files.LOG).stat().st_size
    except FileNotFoundError:
        return 0


def position_before_last(folder: Path, lines: int) -> int:
    """Where the last `lines` complete lines begin; reads back from the end, not the whole file."""
    try:
        log = os.open(folder / files.LOG, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return 0
    try:
        end = os.fstat(log).st_size
        wanted = lines + 1  # the newline before the first of them
        while end > 0:
            start = max(0, end - _BLOCK_BYTES)
            block = os.pread(log, end - start, start)
            found = block.count(b"\n")
            if found < wanted:
                wanted -= found
                end = start
                continue
            cut = len(block)
            for _ in range(wanted):
                cut = block.rfind(b"\n", 0, cut)
            return start + cut + 1
        return 0
    finally:
        os.close(log)


def read_page(folder: Path, position: int, *, limit_lines: int, over: bool) -> LogPage:
    """`over` says that the attempt had ended before this call, so that nothing is missed at the end.

    A line that is not finished yet waits, unless it is longer than `MAX_LINE_BYTES` or nothing follows.
    """
    try:
        log = os.open(folder / files.LOG, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return LogPage(position=position, ended=over)
    try:
        times = _Times(folder)
        try:
            return _read(log, times, position, limit_lines, over)
        finally:
            times.close()
    finally:
        os.close(log)


def _read(log: int, times: _Times, position: int, limit_lines: int, over: bool) -> LogPage:
    lines: list[LogLine] = []
    size = os.fstat(log).st_size
    rest = b""
    while len(lines) < limit_lines:
        block = os.pread(log, _BLOCK_BYTES, position + len(rest))
        data = rest + block
        offset = 0
        while len(lines) < limit_lines and (end := _line_end(data, offset, last=over and not block)) > 0:
            text = data[offset:end].decode(errors="replace")
            lines.append(LogLine(text if text.endswith("\n") else f"{text}\n", times.at(position)))
            position += end - offset
            offset = end
        rest = data[offset:]
        if not block:
            break
    return LogPage(lines=lines, position=position, ended=over and position >= size)


def _line_end(data: bytes, start: int, *, last: bool) -> int:
    """0 if the line that begins at `start` is not there as a whole."""
    newline = data.find(b"\n", start, start + MAX_LINE_BYTES)
    if newline >= 0:
        return newline + 1
    if len(data) - start >= MAX_LINE_BYTES:
        return _whole_characters(data, start + MAX_LINE_BYTES)
    return len(data) if last and len(data) > start else 0


def _whole_characters(data: bytes, end: int) -> int:
    """Not within one character of UTF-8, if it is that at all."""
    for back in range(4):
        if end - back < len(data) and data[end - back] & 0xC0 != 0x80:
            return end - back
    return end


class _Times:
    """When the byte at an offset arrived, for rising offsets."""

    def __init__(self, folder: Path) -> None:
        try:
            self._index = os.open(folder / files.INDEX, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            self._index = -1
        self._count = os.fstat(self._index).st_size // ENTRY.size if self._index >= 0 else 0
        self._next = -1
        self._until = -1
        self._time = _EPOCH

    def at(self, offset: int) -> datetime:
        if self._next < 0:
            self._next = self._first_after(offset)
            self._load()
        elif offset >= self._until >= 0:
            while self._next < self._count and self._entry(self._next)[0] <= offset:
                self._next += 1
            self._load()
        return self._time

    def close(self) -> None:
        if self._index >= 0:
            os.close(self._index)

    def _load(self) -> None:
        if self._next > 0:
            self._time = _EPOCH + timedelta(microseconds=self._entry(self._next - 1)[1])
        elif self._count:  # before the first entry: only if the index was damaged
            self._time = _EPOCH + timedelta(microseconds=self._entry(0)[1])
        self._until = self._entry(self._next)[0] if self._next < self._count else -1

    def _first_after(self, offset: int) -> int:
        low, high = 0, self._count
        while low < high:
            middle = (low + high) // 2
            if self._entry(middle)[0] <= offset:
                low = middle + 1
            else:
                high = middle
        return low

    def _entry(self, number: int) -> tuple[int, int]:
        offset, micros = ENTRY.unpack(os.pread(self._index, ENTRY.size, number * ENTRY.size))
        return offset, micros
