"""The filter language of ListProjects: `eq(state, 0)+contains(name,ml)+value_in(identifier,a;b)`.

Terms are joined by `+` and must all hold. A `+` within a value cannot be told from a joint unless what follows is no
term, so values may contain one there, which the reference backend refuses.
"""

from __future__ import annotations

import re

from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.domain.filters import TEXT_OPS, Condition, Fields, Kind, Op, value_of

_OPS = {"eq": Op.EQUAL, "ne": Op.NOT_EQUAL, "contains": Op.CONTAINS, "value_in": Op.VALUE_IN}
_TERM = re.compile(r"\s*(?P<op>\w+)\s*\(\s*(?P<field>[^,()]*?)\s*,(?P<value>.*)\)\s*", re.DOTALL)
_JOINT = re.compile(r"\+(?=\s*\w+\s*\()")


def conditions_from_text(text: str, known: Fields) -> list[Condition]:
    """Raises `InvalidArgument` with the term that is wrong. Empty text has no conditions."""
    if not text.strip():
        return []
    return [_condition(term, known) for term in _JOINT.split(text)]


def _condition(term: str, known: Fields) -> Condition:
    found = _TERM.fullmatch(term)
    if found is None:
        raise InvalidArgument(
            f"invalid filter {term.strip()!r}: a term looks like eq(state, 0); terms are joined by '+'"
        )
    op = _OPS.get(found["op"].lower())
    if op is None:
        raise InvalidArgument(f"invalid filter {term.strip()!r}: {found['op']!r} is none of {', '.join(_OPS)}")
    field = known.get(found["field"])
    if field is None:
        raise InvalidArgument(f"invalid filter field {found['field']!r}; known are: {', '.join(known)}")
    if op in TEXT_OPS and field.kind is not Kind.TEXT:
        raise InvalidArgument(f"filter on {field.name}: {found['op']} works on texts only, not on {field.kind.value}")
    texts = found["value"].split(";") if op is Op.VALUE_IN else [found["value"]]
    return Condition(field, op, tuple(value_of(field, text.strip()) for text in texts))
