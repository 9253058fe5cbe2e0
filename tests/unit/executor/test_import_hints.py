from __future__ import annotations

import pytest
from flyteidl2.core import execution_pb2

from flyte_binary.executor.compatibility import Runtime
from flyte_binary.executor.import_hints import lacks_module, with_import_hint

DEFAULT = Runtime(python="3.11.7", flyte="2.12.1", interpreter="/venv/bin/python")
BUILT = Runtime(python="3.11.7", flyte="2.12.1", interpreter="/built/venv/bin/python", built=True)
ERROR = execution_pb2.ExecutionError(code="ModuleNotFoundError", message="No module named 'pandas.core'")


def test_an_image_that_nobody_built_is_named_with_the_way_to_have_it_built() -> None:
    message = with_import_hint(ERROR, "me/app:v1", DEFAULT).message

    assert message.startswith("No module named 'pandas.core'\n")
    for part in ("image me/app:v1", "/venv/bin/python", "'pandas'", "image.builder to remote", "FLYTE_IMAGE_BUILDER"):
        assert part in message


@pytest.mark.parametrize("image", ["", "ghcr.io/flyteorg/flyte:py3.11-v2.12.1"])
def test_a_task_without_an_image_is_told_where_to_install_what_it_lacks(image: str) -> None:
    message = with_import_hint(ERROR, image, DEFAULT).message
    assert "/venv/bin/python, which has no 'pandas'" in message
    assert "with_pip_packages" in message


def test_an_image_that_was_built_here_is_as_its_author_made_it() -> None:
    assert with_import_hint(ERROR, "local/flyte:1", BUILT) == ERROR


def test_other_errors_are_left_alone() -> None:
    assert lacks_module(ERROR)
    assert not lacks_module(None)
    assert not lacks_module(execution_pb2.ExecutionError(code="ValueError", message="No module named 'x'"))
    assert not lacks_module(execution_pb2.ExecutionError(code="ModuleNotFoundError", message="my own words"))


def test_the_error_that_was_given_is_not_changed() -> None:
    with_import_hint(ERROR, "me/app:v1", DEFAULT)
    assert ERROR.message == "No module named 'pandas.core'"
