"""The layout of a run's files."""

from __future__ import annotations

import pytest

from flyte_binary.domain import locations


def test_attempts_have_folders_of_their_own_below_one_flat_folder_a_run() -> None:
    assert locations.attempt_prefix("/store/r1/", "c1", 2) == "/store/r1/c1/2"
    assert locations.raw_data_prefix("s3://bucket/r1", "c1", 2) == "s3://bucket/r1/c1/2/raw"
    assert locations.checkpoint_prefix("/store/r1", "c1", 2) == "/store/r1/c1/2/_flytecheckpoints"
    assert locations.log_archive("/store/r1/c1/2").startswith("/store/r1/c1/2/")


@pytest.mark.parametrize("given", ["/in", "/in/", "/in/inputs.pb", "/in/inputs.pb/inputs.pb"])
def test_inputs_are_found_by_their_folder_or_their_file(given: str) -> None:
    assert locations.inputs_uri(given) == "/in/inputs.pb"
