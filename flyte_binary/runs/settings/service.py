"""SettingsService: settings by scope, and what they come to (`spec/runs.md` 14)."""

from __future__ import annotations

from flyteidl2.settings import settings_definition_pb2, settings_service_pb2
from flyteidl2.settings import settings_definition_pb2 as pb

from flyte_binary.control.clock import Clock
from flyte_binary.db.database import Database
from flyte_binary.db.settings import SettingsRow, resolved
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.errors import AlreadyExists, FailedPrecondition, InvalidArgument, NotFound
from flyte_binary.rpc.identity import RequestContext
from flyte_binary.rpc.require import require_name
from flyte_binary.runs.settings.checks import check_settings
from flyte_binary.storage.store import ObjectStore


class SettingsService:
    def __init__(self, database: Database, store: ObjectStore, clock: Clock) -> None:
        self._database = database
        self._store = store
        self._clock = clock

    async def get_settings(
        self, request: settings_service_pb2.GetSettingsRequest, _context: RequestContext
    ) -> settings_service_pb2.GetSettingsResponse:
        """What the settings come to in the scope. The version is that of the scope's own."""
        key = _key_of(request)
        rows = await self._database.point(lambda tx: tx.settings.levels(key.domain, key.project))
        own = _find(rows, key)
        record = settings_service_pb2.SettingsRecord(
            key=key, settings=resolved(rows), version=0 if own is None else own.version
        )
        return settings_service_pb2.GetSettingsResponse(settingsRecord=record)

    async def get_settings_for_edit(
        self, request: settings_service_pb2.GetSettingsForEditRequest, _context: RequestContext
    ) -> settings_service_pb2.GetSettingsForEditResponse:
        """What was stored at each level, broadest first."""
        key = _key_of(request)
        rows = await self._database.point(lambda tx: tx.settings.levels(key.domain, key.project))
        levels = [_record(level, _find(rows, level)) for level in _levels(key)]
        return settings_service_pb2.GetSettingsForEditResponse(requestedKey=key, levels=levels)

    async def create_settings(
        self, request: settings_service_pb2.CreateSettingsRequest, _context: RequestContext
    ) -> settings_service_pb2.CreateSettingsResponse:
        row = self._row(request, version=1)

        def write(tx: Transaction) -> None:
            if not tx.settings.insert(row):
                raise AlreadyExists(f"{_scope_name(row)} has settings already: update them, with their version")

        await self._database.write(write)
        return settings_service_pb2.CreateSettingsResponse(settingsRecord=_record(request.key, row))

    async def update_settings(
        self, request: settings_service_pb2.UpdateSettingsRequest, _context: RequestContext
    ) -> settings_service_pb2.UpdateSettingsResponse:
        row = self._row(request, version=request.version + 1)
        if not 0 < request.version < 2**63 - 1:
            raise InvalidArgument("version is required: the one that the settings were read at")

        def write(tx: Transaction) -> None:
            if tx.settings.replace(row, version=request.version):
                return
            found = _find(tx.settings.levels(row.domain, row.project), request.key)
            if found is None:
                raise NotFound(f"{_scope_name(row)} has no settings yet: create them")
            raise FailedPrecondition(
                f"version: the settings of {_scope_name(row)} are at {found.version}, not {request.version}; "
                "read them again"
            )

        await self._database.write(write)
        return settings_service_pb2.UpdateSettingsResponse(settingsRecord=_record(request.key, row))

    def _row(
        self,
        request: settings_service_pb2.CreateSettingsRequest | settings_service_pb2.UpdateSettingsRequest,
        *,
        version: int,
    ) -> SettingsRow:
        key = _key_of(request)
        if not request.HasField("settings"):
            raise InvalidArgument("settings is required")
        check_settings(request.settings, self._store.covers)
        now = self._clock.now()
        return SettingsRow(
            domain=key.domain,
            project=key.project,
            settings=request.settings.SerializeToString(deterministic=True),
            version=version,
            created_at=now,
            updated_at=now,
        )


def _key_of(
    request: settings_service_pb2.GetSettingsRequest
    | settings_service_pb2.GetSettingsForEditRequest
    | settings_service_pb2.CreateSettingsRequest
    | settings_service_pb2.UpdateSettingsRequest,
) -> settings_definition_pb2.SettingsKey:
    """The organization comes back as it was sent and never counts."""
    if not request.HasField("key"):
        raise InvalidArgument("key is required: an empty one names the organization")
    key = request.key
    if key.project and not key.domain:
        raise InvalidArgument("key.domain is required with key.project: settings of a project are those in a domain")
    for name in ("domain", "project"):
        if getattr(key, name):
            require_name(getattr(key, name), f"key.{name}")
    return key


def _levels(key: settings_definition_pb2.SettingsKey) -> list[settings_definition_pb2.SettingsKey]:
    levels = [settings_definition_pb2.SettingsKey(org=key.org)]
    if key.domain:
        levels.append(settings_definition_pb2.SettingsKey(org=key.org, domain=key.domain))
    if key.project:
        levels.append(key)
    return levels


def _find(rows: list[SettingsRow], key: settings_definition_pb2.SettingsKey) -> SettingsRow | None:
    return next((row for row in rows if (row.domain, row.project) == (key.domain, key.project)), None)


def _record(key: settings_definition_pb2.SettingsKey, row: SettingsRow | None) -> settings_service_pb2.SettingsRecord:
    return settings_service_pb2.SettingsRecord(
        key=key,
        settings=pb.Settings() if row is None else pb.Settings.FromString(row.settings),
        version=0 if row is None else row.version,
    )


def _scope_name(row: SettingsRow) -> str:
    if row.project:
        return f"project {row.project} in {row.domain}"
    return f"domain {row.domain}" if row.domain else "the organization"
