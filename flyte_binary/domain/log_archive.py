"""The archived log of an attempt: gzip that anyone can read, with an index that spares us reading all of it.

    frame frame … frame index footer

Each part is a gzip member of its own (RFC 1952 lets members be concatenated), so `zcat log.gz` prints
the log: one line an entry, its time (UTC, microseconds) before it. A frame holds up to
`FRAME_BYTES` of lines. Index and footer are members *without content*: the index is an ASCII text in
the header's comment field (one `offset lines` pair a frame), the footer a member of fixed length whose
extra field says where the index begins. A reader fetches the footer, the index, then only the frames
it wants; nothing is ever held that is larger than a frame and the index.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from flyte_binary.domain.logs import LogLine

FRAME_BYTES = 256 * 1024
"""Raw size at which a frame is closed. 100 MiB of log make 400 frames and an index of some 8 KiB."""

MAX_LINE_BYTES = 64 * 1024
"""Longer lines are broken, so that a frame and a message to a client stay small."""

_LEVEL = 3
"""A tenth larger than with 6, for a fifth less time; most of the time is spent on lines anyway."""
_HEADER = struct.Struct("<2sBBIBB")
"""Magic, method, flags, time (0, so that the same lines make the same bytes), extra flags, system."""
_FEXTRA, _FCOMMENT = 0x04, 0x10
_EMPTY_BODY = b"\x03\x00" + bytes(8)
"""An empty deflate stream, CRC and length 0."""
_FOOTER_FIELD = struct.Struct("<2sHBQQ")
"""Subfield id, length of what follows, version, offset and length of the index member."""
_FOOTER_ID, _VERSION = b"FB", 1
FOOTER_BYTES = _HEADER.size + 2 + _FOOTER_FIELD.size + len(_EMPTY_BODY)


class BrokenArchive(ValueError):
    """The bytes are not an archive that this version reads."""


@dataclass(frozen=True, slots=True)
class Frame:
    offset: int
    length: int
    first_line: int
    lines: int


@dataclass(frozen=True, slots=True)
class Index:
    frames: tuple[Frame, ...]

    @property
    def total_lines(self) -> int:
        return self.frames[-1].first_line + self.frames[-1].lines if self.frames else 0

    def frames_from(self, line: int) -> tuple[Frame, ...]:
        """The frames that hold `line` (counted from 0) and all that follow it."""
        at = bisect_right([frame.first_line for frame in self.frames], line) - 1
        return self.frames[max(at, 0) :] if line < self.total_lines else ()


class ArchiveWriter:
    """Turns lines into the bytes of an archive, a piece at a time.

    Memory stays at one frame and the index, however long the log is. `add` returns the bytes that are
    ready (often none), `finish` the rest; all of them, in order, are the object.
    """

    def __init__(self) -> None:
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._offset = 0
        self._index: list[tuple[int, int]] = []

    def add(self, lines: Iterable[LogLine]) -> bytes:
        ready: list[bytes] = []
        for line in lines:
            for piece in _pieces(line):
                self._pending.append(piece)
                self._pending_bytes += len(piece)
                if self._pending_bytes >= FRAME_BYTES:
                    ready.append(self._close_frame())
        return b"".join(ready)

    def finish(self) -> bytes:
        last = self._close_frame() if self._pending else b""
        index = _index_member(self._index)
        return last + index + _footer_member(self._offset, len(index))

    def _close_frame(self) -> bytes:
        member = gzip.compress(b"".join(self._pending), _LEVEL, mtime=0)
        self._index.append((self._offset, len(self._pending)))
        self._offset += len(member)
        self._pending, self._pending_bytes = [], 0
        return member


def encode(lines: Iterable[LogLine]) -> bytes:
    """The whole archive at once, for logs that are known to be short."""
    writer = ArchiveWriter()
    return writer.add(lines) + writer.finish()


def read_footer(data: bytes) -> tuple[int, int]:
    """Offset and length of the index member, from the last `FOOTER_BYTES` of the archive."""
    if len(data) != FOOTER_BYTES or data[:2] != b"\x1f\x8b" or not data.endswith(_EMPTY_BODY):
        raise BrokenArchive("the log archive does not end in a footer")
    name, _, version, offset, length = _FOOTER_FIELD.unpack_from(data, _HEADER.size + 2)
    if name != _FOOTER_ID or version != _VERSION:
        raise BrokenArchive("the log archive has a footer of another version")
    return offset, length


def read_index(member: bytes, *, offset: int) -> Index:
    """`offset` is where the index begins, which is where the last frame ends."""
    end = member.find(b"\0", _HEADER.size)
    if member[:2] != b"\x1f\x8b" or end < 0:
        raise BrokenArchive("the log archive has no index")
    try:
        numbers = [int(number) for number in member[_HEADER.size : end].split()]
    except ValueError as error:
        raise BrokenArchive("the index of the log archive is damaged") from error
    offsets, counts = numbers[0::2], numbers[1::2]
    if len(offsets) != len(counts):
        raise BrokenArchive("the index of the log archive is damaged")
    frames: list[Frame] = []
    first_line = 0
    for start, following, lines in zip(offsets, [*offsets, offset][1:], counts, strict=True):
        frames.append(Frame(start, following - start, first_line, lines))
        first_line += lines
    return Index(tuple(frames))


def read_frame(member: bytes) -> list[LogLine]:
    try:
        text = gzip.decompress(member).decode()
        return [_parse(entry) for entry in text.split("\n")[:-1]]
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise BrokenArchive("a frame of the log archive is damaged") from error


def _pieces(line: LogLine) -> list[bytes]:
    """The line as it is stored, in several entries if it is too long.

    Only a line feed ends an entry, so carriage returns and Unicode line separators stay as they are.
    """
    at = line.at if line.at.tzinfo is UTC else line.at.astimezone(UTC)
    stamp = b"%bZ " % at.isoformat(timespec="microseconds").removesuffix("+00:00").encode()
    if len(line.text) <= MAX_LINE_BYTES // 4 and line.text.find("\n") == len(line.text) - 1:
        return [stamp + line.text.encode("utf-8", "replace")]
    entries = line.text.removesuffix("\n").split("\n")
    parts = [part for entry in entries for part in split_long(entry)]
    return [stamp + part.encode("utf-8", "replace") + b"\n" for part in parts]


def split_long(text: str) -> list[str]:
    """`text` in parts of at most `MAX_LINE_BYTES` (never within a character); live readers use it too."""
    if len(text) <= MAX_LINE_BYTES // 4:  # a character is at most 4 bytes
        return [text]
    data = text.encode("utf-8", "replace")
    if len(data) <= MAX_LINE_BYTES:
        return [text]
    parts: list[str] = []
    start = 0
    while start < len(data):
        end = min(start + MAX_LINE_BYTES, len(data))
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end -= 1
        parts.append(data[start:end].decode())
        start = end
    return parts


def _parse(entry: str) -> LogLine:
    stamp, _, text = entry.partition(" ")
    return LogLine(f"{text}\n", datetime.fromisoformat(stamp))


def _index_member(index: list[tuple[int, int]]) -> bytes:
    comment = " ".join(f"{offset} {lines}" for offset, lines in index).encode()
    return _header(_FCOMMENT) + comment + b"\0" + _EMPTY_BODY


def _footer_member(offset: int, length: int) -> bytes:
    field = _FOOTER_FIELD.pack(_FOOTER_ID, _FOOTER_FIELD.size - 4, _VERSION, offset, length)
    return _header(_FEXTRA) + struct.pack("<H", len(field)) + field + _EMPTY_BODY


def _header(flags: int) -> bytes:
    return _HEADER.pack(b"\x1f\x8b", 8, flags, 0, 0, 255)
