"""`proto/contract.txt` is what the installed contract says."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

PROTO = Path(__file__).parents[2] / "proto"


@pytest.fixture(scope="module")
def update() -> ModuleType:
    spec = importlib.util.spec_from_file_location("proto_update", PROTO / "update.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_contract_is_that_of_the_installed_descriptors(update: ModuleType) -> None:
    assert (PROTO / "contract.txt").read_text() == update.render(), "run python proto/update.py and read the diff"


def test_the_contract_shows_a_field_that_changed(update: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    before = update.render()
    monkeypatch.setattr(update, "version", lambda _: "9.9.9")
    assert "flyteidl2 9.9.9" in update.render() != before
    lines = [line for line in before.splitlines() if line.startswith("service ")]
    assert len(lines) == len(update.SERVICES)
    assert len({line.split()[-1] for line in lines}) > 1
