"""The table of services is that of the installed contract and of what this server mounts."""

from __future__ import annotations

from flyte_binary.composition import services as composition
from tests.golden import service_table

CLASSES = {
    "flyteidl2.workflow.EventsProxyService": "EventsProxy",
    "flyteidl2.cacheservice.CacheService": "CacheServiceV1",
}
"""Of the services whose class has another name."""


def test_the_table_of_services_is_up_to_date() -> None:
    text = service_table.PAGE.read_text(encoding="utf-8")
    assert service_table.page(text) == text, "run python -m tests.golden.service_table and read the diff"


def test_every_method_of_what_is_served_has_a_handler() -> None:
    mounted = service_table.served()
    known = {service.full_name: service for service in service_table.services()}
    assert mounted <= known.keys()
    assert len(mounted) > 20
    for name in mounted:
        handler = getattr(composition, CLASSES.get(name, name.rpartition(".")[2]))
        for method in known[name].methods:
            handlers = {attribute.replace("_", "") for attribute in dir(handler)}
            assert method.name.lower() in handlers, (name, method.name)


def test_a_note_is_about_a_service_that_exists() -> None:
    names = {service.full_name for service in service_table.services()}
    assert service_table.NOTES.keys() | service_table.REFERENCE_LACKS <= names
