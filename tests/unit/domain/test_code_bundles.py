import pytest
from flyteidl2.core import tasks_pb2

from flyte_binary.domain.code_bundles import bundle_uri


@pytest.mark.parametrize("option", ["--tgz", "--pkl"])
def test_the_bundle_is_found_among_the_arguments(option: str) -> None:
    container = tasks_pb2.Container(args=["a0", "--version", "1", option, "/store/code.tar.gz", "--dest", "."])
    assert bundle_uri(tasks_pb2.TaskTemplate(container=container)) == "/store/code.tar.gz"


def test_the_metadata_wins_over_the_arguments() -> None:
    template = tasks_pb2.TaskTemplate(
        metadata=tasks_pb2.TaskMetadata(code_bundle_uri="/store/new.tar.gz"),
        container=tasks_pb2.Container(args=["--tgz", "/store/old.tar.gz"]),
    )
    assert bundle_uri(template) == "/store/new.tar.gz"


def test_code_in_the_image_has_no_bundle_and_an_option_without_value_is_none() -> None:
    assert bundle_uri(tasks_pb2.TaskTemplate()) == ""
    assert bundle_uri(tasks_pb2.TaskTemplate(container=tasks_pb2.Container(args=["a0", "--tgz"]))) == ""
