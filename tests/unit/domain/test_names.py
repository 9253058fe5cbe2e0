"""Names of runs, tasks and projects."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.domain.names import (
    check_project_id,
    check_run_name,
    check_text,
    cut,
    function_name_of,
    new_run_name,
    short_name_of,
)


def test_new_names_are_names_and_differ() -> None:
    names = {new_run_name() for _ in range(1000)}
    assert len(names) == 1000
    for name in names:
        check_run_name(name)


@pytest.mark.parametrize("name", ["", "1a", "Aa", "a_b", "a-", "ä", "a" * 31, "a\n", "a.b"])
def test_names_that_are_no_labels_are_refused(name: str) -> None:
    with pytest.raises(InvalidArgument, match=r"run_id\.name"):
        check_run_name(name)


@pytest.mark.parametrize("name", ["..", ".hidden", "a/b", "a\\b", "", "a b", "x" * 64])
def test_projects_cannot_lead_out_of_their_folder(name: str) -> None:
    with pytest.raises(InvalidArgument, match="project"):
        check_project_id("project.id", name)


def test_text_is_checked_with_the_name_of_its_field() -> None:
    check_text("f", "")
    for value, wanted in (("", "f is required"), ("a\0", "NUL"), ("x" * 256, "too long")):
        with pytest.raises(InvalidArgument, match=wanted):
            check_text("f", value, required=True)


@pytest.mark.parametrize(
    ("task", "environment", "function", "short"),
    [
        ("env.hello", "env", "hello", "hello"),
        ("a.b.hello", "a.b", "hello", "hello"),
        ("a.b.c.hello", "a.b", "c.hello", "hello"),
        ("other.hello", "env", "hello", "hello"),
        ("hello", "", "hello", "hello"),
    ],
)
def test_a_task_is_called_by_its_function(task: str, environment: str, function: str, short: str) -> None:
    assert function_name_of(task, environment) == function
    assert short_name_of(task) == short


@given(st.text(), st.integers(0, 50))
def test_text_is_cut_between_characters(text: str, limit: int) -> None:
    kept = cut(text, limit)
    assert text.startswith(kept)
    assert len(kept.encode()) <= limit
    assert kept == text or len(text[: len(kept) + 1].encode()) > limit
