"""Plots: well-formed, without a script, the same bytes each time, and told in words as well."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from conformance.reports import plots, svg
from conformance.reports.plots import Axis, Bar, Cell, Kind
from inorder.evidence import tables
from specs.verdicts.verdict import ClauseVerdict, RunVerdict
from tests.conformance.reports.browser import NAMES, Browser, executable

NAME = "{http://www.w3.org/2000/svg}"
EVIL = "<b>\u202e& 'x'"
VERDICTS = list(ClauseVerdict)


def matrix() -> ElementTree.Element:
    return tables.by_clause(
        "matrix",
        "Systems and promises",
        {
            "ours": {f"LSE-{n}": verdict for n, verdict in enumerate(VERDICTS, start=1)},
            EVIL: {"ORD-1": ClauseVerdict.REFUTED, "WIR-2": ClauseVerdict.UPHELD},
            "theirs": {"ORD-2": ClauseVerdict.NOT_CLAIMED},
        },
    )


def grid() -> ElementTree.Element:
    cells = {
        (f"profile {n}", "target"): tables.run_cell(verdict, "78", EVIL)
        for n, verdict in enumerate(RunVerdict)
    }
    shares = {("profile 0", "share"): Cell(Kind.SHARE, "2 of 3", "2 of 3 times", 2 / 3)}
    rows = [row for row, _ in cells]
    return plots.heat_map("grid", "A grid", rows, ("target", "share"), {**cells, **shares})


def search() -> ElementTree.Element:
    curves = {"seed 1": [(0.0, 0.0), (1.0, 3.0), (200.0, 7.0)], EVIL: [(1.0, 2.0)], "none": []}
    runs = Axis("runs", log=True)
    return plots.lines("search", "A search", curves, runs, Axis("bugs"), most=7.0)


def recovery() -> ElementTree.Element:
    groups = {"crash": [1_104.0, 20.5, None], EVIL: [], "pause": [3.0]}
    return plots.strips("recovery", "Recovery", groups, Axis("ms", log=True))


def bench() -> ElementTree.Element:
    rows = [Bar("ours", 2.0, "2 of 4", mark=4.0), Bar(EVIL, 0.0, "0", second=True)]
    return plots.bars("bench", "A bench", rows, unit="per second")


ALL = pytest.mark.parametrize("make", [matrix, grid, search, recovery, bench])
Make = Callable[[], ElementTree.Element]


@ALL
def test_it_is_one_picture_of_bounded_size_without_a_script(make: Make) -> None:
    drawn = ElementTree.fromstring(svg.render(make()))
    assert drawn.find(f".//{NAME}script") is None
    assert svg.render(make()) == svg.render(make())
    width, height = float(drawn.get("width", "0")), float(drawn.get("height", "0"))
    for text in drawn.iter(f"{NAME}text"):
        assert 0 <= float(text.get("x", "-1")) <= width
        assert 0 <= float(text.get("y", "-1")) <= height
    assert "\u202e" not in svg.render(drawn)


@ALL
def test_it_has_its_words(make: Make) -> None:
    """For whoever can't see it: a title, and all its numbers."""
    drawn = ElementTree.fromstring(svg.render(make()))
    assert drawn.get("role") == "img"
    title, told = drawn.find(f"{NAME}title"), drawn.find(f"{NAME}desc")
    assert title is not None
    assert told is not None
    assert title.text
    assert len((told.text or "").splitlines()) >= 2


def words(drawn: ElementTree.Element) -> str:
    return " ".join(text.text or "" for text in drawn.iter() if text.tag in ("text", "desc"))


def test_each_verdict_has_a_sign_of_its_own() -> None:
    """So that nobody needs its colour; and the legend says which is which."""
    cells = [tables.clause_cell(verdict) for verdict in ClauseVerdict]
    assert len({cell.text for cell in cells}) == len(cells)
    shown = words(matrix())
    for cell in cells:
        assert cell.told in shown
    runs = [tables.run_cell(verdict) for verdict in RunVerdict]
    assert len({cell.text for cell in runs}) == len(runs)


def test_promises_that_nobody_claims_have_no_column() -> None:
    shown = words(matrix())
    assert "ORD-1" in shown
    assert "ORD-2" not in shown.replace("theirs: not claimed: ORD-2", "")


def test_what_never_came_is_told() -> None:
    shown = words(recovery())
    assert "1 never" in shown
    assert "20 to 1,104" in shown


def test_a_figure_short_of_its_aim_is_told() -> None:
    assert "ours: 2 of 4, short of its aim" in words(bench())


@pytest.mark.parametrize("most", [0.0, 0.4, 1.0, 7.0, 156.0, 99_999.0])
def test_ticks_are_few_and_round(most: float) -> None:
    for log in (False, True):
        found = plots._ticks(most, log=log)
        assert len(found) <= 12
        assert found == sorted(set(found))
        assert all(tick <= max(most, 1) for tick in found)


def test_nothing_at_all_can_be_drawn() -> None:
    """A grid that was ended before its first cell."""
    for drawn in (
        plots.heat_map("a", "A", [], [], {}),
        plots.lines("a", "A", {}, Axis("x"), Axis("y")),
        plots.strips("a", "A", {}, Axis("x")),
        plots.bars("a", "A", []),
    ):
        assert svg.render(drawn)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as started:
        yield started


LEGIBLE = """
[...document.querySelectorAll('text')].filter(text => {
  const box = text.getBBox(), own = text.ownerSVGElement.viewBox.baseVal;
  const wide = box.x < -1 || box.x + box.width > own.width + 1;
  return !text.hasAttribute('transform') && (wide || box.y + box.height > own.height + 2);
}).map(text => text.textContent)
"""


@pytest.mark.skipif(executable() is None, reason=f"there is no {' or '.join(NAMES)} in PATH")
@pytest.mark.xdist_group("browser")
@ALL
def test_no_word_is_cut_off_in_a_browser(make: Make, browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "plot.svg").write_text(svg.render(make()), encoding="utf-8")
    browser.open((tmp_path / "plot.svg").as_uri())
    assert browser.run(LEGIBLE) == []
    assert browser.errors == []
