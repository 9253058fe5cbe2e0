"""Runs a program for as long as its own standard input is held open: a test process that is killed leaves nothing.

python -I -S guard.py COMMAND...
"""

import subprocess
import sys
import threading

program = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)


def end_with_the_tests() -> None:
    sys.stdin.buffer.read()
    program.kill()


threading.Thread(target=end_with_the_tests, daemon=True).start()
sys.exit(program.wait() & 0xFF)
