"""Start a server, run the examples on it with the unmodified `flyte` command, show their results, stop the server.

python scripts/demo.py           on a temporary folder, gone afterwards
python scripts/demo.py --keep    on the default folder, and the server goes on until Ctrl-C
"""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
DEFAULT_PORT = 30080
READY_WITHIN_SECONDS = 60
RUN_WITHIN_SECONDS = 180

EXAMPLES = [
    ("hello.py", ["--name", "Ada"]),
    ("fan_out.py", ["--workers", "20"]),
    ("files.py", ["--lines", "100"]),
]


def main(arguments: list[str]) -> int:
    keep = "--keep" in arguments
    with tempfile.TemporaryDirectory(prefix="flyte-binary-demo-") as name:
        folder = Path(name)
        port = DEFAULT_PORT if _is_free(DEFAULT_PORT) else 0
        port = port or _free_port()
        # A folder that goes away gets a client of its own as well: the CLI remembers for a day, by address, which code
        # it has uploaded, and would miss it on the next server there.
        data = [] if keep else ["--data-dir", str(folder / "data")]
        environ = {**os.environ, "DO_NOT_TRACK": "1", "COLUMNS": "140", **({} if keep else {"HOME": str(folder)})}
        url = f"http://127.0.0.1:{port}"
        with _server([*data, "--port", str(port)], url, folder / "server.log") as server:
            succeeded = _run_examples(url, folder, environ)
            print(f"\nConsole: {url}/v2")
            if keep and succeeded:
                print("The server goes on; Ctrl-C stops it.")
                _wait(server)
        print("The server has stopped.")
    return 0 if succeeded else 1


@contextmanager
def _server(arguments: list[str], url: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [str(BIN / "flyte-binary"), *arguments]
    _say(command)
    started = time.monotonic()
    with log.open("wb") as output:
        # In a session of its own, so that Ctrl-C reaches only the demo, which then stops it.
        server = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        _wait_until_ready(server, url, log)
        print(f"ready at {url} after {time.monotonic() - started:.1f} s")
        yield server
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(timeout=15)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _run_examples(url: str, folder: Path, environ: dict[str, str]) -> bool:
    config = folder / "config.yaml"
    endpoint = url.removeprefix("http://").replace("127.0.0.1", "localhost")
    create = ["create", "config", "--endpoint", endpoint, "--insecure", "--project", "flytesnacks"]
    create += ["--domain", "development", "--builder", "remote", "--force", "-o", str(config)]
    if not _flyte(create, environ, show_output=False):
        return False
    for file, arguments in EXAMPLES:
        started = time.monotonic()
        run = f"demo-{file.removesuffix('.py').replace('_', '-')}-{os.getpid()}"
        command = ["-c", str(config), "run", "--follow", "--name", run, f"examples/{file}", "main", *arguments]
        if not _flyte(command, environ, show_output=True):
            return False
        print(f"finished after {time.monotonic() - started:.1f} s")
        if not _flyte(["-c", str(config), "get", "io", "--outputs-only", run], environ, show_output=True):
            return False
    return True


def _flyte(arguments: list[str], environ: dict[str, str], *, show_output: bool) -> bool:
    command = [str(BIN / "flyte"), *arguments]
    _say(command)
    done = subprocess.run(
        command, cwd=ROOT, env=environ, timeout=RUN_WITHIN_SECONDS, check=False, capture_output=not show_output
    )
    if done.returncode != 0:
        print((done.stderr or b"").decode(errors="replace"), f"`flyte` ended with {done.returncode}", file=sys.stderr)
    return done.returncode == 0


def _wait_until_ready(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + READY_WITHIN_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/readyz", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    print(log.read_text(encoding="utf-8", errors="replace"), file=sys.stderr)
    raise SystemExit("demo: the server did not get ready; its output is above")


def _wait(server: subprocess.Popen[bytes]) -> None:
    try:
        server.wait()
    except KeyboardInterrupt:
        print()


def _say(command: list[str]) -> None:
    shown = [Path(command[0]).name, *command[1:]]
    print(f"\n$ {shlex.join(shown)}", flush=True)


def _is_free(port: int) -> bool:
    with socket.socket() as candidate:
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            candidate.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _free_port() -> int:
    with socket.socket() as candidate:
        candidate.bind(("127.0.0.1", 0))
        return candidate.getsockname()[1]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
