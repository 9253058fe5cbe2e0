"""Makes the table of services in `docs/compatibility.md`: `python -m tests.golden.service_table`.

One row for each service of the installed contract, all of its methods in it. A service or method that a new contract
brings makes the page differ, and a test fails until the page was made anew and read.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from pathlib import Path

import flyteidl2
from google.protobuf.descriptor import ServiceDescriptor

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "compatibility.md"
COMPOSITION = ROOT / "flyte_binary" / "composition" / "services.py"
BEGIN = "<!-- made by tests/golden/service_table.py -->"
END = "<!-- end of the table of services -->"
NOT_SERVED = "not served"

REFERENCE_LACKS = frozenset(
    f"flyteidl2.{name}"
    for name in (
        "artifact.ArtifactService",
        "cacheservice.CacheService",
        "imagebuilder.ImageService",
        "org.DomainService",
        "workflow.QueueService",
        "workflow.RunLogsService",
        "workflow.StateService",
        "workflow.TrackedRunService",
    )
)
"""Declared by the contract, and answered with 404 by the reference backend."""

NOTES = {
    "flyteidl2.artifact.ArtifactService": "A version whose partitions are not those of its name is kept and says so",
    "flyteidl2.connector.AsyncConnectorService": "Served by connectors; a backend is their client",
    "flyteidl2.connector.ConnectorMetadataService": "Served by connectors; a backend is their client",
    "flyteidl2.org.DomainService": "Domains are configured: reads only, changes are refused with a sentence",
    "flyteidl2.app.AppService": "UpdateStatus and Lease are for operators of other planes and answer unimplemented",
    "flyteidl2.workflow.RunService": "GetActionData is deprecated and answers unimplemented, as in the reference",
    "flyteidl2.workflow.TrackedRunService": "Reads answer for tracked runs only; RunService shows them among all",
}


def services() -> list[ServiceDescriptor]:
    """Those of the installed contract, by name."""
    found: dict[str, ServiceDescriptor] = {}
    for module in pkgutil.walk_packages(flyteidl2.__path__, "flyteidl2."):
        if module.name.endswith("_pb2"):
            file = importlib.import_module(module.name).DESCRIPTOR
            found.update((service.full_name, service) for service in file.services_by_name.values())
    return [found[name] for name in sorted(found)]


def served() -> frozenset[str]:
    """The services that the composition mounts."""
    names = re.findall(r'^ {8}"([a-z0-9_.]+\.[A-Z]\w+)":', COMPOSITION.read_text(encoding="utf-8"), re.MULTILINE)
    return frozenset(f"flyteidl2.{name}" for name in names)


def table() -> str:
    mounted = served()
    lines = ["| Service | Methods | This server | The reference | |", "|---|---|---|---|---|"]
    for service in services():
        name = service.full_name
        ours = "served" if name in mounted else NOT_SERVED
        theirs = NOT_SERVED if name in REFERENCE_LACKS or "connector" in name else "served"
        methods = ", ".join(method.name for method in service.methods)
        lines.append(f"| {name.removeprefix('flyteidl2.')} | {methods} | {ours} | {theirs} | {NOTES.get(name, '')} |")
    return "\n".join(lines)


def page(text: str) -> str:
    """The page with its table made anew. Raises ValueError when the page has no place for it."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE.name} needs the lines {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def main() -> int:
    """Brings the page up to date."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
