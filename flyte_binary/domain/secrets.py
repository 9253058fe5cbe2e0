"""What names a secret, and in which order its scopes are searched."""

from __future__ import annotations

from dataclasses import dataclass

LONGEST_ENCODED = 253
"""Characters that Kubernetes lets the key of a Secret's data have."""

_ENCODING = len("u__org__flyte__domain____project____key__")

LARGEST_VALUE_BYTES = 1024 * 1024
"""What Kubernetes stores at most in one Secret; the same here, so that a secret fits into every vault."""


@dataclass(frozen=True, slots=True, order=True)
class SecretScope:
    """Of the organization if both are empty, of a domain without a project; a project has a domain always."""

    domain: str = ""
    project: str = ""

    def __str__(self) -> str:
        if not self.domain:
            return "the organization"
        return f"the project {self.project}/{self.domain}" if self.project else f"the domain {self.domain}"


@dataclass(frozen=True, slots=True, order=True)
class SecretId:
    scope: SecretScope
    name: str

    @property
    def spare(self) -> int:
        """How many more characters the name could have and still be stored in Kubernetes."""
        return LONGEST_ENCODED - _ENCODING - len(self.scope.domain) - len(self.scope.project) - len(self.name)


def searched_scopes(project: str, domain: str) -> tuple[SecretScope, ...]:
    """Where a task of the project finds its secrets, the first place first: as the reference backend has it."""
    return SecretScope(domain, project), SecretScope(domain), SecretScope()
