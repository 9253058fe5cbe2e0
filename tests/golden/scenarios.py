"""Which recorded conversations are compared, and how each is played again.

*Replayed* conversations are sent call by call; their placeholders for runs are bound to runs that our server made.
*Driven* ones need a task to run: an equivalent small program goes through the SDK and a recorder of ours.
A later part adds its services to `SERVED` and its conversations to one of the two tables.
"""

from __future__ import annotations

MARK = "played: "
"""Begins each line in which the driver answers; whatever else the SDK prints there is not for the test."""

SERVED = frozenset(
    {
        "flyteidl2.actions.ActionsService",
        "flyteidl2.auth.AuthMetadataService",
        "flyteidl2.auth.IdentityService",
        "flyteidl2.cacheservice.CacheService",
        "flyteidl2.cacheservice.v2.CacheService",
        "flyteidl2.cluster.ClusterService",
        "flyteidl2.dataproxy.DataProxyService",
        "flyteidl2.imagebuilder.ImageService",
        "flyteidl2.project.ProjectService",
        "flyteidl2.secret.SecretService",
        "flyteidl2.settings.SettingsService",
        "flyteidl2.task.TaskService",
        "flyteidl2.trigger.TriggerService",
        "flyteidl2.workflow.EventsProxyService",
        "flyteidl2.workflow.InternalRunService",
        "flyteidl2.workflow.QueueService",
        "flyteidl2.workflow.RunLogsService",
        "flyteidl2.workflow.RunService",
        "flyteidl2.workflow.StateService",
        "flyteidl2.workflow.TranslatorService",
    }
)
"""Services whose calls are kept in the fixtures; calls of other services are left out of a conversation."""

DRIVEN = (
    "hello-run-and-wait",
    "fan-out-5",
    "nested-run",
    "failing-task",
    "exit-code-3",
    "retries-exhausted",
    "retry-second-attempt-ok",
    "void-task",
    "trace-ok",
    "trace-failed",
    "cache-miss",
    "cache-hit",
    "cache-child-hit",
    "cache-serialize",
    "cache-hit-follow-logs",
    "condition-signal",
    "condition-timeout",
    "task-timeout",
    "child-cancelled-by-parent",
    "abort-action",
    "abort-run",
    "abort-run-early",
    "deploy",
    "run-deployed",
    "get-run-action-logs-io",
    "rerun",
    "ui-watch-streams",
)

REPLAYED: dict[str, tuple[str, ...]] = {
    "whoami": (),
    "projects": (),
    "secrets": (),
    "settings": (),
    "upload-location": (),
    "codec-json-and-get": ("get-run-action-logs-io",),
    "errors": ("get-run-action-logs-io",),
    "errors-streams": ("get-run-action-logs-io",),
    "errors-empty-request": (),
    "tasks": ("deploy",),
    "trace-details": ("trace-ok", "trace-failed"),
    "condition-details": ("condition-signal", "condition-timeout"),
    "abort-details": ("abort-run", "abort-action", "child-cancelled-by-parent", "abort-run-early"),
    "abort-succeeded-run": ("get-run-action-logs-io",),
    "triggers": (),
    "trigger-fired-run": ("fire-hourly",),
    "trigger-deploy-raw": (),
    "watch-actions-finished-runs": (
        "fan-out-5",
        "trace-ok",
        "condition-signal",
        "abort-run",
        "nested-run",
        "cache-child-hit",
        "condition-timeout",
    ),
}
"""Scenario → the driven scenarios whose runs its placeholders `<run:1>`, `<run:2>`, … stand for, in that order."""

OF_LATER_PARTS = {"deploy": frozenset({"UploadInputs", "OPERATION_UPLOAD_TRIGGER"})}
"""Scenario → methods or SelectCluster operations left out of it: here the inputs of triggers."""

OLDEST_FIRST = frozenset({"watch-actions-finished-runs"})
"""Replayed conversations that show the oldest child of a run first; the others show the newest first."""

KEPT = {
    "watch-actions-finished-runs": frozenset({1, 4, 5, 6, 7, 8, 9}),
    # Without a command that failed in the SDK, and up to where the triggers were deployed again.
    "triggers": frozenset({1, 2, 3, 4, 5, 10, 11, 12, 13, 14}),
}
"""Scenario → the calls of the recording that are kept, by their number; the others repeat them."""

NEEDS: dict[str, tuple[str, ...]] = {
    "cache-hit": ("cache-miss",),
    "cache-child-hit": ("cache-miss",),
    "cache-hit-follow-logs": ("fill-cache",),
    "run-deployed": ("deploy",),
    "rerun": ("get-run-action-logs-io",),
    "triggers": ("deploy-triggers",),
    "redeploy-triggers": ("triggers",),
    "fire-hourly": ("redeploy-triggers",),
    "trigger-deploy-raw": ("redeploy-triggers",),
    "recreate-secret": ("secrets",),
    "ui-watch-streams": ("hello-run-and-wait", "failing-task"),
    "errors": ("deploy", "failing-task", "abort-run-early", "redeploy-triggers", "recreate-secret"),
    "errors-empty-request": ("deploy", "failing-task", "abort-run-early", "redeploy-triggers", "recreate-secret"),
    "codec-json-and-get": ("failing-task", "abort-run-early"),
}
"""Scenario → what must have been played before, besides the scenarios that it is about. `fill-cache`,
`deploy-triggers`, `redeploy-triggers`, `fire-hourly` and `recreate-secret` are no recorded conversations."""

NOT_COMPARED = {
    "condition-timeout-again": "a second recording of condition-timeout",
    "exit-code-3-again": "three more recordings of exit-code-3",
    "k8s-interruptible": "what it shows is in the pod, which belongs to the cluster backend",
    "k8s-pod-template": "what it shows is in the pod, which belongs to the cluster backend",
    "k8s-resources-secret-env": "what it shows is in the pod, which belongs to the cluster backend",
    "k8s-secret-file": "what it shows is in the pod, which belongs to the cluster backend",
    "trigger-minutely": "waits for the next full minute; what it shows is in trigger-fired-run",
    "secret-file-abort": "an action that waits for a pod's init container, which processes do not have",
}
"""Recordings without a fixture, each with its reason. Recordings of apps come later."""
