"""Write the locks, or tell without a network whether they still belong to pyproject.toml.

    python scripts/lock.py            resolve and write
    python scripts/lock.py --check    exit 1 if pyproject.toml asks for something else than when they were written

Each lock begins with a digest of what it was made from. It holds hashes and names no index, so that it works with
whatever index a machine is set up for. Versions already locked are kept; `--upgrade` looks for newer ones.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = {
    "requirements-dev.lock": ["--extra", "all", "--group", "dev"],
    # The laptop install: the same versions as above, without the tools.
    "requirements.lock": ["--extra", "sdk", "--constraint", "requirements-dev.lock"],
}
DIGEST = "# made from pyproject.toml, digest "


def main(arguments: list[str]) -> int:
    if "--check" in arguments:
        return check()
    for name, selection in LOCKS.items():
        write(name, selection, upgrade="--upgrade" in arguments)
    return 0


def digest() -> str:
    """Of the parts of pyproject.toml that decide what is locked."""
    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = document["project"]
    inputs = {
        "dependencies": project["dependencies"],
        "extras": project["optional-dependencies"],
        "groups": document["dependency-groups"],
        "python": project["requires-python"],
        "selections": LOCKS,
    }
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


def check() -> int:
    stale = [name for name in LOCKS if DIGEST + digest() not in (ROOT / name).read_text(encoding="utf-8").splitlines()]
    for name in stale:
        print(f"{name} does not belong to pyproject.toml any more: run `make lock`", file=sys.stderr)
    return 1 if stale else 0


def write(name: str, selection: list[str], *, upgrade: bool) -> None:
    target = ROOT / name
    command = [_uv(), "pip", "compile", "pyproject.toml", *selection, "--universal", "--python-version", "3.11"]
    command += ["--generate-hashes", "--no-emit-index-url", "--no-emit-find-links", "--no-header", "--quiet"]
    command += ["--output-file", str(target), *(["--upgrade"] if upgrade else [])]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    body = target.read_text(encoding="utf-8")
    target.write_text(f"{DIGEST}{digest()}\n# `make lock` writes this file.\n{body}", encoding="utf-8")


def _uv() -> str:
    ours = ROOT / ".venv/bin/uv"
    return str(ours) if ours.exists() else "uv"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
