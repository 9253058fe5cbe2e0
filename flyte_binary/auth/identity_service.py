"""IdentityService: who the caller is, as far as the server knows."""

from __future__ import annotations

from flyteidl2.auth import identity_pb2 as pb

from flyte_binary.domain.errors import Unauthenticated
from flyte_binary.rpc.identity import RequestContext


class IdentityService:
    async def user_info(self, request: pb.UserInfoRequest, context: RequestContext) -> pb.UserInfoResponse:
        """Raises `Unauthenticated` if nobody named the caller, as on a laptop, where everybody is anonymous."""
        caller = context.caller
        if caller.is_anonymous:
            raise Unauthenticated("no authenticated identity on request (missing or untrusted identity headers)")
        return pb.UserInfoResponse(
            subject=caller.subject,
            name=f"{caller.given_name} {caller.family_name}".strip(),
            given_name=caller.given_name,
            family_name=caller.family_name,
            email=caller.email,
        )
