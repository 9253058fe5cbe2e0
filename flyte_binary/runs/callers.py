"""The caller as the identity that is stored with what runs, tasks and triggers do."""

from __future__ import annotations

from flyte_binary.rpc.callers import identity_of as identity_of
from flyte_binary.rpc.callers import stored_identity_of as stored_identity_of
