"""The caller of a request as the identity that is stored with what it did."""

from __future__ import annotations

from flyteidl2.common import identity_pb2

from flyte_binary.rpc.identity import Caller


def identity_of(caller: Caller) -> identity_pb2.EnrichedIdentity | None:
    """None for a caller that nobody named."""
    if caller.is_anonymous:
        return None
    identity = identity_pb2.EnrichedIdentity()
    identity.user.id.subject = caller.subject
    if caller.given_name or caller.family_name or caller.email:
        identity.user.spec.first_name = caller.given_name
        identity.user.spec.last_name = caller.family_name
        identity.user.spec.email = caller.email
    return identity


def stored_identity_of(caller: Caller) -> bytes | None:
    identity = identity_of(caller)
    return None if identity is None else identity.SerializeToString()
