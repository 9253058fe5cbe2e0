"""ImageService: the name under which an image is known here. Nothing is built or pulled."""

from __future__ import annotations

import re

from flyteidl2.imagebuilder import definition_pb2
from flyteidl2.imagebuilder import payload_pb2 as pb
from flyteidl2.imagebuilder import service_pb2 as service_pb2  # mounting finds the service through it

from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.rpc.identity import RequestContext

REGISTRY = "local"
"""Stands where the registry of an image would: these images are names of environments on this machine."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/@:+-]*")
_NAME_LENGTH = 255


class ImageService:
    async def get_image(self, request: pb.GetImageRequest, _context: RequestContext) -> pb.GetImageResponse:
        """Any valid name exists, so that the SDK's image builder `remote` never asks for a build.

        The executor gets the answer as the task's container image and decides what it runs in.
        """
        name = request.id.name
        if not name:
            raise InvalidArgument("id.name is required")
        if len(name) > _NAME_LENGTH or not _NAME.fullmatch(name):
            raise InvalidArgument(f"id.name {name[:80]!r} is not the name of an image")
        return pb.GetImageResponse(image=definition_pb2.Image(id=request.id, fqin=f"{REGISTRY}/{name}"))
