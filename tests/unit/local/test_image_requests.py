"""What the server does for a build before the program runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from flyteidl2.core import literals_pb2
from flyteidl2.imagebuilder import definition_pb2
from flyteidl2.task import common_pb2

from flyte_binary.domain.ids import ActionId, AttemptId
from flyte_binary.executor.backend import AttemptSpec
from flyte_binary.executor.build_image import build_image_spec
from flyte_binary.executor.local.environments.build import build
from flyte_binary.executor.local.environments.environments import Environments, EnvironmentSettings
from flyte_binary.executor.local.environments.uv import build_environment, find_uv
from flyte_binary.executor.local.interpreter import Interpreter
from flyte_binary.executor.local.unpack import InvalidBundle
from tests.fakes.local_attempts import Files, tarball
from tests.fakes.uv import FakeUv
from tests.unit.local.image_builds import copy, image, packages

PROGRAM = build_image_spec().task_template.container.args[0]
INTERPRETER = Interpreter(path=Path(sys.executable), python="3.11.7", flyte="2.12.1")


class Store(Files):
    async def put(self, uri: str, data: bytes) -> None:
        _write(Path(uri), data)


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


class Request:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.uv = FakeUv(folder / "uv")
        self.work = folder / "work"
        self.work.mkdir()
        self.environments = Environments(EnvironmentSettings(folder=folder / "library", uv=self.uv.path), Store())

    def upload(self, name: str, data: bytes) -> str:
        (self.folder / name).write_bytes(data)
        return str(self.folder / name)

    def spec(self, *options: str, env: dict[str, str] | None = None, **inputs: str) -> AttemptSpec:
        literals = [
            common_pb2.NamedLiteral(
                name=name,
                value=literals_pb2.Literal(
                    scalar=literals_pb2.Scalar(primitive=literals_pb2.Primitive(string_value=text))
                ),
            )
            for name, text in inputs.items()
        ]
        uri = self.upload("inputs.pb", common_pb2.Inputs(literals=literals).SerializeToString())
        outputs = str(self.folder / "outputs")
        return AttemptSpec(
            id=AttemptId(ActionId("p", "d", "r1", "a0"), 1),
            nonce="n",
            argv=(PROGRAM, "--inputs", uri, "--outputs-path", outputs, *options),
            env=env or {},
            image="flyte-binary",
        )

    async def prepare(self, spec: AttemptSpec) -> None:
        await self.environments.prepare(spec, self.work, INTERPRETER)


@pytest.fixture
def request_(tmp_path: Path) -> Request:
    return Request(tmp_path)


def described(request: Request, spec: definition_pb2.ImageSpec) -> str:
    return request.upload("spec.pb", spec.SerializeToString())


async def test_what_is_prepared_can_be_built_and_is_found_by_the_answer(request_: Request) -> None:
    context = str(tarball(request_.folder / "context.tar.gz", {"data.txt": "data"}))
    spec = described(request_, image(packages("a"), copy("data.txt", ".")))
    await request_.prepare(request_.spec(spec=spec, context=context, target_image="registry.example.com/me/mine:v1"))

    assert build(request_.work) == 0
    outputs = common_pb2.Outputs.FromString((request_.folder / "outputs/outputs.pb").read_bytes())
    name = outputs.literals[0].value.scalar.primitive.string_value
    assert name == "local/mine:v1"
    built = request_.environments.of_task(name)
    assert built is not None
    assert (built.work / "data.txt").read_text() == "data"
    found = await request_.environments.find_image("mine:v1")
    assert found is not None
    assert (found[0], found[1].project, found[1].domain, found[1].name) == ("local/mine:v1", "p", "d", "r1")


async def test_a_run_that_overwrites_the_cache_builds_again(request_: Request) -> None:
    spec = described(request_, image(packages("a")))
    for options in ((), (), ("--force",)):
        await request_.prepare(request_.spec(*options, spec=spec, context="", target_image="mine:v1"))
        build(request_.work)
        for path in request_.work.iterdir():
            path.rmdir() if path.is_dir() else path.unlink()

    assert len(request_.uv.calls("venv")) == 2


@pytest.mark.parametrize(
    ("inputs", "sentence"),
    [
        ({"target_image": "mine:v1"}, "no input 'spec'"),
        ({"spec": "/nowhere/spec.pb", "target_image": "mine:v1"}, "/nowhere/spec.pb cannot be read"),
        ({"spec": "/nowhere/spec.pb", "target_image": ""}, "target_image is required"),
        ({"spec": "/nowhere/spec.pb", "target_image": "-x y"}, "not the name of an image"),
    ],
)
async def test_inputs_that_cannot_be_used_are_named(request_: Request, inputs: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidBundle, match=sentence):
        await request_.prepare(request_.spec(**inputs))
    assert not (request_.folder / "outputs").exists()


async def test_without_uv_a_build_says_how_to_get_it(request_: Request) -> None:
    without = Environments(EnvironmentSettings(folder=request_.folder / "library"), Store())
    with pytest.raises(InvalidBundle, match="pip install uv"):
        await without.prepare(request_.spec(), request_.work, INTERPRETER)


def test_a_build_sees_the_index_of_the_server_and_above_it_what_the_run_sets(request_: Request) -> None:
    settings = EnvironmentSettings(folder=request_.folder, variables={"UV_INDEX_URL": "https://one/", "HOME": "/me"})
    made = Environments(settings, Store()).variables(request_.spec(env={"UV_INDEX_URL": "https://two/"}))
    assert (made["UV_INDEX_URL"], made["HOME"]) == ("https://two/", "/me")


def test_of_the_servers_environment_only_what_uv_needs_is_passed_on() -> None:
    made = build_environment(
        {
            "UV_INDEX_URL": "https://one/",
            "PIP_INDEX_URL": "https://two/",
            "PIP_EXTRA_INDEX_URL": "https://three/",
            "https_proxy": "http://proxy/",
            "SSL_CERT_FILE": "/certs",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "DATABASE_PASSWORD": "secret",
            "HOME": "/me",
        }
    )
    assert made == {
        "UV_INDEX_URL": "https://one/",
        "UV_INDEX": "https://three/",
        "https_proxy": "http://proxy/",
        "SSL_CERT_FILE": "/certs",
        "HOME": "/me",
    }


def test_the_index_of_pip_counts_where_uv_has_none() -> None:
    assert build_environment({"PIP_INDEX_URL": "https://two/"}) == {"UV_DEFAULT_INDEX": "https://two/"}


def test_uv_is_the_configured_one_else_that_beside_the_server(tmp_path: Path) -> None:
    assert find_uv(tmp_path / "mine") == tmp_path / "mine"
    found = find_uv(None)
    assert found is not None and found.name == "uv" and found.exists()
