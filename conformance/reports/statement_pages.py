"""A statement as Markdown, as one page of HTML, and as a badge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from xml.etree import ElementTree

from markupsafe import Markup

from conformance.reports import svg
from conformance.reports.html import SIGNS, part, templates
from conformance.reports.power import percent
from conformance.reports.statement import (
    Line,
    Statement,
    examples,
    one_in,
    promises,
    run_json,
    word,
)
from conformance.reports.text import times
from conformance.reports.view import VerdictView
from specs.clauses.clause import Clause
from specs.verdicts.verdict import ClauseVerdict, RunVerdict

_ASIDE = (
    (ClauseVerdict.NOT_EXERCISED, "Not exercised", "At stake too seldom to say anything."),
    (ClauseVerdict.NOT_RECORDED, "Not recorded", "Nobody saw what these clauses look at."),
    (
        ClauseVerdict.NOT_CLAIMED,
        "Not claimed",
        "Of these the profile, or such a run, says nothing.",
    ),
)
HOW_GOOD = (
    "*Rate seen*: had the system broken the promise at this rate, or oftener, among the times at stake, it would "
    "have shown with a chance of 95 % (about three over the times at stake; as if each of them were independent).",
    "*Planted bugs*: searches of the same kind were set on copies of our reference with one known bug each, which "
    "this clause is to find: how many of them every such search found, the slowest after how many runs, and the "
    "chance that as many runs as were made here find one of them, with the lower end of its interval of 95 %.",
    "The bugs are those that the project knows, in our reference: somebody's own bug may be rarer.",
)
"""What the two columns mean; the model is in `conformance.reports.power`."""


# ------------------------------------------------------------------------------------------ Markdown


def markdown(statement: Statement) -> str:
    """The document. Its first line is the verdict."""
    first, tool = statement.first, statement.judged_by
    lines = [
        f"# {statement.verdict.value.upper()}: {_cell(first.target)} under the profile {_cell(first.profile)}",
        "",
        f"{_cell(statement.sentence)}.",
        "",
        f"A conformance statement of {statement.day.isoformat()}.",
        "",
    ]
    lines += [f"- The {role} is {_cell(name)}." for role, name in first.parties.items()]
    lines += [
        f"- Judged by inorder {tool['inorder']}, code `{tool['code']}`, engine {tool['engine']}.",
        f"- Written by inorder {statement.tool['inorder']}, code `{statement.tool['code']}`.",
        f"- {_counted(statement)}.",
        "",
        "## Runs",
        "",
        "| run | seed | generated runs | events | verdict | again |",
        "|---|---:|---:|---:|---|---|",
    ]
    lines += [_row(_run_cells(run, tick="`")) for run in statement.runs]
    lines += _broken_lines(statement)
    lines += _failed_checks(statement)
    lines += _upheld_lines(statement)
    allowed = statement.of(ClauseVerdict.ALLOWED)
    if allowed:
        lines += [
            "",
            "## Allowed",
            "",
            "| clause | promise | at stake | what is let pass, and why |",
            "|---|---|---:|---|",
        ]
        lines += [
            _row((line.clause.id, line.clause.statement, f"{line.opportunities:,}", line.why))
            for line in allowed
        ]
    for verdict, head, told in _ASIDE:
        those = statement.of(verdict)
        if those:
            lines += ["", f"## {head}", "", told, ""]
            lines += [f"- {', '.join(names)}: {_cell(why)}." for why, names in _by_reason(those)]
    return "\n".join(lines) + "\n"


def _counted(statement: Statement) -> str:
    counts = statement.counts
    return ", ".join(
        f"{counts[word.value]} {word.value.replace('_', ' ')}"
        for word in ClauseVerdict
        if counts[word.value]
    )


def _run_cells(run: VerdictView, tick: str = "") -> tuple[str, ...]:
    made = examples(run)
    data = run_json(run)
    cut = " (cut short)" if data["cut_short"] else ""
    replay = f"{tick}{run.replay}{tick}" if run.replay else "–"
    return (
        str(run.folder or run.run),
        str(run.seed),
        "–" if made is None else f"{made:,}",
        "–" if run.events is None else f"{run.events:,}",
        f"{run.verdict.value}{cut}",
        replay,
    )


def _broken_lines(statement: Statement) -> list[str]:
    lines: list[str] = []
    for line in statement.broken:
        clause = line.clause
        lines += [
            "",
            f"## {word(line).capitalize()}: {clause.name}",
            "",
            f"- promised: {_cell(clause.statement)}",
            f"- kept by: {_cell(_made_by(line))}",
            f"- happened: {_cell(line.happened) or '–'}",
            f"- how often: broken {times(line.violations)}; at stake {times(line.opportunities)}",
        ]
        lines += [f"- finding: {', '.join(line.findings)}"] if line.findings else []
        lines += [f"- note: {_cell(line.reason)}"] if line.reason else []
        lines += [f"- again: `{line.replay}`"] if line.replay else []
    hidden = [line.clause.id for line in statement.lines if line.is_broken and line.clause.hidden]
    lines += ["", f"Broken by the same events: {', '.join(hidden)}."] if hidden else []
    return lines


def _failed_checks(statement: Statement) -> list[str]:
    failed = [check for check in statement.checks if check.ok is False]
    if not failed:
        return []
    told = [f"- {check.id} {check.title}: {_cell(check.detail)}" for check in failed]
    return ["", "## Checks of the run that failed", "", *told]


def _upheld_lines(statement: Statement) -> list[str]:
    upheld = statement.of(ClauseVerdict.UPHELD)
    if not upheld:
        return []
    return [
        "",
        "## Upheld",
        "",
        "| clause | promise | kept by | at stake | floor | rate seen | planted bugs | chance |",
        "|---|---|---|---:|---:|---|---|---|",
        *(
            _row(
                (
                    line.clause.id,
                    line.clause.statement,
                    _made_by(line),
                    f"{line.opportunities:,}",
                    f"{line.floor:,}",
                    *worth(line),
                )
            )
            for line in upheld
        ),
        "",
        *HOW_GOOD,
    ]


def worth(line: Line) -> tuple[str, str, str]:
    """How good `upheld` is: rate seen, planted bugs found, chance of a search like this."""
    rate = "–" if line.rate_seen is None else one_in(line.rate_seen)
    if line.power is None:
        return rate, "–", "–"
    such = line.power
    found = f"{such.found} of {len(such.bugs)}, the slowest after {such.slowest}"
    return rate, found, percent(such.chance(line.runs))


def _made_by(line: Line) -> str:
    made = " + ".join(dict.fromkeys(line.clause.implementations))
    return f"{line.clause.party} ({made})" if made else line.clause.party


def _by_reason(lines: Sequence[Line]) -> list[tuple[str, list[str]]]:
    found: dict[str, list[str]] = {}
    for line in lines:
        found.setdefault(line.reason or "no reason was told", []).append(line.clause.id)
    return list(found.items())


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


# ---------------------------------------------------------------------------------------------- HTML


def html(statement: Statement) -> str:
    """One page without script, server or network."""
    page = templates().get_template("statement.html.j2")
    return page.render(
        statement=statement,
        counted=_counted(statement),
        runs=[_run_cells(run) for run in statement.runs],
        failed=[check for check in statement.checks if check.ok is False],
        upheld=[(line, *worth(line)) for line in statement.of(ClauseVerdict.UPHELD)],
        allowed=statement.of(ClauseVerdict.ALLOWED),
        aside=[
            (SIGNS[verdict], head, told, _by_reason(statement.of(verdict)))
            for verdict, head, told in _ASIDE
            if statement.of(verdict)
        ],
        made_by=_made_by,
        times=times,
        word=word,
        how_good=HOW_GOOD,
        families=list(_by_family(statement)),
        badge=Markup(svg.render(badge(statement))),  # our own writer has escaped it
        style=Markup(part("page.css")),
    )


def _by_family(statement: Statement) -> Iterator[tuple[str, list[tuple[str, str, int]]]]:
    """How many of each family's clauses came to what."""
    found: dict[str, list[Line]] = {}
    for line in statement.lines:
        name = Clause.FAMILIES.get(line.clause.id.split("-")[0], "the wire")
        found.setdefault(name, []).append(line)
    for name, lines in found.items():
        counts = [
            (SIGNS[verdict], verdict.value.replace("_", " "), count)
            for verdict in ClauseVerdict
            if (count := sum(line.verdict is verdict for line in lines))
        ]
        yield name, counts


# --------------------------------------------------------------------------------------------- badge

LABEL = "message order"
_COLOURS = {
    RunVerdict.UPHELD: ("#1a6b45", "brightgreen"),
    RunVerdict.REFUTED: ("#b3001b", "red"),
    RunVerdict.INCONCLUSIVE: ("#8a5a00", "yellow"),
    RunVerdict.INADMISSIBLE: ("#57606a", "lightgrey"),
}
_HIGH, _LETTER, _AIR = 20.0, 6.8, 7.0


def message(statement: Statement) -> str:
    """What a badge says beside its label; the word, so that it does not hang on its colour."""
    match statement.verdict:
        case RunVerdict.UPHELD:
            return f"upheld, {promises(len(statement.of(ClauseVerdict.UPHELD)))}"
        case RunVerdict.REFUTED:
            return f"refuted, {promises(len(statement.of(ClauseVerdict.REFUTED)))}"
        case _:
            return statement.verdict.value


def endpoint(statement: Statement) -> dict[str, Any]:
    """For a badge that shields draws: https://shields.io/badges/endpoint-badge ."""
    return {
        "schemaVersion": 1,
        "label": LABEL,
        "message": message(statement),
        "color": _COLOURS[statement.verdict][1],
        "isError": statement.verdict is RunVerdict.REFUTED,
    }


def badge(statement: Statement) -> ElementTree.Element:
    """The badge as a picture; white on dark, readable on any paper."""
    root = svg.root()
    told = message(statement)
    widths = [len(text) * _LETTER + 2 * _AIR for text in (LABEL, told)]
    svg.size(root, sum(widths), _HIGH)
    root.set("role", "img")
    root.set("aria-label", f"{LABEL}: {told}")
    svg.text_of(root, "title", f"{LABEL}: {told}, {statement.day.isoformat()}")
    x = 0.0
    for width, text, colour in zip(
        widths, (LABEL, told), ("#3a414b", _COLOURS[statement.verdict][0]), strict=True
    ):
        svg.add(root, "rect", x=x, y=0, width=width, height=_HIGH, fill=colour)
        svg.write(
            root,
            x + width / 2,
            14,
            text,
            "",
            "#ffffff",
            **{
                "text-anchor": "middle",
                "font-size": "11",
                "textLength": svg.number(width - 2 * _AIR),
            },
        )
        x += width
    return root
