"""Which commands of an image are safe and meaningful on a machine that is no container. Pure.

A command of `with_commands` is written for a disposable machine and its administrator: `apt-get`, `useradd`, `chown`
would change the user's own. So only those are taken that use the environment's own programs, without a shell.
"""

from __future__ import annotations

import re
import shlex

_OWN_PROGRAMS = {"pip": "pip", "pip3": "pip", "uv": "uv", "python": "python", "python3": "python"}
_OPERATORS = ";&|<>()"
_SINGLE_QUOTED = re.compile(r"'[^']*'")
_DOUBLE_QUOTED = re.compile(r'"[^"]*"')


def parts_of(command: str) -> tuple[tuple[str, ...], ...] | None:
    """The programs with their arguments that `command` runs one after the other; None for a command that needs a
    shell, or anything but the environment's own programs."""
    text = command.replace("\\\n", " ")
    if _needs_a_shell(text):
        return None
    lexer = shlex.shlex(text, posix=True, punctuation_chars=_OPERATORS)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        return None
    parts: list[list[str]] = [[]]
    for word in words:
        if word == "&&":
            parts.append([])
        elif set(word) <= set(_OPERATORS):
            return None
        else:
            parts[-1].append(word)
    own = [_own(part) for part in parts]
    return tuple(part for part in own if part is not None) if all(own) else None


def _needs_a_shell(command: str) -> bool:
    """Something in it would be replaced before the program sees it, or it is a script of several lines."""
    bare = _SINGLE_QUOTED.sub("", command)
    if set(bare) & set("$`"):
        return True
    return bool(set(_DOUBLE_QUOTED.sub("", bare).strip()) & set("*?~\n"))


def _own(words: list[str]) -> tuple[str, ...] | None:
    if not words or words[0] not in _OWN_PROGRAMS:
        return None
    program, rest = _OWN_PROGRAMS[words[0]], words[1:]
    if program == "python" and rest[:2] == ["-m", "pip"]:
        program, rest = "pip", rest[2:]
    # In a container the environment is the system's.
    return (program, *(word for word in rest if word != "--system"))
