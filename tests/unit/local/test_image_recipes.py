from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from flyteidl2.imagebuilder import definition_pb2 as pb

from flyte_binary.executor.local.environments.layers import InvalidImage
from flyte_binary.executor.local.environments.recipe import Default, Recipe, recipe_from
from flyte_binary.executor.local.environments.shell import parts_of
from flyte_binary.executor.local.environments.steps import Copy, Place, SetVariables
from tests.unit.local.image_builds import DEFAULT, FLYTE_IMAGE, commands, copy, image, packages, variables

PLACE = Place(uv=Path("/uv"), python=Path("/env/venv/bin/python"), context=Path("/context"), work=Path("/env/work"))


def commands_of(*layers: pb.Layer) -> list[str]:
    recipe = recipe_from(image(*layers), DEFAULT)
    steps = [step for step in recipe.steps if not isinstance(step, Copy | SetVariables)]
    return [" ".join(command.argv) for step in steps for command in step.commands(PLACE)]


def notices_of(*layers: pb.Layer, base: str = FLYTE_IMAGE) -> tuple[str, ...]:
    return recipe_from(image(*layers, base=base), DEFAULT).notices


def test_packages_are_installed_with_their_options() -> None:
    layer = packages(
        "p>=2", "x[y]", index_url="https://one/", extra_index_urls=["https://two/"], pre=True, extra_args="-v -v"
    )
    assert commands_of(layer) == [
        "/uv pip install --index-url https://one/ --extra-index-url https://two/ --prerelease=allow -v -v p>=2 x[y]"
    ]


def test_each_kind_of_layer_becomes_what_the_sdks_own_builder_does_with_it() -> None:
    options = pb.PipOptions(extra_args="--no-install-project")
    uv = pb.UVProject(pyproject="project", uvlock="project/uv.lock", options=options)
    assert commands_of(
        pb.Layer(requirements=pb.Requirements(file="_flyte_abs_context/r.txt")),
        pb.Layer(python_wheels=pb.PythonWheels(dir="dist", package_name="mine")),
        pb.Layer(uv_project=uv),
    ) == [
        "/uv pip install --requirement /context/_flyte_abs_context/r.txt",
        "/uv pip install --find-links /context/dist mine",
        "/uv pip install --find-links /context/dist --no-deps --no-index --reinstall mine",
        "/uv sync --active --inexact --no-editable --no-install-project --project /context/project",
    ]


@pytest.mark.parametrize(
    ("extra_args", "selection", "project"),
    [
        ("--no-root", "--all-groups", False),
        ("--no-root --only main", "--only main", False),
        ("--without=dev", "--without=dev", True),
        ("", "--all-groups", True),
    ],
)
def test_a_poetry_project_is_exported_and_installed(extra_args: str, selection: str, project: bool) -> None:
    poetry = pb.PoetryProject(pyproject="p/pyproject.toml", poetry_lock="p/poetry.lock", extra_args=extra_args)
    export, install, *rest = commands_of(pb.Layer(poetry_project=poetry))

    assert export.endswith(f"poetry export --format requirements.txt --output /context/p/poetry-export.txt {selection}")
    assert install == "/uv pip install --requirement /context/p/poetry-export.txt"
    assert rest == (["/uv pip install --no-deps /context/p"] if project else [])


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ("pip install a b", [("pip", "install", "a", "b")]),
        ("python -m pip install --system a", [("pip", "install", "a")]),
        ("uv pip install 'a>=1' && python3 -c 'print(2 * 3, \"$x\")'", None),
        ("python -m nltk.downloader punkt", [("python", "-m", "nltk.downloader", "punkt")]),
        ("apt-get update", None),
        ("pip install a; rm -rf /", None),
        ("pip install a | tee log", None),
        ("pip install $PACKAGE", None),
        ("pip install `cat list`", None),
        ("pip install dist/*.whl", None),
        ("pip install 'unclosed", None),
        ("pip install a && useradd flyte", None),
        ("FOO=1 pip install a", None),
        ("", None),
    ],
)
def test_only_commands_about_the_environment_are_run(command: str, parts: list[tuple[str, ...]] | None) -> None:
    if command.startswith("uv"):
        parts = [("uv", "pip", "install", "a>=1"), ("python", "-c", 'print(2 * 3, "$x")')]
    assert parts_of(command) == (None if parts is None else tuple(parts))


def test_programs_of_the_environment_and_no_others_are_called() -> None:
    assert commands_of(commands("pip install a && python -m b", "uv cache prune")) == [
        "/uv pip install a",
        "/env/venv/bin/python -m b",
        "/uv cache prune",
    ]


def test_what_has_no_effect_here_is_named() -> None:
    texts = notices_of(
        pb.Layer(apt_packages=pb.AptPackages(packages=["git", "curl"])),
        commands("chown -R me /root"),
        copy("data", "/opt/data"),
        pb.Layer(),
        base="nvcr.io/nvidia/pytorch:24.01",
    )
    assert ["nvcr.io/nvidia/pytorch:24.01" in texts[0], "git, curl" in texts[1], "chown" in texts[2]] == [True] * 3
    assert "/opt/data" in texts[3]
    assert "does not know" in texts[4]


def test_nothing_is_said_about_the_sdks_own_base_images() -> None:
    made_by_sdk = commands("if ! id -u flyte; then useradd --create-home --shell /bin/bash flyte; fi")
    assert notices_of(made_by_sdk, base="python:3.12-slim-bookworm") == ()
    assert notices_of(base=FLYTE_IMAGE) == ()


@pytest.mark.parametrize(
    ("target", "below"),
    [
        (".", "./"),
        ("./src", "src"),
        ("src/", "src/"),
        ("/root", "./"),
        ("/root/pkg", "pkg"),
        ("/home/flyte/pkg/mod.py", "pkg/mod.py"),
        ("/app/x", "x"),
    ],
)
def test_files_go_into_the_working_folder_of_the_tasks(target: str, below: str) -> None:
    workdir = pb.Layer(workdir=pb.WorkDir(workdir="/app"))
    recipe = recipe_from(image(workdir, copy("src", target)), DEFAULT)
    (step,) = recipe.steps
    assert isinstance(step, Copy)
    assert step.target == below


def test_later_variables_may_refer_to_earlier_ones_and_those_of_the_container_go() -> None:
    recipe = recipe_from(
        image(
            variables(A="1", VIRTUAL_ENV="/opt/venv", PYTHONPATH="/root", PATH="/opt/venv/bin:$PATH"),
            variables(B="$A-${A}-$OTHER", PYTHONPATH="/root:/data"),
        ),
        DEFAULT,
    )
    assert recipe.variables() == {"A": "1", "B": "1-1-$OTHER", "PATH": "$PATH", "PYTHONPATH": "/data"}


@pytest.mark.parametrize(
    ("base", "python", "wanted", "sdk"),
    [
        (FLYTE_IMAGE, "3.11", "", "2.12.1"),
        ("ghcr.io/flyteorg/flyte:py3.12-v2.12.0b1", "3.12", "3.12", "2.12.0b1"),
        ("ghcr.io/flyteorg/flyte:py3.12-v2.12.1", "", "3.12", "2.12.1"),
        ("python:3.13-slim-bookworm", "3.13", "3.13", ""),
        ("python:3.11-slim", "3.11", "", ""),
        ("me/app:v1", "", "", ""),
    ],
)
def test_python_and_sdk_are_those_of_the_image(base: str, python: str, wanted: str, sdk: str) -> None:
    recipe = recipe_from(image(base=base, python=python), DEFAULT)
    assert (recipe.python, recipe.sdk) == (wanted, sdk)


@pytest.mark.parametrize(
    "layer",
    [
        pb.Layer(requirements=pb.Requirements(file="../secret")),
        pb.Layer(requirements=pb.Requirements(file="/etc/passwd")),
        pb.Layer(requirements=pb.Requirements(file="")),
        copy("a/../../b", "."),
        packages("a", extra_args="'"),
        variables(**{"A=B": "1"}),
    ],
)
def test_what_no_image_can_be_is_refused(layer: pb.Layer) -> None:
    with pytest.raises(InvalidImage):
        recipe_from(image(layer), DEFAULT)


def test_a_python_version_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidImage, match="--help"):
        recipe_from(image(python="--help"), DEFAULT)


def digest(recipe: Recipe, contents: Mapping[str, str] | None = None, default: Default = DEFAULT) -> str:
    return recipe.digest(default, lambda path: (contents or {}).get(path, path))


def test_equal_layers_have_one_digest_whatever_their_files_are_called() -> None:
    def of(file: str) -> str:
        requirements = pb.Layer(requirements=pb.Requirements(file=file))
        return digest(recipe_from(image(requirements), DEFAULT), {"here/r.txt": "same", "there.txt": "same"})

    assert of("here/r.txt") == of("there.txt")
    assert of("here/r.txt") != of("other.txt")


def test_what_cannot_be_done_here_makes_no_difference() -> None:
    bare = recipe_from(image(packages("a")), DEFAULT)
    apt = recipe_from(image(pb.Layer(apt_packages=pb.AptPackages(packages=["git"])), packages("a")), DEFAULT)
    assert digest(bare) == digest(apt)


def test_whatever_changes_the_environment_changes_the_digest() -> None:
    specs = [
        image(packages("a")),
        image(packages("b")),
        image(packages("a", pre=True)),
        image(packages("a"), packages("b")),
        image(packages("b"), packages("a")),
        image(packages("a"), variables(A="1")),
        image(packages("a"), python="3.12"),
        image(packages("a"), base="ghcr.io/flyteorg/flyte:py3.11-v2.12.2"),
        image(packages("a"), base="python:3.11-slim"),
    ]
    digests = {digest(recipe_from(spec, DEFAULT)) for spec in specs}
    newer = Default(python="3.11.9", sdk="2.12.1")
    digests.add(digest(recipe_from(image(packages("a")), newer), default=newer))
    assert len(digests) == len(specs) + 1
