"""Where the files of a run lie: the layout that the SDK's runtime and the server agree on.

`run_output_base` is one flat folder a run; actions of any depth are siblings in it. Attempts have
folders of their own, counted from 1, so that a later attempt never reads the files of an earlier one.
"""

from __future__ import annotations

INPUTS = "inputs.pb"
OUTPUTS = "outputs.pb"
ERROR = "error.pb"
REPORT = "report.html"
OFFLOADED = "offloaded-inputs"
"""Folder of the inputs that clients upload, below the base of the runs."""


def join(base: str, *parts: str) -> str:
    return "/".join((base.rstrip("/"), *parts))


def attempt_prefix(run_output_base: str, action: str, attempt: int) -> str:
    """Folder of one attempt: its outputs, error and report."""
    return join(run_output_base, action, str(attempt))


def raw_data_prefix(run_output_base: str, action: str, attempt: int) -> str:
    return join(run_output_base, action, str(attempt), "raw")


def checkpoint_prefix(run_output_base: str, action: str, attempt: int) -> str:
    return join(run_output_base, action, str(attempt), "_flytecheckpoints")


def inputs_uri(uri: str) -> str:
    """The file itself: callers send the file or its folder, and sometimes the suffix twice."""
    while uri.endswith(f"/{INPUTS}"):
        uri = uri[: -len(INPUTS) - 1]
    return join(uri, INPUTS)


def log_archive(prefix: str) -> str:
    """The archived log of the attempt whose folder is `prefix`."""
    return join(prefix, "log.zlog")
