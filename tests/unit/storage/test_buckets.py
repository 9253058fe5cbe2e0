"""Which URIs of a cloud's store a server takes."""

from __future__ import annotations

import pytest

from flyte_binary.domain.errors import FlyteError, InvalidArgument, PermissionDenied
from flyte_binary.storage.buckets import Buckets, ObjectName

FOLDER = Buckets(schemes=("s3",), base_uri="s3://bucket/some/folder", also_allowed=["other"])
BUCKET = Buckets(schemes=("s3",), base_uri="s3://bucket")


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("s3://bucket/some/folder/a/b", ObjectName("bucket", "some/folder/a/b")),
        ("s3://bucket/some/folder/späße %2e?x#y", ObjectName("bucket", "some/folder/späße %2e?x#y")),
        ("s3://other/anything", ObjectName("other", "anything")),
    ],
)
def test_a_uri_is_taken_literally(uri: str, name: ObjectName) -> None:
    assert FOLDER.locate(uri) == name
    assert FOLDER.covers(uri)


@pytest.mark.parametrize(
    ("uri", "error"),
    [
        ("s3://bucket/some/folder-other/a", PermissionDenied),
        ("s3://bucket/a", PermissionDenied),
        ("s3://bucket", PermissionDenied),
        ("s3://third/a", PermissionDenied),
        ("s3://bucket/some/folder/../../a", InvalidArgument),
        ("s3://bucket/some/folder//a", InvalidArgument),
        ("s3://bucket/some/folder/./a", InvalidArgument),
        ("s3://bucket/some/folder/a\0", InvalidArgument),
        ("s3://bucket/some/folder/\udcff", InvalidArgument),
        ("s3://bucket/some/folder/" + "ü" * 600, InvalidArgument),
        ("s3:///some/folder/a", InvalidArgument),
        ("s3://user@bucket/some/folder/a", InvalidArgument),
        ("S3://bucket/some/folder/a", InvalidArgument),
        ("gs://bucket/some/folder/a", InvalidArgument),
        ("/bucket/some/folder/a", InvalidArgument),
        ("file:///bucket/some/folder/a", InvalidArgument),
        ("", InvalidArgument),
    ],
)
def test_what_is_out_of_bounds_or_no_name_is_refused(uri: str, error: type[FlyteError]) -> None:
    with pytest.raises(error):
        FOLDER.locate(uri)
    assert not FOLDER.covers(uri)


def test_a_bucket_without_a_folder_is_covered_as_a_whole() -> None:
    assert BUCKET.locate("s3://bucket/a") == ObjectName("bucket", "a")
    assert BUCKET.covers("s3://bucket") and BUCKET.covers("s3://bucket/")
    assert BUCKET.folder("s3://bucket") == ObjectName("bucket", "")


def test_a_bucket_is_no_object() -> None:
    with pytest.raises(InvalidArgument, match="names a bucket"):
        BUCKET.locate("s3://bucket/")


def test_every_bucket_is_allowed_where_the_operator_says_so() -> None:
    anywhere = Buckets(schemes=("s3",), base_uri="s3://bucket/folder", any_allowed=True)
    assert anywhere.covers("s3://third/a") and anywhere.covers("s3://bucket/elsewhere")
    assert not anywhere.covers("gs://third/a")
