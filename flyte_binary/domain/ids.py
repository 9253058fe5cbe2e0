"""Identifiers of runs, actions, attempts, tasks, triggers, apps and projects.

The organisation is never part of an identity: the SDK sends `""`, `"127"` or `"local"` for one and
the same server. It is accepted on the wire and dropped here.
"""

from __future__ import annotations

from dataclasses import dataclass

from flyteidl2.app import app_definition_pb2
from flyteidl2.common import identifier_pb2
from flyteidl2.task import task_definition_pb2

ROOT_ACTION = "a0"
"""The name of the root action of every run; clients have it hard-coded."""


@dataclass(frozen=True, slots=True, order=True)
class ProjectId:
    project: str
    domain: str


@dataclass(frozen=True, slots=True, order=True)
class RunId:
    project: str
    domain: str
    name: str

    def root(self) -> ActionId:
        return ActionId(self.project, self.domain, self.name, ROOT_ACTION)

    def action(self, name: str) -> ActionId:
        return ActionId(self.project, self.domain, self.name, name)

    def to_proto(self) -> identifier_pb2.RunIdentifier:
        return identifier_pb2.RunIdentifier(project=self.project, domain=self.domain, name=self.name)

    @staticmethod
    def from_proto(message: identifier_pb2.RunIdentifier) -> RunId:
        return RunId(message.project, message.domain, message.name)

    def __str__(self) -> str:
        return f"{self.project}/{self.domain}/{self.name}"


@dataclass(frozen=True, slots=True, order=True)
class ActionId:
    project: str
    domain: str
    run: str
    name: str

    @property
    def run_id(self) -> RunId:
        return RunId(self.project, self.domain, self.run)

    @property
    def is_root(self) -> bool:
        return self.name == ROOT_ACTION

    def attempt(self, number: int) -> AttemptId:
        return AttemptId(self, number)

    def to_proto(self) -> identifier_pb2.ActionIdentifier:
        return identifier_pb2.ActionIdentifier(run=self.run_id.to_proto(), name=self.name)

    @staticmethod
    def from_proto(message: identifier_pb2.ActionIdentifier) -> ActionId:
        return ActionId(message.run.project, message.run.domain, message.run.name, message.name)

    def __str__(self) -> str:
        return f"{self.project}/{self.domain}/{self.run}/{self.name}"


@dataclass(frozen=True, slots=True, order=True)
class AttemptId:
    action: ActionId
    number: int
    """Counted from 1; every launch is a new number."""

    def __str__(self) -> str:
        return f"{self.action}/{self.number}"


@dataclass(frozen=True, slots=True, order=True)
class TaskId:
    project: str
    domain: str
    name: str
    version: str

    def to_proto(self) -> task_definition_pb2.TaskIdentifier:
        return task_definition_pb2.TaskIdentifier(
            project=self.project, domain=self.domain, name=self.name, version=self.version
        )

    @staticmethod
    def from_proto(message: task_definition_pb2.TaskIdentifier) -> TaskId:
        return TaskId(message.project, message.domain, message.name, message.version)

    def __str__(self) -> str:
        return f"{self.project}/{self.domain}/{self.name}/{self.version}"


@dataclass(frozen=True, slots=True, order=True)
class TriggerId:
    project: str
    domain: str
    task_name: str
    name: str

    def to_proto(self) -> identifier_pb2.TriggerName:
        return identifier_pb2.TriggerName(
            project=self.project, domain=self.domain, task_name=self.task_name, name=self.name
        )

    @staticmethod
    def from_proto(message: identifier_pb2.TriggerName) -> TriggerId:
        return TriggerId(message.project, message.domain, message.task_name, message.name)

    def __str__(self) -> str:
        return f"{self.project}/{self.domain}/{self.task_name}/{self.name}"


@dataclass(frozen=True, slots=True, order=True)
class AppId:
    project: str
    domain: str
    name: str

    def to_proto(self) -> app_definition_pb2.Identifier:
        return app_definition_pb2.Identifier(project=self.project, domain=self.domain, name=self.name)

    @staticmethod
    def from_proto(message: app_definition_pb2.Identifier) -> AppId:
        return AppId(message.project, message.domain, message.name)

    def __str__(self) -> str:
        return f"{self.project}/{self.domain}/{self.name}"
