"""ImageService: the name under which an image is known here, so that the SDK need not have it built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from flyteidl2.common import identifier_pb2
from flyteidl2.imagebuilder import definition_pb2
from flyteidl2.imagebuilder import payload_pb2 as pb
from flyteidl2.imagebuilder import service_pb2 as service_pb2  # mounting finds the service through it

from flyte_binary.domain.errors import NotFound
from flyte_binary.domain.images import check_image_name, image_from_registry, local_image
from flyte_binary.rpc.identity import RequestContext


class BuiltImages(Protocol):
    async def find_image(self, name: str) -> tuple[str, identifier_pb2.RunIdentifier] | None:
        """What tasks of the image are to name as their image, and the run that built it, if one did."""
        ...


class NothingIsBuilt:
    """For a server without the means to build: any name is taken for an image that is there."""

    async def find_image(self, name: str) -> tuple[str, identifier_pb2.RunIdentifier] | None:
        return local_image(name), identifier_pb2.RunIdentifier()


class ImageService:
    def __init__(
        self, built: BuiltImages | None = None, *, registry: str = "", names: Mapping[str, str] | None = None
    ) -> None:
        """`registry` and `names` tell of images that somebody else builds; they come first."""
        self._built = built or NothingIsBuilt()
        self._registry = registry
        self._names = names or {}

    async def get_image(self, request: pb.GetImageRequest, _context: RequestContext) -> pb.GetImageResponse:
        """The executor gets the answer as the task's container image. `NotFound` has the SDK's image builder `remote`
        run the task `system/production/build-image`."""
        name = request.id.name
        check_image_name("id.name", name)
        elsewhere = image_from_registry(name, registry=self._registry, names=self._names)
        if elsewhere is not None:
            return pb.GetImageResponse(image=definition_pb2.Image(id=request.id, fqin=elsewhere))
        found = await self._built.find_image(name)
        if found is None:
            raise NotFound(f"image {name!r} is not built yet; the task system/production/build-image builds it")
        fqin, run = found
        image = definition_pb2.Image(id=request.id, fqin=fqin, build_run=run if run.name else None)
        return pb.GetImageResponse(image=image)
