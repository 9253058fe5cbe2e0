"""Whether a cloud's store can be written and read at all, asked once at the start."""

from __future__ import annotations

import contextlib
import secrets

from flyte_binary.domain.errors import FailedPrecondition, FlyteError
from flyte_binary.storage.store import ObjectStore
from flyte_binary.storage.uris import join

FOLDER = ".flyte-binary"
"""Below the base, for what the server tries out. Nothing in it matters."""


async def probe(store: ObjectStore) -> None:
    """Raises the error of what does not work, in the words of the store's own module."""
    uri = join(store.base_uri, FOLDER, f"start-{secrets.token_hex(8)}")
    content = uri.encode()
    await store.put(uri, content)
    if await store.get(uri, limit_bytes=len(content)) != content:
        raise FailedPrecondition(f"{uri} was written and came back with other content; check the store")
    with contextlib.suppress(FlyteError):  # to delete is a right that only retention needs
        await store.delete([uri])
