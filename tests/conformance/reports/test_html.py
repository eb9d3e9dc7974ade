"""`report.html`: a run as one page that needs nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from conformance.reports import html
from conformance.reports import overview as overviews
from conformance.reports.view import FaultView, VerdictView, view
from specs import glossary
from specs.history.runinfo import RunInfo
from specs.history.store import History, write_history
from specs.history.text import parse_history
from specs.verdicts.verdict import Coverage, RunVerdict, Verdict
from tests.conformance.reports import hostile

Make = Callable[..., Verdict]
TWO_OWNERS = """
    0ms      shop   sends     orders/b0/3          offset=4 id=m4 key=k<1> ok
    0ms      alice  locks     billing/orders/b0/3  ok
    1s..2s   alice  pauses    -
    59999ms  bob    locks     billing/orders/b0/3  ok
    60s      bob    delivers  billing/orders/b0/3  offset=4 id=m4 key=k<1> success
"""
_VOID = frozenset(
    [
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "source",
        "track",
        "wbr",
    ]
)


class Page(HTMLParser):
    """A page as it was read: its elements, attributes and text. Raises AssertionError where one is not closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == [], "every element is closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"{tag} has an attribute twice"
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, f"line {self.getpos()[0]}: </{tag}>"

    def handle_data(self, data: str) -> None:
        if not self._open or self._open[-1] not in ("script", "style"):
            self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())

    def having(self, attribute: str) -> list[str]:
        return [str(found[attribute]) for _tag, found in self.elements if attribute in found]


@pytest.fixture
def broken(make_verdict: Make, tmp_path: Path) -> tuple[VerdictView, History]:
    """A refuted run with its history."""
    info, rows = parse_history(TWO_OWNERS)
    history = write_history(tmp_path / "run", info, rows)
    return view(make_verdict(TWO_OWNERS), folder=tmp_path / "run", events=len(rows)), history


def lanes_of(page: str) -> dict[str, list[list[object]]]:
    found = re.search(r'<script type="application/json" id="lane-data">(.*?)</script>', page)
    assert found is not None
    data: dict[str, list[list[object]]] = json.loads(found[1])
    return data


def test_the_page_tells_what_broke(broken: tuple[VerdictView, History]) -> None:
    """The verdict, the promise and who keeps it, what happened, the picture, and how to do it again."""
    words = Page(html.render(*broken)).words
    for told in (
        "REFUTED mutant:two-owners",
        "What broke: LSE-1 one owner at a time.",
        "No two clients hold the lease of one lane at the same time.",
        "the broker inorder mutant two-owners",
        "bob was granted billing/orders/b0/3",
        "✗ broken here",
        "inorder replay runs/7319",
        "docs/sources.md#lock-table",
        "broken once; at stake",
    ):
        assert told in words, told


def test_every_clause_has_its_line_and_its_page(broken: tuple[VerdictView, History]) -> None:
    """A link leads from the one to the other; a word says the verdict, and a bar how often it was at stake."""
    verdict, history = broken
    page = Page(html.render(verdict, history))
    ids, links = page.having("id"), page.having("href")
    assert len(ids) == len(set(ids))
    assert {f"clause-{clause.id}" for clause in verdict.clauses} <= set(ids)
    assert {f"#clause-{clause.id}" for clause in verdict.clauses} <= set(links)
    assert [link for link in links if link.removeprefix("#") not in ids] == []
    at_stake = next(each.opportunities for each in verdict.clauses if each.id == "LSE-1")
    assert f"{at_stake} at stake, floor 1" in page.having("aria-label")
    assert "○ not exercised" in page.words


def test_the_page_needs_nothing_else(broken: tuple[VerdictView, History]) -> None:
    """No address but its own parts, nothing that is loaded, no script but the one that its policy names."""
    page = html.render(*broken)
    found = Page(page)
    elsewhere = [link for link in found.having("href") if not link.startswith("#")]
    assert [link for link in elsewhere if "/docs/clauses/" not in link] == []
    assert found.having("src") == []
    assert set(re.findall(r"url\(([^)]*)", page)) <= set(re.findall(r"url\((#[^)]*)", page))
    assert "@import" not in page
    assert {tag for tag, _ in found.elements} & {"link", "img", "iframe", "object", "base"} == set()
    policy = next(value for value in found.having("content") if "default-src" in value)
    assert "default-src 'none'" in policy
    assert policy.count("script-src") == policy.count("'sha256-") == 1


def test_the_same_run_makes_the_same_page(broken: tuple[VerdictView, History]) -> None:
    """To the byte."""
    assert html.render(*broken) == html.render(*broken)


def test_names_are_text_whatever_is_in_them(
    broken: tuple[VerdictView, History], tmp_path: Path
) -> None:
    """Names of clients, topics, keys, targets and what a system says of itself become no element and no attribute."""
    verdict, _history = broken
    _info, rows = parse_history(TWO_OWNERS)
    page = html.render(*hostile.run(verdict, rows, tmp_path / "hostile"))
    found, plain = Page(page), Page(html.render(*broken))
    assert hostile.MARK in found.words
    assert {tag for tag, _ in found.elements} == {tag for tag, _ in plain.elements}
    assert sum(tag == "script" for tag, _ in found.elements) == 2
    names = {name for _tag, attributes in found.elements for name in attributes}
    assert names == {name for _tag, attributes in plain.elements for name in attributes}
    assert [name for name in names if name.startswith("on")] == []
    assert "\u202e" not in page
    assert "{{7*7}} {% raw %}" in found.words, "a name is no template"
    lanes = lanes_of(page)
    assert str(lanes["owners"][0]).startswith("</script>")


@pytest.mark.parametrize("name", ["\x00\x01\x7f", "\ud800", "a\nb\r\tc", "\ufeff", "’ü汉🐇", ""])
def test_any_name_can_be_written(
    broken: tuple[VerdictView, History], tmp_path: Path, name: str
) -> None:
    """Characters that no page may hold are spelt out, others are kept."""
    verdict, history = broken
    made = replace(verdict, target=name, replay=name)
    html.write(tmp_path / "report.html", made, history)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    Page(page)
    assert not set("\x00\x01\x7f\ufeff") & set(page)
    assert ("’ü汉🐇" in page) == (name == "’ü汉🐇")


def test_its_size_does_not_grow_with_the_run(make_verdict: Make, tmp_path: Path) -> None:
    """Of twice the lanes that it holds at most it says how many are missing, and stays small."""
    verdict = view(make_verdict(TWO_OWNERS), folder=tmp_path)
    many = 2 * overviews.MOST_LANES
    lines = [
        f"{number}ms  client-{number}  locks  billing/orders-of-a-long-name/b0/{number}  ok"
        for number in range(many)
    ]
    rows = parse_history("\n".join([*lines, *TWO_OWNERS.splitlines()]))[1]
    page = html.render(verdict, write_history(tmp_path, RunInfo("example"), rows))
    assert len(page.encode()) < 1_500_000
    assert len(lanes_of(page)["lanes"]) == overviews.MOST_LANES
    assert f"{many + 1 - overviews.MOST_LANES:,} more lanes" in Page(page).words


def test_the_widest_lanes_fit(make_verdict: Make, tmp_path: Path) -> None:
    """Each lane with another owner and messages in each bin is the most that a page holds: it is below 5 MB."""
    verdict = view(make_verdict(TWO_OWNERS), folder=tmp_path)
    history = write_history(tmp_path, RunInfo("r"), parse_history(TWO_OWNERS)[1])
    run = overviews.overview(history, verdict)
    assert run is not None
    bins = range(overviews.BINS)
    lane = overviews.LaneLine(
        "billing-of-a-long-name/orders-of-a-long-name/broker-a/123",
        10**9,
        tuple((n, n, n) for n in bins),
        tuple(10**6 + n for n in bins),
        False,
    )
    full = replace(run, lanes=(lane,) * overviews.MOST_LANES)
    data = html.lane_data(full)
    assert len(json.dumps(data)) < 2_500_000


def test_what_it_does_not_hold_it_says_with_the_command(
    broken: tuple[VerdictView, History],
) -> None:
    """Also where the history is not there, or was too long to be read again."""
    verdict, history = broken
    folder = verdict.folder
    assert f"inorder explain {folder} --lane LANE" in Page(html.render(verdict, history)).words
    without = Page(html.render(verdict, None)).words
    assert "The history of the run was not there when the page was written." in without
    short = Page(html.render(verdict, history, whole=False)).words
    assert f"inorder report {folder} --format html > report.html" in short
    elsewhere = Page(html.render(replace(verdict, folder=Path("kept")), history, whole=False)).words
    assert f"inorder report kept --format html --history {folder} > report.html" in elsewhere
    assert all("✗ broken here" in words for words in (without, short)), "the verdict has it"


def test_a_long_history_is_not_read_again_beside_a_verdict(
    broken: tuple[VerdictView, History], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page says so; `inorder report --format html` reads it."""
    monkeypatch.setattr(html, "MOST_BINNED", 3)
    html.write(tmp_path / "page.html", *broken)
    assert "more than 3 events" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_history_that_can_not_be_read_any_more_does_not_stop_the_page(
    broken: tuple[VerdictView, History],
) -> None:
    """It says so, and shows what the verdict holds."""
    verdict, history = broken
    history.parquet[0].write_bytes(b"PAR1 and no more")
    words = Page(html.render(verdict, history)).words
    assert "A view of the whole run: its history could not be read (" in words
    assert "✗ broken here" in words


def test_a_run_without_a_failure_has_no_part_for_one(upheld: VerdictView) -> None:
    """Its headline says that all was kept."""
    page = Page(html.render(upheld, None))
    assert "broke" not in page.having("id")
    assert "clauses were at stake, and all were kept" in page.words


def test_a_failure_that_no_event_shows_is_told_in_words(
    broken: tuple[VerdictView, History],
) -> None:
    """A wire rule was judged while a broker was asked: it has no evidence in rows, and no picture."""
    verdict, history = broken
    rule = replace(verdict.failures[0], id="WIR-9", title="an offset", witness=(), findings=())
    page = Page(html.render(replace(verdict, clauses=(rule,)), history))
    assert "✗ refuted WIR-9 an offset" in page.words
    assert "The evidence" not in page.words
    assert "swim lanes" not in page.words.lower()


@pytest.mark.parametrize("word", list(RunVerdict))
def test_every_verdict_has_a_sign_and_a_word(
    broken: tuple[VerdictView, History], word: RunVerdict
) -> None:
    """Nobody has to tell red from green."""
    page = Page(html.render(replace(broken[0], verdict=word), None))
    assert re.search(rf"[✓✗?!] {word.value.upper()} mutant:two-owners", page.words)


def test_faults_and_the_environment_are_told(broken: tuple[VerdictView, History]) -> None:
    """What was planned and whether it had an effect, what befell whom, and what the system was told."""
    verdict, history = broken
    faults = (FaultView("pause alice", effective=True), FaultView("cut b0", effective=False))
    made = replace(verdict, faults=faults)
    info = replace(history.info, environment={"kernel": "6.1"})
    words = Page(html.render(made, replace(history, info=info))).words
    for told in (
        "pause alice: had an effect",
        "cut b0: had no effect",
        "alice: paused",
        "kernel 6.1",
        "broker_lease_ms 60000",
    ):
        assert told in words, told


def test_words_are_explained_where_they_are_used(broken: tuple[VerdictView, History]) -> None:
    """Each leads to its meaning, which the page holds; in running text only where it comes first."""
    page = html.render(*broken)
    found = Page(page)
    terms = [attributes for tag, attributes in found.elements if attributes.get("class") == "term"]
    named = {str(each["href"]) for each in terms}
    words = {word.name: f"#word-{word.anchor}" for word in glossary.words()}
    for name in ("lane", "lease", "at stake", "floor", "party", "level", "not claimed", "finding"):
        assert words[name] in named, name
    assert {str(each["href"])[1:] for each in terms} <= set(found.having("id"))
    assert {each["aria-describedby"] for each in terms} <= set(found.having("id"))
    promised = page[page.index("<dt>promised</dt>") :].split("</dd>", 1)[0]
    assert promised.count('class="term"') == 2  # its lease and its lane


@pytest.mark.parametrize(
    ("sentence", "shown"),
    [
        ("A <lane> & a lane.", "A &lt;LANE&gt; &amp; a lane."),
        ("Lanes, lane, planes", "LANES, lane, planes"),
        ("nothing of it", "nothing of it"),
    ],
)
def test_a_sentence_is_explained_once_a_word(sentence: str, shown: str) -> None:
    """Whole words, whatever else is escaped."""
    told = str(html._explained(sentence))
    assert re.sub(r"<a [^>]*>(.*?)</a>", lambda found: found[1].upper(), told) == shown


def test_the_page_draws_how_a_search_saturated(upheld: VerdictView) -> None:
    """Where the verdict says so; without it there is no such part."""
    growth = Coverage(9, 30, 0, growth=((1, 4), (7, 8), (30, 9)))
    page = html.render(replace(upheld, coverage=growth), None)
    assert "How the search saturated" in page
    assert "states: 4 after 1, 8 after 7, 9 after 30" in page
    assert "How the search saturated" not in html.render(upheld, None)
