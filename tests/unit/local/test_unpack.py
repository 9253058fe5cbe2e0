from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from flyte_binary.executor.local.unpack import InvalidBundle, unpack

Add = Callable[[tarfile.TarFile], None]


def file(name: str, content: bytes = b"x", *, mode: int = 0o644, kind: bytes = tarfile.REGTYPE, link: str = "") -> Add:
    def add(tar: tarfile.TarFile) -> None:
        info = tarfile.TarInfo(name)
        info.type, info.mode, info.linkname, info.mtime = kind, mode, link, 347155200
        info.size = len(content) if kind == tarfile.REGTYPE else 0
        tar.addfile(info, io.BytesIO(content))

    return add


def bundle(path: Path, *members: Add, mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for add in members:
            add(tar)
    return path


def unpacked(tmp_path: Path, *members: Add, limit_bytes: int = 1000, mode: str = "w:gz") -> Path:
    target = tmp_path / "target"
    target.mkdir()
    unpack(bundle(tmp_path / "b.tar", *members, mode=mode), target, limit_bytes=limit_bytes, name="b.tar")
    return target


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_files_folders_and_links_come_out_as_they_went_in(tmp_path: Path, mode: str) -> None:
    target = unpacked(
        tmp_path,
        file("pkg", kind=tarfile.DIRTYPE, mode=0o755),
        file("pkg/mod.py", b"A = 1"),
        file("run.sh", b"#!", mode=0o755),
        file("deep/er/x"),
        file("alias", kind=tarfile.SYMTYPE, link="pkg/mod.py"),
        file("pkg/up", kind=tarfile.SYMTYPE, link="../run.sh"),
        file("same", kind=tarfile.LNKTYPE, link="pkg/mod.py"),
        mode=mode,
    )

    assert (target / "pkg/mod.py").read_bytes() == (target / "alias").read_bytes() == b"A = 1"
    assert (target / "pkg/up").read_bytes() == b"#!"
    assert (target / "same").read_bytes() == b"A = 1" and (target / "same").stat().st_nlink == 1
    assert os.access(target / "run.sh", os.X_OK) and not os.access(target / "pkg/mod.py", os.X_OK)
    assert (target / "pkg/mod.py").stat().st_mtime == 347155200


@pytest.mark.parametrize(
    "member",
    [
        file("../out"),
        file("/etc/out"),
        file("a/../../out"),
        file("link", kind=tarfile.SYMTYPE, link="/etc/passwd"),
        file("link", kind=tarfile.SYMTYPE, link="../../out"),
        file("deep/link", kind=tarfile.SYMTYPE, link="../../out"),
        file("link", kind=tarfile.LNKTYPE, link="../out"),
        file("link", kind=tarfile.LNKTYPE, link="not-there"),
        file("pipe", kind=tarfile.FIFOTYPE),
        file("device", kind=tarfile.CHRTYPE),
    ],
)
def test_what_leads_outside_or_is_no_file_is_refused(tmp_path: Path, member: Add) -> None:
    with pytest.raises(InvalidBundle, match=r"b\.tar"):
        unpacked(tmp_path, member)
    assert not (tmp_path / "out").exists()


def test_an_entry_behind_a_link_of_the_bundle_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidBundle, match="behind a link"):
        unpacked(tmp_path, file("pkg", kind=tarfile.DIRTYPE), file("l", kind=tarfile.SYMTYPE, link="pkg"), file("l/x"))


def test_a_later_entry_of_the_same_name_wins(tmp_path: Path) -> None:
    assert (unpacked(tmp_path, file("a", b"1"), file("a", b"2")) / "a").read_bytes() == b"2"


def test_a_file_over_a_link_replaces_the_link_and_not_what_it_leads_to(tmp_path: Path) -> None:
    target = unpacked(tmp_path, file("real", b"1"), file("l", kind=tarfile.SYMTYPE, link="real"), file("l", b"2"))

    assert ((target / "real").read_bytes(), (target / "l").read_bytes()) == (b"1", b"2")


def test_more_bytes_than_the_limit_are_refused_before_they_are_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidBundle, match="more than 10 bytes"):
        unpacked(tmp_path, file("big", bytes(11)), limit_bytes=10)
    assert not (tmp_path / "target/big").exists()


def test_copies_by_hard_link_count_too(tmp_path: Path) -> None:
    links = [file(f"l{n}", kind=tarfile.LNKTYPE, link="a") for n in range(5)]
    with pytest.raises(InvalidBundle, match="more than 20 bytes"):
        unpacked(tmp_path, file("a", bytes(8)), *links, limit_bytes=20)


@pytest.mark.parametrize("content", [b"", b"this is not a tar", b"\x1f\x8b\x08 broken", b"PK\x03\x04 a zip"])
def test_what_is_no_tar_is_called_that(tmp_path: Path, content: bytes) -> None:
    archive = tmp_path / "b.tar"
    archive.write_bytes(content)
    (tmp_path / "target").mkdir()

    with pytest.raises(InvalidBundle, match=r"code bundle b\.tar is (not a tar archive|damaged)"):
        unpack(archive, tmp_path / "target", limit_bytes=1000, name="b.tar")


def test_a_cut_archive_is_refused(tmp_path: Path) -> None:
    archive = bundle(tmp_path / "b.tar", file("a", os.urandom(5000)))
    archive.write_bytes(archive.read_bytes()[:2000])
    (tmp_path / "target").mkdir()

    with pytest.raises(InvalidBundle):
        unpack(archive, tmp_path / "target", limit_bytes=10_000, name="b.tar")
