"""Where the code of a task lies, as its template says."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from flyteidl2.core import tasks_pb2

_OPTIONS = ("--tgz", "--pkl")


def bundle_uri(template: tasks_pb2.TaskTemplate) -> str:
    """The archive that the task's code was uploaded as; empty if the code is in the image.

    The SDK writes it into the metadata, older ones into the arguments only (the options of the runtime
    that name a tarball or a pickle).
    """
    return template.metadata.code_bundle_uri or bundle_in_arguments(template.container.args)


def bundle_in_arguments(arguments: Sequence[str]) -> str:
    for option, value in pairwise(arguments):
        if option in _OPTIONS:
            return value
    return ""
