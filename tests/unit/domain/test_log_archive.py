from __future__ import annotations

import gzip
import os
import subprocess
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyte_binary.domain import log_archive
from flyte_binary.domain.log_archive import ArchiveWriter, BrokenArchive, Index, encode
from flyte_binary.domain.logs import LogLine

START = datetime(2026, 11, 30, 22, 55, 32, 30002, tzinfo=UTC)


def line(text: str, number: int = 0) -> LogLine:
    return LogLine(text, START + timedelta(milliseconds=number))


def index_of(archive: bytes) -> Index:
    offset, length = log_archive.read_footer(archive[-log_archive.FOOTER_BYTES :])
    return log_archive.read_index(archive[offset : offset + length], offset=offset)


def read_all(archive: bytes) -> list[LogLine]:
    frames = index_of(archive).frames
    return [entry for f in frames for entry in log_archive.read_frame(archive[f.offset : f.offset + f.length])]


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=50)
logs = st.lists(st.builds(line, texts.map(lambda text: text + "\n"), st.integers(0, 10**9)), max_size=30)


@given(logs)
def test_what_was_archived_is_what_is_read(lines: list[LogLine]) -> None:
    assert read_all(encode(lines)) == lines


def test_an_empty_log_has_no_frames() -> None:
    index = index_of(encode([]))
    assert (index.frames, index.total_lines, index.frames_from(0)) == ((), 0, ())


def test_anyone_can_read_it_with_zcat() -> None:
    archive = encode([line("line one\n", 1), line("zwei ü\n", 2)])
    expected = "2026-11-30T22:55:32.031002Z line one\n2026-11-30T22:55:32.032002Z zwei ü\n"
    assert gzip.decompress(archive).decode() == expected
    shown = subprocess.run(["gzip", "-dc"], input=archive, capture_output=True, check=True, timeout=30)
    assert (shown.stdout.decode(), shown.stderr) == (expected, b"")


def test_the_pieces_of_a_long_log_make_the_same_archive_and_memory_stays_at_a_frame() -> None:
    lines = [line(f"line {n} {os.urandom(20).hex()}\n", n) for n in range(20_000)]
    writer = ArchiveWriter()
    pieces = [writer.add(lines[n : n + 500]) for n in range(0, len(lines), 500)]
    archive = b"".join(pieces) + writer.finish()
    assert archive == encode(lines)
    assert max(len(piece) for piece in pieces) < log_archive.FRAME_BYTES
    assert len(index_of(archive).frames) == sum(1 for piece in pieces if piece) + 1
    assert read_all(archive) == lines


def test_the_last_thousand_lines_are_in_the_last_frames_only() -> None:
    archive = encode(line(f"{n} {'x' * 90}\n", n) for n in range(50_000))
    index = index_of(archive)
    assert index.total_lines == 50_000
    wanted = index.frames_from(49_000)
    assert len(index.frames) > 20
    assert len(wanted) <= 2
    assert wanted[0].first_line <= 49_000 < wanted[0].first_line + wanted[0].lines
    assert index.frames_from(50_000) == ()
    assert index.frames_from(0) == index.frames


def test_a_line_without_end_is_broken_between_characters_and_keeps_its_time() -> None:
    parts = read_all(encode([line("ü" * 100_000 + "\n", 5), line("after\n", 6)]))
    assert [part.at for part in parts[:-1]] == [line("", 5).at] * 4
    assert "".join(part.text.removesuffix("\n") for part in parts[:-1]) == "ü" * 100_000
    assert all(len(part.text.encode()) <= log_archive.MAX_LINE_BYTES + 1 for part in parts)
    assert parts[-1] == line("after\n", 6)


def test_odd_text_survives() -> None:
    lines = [line("progress 1%\rprogress 2%\n"), line("\n"), line("a\u2028b\x0bc\n"), line(" leading\n")]
    assert read_all(encode(lines)) == lines
    assert read_all(encode([line("no end"), line("two\nlines\n")])) == [
        line("no end\n"),
        line("two\n"),
        line("lines\n"),
    ]
    assert read_all(encode([line("\ud800 half a character\n")])) == [line("? half a character\n")]


@pytest.mark.parametrize("damage", [b"", b"not an archive", b"\x1f\x8b" + bytes(80)])
def test_what_is_no_archive_is_said_to_be_broken(damage: bytes) -> None:
    with pytest.raises(BrokenArchive):
        log_archive.read_footer(damage[-log_archive.FOOTER_BYTES :])


def test_damaged_frames_and_indexes_are_said_to_be_broken() -> None:
    archive = encode([line("text\n")])
    frame = index_of(archive).frames[0]
    with pytest.raises(BrokenArchive):
        log_archive.read_frame(archive[: frame.length - 5])
    with pytest.raises(BrokenArchive):
        log_archive.read_frame(gzip.compress(b"no time at all\n"))
    with pytest.raises(BrokenArchive):
        log_archive.read_index(b"\x1f\x8b" + bytes(8) + b"1 2 x\0", offset=0)
    with pytest.raises(BrokenArchive):
        log_archive.read_index(b"\x1f\x8b" + bytes(8) + b"1 2 3\0", offset=0)
    with pytest.raises(BrokenArchive):
        log_archive.read_index(b"short", offset=0)
