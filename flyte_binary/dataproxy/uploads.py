"""CreateUploadLocation: a place in the store and a signed URL to put one file there."""

from __future__ import annotations

import base64
from datetime import timedelta

from flyteidl2.dataproxy import dataproxy_service_pb2 as pb

from flyte_binary.config.model import Upload
from flyte_binary.dataproxy.require import KnownProjects, lifetime
from flyte_binary.dataproxy.upload_keys import upload_key
from flyte_binary.domain import locations
from flyte_binary.domain.errors import AlreadyExists, InvalidArgument
from flyte_binary.domain.ids import ProjectId
from flyte_binary.domain.timestamps import to_proto
from flyte_binary.storage.store import ObjectStore, Verb
from flyte_binary.storage.uris import join


class Uploads:
    def __init__(self, store: ObjectStore, projects: KnownProjects, limits: Upload) -> None:
        self._store = store
        self._projects = projects
        self._limits = limits

    async def create_location(
        self, request: pb.CreateUploadLocationRequest, *, origin: str
    ) -> pb.CreateUploadLocationResponse:
        """Asking twice for the same content is asking for the same place."""
        md5 = request.content_md5
        key = upload_key(
            project=request.project,
            domain=request.domain,
            filename_root=request.filename_root,
            filename=request.filename,
            md5=md5,
        )
        life = self._life(request)
        self._check_size(request.content_length)
        await self._projects.require(ProjectId(request.project, request.domain))
        uri = join(self._store.base_uri, self._limits.storage_prefix, key)
        if request.filename and request.filename_root and not _is_live_report(request):
            await self._refuse_other_content(uri, md5)
        signed = await self._store.sign(uri, Verb.PUT, lifetime=life, origin=origin, md5=md5 or None)
        headers = {**signed.headers, **({"Content-MD5": base64.b64encode(md5).decode()} if md5 else {})}
        return pb.CreateUploadLocationResponse(
            signed_url=signed.url, native_url=uri, headers=headers, expires_at=to_proto(signed.expires_at)
        )

    def _life(self, request: pb.CreateUploadLocationRequest) -> timedelta:
        longest = self._limits.max_expires_in
        asked = lifetime(request.expires_in if request.HasField("expires_in") else None)
        if asked is not None and asked > longest:
            raise InvalidArgument(
                f"expires_in is {asked.total_seconds():g} s; the most is {longest.total_seconds():g} s "
                "(dataproxy.upload.maxExpiresIn)"
            )
        return asked or longest

    def _check_size(self, size_bytes: int) -> None:
        if size_bytes < 0:
            raise InvalidArgument(f"content_length is {size_bytes}; it cannot be negative")
        if size_bytes > self._limits.max_size_bytes:
            raise InvalidArgument(
                f"content_length is {size_bytes} bytes; the most is {self._limits.max_size_bytes} "
                "(dataproxy.upload.maxSize)"
            )

    async def _refuse_other_content(self, uri: str, md5: bytes) -> None:
        """A name that the client chose, rather than one made of the content, is never overwritten."""
        existing = await self._store.stat(uri, with_md5=bool(md5))
        if existing is None or (md5 and existing.content_md5 == md5):
            return
        raise AlreadyExists(f"{uri} exists with other content; choose another filename or filename_root")


def _is_live_report(request: pb.CreateUploadLocationRequest) -> bool:
    """The report of a tracked run is uploaded again and again while it runs (`flyte.report.flush`)."""
    return request.filename_root.startswith("tracked-runs/") and request.filename == locations.REPORT
