"""How deliberate differences are matched, and that the page about them is up to date."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden import compat_page, expected, scenarios
from tests.golden.compare import Difference
from tests.golden.distil import FIXTURES


def entry(path: str, **more: object) -> expected.Expected:
    return expected.Expected(scenarios=("errors*",), path=path, title="t", reason="r", **more)  # pyright: ignore


def difference(path: str, reference: object = 1, ours: object = 2) -> Difference:
    return Difference(path, "changed", reference, ours)


def test_one_star_stays_within_a_segment_and_two_stars_do_not() -> None:
    assert entry("sdk/*/1/error").covers("errors", difference("sdk/A.B/1/error"))
    assert not entry("sdk/*/error").covers("errors", difference("sdk/A.B/1/error"))
    assert entry("sdk/**/error").covers("errors", difference("sdk/A.B/1/error"))


def test_an_entry_speaks_for_its_scenarios_only() -> None:
    assert entry("x").covers("errors-streams", difference("x"))
    assert not entry("x").covers("projects", difference("x"))


def test_a_value_that_an_entry_states_must_be_the_one_seen() -> None:
    assert entry("x", ours=2).covers("errors", difference("x"))
    assert not entry("x", ours=3).covers("errors", difference("x"))
    assert not entry("x", reference=3).covers("errors", difference("x"))
    assert not entry("x", kind="missing").covers("errors", difference("x"))


def test_each_entry_names_scenarios_that_exist() -> None:
    every = (*scenarios.DRIVEN, *scenarios.REPLAYED)
    for one in expected.load():
        assert any(one.concerns(name) for name in every), f"no scenario for {one.title}: {one.scenarios}"


def test_an_entry_without_a_reason_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "expected.yaml"
    path.write_text("- title: t\n  where: [{path: x}]\n", encoding="utf-8")
    with pytest.raises(KeyError):
        expected.load(path)


def test_every_scenario_has_a_fixture_and_every_fixture_a_scenario() -> None:
    assert {path.stem for path in FIXTURES.glob("*.json")} == {*scenarios.DRIVEN, *scenarios.REPLAYED}


def test_the_page_about_compatibility_is_made_from_the_file() -> None:
    text = compat_page.PAGE.read_text(encoding="utf-8")
    assert compat_page.page(text) == text, "run: python -m tests.golden.compat_page"
