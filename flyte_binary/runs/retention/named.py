"""Which uploads stand in specifications, found by their location's text."""

from __future__ import annotations

import bisect
from collections.abc import Iterable

from flyte_binary.domain.locations import join

TAIL_BYTES = 1024
"""Of what follows the folder of uploads: project, domain and the name of one upload fit in."""


class NamedUploads:
    def __init__(self, folders: Iterable[str]) -> None:
        """`folders` hold project, domain, and then one folder or file an upload."""
        self._bases = {folder: join(folder, "").encode() for folder in folders}
        self._tails: dict[str, list[bytes]] = {folder: [] for folder in self._bases}

    def add(self, bodies: Iterable[bytes]) -> None:
        for folder, base in self._bases.items():
            found: set[bytes] = set()
            for body in bodies:
                place = body.find(base)
                while place >= 0:
                    begin = place + len(base)
                    found.add(body[begin : begin + TAIL_BYTES])
                    place = body.find(base, begin)
            self._tails[folder] = sorted({*self._tails[folder], *found})

    def names(self, uri: str, folder: str) -> bool:
        """Whether the upload that `uri` belongs to is named, or a file or folder in it."""
        upload = "/".join(uri.removeprefix(join(folder, "")).split("/")[:3]).encode()[:TAIL_BYTES]
        tails = self._tails[folder]
        place = bisect.bisect_left(tails, upload)
        return place < len(tails) and tails[place].startswith(upload)
