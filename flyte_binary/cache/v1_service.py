"""CacheService of the older contract: the same entries, by keys that name no project.

What one version stores the other finds, if it asks without project and domain.
"""

from __future__ import annotations

from flyteidl2.cacheservice import cacheservice_pb2 as v1
from flyteidl2.cacheservice.v2 import cacheservice_pb2 as v2

from flyte_binary.cache.service import CacheService


class CacheServiceV1:
    def __init__(self, entries: CacheService) -> None:
        self._entries = entries

    async def get(self, request: v1.GetCacheRequest, context: object) -> v1.GetCacheResponse:
        return await self._entries.get(v2.GetCacheRequest(base_request=request), context)

    async def put(self, request: v1.PutCacheRequest, context: object) -> v1.PutCacheResponse:
        return await self._entries.put(v2.PutCacheRequest(base_request=request), context)

    async def delete(self, request: v1.DeleteCacheRequest, context: object) -> v1.DeleteCacheResponse:
        return await self._entries.delete(v2.DeleteCacheRequest(base_request=request), context)

    async def get_or_extend_reservation(
        self, request: v1.GetOrExtendReservationRequest, context: object
    ) -> v1.GetOrExtendReservationResponse:
        asked = v2.GetOrExtendReservationRequest(base_request=request)
        return await self._entries.get_or_extend_reservation(asked, context)

    async def release_reservation(
        self, request: v1.ReleaseReservationRequest, context: object
    ) -> v1.ReleaseReservationResponse:
        return await self._entries.release_reservation(v2.ReleaseReservationRequest(base_request=request), context)
