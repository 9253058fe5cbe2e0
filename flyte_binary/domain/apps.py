"""What every backend of apps agrees on: the one name of an app beyond its project, and what an unchanged spec is."""

from __future__ import annotations

import hashlib

from flyteidl2.app import app_definition_pb2

from flyte_binary.domain.ids import ActionId, AppId, AttemptId

LABEL_LIMIT = 63
"""Characters of a label of DNS, and of a name of a Knative Service."""

REPLICA_ACTION = "$app"
"""Processes of apps are run like attempts of an action of this name, in a "run" named after the app. No action of a run
can be called so, hence the executor never takes one for its own."""

_HASH_CHARACTERS = 8
_SHA_CHARACTERS = 16


def host_label(app: AppId) -> str:
    """`name-project-domain` in lower case: the first label of the app's host, and its Knative Service's name.

    What is longer than a label is cut, and ends in a hash of the whole identity (reference backend behaviour). Two
    apps can come to the same label (`a-b`/`c` and `a`/`b-c`): whoever gives it away must check.
    """
    label = f"{app.name}-{app.project}-{app.domain}".lower()
    if len(label) <= LABEL_LIMIT:
        return label
    digest = hashlib.sha256(str(app_key(app)).encode()).hexdigest()[:_HASH_CHARACTERS]
    return f"{label[: LABEL_LIMIT - _HASH_CHARACTERS - 1]}-{digest}"


def app_key(app: AppId) -> str:
    """`project/domain/name`, as the annotation `flyte.org/app-id` has it."""
    return f"{app.project}/{app.domain}/{app.name}"


def spec_sha(spec: app_definition_pb2.Spec) -> str:
    """16 hexadecimal characters that are the same for the same spec, also where it holds maps.

    What the user wants (running or stopped) and who asked are left out: neither makes another program.
    """
    same = app_definition_pb2.Spec()
    same.CopyFrom(spec)
    same.desired_state = app_definition_pb2.Spec.DESIRED_STATE_UNSPECIFIED
    same.ClearField("creator")
    same.ClearField("runtime_metadata")
    return hashlib.sha256(same.SerializeToString(deterministic=True)).hexdigest()[:_SHA_CHARACTERS]


def replica_attempt(app: AppId, number: int) -> AttemptId:
    return ActionId(app.project, app.domain, app.name, REPLICA_ACTION).attempt(number)


def is_replica(attempt: AttemptId) -> bool:
    return attempt.action.name == REPLICA_ACTION
