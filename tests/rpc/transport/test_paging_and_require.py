from __future__ import annotations

import base64

import pytest
from flyteidl2.common import identifier_pb2
from hypothesis import given
from hypothesis import strategies as st

from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.domain.ids import ActionId, ProjectId, RunId
from flyte_binary.rpc.paging import keys_from_token, make_token, page_limit
from flyte_binary.rpc.require import require_action_id, require_project_id, require_run_id, require_text, storable


def test_no_limit_means_fifty_and_two_hundred_is_the_most() -> None:
    assert [page_limit(limit) for limit in (0, 1, 200)] == [50, 1, 200]
    for limit in (-1, 201):
        with pytest.raises(InvalidArgument, match=r"request\.limit must be between 1 and 200"):
            page_limit(limit)


_keys = st.lists(st.none() | st.integers() | st.text() | st.floats(allow_nan=False), max_size=4)


@given(_keys)
def test_a_token_brings_back_its_keys(keys: list[str | int | float | None]) -> None:
    token = make_token("runs", keys)
    assert keys_from_token(token, "runs", len(keys)) == tuple(keys)
    assert token.isascii()


def test_no_token_is_the_first_page() -> None:
    assert keys_from_token("", "runs", 2) is None


@pytest.mark.parametrize(
    "token", ["x", "....", "100", base64.urlsafe_b64encode(b'["1","runs",1]').decode(), "ü", "W10", "MTI", "bnVsbA"]
)
def test_a_token_of_somebody_else_is_the_callers_mistake(token: str) -> None:
    with pytest.raises(InvalidArgument, match=r"request\.token"):
        keys_from_token(token, "runs", 2)


@given(st.text(max_size=40, min_size=1))
def test_no_text_at_all_makes_a_token_fail_otherwise(token: str) -> None:
    with pytest.raises(InvalidArgument):
        keys_from_token(token, "runs", 2)


def test_a_token_of_another_list_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="another order"):
        keys_from_token(make_token("runs:created_at desc", [1, "r"]), "runs:name asc", 2)


def run_id(project: str = "p", domain: str = "d", name: str = "r", org: str = "127") -> identifier_pb2.RunIdentifier:
    return identifier_pb2.RunIdentifier(org=org, project=project, domain=domain, name=name)


def test_identifiers_become_ours_and_the_organisation_is_dropped() -> None:
    assert require_run_id(run_id()) == RunId("p", "d", "r")
    action = identifier_pb2.ActionIdentifier(run=run_id(org=""), name="a0")
    assert require_action_id(action) == ActionId("p", "d", "r", "a0")
    project = identifier_pb2.ProjectIdentifier(organization="o", name="p", domain="d")
    assert require_project_id(project) == ProjectId("p", "d")


@pytest.mark.parametrize(
    ("identifier", "field"),
    [
        (run_id(project=""), r"run_id\.project is required"),
        (run_id(domain=""), r"run_id\.domain is required"),
        (run_id(name=""), r"run_id\.name is required"),
        (run_id(project="x" * 64), r"run_id\.project: at most 63"),
        (run_id(name="x" * 31), r"run_id\.name: at most 30"),
        (run_id(name="a\0b"), r"run_id\.name must not contain the NUL"),
        (run_id(name="../r"), r"run_id\.name: a name has no slash"),
        (run_id(name=".."), r"run_id\.name: a name has no slash"),
    ],
)
def test_what_is_wrong_with_an_identifier_is_told_with_its_field(
    identifier: identifier_pb2.RunIdentifier, field: str
) -> None:
    with pytest.raises(InvalidArgument, match=field):
        require_run_id(identifier)


def test_the_field_of_a_nested_identifier_is_named_in_full() -> None:
    with pytest.raises(InvalidArgument, match=r"action\.action_id\.run\.name is required"):
        require_action_id(identifier_pb2.ActionIdentifier(run=run_id(name=""), name="a0"), "action.action_id")


def test_text_that_a_database_cannot_store_is_refused() -> None:
    assert require_text("héllo ✓", "reason", longest=10) == "héllo ✓"
    for text in ("a\0", "\ud800"):
        with pytest.raises(InvalidArgument, match="reason"):
            storable(text, "reason")
