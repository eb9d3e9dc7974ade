"""The glossary's file: whole, without a word twice, and readable without its marks."""

from __future__ import annotations

import re

import pytest

from specs.errors import SpecError
from specs.glossary import word, words


def test_no_word_is_there_twice() -> None:
    """Nor an anchor, nor a form of two words."""
    for each in ([w.name for w in words()], [w.anchor for w in words()]):
        assert len(set(each)) == len(each)
    forms = [form for each in words() for form in each.forms]
    assert len(set(forms)) == len(forms)
    assert [form for form in forms if form != form.lower()] == []


def test_every_meaning_is_a_sentence() -> None:
    """And has no mark left where it is shown without."""
    assert [w.name for w in words() if not w.meaning.endswith((".", ").", "!"))] == []
    assert [w.name for w in words() if re.search(r"[`*]|\]\(", w.plain)] == []


def test_a_word_that_nobody_explains_is_told() -> None:
    """A label of the report that has lost its word would lead nowhere."""
    with pytest.raises(SpecError, match="does not explain 'lnae'"):
        word("lnae")
