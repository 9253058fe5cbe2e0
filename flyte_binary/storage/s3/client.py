"""A client of boto3, as this store wants it."""

from __future__ import annotations

from typing import Any, cast

import boto3.session
from botocore import UNSIGNED
from botocore.config import Config

from flyte_binary.storage.s3.connection import FIRST_REGION, S3Connection

CONNECT_SECONDS, READ_SECONDS = 5, 60
ATTEMPTS = 4


def make_client(connection: S3Connection, *, connections: int) -> Any:  # Any: boto3 makes its clients at run time
    """May be used by `connections` threads at once. Talks to nobody yet."""
    session = cast("Any", boto3.session.Session())  # Any: as above
    config = Config(
        signature_version=UNSIGNED if connection.anonymous else "s3" if connection.v2_signing else "s3v4",
        # With "auto", signed URLs name the host of all regions, which answers with a redirect for a new bucket in
        # another one than the first, and the SDK does not follow redirects.
        s3={"addressing_style": "path" if connection.endpoint else "virtual"},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        max_pool_connections=connections,
        region_name=connection.region or session.region_name or FIRST_REGION,
    )
    return session.client(
        "s3",
        endpoint_url=connection.endpoint or None,
        aws_access_key_id=connection.access_key_id or None,
        aws_secret_access_key=connection.secret_key or None,
        aws_session_token=connection.token or None,
        config=config,
    )
