"""CreateDownloadLink: a signed URL to the report of an attempt or to the code that a task runs."""

from __future__ import annotations

from flyteidl2.dataproxy import dataproxy_service_pb2 as pb

from flyte_binary.config.model import Download
from flyte_binary.dataproxy import require
from flyte_binary.dataproxy.ports import Actions, Tasks
from flyte_binary.domain.code_bundles import bundle_uri
from flyte_binary.domain.errors import InvalidArgument, NotFound, Unimplemented
from flyte_binary.domain.ids import TaskId
from flyte_binary.domain.timestamps import to_proto
from flyte_binary.storage.store import ObjectStore, Verb


class DownloadLinks:
    def __init__(self, store: ObjectStore, actions: Actions, tasks: Tasks, limits: Download) -> None:
        self._store = store
        self._actions = actions
        self._tasks = tasks
        self._limits = limits

    async def create(self, request: pb.CreateDownloadLinkRequest, *, origin: str) -> pb.CreateDownloadLinkResponse:
        """A longer life than `dataproxy.download.maxExpiresIn` is cut to that, as the contract promises."""
        asked = require.lifetime(request.expires_in if request.HasField("expires_in") else None)
        life = min(asked or self._limits.max_expires_in, self._limits.max_expires_in)
        uri, what = await self._artifact(request)
        if not uri or await self._store.stat(uri) is None:
            raise NotFound(f"{what} not found")
        signed = await self._store.sign(uri, Verb.GET, lifetime=life, origin=origin)
        links = pb.PreSignedURLs(signed_url=[signed.url], expires_at=to_proto(signed.expires_at))
        return pb.CreateDownloadLinkResponse(pre_signed_urls=links)

    async def _artifact(self, request: pb.CreateDownloadLinkRequest) -> tuple[str, str]:
        """The object's URI, perhaps empty, and what to call it."""
        if request.artifact_type not in (pb.ARTIFACT_TYPE_REPORT, pb.ARTIFACT_TYPE_CODE_BUNDLE):
            raise InvalidArgument("artifact_type is required: a report or a code bundle")
        report = request.artifact_type == pb.ARTIFACT_TYPE_REPORT
        match request.WhichOneof("source"):
            case "action_attempt_id":
                return await self._of_attempt(request, report=report)
            case "task_id" if report:
                raise InvalidArgument("a task has no report; name an attempt of an action in action_attempt_id")
            case "task_id":
                return await self._of_task(TaskId.from_proto(request.task_id))
            case "app_id":
                raise Unimplemented("this server has no downloads for apps yet")
            case _:
                raise InvalidArgument("one of action_attempt_id, app_id and task_id is required")

    async def _of_attempt(self, request: pb.CreateDownloadLinkRequest, *, report: bool) -> tuple[str, str]:
        source = request.action_attempt_id
        attempt = require.attempt_id(source.action_id, source.attempt, "action_attempt_id.action_id")
        view = await self._actions.attempt(attempt)
        if view is None:
            raise NotFound(f"attempt {attempt.number} of action {attempt.action} not found")
        if report:
            return view.report_uri, f"a report of attempt {attempt.number} of action {attempt.action}"
        return view.bundle_uri, f"a code bundle of action {attempt.action}"

    async def _of_task(self, task: TaskId) -> tuple[str, str]:
        spec = await self._tasks.spec(task)
        if spec is None:
            raise NotFound(f'task "{task.name}" in version "{task.version}" not found in {task.project}/{task.domain}')
        return bundle_uri(spec.task_template), f'a code bundle of task "{task.name}" in version "{task.version}"'
