"""A verdict as Markdown, for a pull request or a wiki: a table, then the story of each failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformance.reports.power import worth
from conformance.reports.text import KNOWN_WORDS, WORDS, closing, exposure, failure
from conformance.reports.view import ClauseView, VerdictView, families
from conformance.reports.visible import visible
from specs.history.row import Row
from specs.links import clause_page, web
from specs.verdicts.verdict import ClauseVerdict

_SIGNS: dict[ClauseVerdict, str] = {
    ClauseVerdict.UPHELD: "✅",
    ClauseVerdict.REFUTED: "❌",
    ClauseVerdict.POSSIBLE: "❔",
}


def render(
    verdicts: Sequence[VerdictView],
    *,
    context: Sequence[Row] = (),
    pictures: Mapping[str, str] | None = None,
) -> str:
    """The document for one or several runs. pictures: by clause, where its swim lanes lie beside the document."""
    return visible("\n".join(_one(verdict, context, pictures or {}) for verdict in verdicts))


def _one(verdict: VerdictView, context: Sequence[Row], pictures: Mapping[str, str]) -> str:
    lines = [
        f"# {_cell(verdict.target)}: {verdict.verdict.value}",
        "",
        f"{_cell(closing(verdict))}.",
        f"Seed {verdict.seed}, profile `{verdict.profile}`.",
    ]
    lines += [f"The {role} is {_cell(name)}." for role, name in verdict.parties.items()]
    for family, clauses in families([clause for clause in verdict.clauses if not clause.hidden]):
        lines += [
            "",
            f"## {family[:1].upper()}{family[1:]}",
            "",
            _HEADER,
            _RULE,
            *(_row(verdict, clause) for clause in clauses),
        ]
    for clause in verdict.failures:
        fence = "````"
        lines += [
            "",
            f"## {clause.name}",
            "",
            *_picture(clause, pictures),
            fence + "text",
            failure(verdict, clause, context=context),
            fence,
        ]
    if told := verdict.told_faults:
        lines += ["", "## Faults", "", "| fault | when | what shows its effect |", "|---|---|---|"]
        lines += [
            f"| {' | '.join(_cell(text) for text in (each.name, each.lasted, each.evidence))} |"
            for each in told
        ]
    if verdict.exposures:
        lines += ["", "## What a stepped clock let happen"]
        for each in verdict.exposures:
            lines += ["", "````text", exposure(each), "````"]
    failed = [check for check in verdict.met if check.ok is False]
    if failed:
        lines += ["", "## Checks of the run that failed", ""]
        lines += [f"- {check.id} {check.title}: {_cell(check.detail)}" for check in failed]
    if verdict.known:
        lines += ["", "## Known, by the baseline", ""]
        lines += [f"- {KNOWN_WORDS[entry.state]}: {_cell(entry.told)}" for entry in verdict.known]
    if verdict.replay:
        lines += ["", f"Replay: `{verdict.replay}`"]
    return "\n".join(lines) + "\n"


def _picture(clause: ClauseView, pictures: Mapping[str, str]) -> list[str]:
    """The swim lanes, where they lie beside; who can't see them has the timeline below."""
    if clause.id not in pictures:
        return []
    return [f"![swim lanes of {clause.id}]({pictures[clause.id]})", ""]


_HEADER = "| clause | promise | kept by | made by | verdict | at stake | why |"
_RULE = "|---|---|---|---|---|---:|---|"


def _row(verdict: VerdictView, clause: ClauseView) -> str:
    sign = _SIGNS.get(clause.verdict, "")
    refuted = clause.verdict is ClauseVerdict.REFUTED
    why = clause.happened if refuted else clause.reason or worth(verdict, clause)
    cells = (
        _id(clause.id),
        clause.statement or clause.title,
        clause.party,
        " + ".join(dict.fromkeys(clause.implementations)),
        f"{sign} {WORDS[clause.verdict].lower()}".strip(),
        f"{clause.opportunities:,}",
        why,
    )
    return f"| {' | '.join(_cell(cell) for cell in cells)} |"


def _id(clause_id: str) -> str:
    """With a link to the clause's page, where that has an address: a report is read far from any checkout."""
    page = clause_page(clause_id)
    address = None if page is None else web(page)
    return clause_id if address is None else f"[{clause_id}]({address})"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
