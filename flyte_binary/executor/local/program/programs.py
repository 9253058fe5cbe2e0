"""The SDK's programs that a fork server can run in its children."""

from __future__ import annotations

FORKABLE = {"a0": "flyte._bin.runtime", "fserve": "flyte._bin.serve"}
"""Each with the module whose `main` it calls."""
