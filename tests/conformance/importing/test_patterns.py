"""Regular expressions of a map: linear in the line's length, and what the library can't do is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.importing.mapping import MapError, parse_map, recipe, recipes
from conformance.importing.patterns import pattern

MAP = """
extends = "kafka-java-client-log"
order = "lines"
clock_bound_ms = 0
time_zone = "UTC"
constants = {{ client_id = "c", group = "g", broker = "kafka" }}
line = '{}'
"""


def test_an_expression_that_would_explode_ends() -> None:
    """Python's own tries 2^40 ways of it."""
    assert pattern("(?P<pod>(a+)+)$").search("a" * 100_000 + "!") is None


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("(?P<time>a)(?=b)", r"\(\?= looks ahead or behind, which RE2 can't do"),
        ("(?P<time>a)(?<!b)c", "looks ahead or behind"),
        (r"(?P<time>a)\1", r"\\1 refers back to a group"),
        (r"(?P<time>a)\Z", r"the end of the text is \\z"),
        ("(?P<time>a{2000})", "repetition"),
        ("(?P<time>a", "missing"),
        ("(?P<time>a)" + "b" * 20_000, "longer than 10,000 characters"),
    ],
)
def test_what_re2_cannot_do_is_one_sentence(expression: str, said: str) -> None:
    with pytest.raises(MapError, match=f"line is no regular expression: .*{said}"):
        parse_map(MAP.format(expression), "text")


@pytest.mark.parametrize("name", recipes())
def test_the_maps_of_the_project_are_read(name: str) -> None:
    """Every expression in them: what is asked for besides is the user's."""
    for quoted in recipe(name).split("'")[1::2]:
        if "(?P<" in quoted:
            assert pattern(quoted).groups > 0


def test_half_a_character_is_refused_and_not_passed_over(tmp_path: Path) -> None:
    with pytest.raises(UnicodeEncodeError):
        pattern("a").search("a\ud800")
    with pytest.raises(ValueError, match="half a character"):
        pattern("a\ud800")
