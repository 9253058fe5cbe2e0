"""Makes the table of `docs/compatibility.md` from the expected differences: `python -m tests.golden.compat_page`."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.golden import expected, scenarios

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"
BEGIN = "<!-- made by tests/golden/compat_page.py from tests/golden/expected_differences.yaml -->"
END = "<!-- end of the part that is made -->"


def main() -> int:
    """Brings the page up to date."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


def page(text: str) -> str:
    """The page with its table made anew. Raises ValueError when the page has no place for it."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE.name} needs the lines {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def table() -> str:
    """One row for each deliberate difference, in the order of the file."""
    rows: dict[tuple[str, str], set[str]] = {}
    for entry in expected.load():
        seen = {name for name in (*scenarios.DRIVEN, *scenarios.REPLAYED) if entry.concerns(name)}
        rows.setdefault((entry.title, entry.reason), set()).update(seen)
    lines = ["| What differs | Why | Conversations |", "|---|---|---|"]
    lines += [f"| {_cell(title)} | {_cell(reason)} | {_names(seen)} |" for (title, reason), seen in rows.items()]
    return "\n".join(lines)


def _names(seen: set[str]) -> str:
    if len(seen) > 6:
        return "any"
    return ", ".join(name for name in (*scenarios.DRIVEN, *scenarios.REPLAYED) if name in seen)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
