"""Programs of Debian's (or Ubuntu's) packages: those of this machine, else unpacked under .cache/parts. Nothing is
installed, so that no service is started and nobody has to be root; packages are checked by apt as ever."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from tests.parts.building import built, run

_SEARCHED = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_NEEDED_LIBRARIES = re.compile(r"lib(lua|opentracing)")
"""What HAProxy needs beyond what every Debian has."""


@cache
def nginx() -> tuple[Path, dict[str, str]]:
    return debian_program("nginx")


@cache
def haproxy() -> tuple[Path, dict[str, str]]:
    return debian_program("haproxy")


def debian_program(name: str) -> tuple[Path, dict[str, str]]:
    """With the environment that it needs. Raises `AssertionError` where there is none and no apt to get one."""
    found = shutil.which(name, path=_SEARCHED)
    if found is not None:
        return Path(found), {}
    assert shutil.which("apt-get") and shutil.which("dpkg-deb"), f"{name} is not installed, and there is no apt-get"
    folder = built(f"debian-{name}", lambda folder: _unpack(name, folder))
    libraries = {str(path.parent) for path in folder.glob("usr/lib/**/*.so.*")}
    environment = {"LD_LIBRARY_PATH": ":".join(sorted(libraries))} if libraries else {}
    return folder / "usr" / "sbin" / name, environment


def _unpack(name: str, folder: Path) -> None:
    if os.geteuid() == 0:
        run("apt-get", "update", "-qq")
    for package in [name, *filter(_NEEDED_LIBRARIES.match, _dependencies(name))]:
        run("apt-get", "download", "-qq", package, folder=folder)
    for archive in folder.glob("*.deb"):
        run("dpkg-deb", "--extract", str(archive), str(folder))
    assert (folder / "usr" / "sbin" / name).exists(), f"Debian's package {name} has no /usr/sbin/{name}"


def _dependencies(package: str) -> list[str]:
    left_out = ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")
    options = [f"--no-{kind}" for kind in left_out]
    command = ["apt-cache", "depends", "--recurse", *options, package]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    return sorted({line for line in listed if line[:1].isalnum()})
