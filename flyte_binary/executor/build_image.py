"""The task `system/production/build-image`, which the SDK's image builder `remote` runs to have an image built.

It is the server's own: deployed at its start, executed by its own program. The names and the inputs are those that
the SDK knows (`flyte._internal.imagebuild.remote_builder`).
"""

from __future__ import annotations

from flyteidl2.core import identifier_pb2, interface_pb2, literals_pb2, tasks_pb2, types_pb2
from flyteidl2.task import common_pb2, environment_pb2, task_definition_pb2

from flyte_binary.db.rows import TaskRow
from flyte_binary.db.tasks import digest_of
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.ids import TaskId

PROJECT, DOMAIN, NAME = "system", "production", "build-image"
TASK_TYPE = "build-image"

SPEC = "spec"
"""Where the image's description (`imagebuilder.ImageSpec`) was uploaded to."""
CONTEXT = "context"
"""Where the archive of its files was uploaded to, empty if it has none."""
TARGET_IMAGE = "target_image"
IMAGE_NAME = "fully_qualified_image_name"

FORCE = "--force"
"""Added to the arguments for a run that overwrites the cache: build although it is built already."""

_PROGRAM = "flyte-binary/build-image"
"""First argument; no program of that name exists, so that it is never mistaken for one of the user's."""


def is_build(argv: tuple[str, ...]) -> bool:
    return argv[0] == _PROGRAM


def seed_build_image(tx: Transaction, at: int) -> None:
    """Deploy the task, unless this version of it is deployed already."""
    spec = build_image_spec()
    digest, body = digest_of(spec)
    task = TaskId(PROJECT, DOMAIN, NAME, digest[:16])
    if tx.tasks.get(task) is not None:
        return
    spec.task_template.id.version = task.version
    digest, body = digest_of(spec)
    tx.specs.put(digest, body, at=at)
    tx.tasks.upsert(
        TaskRow(
            id=task,
            environment=spec.environment.name,
            function_name=NAME,
            short_description=spec.documentation.short_description,
            deployed_by="",
            is_entrypoint=False,
            spec_digest=digest,
            created_at=at,
            updated_at=at,
        )
    )


def build_image_spec() -> task_definition_pb2.TaskSpec:
    """The version in its id is left for the one who deploys it."""
    description = "Builds the environment of an image; run by the SDK's image builder `remote`."
    template = tasks_pb2.TaskTemplate(
        id=identifier_pb2.Identifier(resource_type=identifier_pb2.TASK, project=PROJECT, domain=DOMAIN, name=NAME),
        type=TASK_TYPE,
        metadata=tasks_pb2.TaskMetadata(runtime=tasks_pb2.RuntimeMetadata(flavor="flyte-binary")),
        interface=interface_pb2.TypedInterface(inputs=_texts(SPEC, CONTEXT, TARGET_IMAGE), outputs=_texts(IMAGE_NAME)),
        container=tasks_pb2.Container(
            image="flyte-binary",
            args=[_PROGRAM, "--inputs", "{{.input}}", "--outputs-path", "{{.outputPrefix}}"],
        ),
    )
    return task_definition_pb2.TaskSpec(
        task_template=template,
        default_inputs=[_empty_by_default(CONTEXT)],
        short_name=NAME,
        environment=environment_pb2.Environment(name=PROJECT),
        documentation=task_definition_pb2.DocumentationEntity(short_description=description),
    )


def _texts(*names: str) -> interface_pb2.VariableMap:
    return interface_pb2.VariableMap(variables=[interface_pb2.VariableEntry(key=name, value=_text()) for name in names])


def _text() -> interface_pb2.Variable:
    return interface_pb2.Variable(type=types_pb2.LiteralType(simple=types_pb2.STRING))


def _empty_by_default(name: str) -> common_pb2.NamedParameter:
    primitive = literals_pb2.Primitive(string_value="")
    default = literals_pb2.Literal(scalar=literals_pb2.Scalar(primitive=primitive))
    return common_pb2.NamedParameter(name=name, parameter=interface_pb2.Parameter(var=_text(), default=default))
