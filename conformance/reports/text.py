"""A verdict for people: a table of clauses, the story of each failure, and one closing sentence.

A failure must be understood by somebody who has seen none of the code: what was promised, by whom, what happened,
a drawing, the events, and how to see it again.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from conformance.reports.incident import incident_of
from conformance.reports.timeline import drawing
from conformance.reports.view import CheckView, ClauseView, ExposureView, VerdictView, families
from conformance.reports.visible import visible
from specs.clauses.catalogue import by_id
from specs.clauses.clause import ORDER
from specs.history.row import Row
from specs.history.text import render_rows
from specs.links import clause_page, link
from specs.model.rules import RULES
from specs.verdicts.verdict import OURS, ClauseVerdict, Ended, Further, NotJudged, RunVerdict

WORDS: dict[ClauseVerdict, str] = {
    ClauseVerdict.UPHELD: "upheld",
    ClauseVerdict.REFUTED: "REFUTED",
    ClauseVerdict.POSSIBLE: "possible",
    ClauseVerdict.NOT_EXERCISED: "not exercised",
    ClauseVerdict.NOT_RECORDED: "not recorded",
    ClauseVerdict.NOT_CLAIMED: "not claimed",
    ClauseVerdict.ALLOWED: "allowed",
}
COLOURS: dict[ClauseVerdict, str] = {
    ClauseVerdict.UPHELD: "green",
    ClauseVerdict.REFUTED: "bold red",
    ClauseVerdict.POSSIBLE: "yellow",
    ClauseVerdict.NOT_EXERCISED: "yellow",
    ClauseVerdict.NOT_RECORDED: "dim",
    ClauseVerdict.NOT_CLAIMED: "dim",
    ClauseVerdict.ALLOWED: "cyan",
}
KNOWN_WORDS = {"seen": "known", "not_seen": "no longer", "not_told": "known", "expired": "expired"}
NOT_JUDGED_WORDS: dict[NotJudged, str] = {
    NotJudged.NOT_PROMISED: "not promised by {profile}",
    NotJudged.PREMISE: "with a premise that such a run does not meet",
    NotJudged.NO_SETTING: "resting on a setting that nobody has told",
    NotJudged.OUT_OF_REACH: "out of reach of such a run",
    NotJudged.OWN_CODE: "kept by our own code only",
    NotJudged.NOT_RECORDED: "in need of rows that nobody tells",
}
"""Of how many clauses nothing came, why."""
_RUN_COLOURS: dict[RunVerdict, str] = {
    RunVerdict.UPHELD: "bold green",
    RunVerdict.REFUTED: "bold red",
    RunVerdict.INCONCLUSIVE: "bold yellow",
    RunVerdict.INADMISSIBLE: "bold red",
}
_INDENT = 14
_HANG = 8


def clause_table(verdict: VerdictView) -> Table:
    """One line per clause that was claimed and at stake, grouped by family."""
    shown = [clause for clause in verdict.clauses if _in_table(clause)]
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    table.add_column("clause", no_wrap=True)
    table.add_column("promise", max_width=50)
    table.add_column("kept by", no_wrap=True)
    table.add_column("made by", max_width=34, overflow="fold")
    table.add_column("verdict", no_wrap=True)
    table.add_column("at stake", justify="right", no_wrap=True)
    for _family, clauses in families(shown):
        for clause in clauses:
            table.add_row(
                Text(clause.id),
                Text(clause.title),
                Text(clause.party),
                Text(_made_by(clause)),
                Text(WORDS[clause.verdict], style=COLOURS[clause.verdict]),
                Text(_at_stake(clause)),
            )
        table.add_section()
    return table


def set_aside(verdict: VerdictView, width: int) -> list[Text]:
    """Why a clause is allowed, or has no line in the table; a line for each reason."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for clause in verdict.clauses:
        if clause.hidden:
            reasons.setdefault(("refuted too", clause.reason), []).append(clause.id)
        elif clause.verdict in (ClauseVerdict.NOT_CLAIMED, ClauseVerdict.NOT_RECORDED):
            reasons.setdefault((WORDS[clause.verdict], clause.reason), []).append(clause.id)
        elif clause.verdict is ClauseVerdict.ALLOWED:
            reasons.setdefault(("allowed", clause.reason), []).append(clause.id)
        elif not _in_table(clause):
            reasons.setdefault(("not exercised", "never at stake"), []).append(clause.id)
    lines: list[Text] = []
    for (word, reason), names in sorted(reasons.items()):
        told = textwrap.wrap(f"{', '.join(names)}: {reason}", width - 15, break_on_hyphens=False)
        lines += [
            Text(f"{word if n == 0 else '':<14} {line}", style="dim") for n, line in enumerate(told)
        ]
    return lines


def not_judged_lines(verdict: VerdictView, width: int) -> list[Text]:
    """Of how many clauses nothing came, for each reason: the numbers of the closing sentence, taken apart."""
    why = Counter(clause.not_judged for clause in verdict.clauses)
    told = [
        f"{why[each]} {words.format(profile=verdict.profile)}"
        for each, words in NOT_JUDGED_WORDS.items()
        if why[each]
    ]
    idle = sum(
        clause.verdict is ClauseVerdict.NOT_EXERCISED and not clause.opportunities
        for clause in verdict.clauses
    )
    told += [f"{idle} never at stake"] if idle else []
    lines = textwrap.wrap("; ".join(told), width - 15, break_on_hyphens=False)
    return [
        Text(f"{'not judged' if n == 0 else '':<14} {line}", style="dim")
        for n, line in enumerate(lines)
    ]


def parties_line(verdict: VerdictView) -> Text:
    """Who made what was judged, in full: the table has short names."""
    named = " · ".join(f"{role}: {name}" for role, name in verdict.parties.items())
    return Text(named or "nobody is named for what was judged", style="dim")


def _in_table(clause: ClauseView) -> bool:
    """What is set aside below: not claimed, not recorded, never at stake, told by a more specific clause."""
    idle = clause.verdict is ClauseVerdict.NOT_EXERCISED and not clause.opportunities
    return not (
        clause.hidden
        or idle
        or clause.verdict in (ClauseVerdict.NOT_CLAIMED, ClauseVerdict.NOT_RECORDED)
    )


def check_lines(checks: Sequence[CheckView]) -> list[Text]:
    """A line for each check of the run that failed, or one line that says all is well."""
    failed = [check for check in checks if check.ok is False]
    if not failed:
        done = sum(check.ok is True for check in checks)
        return (
            [Text(f"checks of the run: {done} of {len(checks)} made, all passed", style="dim")]
            if checks
            else []
        )
    return [Text.assemble(("check failed  ", "bold yellow"), _told(check)) for check in failed]


MOST_FAULTS = 12
"""A report that is read in a terminal tells no more of them; the others stand in the run's folder."""


def fault_lines(verdict: VerdictView) -> list[Text]:
    """A line for each fault that was done on purpose: when it was, and what shows its effect."""
    told = verdict.told_faults
    lines = [
        Text.assemble(
            ("fault         ", "dim" if fault.effective else "bold yellow"),
            (f"{fault.name}, {fault.lasted}: {fault.evidence}", "dim"),
        )
        for fault in told[:MOST_FAULTS]
    ]
    left = len(told) - len(lines)
    return lines + ([Text(f"              and {left} more", style="dim")] if left else [])


def known_lines(verdict: VerdictView) -> list[Text]:
    """A line for each entry of the baseline; what somebody should look at stands out."""
    return [
        Text(
            f"{KNOWN_WORDS[entry.state]:<14}{entry.told}",
            style="dim" if entry.state in ("seen", "not_told") else "yellow",
        )
        for entry in verdict.known
    ]


def order_lines(verdict: VerdictView) -> list[Text]:
    """A warning where a run is upheld and no promise of order was: that is no answer to what is asked of it most."""
    of_order = [
        clause
        for clause in verdict.clauses
        if clause.id.startswith(ORDER) and clause.not_judged is not NotJudged.NOT_PROMISED
    ]
    kept = (ClauseVerdict.UPHELD, ClauseVerdict.ALLOWED)
    if (
        verdict.verdict is not RunVerdict.UPHELD
        or not of_order
        or any(clause.verdict in kept for clause in of_order)
    ):
        return []
    named = ", ".join(clause.id for clause in of_order)
    return [Text(f"of order nothing was judged: neither of {named}", style="bold yellow")]


def coverage_lines(verdict: VerdictView) -> list[Text]:
    """How much of what a cluster can meet the search has seen, and whether more runs would see more."""
    coverage = verdict.coverage
    if coverage is None:
        return []
    grows = (
        f"{coverage.new_at_the_end} of them new in the last tenth"
        if coverage.new_at_the_end
        else "none new lately"
    )
    reached = Text(
        f"reached: {coverage.states} abstract states in {coverage.runs} runs, {grows}", style="dim"
    )
    return [
        reached,
        *(_further_lines(coverage.further, verdict) if coverage.further is not None else ()),
    ]


def search_lines(verdict: VerdictView) -> list[Text]:
    """What a search did that was told how long, by how many or how far to go, or that was cut short."""
    search = verdict.search
    if search is None:
        return []
    runs = str(search.runs)
    by = f" by {search.workers} workers" if search.workers > 1 else ""
    match search.ended:
        case Ended.BUDGET:
            why = f"until its {search.budget_s:g} s were over"
        case Ended.REFUTED:
            why = "until a clause was refuted"
        case Ended.INTERRUPTED:
            runs += "" if search.most is None else f" of {search.most}"
            why = "cut short by Ctrl-C"
        case Ended.FINISHED:
            why = "all that were asked for"
    cut = search.ended is Ended.INTERRUPTED
    word = "run" if runs == "1" else "runs"
    return [Text(f"searched: {runs} {word}{by}, {why}", style="yellow" if cut else "dim")]


def _further_lines(further: Further, verdict: VerdictView) -> list[Text]:
    """That the search went on, for which clauses, and which of them it could not bring to their floor."""
    short = [
        f"{c.id} {c.opportunities} of {c.floor}" for c in verdict.of(ClauseVerdict.NOT_EXERCISED)
    ]
    made = f"{further.runs} further runs of at most {further.most}, for {', '.join(further.sought)}"
    if short and further.runs >= further.most:
        return [Text(f"went on: {made}; they ran out at {', '.join(short)}", style="yellow")]
    return [Text(f"went on: {made}", style="dim")]


def _told(check: CheckView) -> str:
    return (
        f"{check.id} {check.title}: {check.detail}" if check.detail else f"{check.id} {check.title}"
    )


def closing(verdict: VerdictView) -> str:
    """The verdict in one sentence: the word, how many of what, and what makes it no better."""
    word, _, counts = counted(verdict).partition(": ")
    why = f"{verdict.distrust}; " if verdict.distrust else ""
    sentence = f"{word}  {verdict.target} under {verdict.profile}: {why}{counts}"
    if verdict.cut:
        sentence += f"; the history was cut ({', '.join(verdict.cut)})"
    if verdict.search is not None and verdict.search.ended is Ended.INTERRUPTED:
        sentence += "; the search was cut short"
    return sentence


def counted(verdict: VerdictView) -> str:
    """The verdict's word, and how many of what."""
    counts = [
        f"{verdict.count(each)} {WORDS[each].lower()}"
        for each in ClauseVerdict
        if verdict.count(each) or each is ClauseVerdict.UPHELD
    ]
    return f"{verdict.verdict.value.upper()}: {', '.join(counts)}"


def report(
    verdict: VerdictView, *, width: int, context: Sequence[Row] = (), whole: bool = True
) -> RenderableType:
    """Everything: table, checks, failures, closing sentence. Not the whole: what is not green, and that sentence."""
    parts: list[RenderableType] = []
    if whole:
        parts += [Text(f"INADMISSIBLE  {verdict.distrust}", "bold red")] if verdict.distrust else []
        parts += [parties_line(verdict), Text()]
        shown = any(_in_table(clause) for clause in verdict.clauses)
        parts += [clause_table(verdict)] if shown else []
        parts += [*set_aside(verdict, width), Text()]
    for clause in verdict.failures:
        parts += [coloured(failure(verdict, clause, width=width, context=context)), Text()]
    if whole:
        for each in verdict.exposures:
            parts += [coloured(exposure(each, width=width)), Text()]
    if whole or any(check.ok is False for check in verdict.met):
        parts += [*fault_lines(verdict), *check_lines(verdict.met)]
    parts += [line for line in known_lines(verdict) if whole or line.style != "dim"]
    if whole:
        parts += [*coverage_lines(verdict), *search_lines(verdict)]
        parts += not_judged_lines(verdict, width)
    parts += order_lines(verdict)
    parts.append(closing_line(verdict))
    return Group(*parts)


def closing_line(verdict: VerdictView) -> Text:
    """The closing sentence in the verdict's colour."""
    return Text(closing(verdict), style=_RUN_COLOURS[verdict.verdict])


def plain(verdict: VerdictView, clause: ClauseView, *, width: int, doc: str = "") -> str:
    """A clause without a witness: what it promises and what came of it."""
    lines = [f"{WORDS[clause.verdict].upper()}  {clause.id} {clause.title}"]
    lines += _item("promised:", clause.statement, width)
    lines += _item("owed by:", keepers(verdict, clause), width)
    lines += _item("at stake:", f"{times(clause.opportunities)} (floor {clause.floor})", width)
    if clause.reason:
        lines += _item("because:", _sentence(clause.reason), width)
    lines += _page(clause, width)
    for number, paragraph in enumerate(doc.split("\n\n")):
        lines += (
            ["", *_item("in words:" if number == 0 else "", " ".join(paragraph.split()), width)]
            if doc
            else []
        )
    return "\n".join(lines)


def runs_table(verdicts: Sequence[VerdictView]) -> Table:
    """One line per run: the closing table of a report on several."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    table.add_column("target", overflow="fold")
    table.add_column("profile", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    for column in ("upheld", "refuted", "idle", "others"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("refuted in")
    for verdict in verdicts:
        counts = [verdict.count(each) for each in (ClauseVerdict.UPHELD, ClauseVerdict.REFUTED)]
        idle = verdict.count(ClauseVerdict.NOT_EXERCISED)
        others = len(verdict.clauses) - sum(counts) - idle
        table.add_row(
            Text(verdict.target),
            Text(verdict.profile),
            Text(verdict.verdict.value, style=_RUN_COLOURS[verdict.verdict]),
            *(str(number) for number in (*counts, idle, others)),
            Text(", ".join(clause.id for clause in verdict.failures)),
        )
    return table


def coloured(block: str) -> Text:
    """The block with its first word, the verdict, in colour. Its lines stay whole: a command is to be copied."""
    text = Text(block, no_wrap=True, overflow="ignore")
    word = block.split(" ", 1)[0]
    text.stylize(
        "bold red" if word == WORDS[ClauseVerdict.REFUTED] else "bold yellow", 0, len(word)
    )
    return text


def failure(
    verdict: VerdictView, clause: ClauseView, *, width: int = 100, context: Sequence[Row] = ()
) -> str:
    """The story of one failure, as plain text at most `width` wide (events may be wider: they are never cut)."""
    lines = [_head(verdict, clause, width)]
    lines += _item("promised:", clause.statement, width)
    lines += _item("owed by:", keepers(verdict, clause), width)
    if clause.explanation:
        lines += _item("happened:", _sentence(clause.explanation), width)
    if clause.findings:
        lines += _item("finding:", ", ".join(clause.findings), width)
    if clause.reason:
        lines += _item("note:", _sentence(clause.reason), width)
    if clause.witness:
        what = incident_of(clause.witness, context)
        lines += _block("timeline:", drawing(what, width=width - _INDENT))
        lines += _block("events:", _hang(events_of(clause), width - _INDENT))
    if clause.opportunities:
        often = f"broken {times(clause.violations)}; at stake {times(clause.opportunities)}"
        lines += _item("how often:", often, width)
    if verdict.rate is not None and clause.id in verdict.rate.clauses:
        lines += _item("rate:", f"broken again in {verdict.rate}", width)
    lines += _page(clause, width)
    said_in = sources(clause.id)
    if said_in:
        lines += _item("source:", ", ".join(said_in), width)
    if verdict.replay:
        lines += _item("replay:", verdict.replay, 10_000)
    return "\n".join(lines)


def exposure(found: ExposureView, *, width: int = 100) -> str:
    """What a stepped wall clock let happen, as plain text like a failure's."""
    lines = [f"EXPOSED  {found.clause} {found.title}"]
    lines += _item("stepped:", f"{found.stepped}, {found.after_ms} ms before", width)
    lines += _item("happened:", _sentence(found.explanation), width)
    lines += _block("events:", _hang(since(found.rows) + events(found.rows), width - _INDENT))
    lines += _item("how often:", f"seen {times(found.times)}", width)
    lines += _item("note:", EXPOSED, width)
    return "\n".join(lines)


EXPOSED = (
    "no promise is broken: that nobody steps a wall clock is a premise of it. "
    "It changes neither the verdict nor the exit code."
)
"""What an exposure is, where one is told."""


class Visible:
    """A renderable whose text has its control characters spelt out; colours stay."""

    def __init__(self, what: RenderableType) -> None:
        self._what = what

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for part in console.render(self._what, options):
            yield part if part.control else Segment(visible(part.text), part.style)


def render(renderable: RenderableType, *, width: int = 100) -> str:
    """A renderable as plain text, for files."""
    console = Console(
        width=width,
        file=None,
        record=False,
        force_terminal=False,
        color_system=None,
        highlight=False,
    )
    with console.capture() as capture:
        console.print(Visible(renderable), crop=False)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def _page(clause: ClauseView, width: int) -> list[str]:
    """Where the clause is told in full."""
    page = clause_page(clause.id)
    return [] if page is None else _item("clause:", link(page), width)


def sources(clause_id: str) -> tuple[str, ...]:
    """Where it is said that the promise of a clause or wire rule was made."""
    if clause_id in RULES:
        return (link(RULES[clause_id].source),)
    return tuple(map(link, by_id()[clause_id].sources)) if clause_id in by_id() else ()


def events(witness: Sequence[Row]) -> str:
    """The events in the text notation, by client: a client that starts again in its process has another name."""
    return render_rows([row._replace(process=row.party) for row in witness])


def events_of(clause: ClauseView) -> str:
    """The witness in the text notation, and from when its times count; empty where there is none."""
    return since(clause.witness) + events(clause.witness) if clause.witness else ""


def since(rows: Sequence[Row]) -> str:
    """A line that says from when the times of events count; empty where that is the clock's 0."""
    base_us = min((row.started_us for row in rows), default=0)
    return f"# times count from {base_us / 1_000_000:.3f} s\n" if base_us else ""


def times(number: int) -> str:
    """`once`, or `1,204 times`."""
    return "once" if number == 1 else f"{number:,} times"


def _head(verdict: VerdictView, clause: ClauseView, width: int) -> str:
    word = WORDS[clause.verdict].upper()
    left = f"{word}  {clause.id} {clause.title}"
    right = f"seed {verdict.seed}"
    if clause.witness:
        right += f"   {len(clause.witness)} event{'' if len(clause.witness) == 1 else 's'}"
        right += f" of {verdict.events:,}" if verdict.events else ""
    return f"{left}{' ' * max(2, width - len(left) - len(right))}{right}"


def keepers(verdict: VerdictView, clause: ClauseView) -> str:
    """Who was to keep a promise, by role and name."""
    roles = [role for role in ("broker", "client", "producer") if role == clause.party]
    if clause.party == "pair":
        roles = ["client", "broker"]
    named = [f"{role} {verdict.parties.get(role, 'unknown')}" for role in roles]
    return f"the {' and the '.join(named)}" if named else clause.party


def _made_by(clause: ClauseView) -> str:
    return " + ".join(dict.fromkeys(short_name(name) for name in clause.implementations)) or "–"


def short_name(name: str) -> str:
    """Our own code is `reference` or `mutant`; others keep their name."""
    ours, _, rest = name.partition(" ")
    return rest.split(" ")[0] if ours == OURS and rest else name


def _at_stake(clause: ClauseView) -> str:
    """How often; beside the floor where that was not reached."""
    if clause.verdict is ClauseVerdict.NOT_EXERCISED:
        return f"{clause.opportunities:,} of {clause.floor:,}"
    return f"{clause.opportunities:,}"


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _item(name: str, text: str, width: int) -> list[str]:
    wrapped = textwrap.wrap(
        text, max(30, width - _INDENT), break_long_words=False, break_on_hyphens=False
    ) or [""]
    return [
        f"  {name:<{_INDENT - 2}}{wrapped[0]}",
        *(f"{'':<{_INDENT}}{line}" for line in wrapped[1:]),
    ]


def _block(name: str, text: str) -> list[str]:
    first, *rest = text.splitlines() or [""]
    return [
        f"  {name:<{_INDENT - 2}}{first}".rstrip(),
        *(f"{'':<{_INDENT}}{line}".rstrip() for line in rest),
    ]


def _hang(text: str, width: int) -> str:
    """Lines longer than `width` go on in the next line, further in."""
    lines: list[str] = []
    for line in text.splitlines():
        while len(line) > width and (cut := line.rfind("  ", _HANG + 1, width)) > 0:
            lines.append(line[:cut])
            line = f"{'':<{_HANG}}{line[cut:].lstrip()}"
        lines.append(line)
    return "\n".join(lines)


def write(
    path: Path, verdict: VerdictView, *, width: int = 100, context: Sequence[Row] = ()
) -> None:
    """The whole report as a text file."""
    path.write_text(
        render(report(verdict, width=width, context=context), width=width), encoding="utf-8"
    )
