"""`report.html` in a real browser: it opens, loads nothing, filters, and can be used without a mouse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.reports import html, svg, swimlanes
from conformance.reports import overview as overviews
from conformance.reports.view import VerdictView, view
from specs import glossary
from specs.history.store import History, write_history
from specs.history.text import parse_history
from specs.verdicts.verdict import Verdict
from tests.conformance.reports import hostile
from tests.conformance.reports.browser import NAMES, Browser, executable

Make = Callable[..., Verdict]
pytestmark = [
    pytest.mark.skipif(executable() is None, reason=f"there is no {' or '.join(NAMES)} in PATH"),
    pytest.mark.xdist_group("browser"),
]
LANES = overviews.MOST_LANES - 1
RUN = "\n".join(
    [
        *(f"{n}ms  owner-{n % 7}  locks  billing/orders/b0/{n}  ok" for n in range(LANES)),
        "600ms  alice  locks  audit/orders/b0/1  ok",
        "601ms..800ms  alice  delivers  audit/orders/b0/1  offset=4 id=m4 key=blue suspend=1000 suspend",
        "602ms  alice  delivers  audit/orders/b0/1  offset=9 id=m9 key=red success",
        "650ms..900ms  b0  pauses  -",
        "700ms  bob  locks  audit/orders/b0/1  ok",
    ]
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as started:
        yield started


@pytest.fixture(scope="module")
def judged(
    make_verdict: Make, tmp_path_factory: pytest.TempPathFactory
) -> tuple[VerdictView, History]:
    """A refuted run with as many lanes as a page holds."""
    folder = tmp_path_factory.mktemp("judged")
    info, rows = parse_history(RUN)
    history = write_history(folder, info, rows)
    return view(make_verdict(RUN), folder=folder, events=len(rows)), history


@pytest.fixture(scope="module")
def page(judged: tuple[VerdictView, History]) -> Path:
    """Its page."""
    verdict, history = judged
    html.write(history.folder / "report.html", verdict, history)
    return history.folder / "report.html"


def test_it_opens_filters_and_draws(browser: Browser, page: Path) -> None:
    """Without a network and without an error; a lane, a client and a key are found among five hundred."""
    browser.requests.clear()
    browser.open(page.as_uri())
    assert browser.run("document.querySelectorAll('#lane-list li:not(.ruler)').length") == 50
    assert browser.run("document.querySelector('#lane-list b').textContent") == "audit/orders/b0/1"
    browser.run("document.getElementById('more-lanes').click()")
    assert browser.run("document.querySelectorAll('#lane-list li:not(.ruler)').length") == 100
    told = {
        ("lane", "billing/orders/b0/498"): "1 lanes and 0 events",
        ("client", "owner-3"): "71 lanes and 0 events",
        ("key", "blue"): f"{overviews.MOST_LANES} lanes and",
        ("key", "nowhere"): "No event around a finding has that key",
    }
    for (name, value), words in told.items():
        browser.run("document.querySelector('button[type=reset]').click()")
        browser.run(
            f"(() => {{ const field = document.querySelector('input[name={name}]'); field.value = '{value}';"
            "field.dispatchEvent(new Event('input', {bubbles: true})); })()"
        )
        assert words in browser.run("document.getElementById('filtered').textContent")
    assert browser.requests == [page.as_uri()], "nothing else is asked for"
    assert browser.errors == []


def test_it_can_be_used_without_a_mouse(browser: Browser, page: Path) -> None:
    """The first Tab leads to the content; a clause's link opens its page; what scrolls can be reached."""
    browser.open(page.as_uri())
    browser.press("Tab", 9)
    assert browser.run("document.activeElement.textContent") == "To the content"
    browser.run("document.querySelector('table.clauses a').focus()")
    browser.press("Enter", 13)
    opened = "document.querySelector('details.clause[open]')?.id"
    for _try in range(100):
        if browser.run(opened):
            break
    assert browser.run(opened) == "clause-ORD-2"
    unreached = (
        "[...document.querySelectorAll('.scroll')].filter(each => each.tabIndex !== 0).length"
    )
    assert browser.run(unreached) == 0


def test_a_word_is_explained_beside_it(browser: Browser, page: Path) -> None:
    """By the keyboard as by the mouse, inside of the window; Escape takes it away."""
    browser.open(page.as_uri())
    shown = "(() => { const each = document.getElementById('means'); return each.hidden ? '' : each.textContent; })()"
    term = "document.querySelector('#lanes a.term')"
    assert browser.run(shown) == ""
    browser.run(f"{term}.focus()")
    assert browser.run(shown) == glossary.word("lane").plain
    inside = (
        "(() => { const at = document.getElementById('means').getBoundingClientRect();"
        "return at.left >= 0 && at.right <= innerWidth && at.top >= 0 && at.bottom <= innerHeight; })()"
    )
    assert browser.run(inside)
    browser.press("Escape", 27)
    assert browser.run(shown) == ""
    browser.run(f"{term}.dispatchEvent(new Event('mouseover', {{bubbles: true}}))")
    assert browser.run(shown) == glossary.word("lane").plain
    browser.run("document.body.dispatchEvent(new Event('mouseover', {bubbles: true}))")
    assert browser.run(shown) == ""
    assert browser.errors == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1300, 420])
def test_nothing_is_wider_than_the_window(
    browser: Browser, page: Path, tmp_path: Path, scheme: str, width: int
) -> None:
    """What is wide scrolls in its own frame; the screenshot is kept with the test's files."""
    browser.resize(width, 900)
    browser.prefer(scheme)
    browser.open(page.as_uri())
    shot = browser.shoot(tmp_path / f"{scheme}-{width}.png")
    assert shot.read_bytes().startswith(b"\x89PNG")
    assert browser.run("document.documentElement.scrollWidth") <= width
    ground = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 28)"}[scheme]
    assert browser.run("getComputedStyle(document.body).backgroundColor") == ground
    browser.prefer("light")
    browser.resize(1300, 900)


def test_an_attack_does_nothing(
    browser: Browser, judged: tuple[VerdictView, History], tmp_path: Path
) -> None:
    """No script of a name's runs, neither in the page nor in a picture of its own."""
    rows = list(judged[1].rows())
    verdict, history = hostile.run(judged[0], rows, tmp_path / "hostile")
    html.write(tmp_path / "hostile.html", verdict, history)
    picture = tmp_path / "hostile.svg"
    picture.write_text(svg.render(swimlanes.picture(verdict.failures[0])), encoding="utf-8")
    browser.errors.clear()
    for path in (tmp_path / "hostile.html", picture):
        browser.open(path.as_uri())
        assert browser.run("typeof window.pwned") == "undefined"
        assert browser.run("document.querySelectorAll('img').length") == 0
    assert browser.errors == [], "not even an attempt that the policy had to stop"


def test_a_page_with_all_that_it_can_hold_opens(
    browser: Browser, judged: tuple[VerdictView, History], tmp_path: Path
) -> None:
    """However long the run was, its page is no longer than this one."""
    verdict, history = judged
    run = overviews.overview(history, verdict)
    assert run is not None
    bins = range(overviews.BINS)
    lane = overviews.LaneLine(
        "billing/orders/b0/1",
        10**9,
        tuple((n, n, n % len(run.owners)) for n in bins),
        tuple(10**6 + n for n in bins),
        False,
    )
    full = replace(run, lanes=(lane,) * overviews.MOST_LANES)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(html, "overview", lambda *_: full)
        html.write(tmp_path / "report.html", verdict, history)
    assert (tmp_path / "report.html").stat().st_size < 5_000_000
    browser.open((tmp_path / "report.html").as_uri())
    assert browser.run("document.querySelectorAll('#lane-list li:not(.ruler)').length") == 50
