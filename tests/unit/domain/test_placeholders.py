"""Placeholders in commands."""

from __future__ import annotations

import pytest

from flyte_binary.domain.placeholders import render

VALUES = {"outputprefix": "/out", "runname": "r1", "strange": "{{.runName}}"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{.outputPrefix}}", "/out"),
        ("{{ .outputPrefix }}", "/out"),
        ("{{$outputPrefix}}", "/out"),
        ("{{.OUTPUTPREFIX}}", "/out"),
        ("a{{.runName}}b{{.outputPrefix}}", "ar1b/out"),
        ("{{.unknown}}", "{{.unknown}}"),
        ("{{outputPrefix}}", "{{outputPrefix}}"),
        ("{.outputPrefix}", "{.outputPrefix}"),
        ("plain", "plain"),
        ("", ""),
    ],
)
def test_a_placeholder_becomes_its_value_and_everything_else_stays(text: str, expected: str) -> None:
    assert render([text], VALUES) == (expected,)


def test_a_value_that_looks_like_a_placeholder_is_not_replaced_again() -> None:
    assert render(["{{.strange}}"], VALUES) == ("{{.runName}}",)
