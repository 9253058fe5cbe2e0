from __future__ import annotations

import pytest
from flyteidl2.common import identifier_pb2
from flyteidl2.imagebuilder import definition_pb2, payload_pb2

from flyte_binary.dataproxy.images import ImageService
from flyte_binary.domain.errors import NotFound
from flyte_binary.domain.images import image_from_registry
from flyte_binary.rpc.identity import RequestContext

BUILD_RUN = identifier_pb2.RunIdentifier(project="p", domain="d", name="r1")


class OneImage:
    """Has built `flyte:known`."""

    async def find_image(self, name: str) -> tuple[str, identifier_pb2.RunIdentifier] | None:
        return ("local/flyte:known", BUILD_RUN) if name == "flyte:known" else None


async def answer(service: ImageService, name: str) -> definition_pb2.Image:
    request = payload_pb2.GetImageRequest(id=definition_pb2.ImageIdentifier(name=name))
    context: RequestContext = None  # type: ignore[assignment]  # of which nothing is used
    return (await service.get_image(request, context)).image


async def test_a_built_image_is_found_with_the_run_that_built_it() -> None:
    image = await answer(ImageService(OneImage()), "flyte:known")
    assert (image.id.name, image.fqin, image.build_run) == ("flyte:known", "local/flyte:known", BUILD_RUN)


async def test_an_image_that_is_not_built_is_not_found_so_that_the_sdk_has_it_built() -> None:
    with pytest.raises(NotFound, match="build-image"):
        await answer(ImageService(OneImage()), "flyte:unknown")


async def test_an_image_of_the_configured_registry_is_taken_to_be_there() -> None:
    service = ImageService(OneImage(), registry="registry.example.com/team/", names={"flyte:known": "other/one:2"})

    assert (await answer(service, "flyte:known")).fqin == "other/one:2"
    image = await answer(service, "flyte:unknown")
    assert image.fqin == "registry.example.com/team/flyte:unknown"
    assert not image.HasField("build_run")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("flyte:1", "r/flyte:1"),
        ("ghcr.io/me/flyte:1", "r/flyte:1"),
        ("mine:1", "elsewhere/mine:one"),
        ("ghcr.io/me/mine:1", "elsewhere/mine:one"),
        ("ghcr.io/me/whole:1", "chosen:1"),
    ],
)
def test_names_are_mapped_with_and_without_a_registry(name: str, found: str) -> None:
    names = {"mine:1": "elsewhere/mine:one", "ghcr.io/me/whole:1": "chosen:1"}
    assert image_from_registry(name, registry="r", names=names) == found


def test_without_configuration_nothing_is_elsewhere() -> None:
    assert image_from_registry("flyte:1", registry="", names={}) is None
