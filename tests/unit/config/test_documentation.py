"""Every setting is documented where it is declared, and the pages made from that are current."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from flyte_binary.config.load import load_config
from flyte_binary.config.model import Config
from flyte_binary.config.schema import leaves, schema
from scripts import config_docs

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("setting", config_docs.documented(), ids=lambda setting: setting.path)
def test_a_setting_is_explained_and_names_its_own_path(setting: config_docs.Documented):
    assert len(setting.text) > 15
    assert setting.stated_path == setting.path


def test_every_setting_is_read_by_something():
    read: set[str] = set()
    for path in (ROOT / "flyte_binary").rglob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        read |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}

    assert [path for path, entry in leaves(schema()) if entry.field not in read] == []


def test_the_pages_belong_to_the_model():
    assert config_docs.PAGE.read_text(encoding="utf-8") == config_docs.page()
    assert config_docs.REFERENCE.read_text(encoding="utf-8") == config_docs.reference()


def test_the_reference_file_without_its_comment_marks_is_the_default_configuration(tmp_path: Path):
    lines = (ROOT / "configs/reference.yaml").read_text(encoding="utf-8").splitlines()[1:]
    (tmp_path / "all.yaml").write_text("\n".join(line.removeprefix("# ") for line in lines), encoding="utf-8")

    loaded = load_config(files=[f"{tmp_path}/all.yaml"], environ={})

    assert loaded.config == Config()
    assert loaded.origins.keys() == {path for path, _ in leaves(schema())}


@pytest.mark.parametrize("path", sorted(ROOT.glob("configs/*.yaml")), ids=lambda path: path.name)
def test_a_file_that_we_ship_is_a_valid_configuration(path: Path):
    load_config(files=[str(path)], environ={})
