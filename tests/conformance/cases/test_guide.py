"""The documentation knows every command."""

from __future__ import annotations

from conformance.cases.guide import DOCUMENT, with_table
from conformance.cases.table import TABLE


def test_the_document_has_todays_table() -> None:
    """`python -m conformance.cases.guide` was run."""
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text == with_table(text)


def test_every_command_is_explained() -> None:
    """By the docstring of its function."""
    assert [sentence.form for sentence in TABLE if not sentence.handler.__doc__] == []
