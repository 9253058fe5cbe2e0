"""From a template to a command: placeholders, variables, pod templates, notices."""

from __future__ import annotations

import pytest
from flyteidl2.core import security_pb2, tasks_pb2
from flyteidl2.task import run_pb2, task_definition_pb2
from google.protobuf.struct_pb2 import Struct

from flyte_binary.db.rows import ActionRow
from flyte_binary.domain.ids import RunId
from flyte_binary.domain.phases import Phase
from flyte_binary.domain.task_limits import limits_of, resources_of
from flyte_binary.executor.backend import AttemptSpec
from flyte_binary.executor.build_image import build_image_spec, is_build
from flyte_binary.executor.facts import RunFacts, TaskFacts
from flyte_binary.executor.secrets import SecretRequest
from flyte_binary.executor.task_types import CannotRun, Machine, image_of, make_attempt

SDK_ARGUMENTS = [
    "a0",
    "--inputs",
    "{{.input}}",
    "--outputs-path",
    "{{.outputPrefix}}",
    "--raw-data-path",
    "{{.rawOutputDataPrefix}}",
    "--checkpoint-path",
    "{{.checkpointOutputPrefix}}",
    "--prev-checkpoint",
    "{{.prevCheckpointPrefix}}",
    "--run-name",
    "{{.runName}}",
    "--name",
    "{{.actionName}}",
    "--run-start-time",
    "{{.runStartTime}}",
    "--tgz",
    "/store/code.tar.gz",
]


def template(*arguments: str) -> tasks_pb2.TaskTemplate:
    made = tasks_pb2.TaskTemplate(type="python")
    made.container.image = "image"
    made.container.args.extend(arguments or SDK_ARGUMENTS)
    return made


def attempt(
    made: tasks_pb2.TaskTemplate, *, number: int = 1, name: str = "a0", run_spec: run_pb2.RunSpec | None = None
) -> AttemptSpec:
    row = ActionRow(
        id=RunId("p", "d", "r1").action(name),
        parent=None if name == "a0" else "a0",
        phase=Phase.QUEUED,
        action_type=1,
        attempts=number,
        input_uri="/store/in/inputs.pb",
        run_output_base="/store/p/d/r1",
    )
    spec = task_definition_pb2.TaskSpec(task_template=made)
    task = TaskFacts(spec=spec, limits=limits_of(made), resources=resources_of(made))
    run = RunFacts(run_spec=run_spec or run_pb2.RunSpec(), created_at=1_800_000_000_000_000, spawned_by=None)
    machine = Machine(cores=2, memory_bytes=1 << 30)
    return make_attempt(row, task, run, nonce="n", log_limit_bytes=1, machine=machine)


def options(spec: AttemptSpec) -> dict[str, str]:
    return dict(zip(spec.argv[1::2], spec.argv[2::2], strict=True))


def test_every_placeholder_of_the_sdk_is_filled_in() -> None:
    assert options(attempt(template())) == {
        "--inputs": "/store/in/inputs.pb",
        "--outputs-path": "/store/p/d/r1/a0/1",
        "--raw-data-path": "/store/p/d/r1/a0/1/raw",
        "--checkpoint-path": "/store/p/d/r1/a0/1/_flytecheckpoints",
        "--prev-checkpoint": '""',
        "--run-name": "r1",
        "--name": "a0",
        "--run-start-time": "2027-01-15T08:00:00Z",
        "--tgz": "/store/code.tar.gz",
    }


def test_a_later_attempt_has_folders_of_its_own_and_the_last_checkpoint() -> None:
    found = options(attempt(template(), number=3))
    assert found["--outputs-path"] == "/store/p/d/r1/a0/3"
    assert found["--prev-checkpoint"] == "/store/p/d/r1/a0/2/_flytecheckpoints"


def test_the_bundle_is_found_among_the_arguments() -> None:
    assert attempt(template()).bundle_uri == "/store/code.tar.gz"
    assert attempt(template("a0", "--pkl", "/store/code.pkl.gz")).bundle_uri == "/store/code.pkl.gz"


def test_unknown_placeholders_stay_as_they_are() -> None:
    assert attempt(template("echo", "{{.nothing}}", "{{ $RunName }}")).argv == ("echo", "{{.nothing}}", "r1")


def test_variables_of_the_run_win_over_the_template_and_reserved_ones_over_both() -> None:
    made = template()
    made.container.env.add(key="A", value="template")
    made.container.env.add(key="B", value="template")
    made.container.env.add(key="RUN_NAME", value="forged")
    run_spec = run_pb2.RunSpec()
    run_spec.envs.values.add(key="B", value="run")
    run_spec.envs.values.add(key="_U_USE_ACTIONS", value="0")
    env = attempt(made, number=2, run_spec=run_spec).env
    assert (env["A"], env["B"], env["RUN_NAME"], env["_U_USE_ACTIONS"]) == ("template", "run", "r1", "1")
    assert (env["FLYTE_ATTEMPT_NUMBER"], env["_U_RUN_BASE"]) == ("1", "/store/p/d/r1")
    assert env["_U_ORG_NAME"]


def test_a_raw_data_prefix_of_the_run_is_honoured() -> None:
    run_spec = run_pb2.RunSpec()
    run_spec.raw_data_storage.raw_data_prefix = "/data/"
    assert options(attempt(template(), run_spec=run_spec))["--raw-data-path"] == "/data/r1/a0/1"


def test_the_primary_container_of_a_pod_template_is_run() -> None:
    made = tasks_pb2.TaskTemplate(type="python")
    pod = Struct()
    pod.update(
        {
            "containers": [
                {"name": "sidecar", "args": ["sleep"]},
                {"name": "main", "args": ["a0", "--name", "{{.actionName}}"], "env": [{"name": "X", "value": "1"}]},
            ]
        }
    )
    made.k8s_pod.pod_spec.CopyFrom(pod)
    made.k8s_pod.primary_container_name = "main"
    found = attempt(made)
    assert found.argv == ("a0", "--name", "a0")
    assert found.env["X"] == "1"
    assert any("pod template" in notice for notice in found.notices)


def test_what_cannot_run_here_says_why() -> None:
    raw = template("run")
    raw.container.data_config.enabled = True
    missing = tasks_pb2.TaskTemplate(type="python")
    missing.k8s_pod.primary_container_name = "main"
    sql = tasks_pb2.TaskTemplate(type="sql")
    for made, words in ((raw, "sidecar"), (missing, "no container named 'main'"), (sql, "'sql'")):
        with pytest.raises(CannotRun, match=words):
            attempt(made)


def test_what_has_no_effect_is_said_once() -> None:
    made = template()
    made.container.resources.requests.add(name=tasks_pb2.Resources.CPU, value="64")
    made.container.resources.requests.add(name=tasks_pb2.Resources.GPU, value="1")
    run_spec = run_pb2.RunSpec(queue="fast", cluster_pool="west")
    run_spec.interruptible.value = True
    first = attempt(made, run_spec=run_spec).notices
    for words in ("64 cores", "GPU", "queue 'fast'", "'west'", "interruptible"):
        assert any(words in notice for notice in first), words
    assert attempt(made, number=2, run_spec=run_spec).notices == ()
    child = attempt(made, name="c1", run_spec=run_spec).notices
    assert not any("queue" in notice for notice in child)


def test_a_build_of_an_image_is_forced_by_a_run_that_overwrites_the_cache() -> None:
    made = build_image_spec().task_template
    forced = attempt(made, run_spec=run_pb2.RunSpec(overwrite_cache=True)).argv
    assert is_build(forced)
    assert forced == (*attempt(made).argv, "--force")
    assert "--force" not in attempt(template(), run_spec=run_pb2.RunSpec(overwrite_cache=True)).argv


def test_the_image_of_a_task_is_that_of_its_container_or_of_its_pods_primary_one() -> None:
    pod = tasks_pb2.TaskTemplate(type="python")
    spec = {"containers": [{"name": "other", "image": "b"}, {"name": "primary", "image": "a"}]}
    pod.k8s_pod.pod_spec.update(spec)
    assert [image_of(one) for one in (template(), pod, tasks_pb2.TaskTemplate())] == ["image", "a", ""]


def test_secrets_of_the_task_and_of_its_run_are_asked_for_once_each() -> None:
    made, run_spec = template(), run_pb2.RunSpec()
    variable, file = security_pb2.Secret.ENV_VAR, security_pb2.Secret.FILE
    made.security_context.secrets.add(key="token", mount_requirement=variable, env_var="TOKEN")
    made.security_context.secrets.add(key="cert", group="team", mount_requirement=file)
    made.security_context.secrets.add(key="any")
    run_spec.security_context.secrets.add(key="token", mount_requirement=variable, env_var="TOKEN")
    run_spec.security_context.secrets.add(key="extra", mount_requirement=file)

    assert attempt(made, run_spec=run_spec).secrets == (
        SecretRequest(key="token", variable="TOKEN"),
        SecretRequest(key="cert", group="team", as_file=True),
        SecretRequest(key="any"),
        SecretRequest(key="extra", as_file=True),
    )


@pytest.mark.parametrize(
    ("secret", "says"),
    [
        (security_pb2.Secret(), "without a key"),
        (security_pb2.Secret(key="k", env_var="ACTION_NAME"), "ACTION_NAME, a variable that the server sets itself"),
        (security_pb2.Secret(key="k", env_var="_U_EP_OVERRIDE"), "_U_EP_OVERRIDE, a variable that the server sets"),
        (security_pb2.Secret(key="k", env_var="A=B"), "no name of a variable"),
        (security_pb2.Secret(key="k", env_var="A\0"), "no name of a variable"),
        (
            security_pb2.Secret(key="k", group="../up", mount_requirement=security_pb2.Secret.FILE),
            "no name of a folder",
        ),
        (security_pb2.Secret(key="k", group="..", mount_requirement=security_pb2.Secret.FILE), "no name of a folder"),
    ],
)
def test_what_no_backend_can_give_fails_the_task_with_a_sentence(secret: security_pb2.Secret, says: str) -> None:
    made = template()
    made.security_context.secrets.append(secret)

    with pytest.raises(CannotRun, match=says):
        attempt(made)
