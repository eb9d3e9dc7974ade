"""A run as one page: `report.html`, self-contained, for a browser without a server or a network.

Rules:
- what a system named is escaped by the template, and where it is data for the script as JSON without `<`; the page
  allows no script but its own (by its digest), and loads nothing;
- its size is bounded, since that of the overview is; what it does not hold it says, with the command that shows it;
- it says the same without its script: that only filters, and draws the lanes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from markupsafe import Markup, escape

from conformance.reports import plots, power, svg, swimlanes, text
from conformance.reports.charts import befell, chart, ticks
from conformance.reports.incident import party, seconds
from conformance.reports.overview import (
    MOST_EVENTS,
    Overview,
    overview,
)
from conformance.reports.view import ClauseView, VerdictView, families, rows_in
from specs import glossary
from specs.clauses.catalogue import catalogue
from specs.clauses.clause import Clause, Promise
from specs.clauses.transcript import Expected
from specs.errors import HistoryError
from specs.history.row import Row
from specs.history.store import History
from specs.history.text import VERBS
from specs.links import clause_page, web
from specs.model.rules import RULES, WireRule
from specs.verdicts.verdict import ClauseVerdict, RunVerdict
from specs.vocabulary import Kind

if TYPE_CHECKING:
    from jinja2 import Environment

FILE = "report.html"
MOST_BINNED = 20_000_000
"""A history of more events is not read once more for a page that is written beside a verdict."""

SIGNS: Mapping[ClauseVerdict, str] = {
    ClauseVerdict.UPHELD: "✓",
    ClauseVerdict.REFUTED: "✗",
    ClauseVerdict.POSSIBLE: "?",
    ClauseVerdict.NOT_EXERCISED: "○",
    ClauseVerdict.NOT_RECORDED: "–",
    ClauseVerdict.NOT_CLAIMED: "·",
    ClauseVerdict.ALLOWED: "≈",
}
_RUN_SIGNS: Mapping[RunVerdict, str] = {
    RunVerdict.UPHELD: "✓",
    RunVerdict.REFUTED: "✗",
    RunVerdict.INCONCLUSIVE: "?",
    RunVerdict.INADMISSIBLE: "!",
}
_MOST_NAMED = 5


def render(
    verdict: VerdictView,
    history: History | None,
    *,
    context: Sequence[Row] = (),
    whole: bool = True,
) -> str:
    """The page of a run. history: what was judged; None where it is not there. whole: with a view of the whole run,
    for which the history is read once more."""
    run, unread = _overview(history, verdict) if whole else (None, "")
    style, script = part("page.css"), part("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = templates().get_template("report.html.j2")
    return page.render(
        verdict=verdict,
        sign=_RUN_SIGNS[verdict.verdict],
        closing=text.closing(verdict),
        headline=_headline(verdict),
        failures=[_failure(verdict, clause, context, run) for clause in verdict.failures],
        families=_by_family(verdict),
        failed_checks=[check for check in verdict.met if check.ok is False],
        facts=_facts(verdict, history),
        settings=_settings(history),
        environment=dict(history.info.environment) if history is not None else {},
        run=run,
        chart=None if run is None else _markup(svg.render(chart(run))),
        search=_search(verdict),
        befell=[] if run is None else list(_befell(run)),
        lanes=None if run is None else _json(lane_data(run)),
        missing=list(_missing(verdict, history, run, whole=whole, unread=unread)),
        clauses=[_page_of(verdict, clause) for clause in verdict.clauses],
        known_words=text.KNOWN_WORDS,
        exposed=text.EXPOSED[:1].upper() + text.EXPOSED[1:],
        words=glossary.words(),
        style=Markup(style),
        script=Markup(script),
        digest=digest,
        run_command=lambda *words: _command(verdict, *words),
    )


def _overview(history: History | None, verdict: VerdictView) -> tuple[Overview | None, str]:
    """The run in bins, and why there is none where its files can't be read: a report does not fail for that."""
    try:
        return (None if history is None else overview(history, verdict)), ""
    except (HistoryError, OSError, pa.ArrowException) as error:
        return None, str(error).splitlines()[0] if str(error) else type(error).__name__


def write(
    path: Path, verdict: VerdictView, history: History | None, *, context: Sequence[Row] = ()
) -> None:
    """The page as a file, whole or not at all."""
    whole = history is None or rows_in(history) <= MOST_BINNED
    page = render(verdict, history, context=context, whole=whole)
    temporary = path.with_suffix(".part")
    temporary.write_text(page, encoding="utf-8")
    temporary.replace(path)


@cache
def templates() -> Environment:
    """What lies in `page/`, for whoever writes a page; all that is put in is escaped."""
    # Every command comes by here when it starts, and few of them write a page.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    found = Environment(
        loader=PackageLoader("conformance.reports", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: svg.plain(value) if type(value) is str else value,
    )
    found.filters["prose"] = _prose
    found.filters["explained"] = _explained
    found.filters["label"] = _label
    found.globals["term"] = _term
    return found


@cache
def part(name: str) -> str:
    """A file of `page/`."""
    return (resources.files("conformance.reports") / "page" / name).read_text(encoding="utf-8")


def _markup(drawing: str) -> Markup:
    """What our own writer has escaped."""
    return Markup(drawing)


_WORDS = re.compile(r"`([^`]+)`|\*([^*\s][^*]*)\*")


def _prose(paragraph: str) -> Markup:
    """A docstring's words: `code` and *emphasis* as such, all else escaped; a word that the glossary has is explained
    where it comes first."""
    parts: list[Markup] = []
    at, told = 0, set[str]()
    for found in _WORDS.finditer(paragraph):
        parts.append(_explained(paragraph[at : found.start()], told))
        tag = "code" if found[1] else "em"
        parts.append(Markup("<{0}>{1}</{0}>").format(Markup(tag), svg.plain(found[1] or found[2])))
        at = found.end()
    return Markup("").join([*parts, _explained(paragraph[at:], told)])


@cache
def _forms() -> tuple[re.Pattern[str], Mapping[str, str]]:
    """What finds words of the glossary in running text, and the name that each form stands for."""
    forms = {form: word.name for word in glossary.words() for form in word.forms}
    longest_first = sorted(forms, key=len, reverse=True)
    return re.compile(rf"\b({'|'.join(map(re.escape, longest_first))})\b", re.IGNORECASE), forms


def _explained(sentence: str, told: set[str] | None = None) -> Markup:
    """Escaped, and each word of the glossary linked to its meaning where it comes first. told: which were before."""
    find, forms = _forms()
    told = set() if told is None else told
    parts: list[Markup] = []
    at = 0
    sentence = svg.plain(sentence)
    for found in find.finditer(sentence):
        name = forms[found[1].lower()]
        if name not in told:
            told.add(name)
            parts += [escape(sentence[at : found.start()]), _term(name, found[1])]
            at = found.end()
    return Markup("").join([*parts, escape(sentence[at:])])


def _term(name: str, text: str | None = None) -> Markup:
    """A word that leads to what it means; the script shows that beside it. text: how it is put, if otherwise."""
    anchor = glossary.word(name).anchor
    return Markup('<a class="term" href="#word-{0}" aria-describedby="means-{0}">{1}</a>').format(
        anchor, name if text is None else text
    )


_LABELS: Mapping[str, str] = {
    "target": "target",
    "profile": "profile",
    "run": "run",
    "recorded at the levels": "level",
    "reached": "abstract state",
}
"""Of the facts about a run, the labels that the glossary has, by the word that explains each."""


def _label(name: str) -> Markup:
    return _term(_LABELS[name], name) if name in _LABELS else escape(svg.plain(name))


def _json(data: Any) -> Markup:
    """Data in a script element: no end of the element can be in it, nor a line that a script would break."""
    written = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    for sign in "<>&":
        written = written.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(written)


def _command(verdict: VerdictView, *words: str) -> str:
    """A command of ours on the run."""
    folder = str(verdict.folder) if verdict.folder is not None else "RUN"
    return shlex.join(["inorder", words[0], folder, *words[1:]])


# ----------------------------------------------------------------------------------------- what broke


@dataclass(frozen=True, slots=True)
class FailureBlock:
    """One clause that broke, or may have. events: those around the violation, where they are in the history."""

    clause: ClauseView
    word: str
    keepers: str
    picture: Markup | None
    evidence: str
    often: str
    sources: tuple[str, ...]
    events: tuple[EventLine, ...]
    explain: str


@dataclass(frozen=True, slots=True)
class EventLine:
    """One event around a violation, in words for a table and for the filters."""

    at: str
    who: str
    what: str
    lane: str
    offset: str
    key: str
    outcome: str
    detail: str
    evidence: bool


def _failure(
    verdict: VerdictView, clause: ClauseView, context: Sequence[Row], run: Overview | None
) -> FailureBlock:
    often = ""
    if clause.opportunities:
        at_stake = text.times(clause.opportunities)
        often = f"broken {text.times(clause.violations)}; at stake {at_stake}"
    near = () if run is None else run.around.get(clause.id, ())
    proof = {row.seq_begin for row in clause.witness}
    return FailureBlock(
        clause=clause,
        word=text.WORDS[clause.verdict].upper(),
        keepers=text.keepers(verdict, clause),
        picture=_markup(svg.render(swimlanes.picture(clause, context))) if clause.witness else None,
        evidence=text.events_of(clause),
        often=often,
        sources=text.sources(clause.id),
        events=tuple(_event(row, row.seq_begin in proof) for row in near),
        explain=_command(verdict, "explain", "--clause", clause.id),
    )


_VERBS = {kind: verb for verb, kind in VERBS.items()}


def _event(row: Row, evidence: bool) -> EventLine:
    offset = row.value if row.queue_offset is None else row.queue_offset
    again = f" r{row.reconsume_times}" if row.reconsume_times else ""
    lane = "" if row.queue_id is None else str(row.lane if row.group else row.queue)
    return EventLine(
        at=seconds(row.started_us),
        who=party(row),
        what=_VERBS[row.kind],
        lane=lane,
        offset="" if offset is None else f"{offset}{again}",
        key=row.sharding_key or "",
        outcome=row.outcome.value,
        detail=row.detail or "",
        evidence=evidence,
    )


# -------------------------------------------------------------------------------------------- clauses


@dataclass(frozen=True, slots=True)
class ClauseLine:
    """One clause in its family's table. bar and floor: per cent of the widest bar."""

    clause: ClauseView
    sign: str
    word: str
    bar: str
    floor: str
    why: str


@dataclass(frozen=True, slots=True)
class FamilyBlock:
    """A family's clauses, and how many of them came to what."""

    name: str
    counts: tuple[tuple[str, str, int], ...]  # (sign, word, how many)
    lines: tuple[ClauseLine, ...]


def _by_family(verdict: VerdictView) -> list[FamilyBlock]:
    most = max((max(c.opportunities, c.floor) for c in verdict.clauses), default=0)
    return [
        FamilyBlock(
            name,
            tuple(
                (SIGNS[word], text.WORDS[word].lower(), count)
                for word in ClauseVerdict
                if (count := sum(clause.verdict is word for clause in clauses))
            ),
            tuple(_line(verdict, clause, most) for clause in clauses),
        )
        for name, clauses in families(verdict.clauses)
    ]


def _line(verdict: VerdictView, clause: ClauseView, most: int) -> ClauseLine:
    refuted = clause.verdict is ClauseVerdict.REFUTED and not clause.hidden
    return ClauseLine(
        clause,
        SIGNS[clause.verdict],
        text.WORDS[clause.verdict].lower(),
        _share(clause.opportunities, most),
        _share(clause.floor, most),
        clause.happened if refuted else clause.reason or power.worth(verdict, clause),
    )


def _share(count: int, most: int) -> str:
    """Where a count lies on the way to the largest one, on a scale of powers of ten, in per cent."""
    return f"{100 * math.log10(1 + count) / math.log10(1 + most):.1f}" if most else "0"


@dataclass(frozen=True, slots=True)
class ClausePage:
    """What a clause says, in full: the page that the table links to."""

    view: ClauseView
    paragraphs: tuple[str, ...]
    facts: tuple[str, ...]
    examples: tuple[tuple[str, str], ...]
    explain: str
    page: str
    address: str | None


def _page_of(verdict: VerdictView, clause: ClauseView) -> ClausePage:
    promise = _promises().get(clause.id)
    explain = _command(verdict, "explain", "--clause", clause.id)
    if isinstance(promise, Promise):
        paragraphs = tuple(" ".join(part.split()) for part in promise.doc.split("\n\n"))
        facts = tuple(_facts_of(promise))
        shown = tuple(_examples(promise)) if isinstance(promise, Clause) else ()
        return ClausePage(clause, paragraphs, facts, shown, explain, *_document(clause.id))
    facts = (f"Source: {promise.source}.",) if isinstance(promise, WireRule) else ()
    told = "A wire rule: a raw client held the broker's answers against it while the run went on."
    paragraphs = (told,) if promise is not None else ()
    return ClausePage(clause, paragraphs, facts, (), explain, *_document(clause.id))


def _document(clause_id: str) -> tuple[str, str | None]:
    """The clause's page in the docs: its path, and its address where the project has one."""
    page = clause_page(clause_id)
    return ("", None) if page is None else (page, web(page))


@cache
def _promises() -> Mapping[str, Promise | WireRule]:
    return {**RULES, **{promise.id: promise for promise in catalogue()}}


def _facts_of(promise: Promise) -> Iterator[str]:
    yield from (f"Premise, {premise.name}: {premise.text}." for premise in promise.premise)
    yield f"Sources: {', '.join(promise.sources)}."
    if isinstance(promise, Clause):
        yield f"Needs rows of: {', '.join(sorted(kind.value for kind in promise.needs))}."
        yield f"Finds: {', '.join(promise.findings)}."
    if promise.refines:
        yield f"A special case of {', '.join(promise.refines)}."
    if promise.rules:
        yield f"Asked on the wire: {', '.join(promise.rules)}."


def _examples(clause: Clause) -> Iterator[tuple[str, str]]:
    """The shortest violation, and one history that only looks so."""
    for expected, head in (
        (Expected.BROKEN, "Broken"),
        (Expected.KEPT, "Allowed, though it looks wrong"),
    ):
        found = next((each for each in clause.examples if each.expected is expected), None)
        if found is not None:
            yield f"{head}: {found.why}", found.text.strip("\n")


# ---------------------------------------------------------------------------------------- the whole run


def _headline(verdict: VerdictView) -> str:
    """What broke, in a line; or why nothing more can be said."""
    if verdict.failures:
        names = [clause.name for clause in verdict.failures]
        more = f", and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        return f"What broke: {', '.join(names[:_MOST_NAMED])}{more}."
    match verdict.verdict:
        case RunVerdict.UPHELD:
            return (
                f"{verdict.count(ClauseVerdict.UPHELD)} clauses were at stake, and all were kept."
            )
        case RunVerdict.INCONCLUSIVE:
            return (
                "Nothing was refuted, but not everything could be told: see the checks of the run."
            )
        case _:
            return "See the checks of the run."


def _facts(verdict: VerdictView, history: History | None) -> list[tuple[str, str]]:
    facts = [
        ("target", verdict.target),
        ("profile", verdict.profile),
        ("seed", str(verdict.seed)),
        ("run", verdict.run),
        *((role, name) for role, name in sorted(verdict.parties.items())),
        ("recorded at the levels", ", ".join(verdict.levels)),
    ]
    if verdict.events is not None:
        facts.append(("events", f"{verdict.events:,}"))
    facts += [(name, str(value)) for name, value in sorted(verdict.tool.items())]
    if verdict.cut:
        facts.append(("the history was cut", ", ".join(verdict.cut)))
    for line in (*text.coverage_lines(verdict), *text.search_lines(verdict)):
        name, _, told = line.plain.partition(": ")
        facts.append((name, told))
    if history is not None:
        facts.append(("history", _named(history)))
    return facts


def _settings(history: History | None) -> list[tuple[str, str]]:
    """What the system was told."""
    if history is None:
        return []
    config = history.info.config
    return [
        ("system", config.system),
        *((name, str(value)) for name, value in sorted(config.to_json().items())),
    ]


def _search(verdict: VerdictView) -> Markup | None:
    """How what a search has reached grew from run to run; None where nobody wrote that down."""
    growth = () if verdict.coverage is None else verdict.coverage.growth
    if len(growth) < 2:
        return None
    title = "Abstract states that the search had reached"
    curve = {"states": [(float(runs), float(states)) for runs, states in growth]}
    drawn = plots.lines("search", title, curve, plots.Axis("runs"), plots.Axis("states"))
    return _markup(svg.render(drawn))


def _befell(run: Overview) -> Iterator[tuple[int, str, str, str, str]]:
    """(number, since the run's begin, for how long, what, what it did)."""
    for number, row in enumerate(run.befell, start=1):
        lasted = "" if row.ended_us is None else seconds(row.ended_us - row.started_us)
        if row.ended_us == row.started_us:
            lasted = "–"
        since = seconds(row.started_us - run.start_us)
        yield number, since, lasted or "did not end", befell(row), row.view or ""


def lane_data(run: Overview) -> dict[str, Any]:
    """What the script draws lanes of, in bins; messages of a bin as a digit, ninths of the lane's most."""

    def since(at_us: int) -> float:
        return round((at_us - run.start_us) / run.bin_us, 1)

    return {
        "bins": run.bins,
        "binUs": run.bin_us,
        "faults": [
            [since(row.started_us), since(run.end_us if row.ended_us is None else row.ended_us)]
            for row in run.befell
            if row.kind in (Kind.FAULT, Kind.PAUSE)
        ],
        "ticks": [[round(at / run.bin_us, 1), label] for at, label in ticks(run)],
        "owners": [svg.plain(name) for name in run.owners],
        "marks": [[svg.plain(clause), since(at_us)] for clause, at_us in run.at_us.items()],
        "lanes": [
            [
                svg.plain(lane.name),
                lane.events,
                int(lane.found),
                [number for stretch in lane.owners for number in stretch],
                max(lane.delivered, default=0),
                _digits(lane.delivered),
            ]
            for lane in run.lanes
        ],
    }


def _digits(counts: Sequence[int]) -> str:
    most = max(counts, default=0)
    return "".join(str(math.ceil(9 * count / most)) for count in counts) if most else ""


def _named(history: History) -> str:
    """By what path a command opens it: a file's own, or its folder."""
    return str(history.parquet[0] if history.is_a_file and history.parquet else history.folder)


def _missing(
    verdict: VerdictView,
    history: History | None,
    run: Overview | None,
    *,
    whole: bool,
    unread: str,
) -> Iterator[tuple[str, str]]:
    """(what this file does not hold, the command that shows it)."""
    named = "HISTORY" if history is None else _named(history)
    events = shlex.join(["inorder", "explain", named, "--lane", "LANE"])
    if history is None:
        yield (
            "The history of the run was not there when the page was written.",
            verdict.replay or "",
        )
    elif run is None and not whole:
        elsewhere = history.folder != verdict.folder
        page = _command(
            verdict, "report", "--format", "html", *(("--history", named) if elsewhere else ())
        )
        told = f"A view of the whole run: it has more than {MOST_BINNED:,} events."
        yield told, f"{page} > {FILE}"
    elif unread:
        yield f"A view of the whole run: its history could not be read ({unread}).", ""
    elif run is None:
        yield "A view of the whole run: the history holds no events.", verdict.replay or ""
    else:
        if run.all_lanes > len(run.lanes):
            left = run.all_lanes - len(run.lanes)
            yield f"{left:,} more lanes, which have fewer events.", events
        if run.runs > 1:
            told = f"The other {run.runs - 1:,} runs of the history: shown is {run.run}."
            yield told, events
        gone = [c.id for c in verdict.failures if c.witness and c.id not in run.around]
        if gone:
            told = f"Events around {', '.join(gone)}: they are of a run whose history is not kept here."
            yield told, verdict.replay or ""
    if history is not None:
        yield f"Single events, but for {MOST_EVENTS} around each finding.", events
    several = [c for c in verdict.failures if c.violations > 1]
    if several and history is not None:
        told = f"More than the first violation of each clause ({', '.join(c.id for c in several)})."
        yield (
            told,
            shlex.join(["inorder", "check", named, "--findings", "DIR", "--engine", "arrow"]),
        )
