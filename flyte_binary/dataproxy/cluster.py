"""ClusterService: which cluster serves a request. There is one, and it is this server."""

from __future__ import annotations

from flyteidl2.cluster import payload_pb2 as pb
from flyteidl2.cluster import service_pb2 as service_pb2  # mounting finds the service through it

from flyte_binary.rpc.identity import RequestContext


class ClusterService:
    async def select_cluster(
        self, _request: pb.SelectClusterRequest, context: RequestContext
    ) -> pb.SelectClusterResponse:
        """The address under which the caller reached us, for every resource and operation.

        The SDK keeps its session if the answer equals its own endpoint, made of the same scheme and
        host, or is empty. So it is empty if we cannot know the address: there is no Host header, or a
        proxy that is not listed as trusted says that the client used another scheme; a guess would make
        the SDK open a second session, over plain HTTP. The operation UPLOAD_TRIGGER is answered like the
        others: the SDK then uploads the inputs of triggers (UploadInputs) instead of sending them inline.
        """
        origin = context.origin
        scheme, _, host = origin.partition("://")
        claimed = context.headers.get("x-forwarded-proto", scheme).split(",")[0].strip().lower()
        return pb.SelectClusterResponse(cluster_endpoint=origin if host and claimed == scheme else "")
