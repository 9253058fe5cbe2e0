"""Tasks with images of their own. What an image brings is imported inside: the client does not have it."""

from __future__ import annotations

import importlib
import os
import sys
from importlib.metadata import version
from pathlib import Path

import flyte

folder = Path(__file__).parent / "image_files"
base = flyte.Image.from_debian_base()

packaged = flyte.TaskEnvironment(
    name="packaged",
    image=base.with_pip_packages("iniconfig==2.0.0").with_env_vars({"COLOUR": "green", "BOTH": "image"}),
    env_vars={"BOTH": "task"},
)
same_layers = flyte.TaskEnvironment(
    name="same_layers",
    image=flyte.Image.from_debian_base(name="another-name")
    .with_pip_packages("iniconfig==2.0.0")
    .with_env_vars({"COLOUR": "green", "BOTH": "image"}),
)
impossible = flyte.TaskEnvironment(name="impossible", image=base.with_requirements(folder / "impossible.txt"))
at_once = flyte.TaskEnvironment(name="at_once", image=base.with_pip_packages("iniconfig==1.1.1"))
mixed = flyte.TaskEnvironment(
    name="mixed",
    image=base.with_apt_packages("cowsay")
    .with_source_folder(folder / "brought", copy_contents_only=True)
    .with_source_file(folder / "fine.txt")
    .with_requirements(folder / "fine.txt")
    .with_commands(["pip install colorama==0.4.6", "apt-get install -y cowsay && echo done"]),
)
of_uv_project = flyte.TaskEnvironment(
    name="of_uv_project",
    image=base.with_uv_project(folder / "uv_project" / "pyproject.toml", project_install_mode="install_project"),
)
of_poetry_project = flyte.TaskEnvironment(
    name="of_poetry_project", image=base.with_poetry_project(folder / "poetry_project" / "pyproject.toml")
)
unbuilt = flyte.TaskEnvironment(name="unbuilt", image="registry.example.com/team/app:v1")


@packaged.task
async def look(names: list[str]) -> list[str]:
    return [version("iniconfig"), version("flyte"), sys.executable, *(os.environ[name] for name in names)]


@same_layers.task
async def look_same() -> str:
    return sys.executable


@impossible.task
async def never() -> str:
    return "never"


@at_once.task
async def quick() -> str:
    return f"{version('iniconfig')} {sys.executable}"


@mixed.task
def brought() -> list[str]:
    module = importlib.import_module("brought_module")
    return [module.WORD, version("iniconfig"), version("colorama"), Path("fine.txt").read_text(encoding="utf-8")]


@of_uv_project.task
async def project() -> list[str]:
    return [importlib.import_module("uv_made").WORD, version("iniconfig")]


@of_poetry_project.task
async def poetry() -> str:
    return version("iniconfig")


@unbuilt.task
async def lacking() -> int:
    importlib.import_module("no_such_module_anywhere")
    return 1
