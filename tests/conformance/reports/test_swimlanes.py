"""Swim lanes: an incident in SVG."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from conformance.reports import svg, swimlanes
from conformance.reports.incident import incident
from specs.history.row import Row, make_row
from specs.history.text import parse_history
from specs.vocabulary import Kind, Level

GOLDEN = Path(__file__).with_name("swimlanes.svg")
_SVG = "{http://www.w3.org/2000/svg}"
STORY = """
    0ms..5ms        alice  locks         billing/orders/b0/3  ok
    10ms..40ms      alice  delivers      billing/orders/b0/3  offset=17 id=m17 suspend=1000 suspend
    1045ms..76s     alice  delivers      billing/orders/b0/3  offset=17 id=m17 rt=1 success
    13s..75s        alice  pauses        -
    60s..60002ms    bob    locks         billing/orders/b0/3  ok
    60004ms..60010ms  bob  delivers      billing/orders/b0/3  offset=17 id=m17 success
    61s             bob    commits       billing/orders/b0/3  value=18 sent
    62s             bob    dead-letters  billing/orders/b0/3  offset=18 id=m18 refused
    63s             b0     crashes       -
"""


def drawn(text: str = STORY) -> str:
    _info, rows = parse_history(text)
    beside = [row for row in rows if row.kind.value in ("pause", "crash")]
    evidence = [row for row in rows if row not in beside]
    picture = swimlanes.lanes(incident(evidence, beside), key="LSE-2", title="LSE-2 one at a time")
    return svg.render(picture)


def texts(picture: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(picture).iter(f"{_SVG}text")]


def test_the_picture_is_what_it_was(request: pytest.FixtureRequest) -> None:
    """To the byte; `pytest --rewrite` writes what it is now, and somebody looks at it."""
    if request.config.getoption("--rewrite"):
        GOLDEN.write_text(drawn(), encoding="utf-8")
    assert drawn() == GOLDEN.read_text(encoding="utf-8")


def test_every_label_is_written() -> None:
    """Who, when, what, and where it broke, as text: nothing is told by a colour alone."""
    found = texts(drawn())
    for label in (
        "alice",
        "bob",
        "13.000 s",
        "offset 17: suspend for 1000 ms",
        "offset 17, retry 1",
        "paused",
        "commit 18",
        "dead letter 18 ✗",
        "lease of billing/orders/b0/3",
        "✗ broken here",
        "crash",
    ):
        assert label in found


def test_who_can_not_see_it_is_told_every_moment() -> None:
    """The picture is named by its title, and described by its moments in their order."""
    root = ElementTree.fromstring(drawn())
    ids = {each.get("id"): each.text for each in root.iter() if each.get("id")}
    named = (root.get("aria-labelledby") or "").split()
    assert root.get("role") == "img"
    assert [ids[name] is not None for name in named] == [True, True]
    described = ids[named[1]] or ""
    assert described.index("alice 17 r1 ▶") < described.index("alice paused")
    assert described.index("alice paused") < described.index("bob lock ✓")


def test_a_fault_is_a_dotted_area_with_its_words() -> None:
    """From its begin until it was healed, over all rows; the harness that made it has no row, and brokers come last."""
    _info, rows = parse_history(STORY)
    rows = [
        row._replace(seq_begin=10 * row.seq_begin, seq_end=10 * (row.seq_end or 0)) for row in rows
    ]
    fault = make_row(
        run=rows[0].run,
        seq_begin=rows[1].seq_begin + 1,
        seq_end=rows[5].seq_begin + 1,
        op_id=99,
        kind="fault",
        process="harness",
        detail="cut the link of b0",
        outcome="ok",
        started_us=11_000,
        ended_us=61_000_000,
    )
    stored = rows[0]._replace(kind=Kind.APPEND, level=Level.STORE, client_id=None, process="b0")
    picture = swimlanes.lanes(incident([stored, *rows[1:6]], [fault]), key="F", title="F")
    root = ElementTree.fromstring(svg.render(picture))
    found = texts(svg.render(picture))
    assert "fault: cut the link of b0" in found
    assert "harness" not in found
    assert found.index("alice") < found.index("bob") < found.index("b0")
    areas = [each for each in root.iter() if each.get("fill") == "url(#F-dots)"]
    assert len(areas) == 1
    assert float(areas[0].get("width", "0")) > 100


HOSTILE = "<script>alert(1)</script>\" onload='x' ]]> & \x00\x1b \u202egnp.exe \ud800"


def hostile(row: Row) -> Row:
    return row._replace(client_id=HOSTILE, topic=HOSTILE, detail=HOSTILE, message_id=HOSTILE)


def test_names_are_text_whatever_is_in_them() -> None:
    """No element, attribute or direction of writing comes from a name; the file can be read as XML and as UTF-8."""
    _info, rows = parse_history(STORY)
    model = incident([hostile(row) for row in rows])
    picture = svg.render(swimlanes.lanes(model, key=HOSTILE, title=HOSTILE, told=HOSTILE))
    root = ElementTree.fromstring(picture.encode("utf-8"))
    tags = {each.tag.removeprefix(_SVG) for each in root.iter()}
    assert tags <= set(
        [
            "svg",
            "title",
            "desc",
            "style",
            "defs",
            "pattern",
            "path",
            "circle",
            "rect",
            "g",
            "line",
            "text",
            "polygon",
        ]
    )
    assert not [name for each in root.iter() for name in each.attrib if name.startswith("on")]
    assert not set("\x00\x1b\u202e\ud800") & set(picture)
    assert "\\u202egnp.exe" in picture


def test_all_that_is_drawn_lies_inside() -> None:
    """Nothing is cut off at the edges."""
    root = ElementTree.fromstring(drawn())
    width, height = float(root.get("width", "0")), float(root.get("height", "0"))
    for each in root.iter():
        if each.tag.removeprefix(_SVG) in ("rect", "text", "line") and each.get("x"):
            assert 0 <= float(each.get("x", "0")) <= width
            assert 0 <= float(each.get("y", "0")) <= height
            right = float(each.get("x", "0")) + float(each.get("width", "0"))
            assert right <= width + 0.2, ElementTree.tostring(each)


def test_several_pictures_lie_below_each_other() -> None:
    """Each whole, none on another, with ids of their own."""
    _info, rows = parse_history(STORY)
    parts = [swimlanes.lanes(incident(rows), key=key, title=key) for key in ("A-1", "B-2")]
    whole = ElementTree.fromstring(svg.render(svg.stacked(parts)))
    first, second = whole.findall(f"{_SVG}svg")
    assert float(second.get("y", "0")) >= float(first.get("height", "0"))
    ids = [each.get("id") for each in whole.iter() if each.get("id")]
    assert len(ids) == len(set(ids))
