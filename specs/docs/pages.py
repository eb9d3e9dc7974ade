"""The generated pages: every clause, and the history."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator

from specs.clauses.catalogue import catalogue
from specs.clauses.clause import Clause, Promise
from specs.clauses.transcript import Expected
from specs.docs.conventions import CONVENTIONS, LEVELS, OUTCOMES
from specs.history import text as notation
from specs.history.columns import COLUMNS, HISTORY_VERSION
from specs.history.text import VERBS, parse_history
from specs.model.rules import RULES
from specs.profiles import Profile, load, names
from specs.verdicts.examine import examine
from specs.vocabulary import Kind

GENERATED = "<!-- Written by `python -m specs.docs`; a test says when it is stale. -->\n"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    columns = list(head)
    lines = [columns, ["---"] * len(columns), *rows]
    return (
        "\n".join(
            f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines
        )
        + "\n"
    )


def clauses_page() -> str:
    """`docs/clauses.md`: one section for each clause, in catalogue order."""
    clauses = catalogue()
    profiles = [(name, load(name)) for name in names()]
    signs = {"claimed": "claimed", "allowed": "allowed", "not_applicable": "–"}
    parts = [
        GENERATED,
        "# The clauses",
        "",
        "Each clause is one file in `specs/clauses/`: the promise, who keeps it, under which premises it is claimed, "
        "the judge that decides it, and two small histories, one that breaks it and one that only looks so.",
        "Times are those of the history's clock; what counts as *finished* and what the other words mean is said in "
        "[history](history.md) and in the clauses themselves.",
        "",
        _table(
            ("clause", "promise", "kept by"),
            (
                (f"[{clause.id}](#{_anchor(clause)})", clause.statement, clause.party.value)
                for clause in clauses
            ),
        ),
        "## Who promises what",
        "",
        "A deviation that a [profile](profiles.md) *allows* is found and reported, and does not fail a run.",
        "",
        _table(
            ("clause", *(name for name, _ in profiles)),
            (
                (
                    f"[{clause.id}](#{_anchor(clause)})",
                    *(signs[profile.claim(clause.id).status] for _, profile in profiles),
                )
                for clause in clauses
            ),
        ),
        *(_clause_section(clause) for clause in clauses),
        "## Deviations that profiles allow, and what they leave out",
        "",
        _table(
            ("profile", "clauses", "status", "reason"),
            ((name, *line) for name, profile in profiles for line in _deviations(profile, clauses)),
        ),
    ]
    return "\n".join(parts)


def _deviations(profile: Profile, clauses: Iterable[Promise]) -> Iterator[tuple[str, str, str]]:
    """(the clauses, the status, the reason) of what is not claimed; clauses that share a reason share a line."""
    alike: dict[tuple[str, str], list[str]] = {}
    for clause in clauses:
        claim = profile.claim(clause.id)
        if claim.status != "claimed":
            alike.setdefault((claim.status.replace("_", " "), claim.reason), []).append(clause.id)
    for (status, reason), ids in alike.items():
        yield ", ".join(ids), status, reason


def _anchor(clause: Promise) -> str:
    heading = f"{clause.id} {clause.title}".lower()
    return "".join(c if c.isalnum() or c == "-" else "-" if c == " " else "" for c in heading)


def _clause_section(clause: Promise) -> str:
    judged_for = (
        f" Judged for each: {clause.key.value.replace('_', ' ')}."
        if isinstance(clause, Clause)
        else ""
    )
    facts = [
        f"Kept by: {clause.party.value}.{judged_for}",
        *(f"Premise, {premise.name}: {premise.text}." for premise in clause.premise),
        f"Sources: {', '.join(_link(source) for source in clause.sources)}.",
    ]
    if isinstance(clause, Clause):
        facts += _rests_on(clause)
    if clause.stakes:
        facts.append(f"At stake only with {', and '.join(stake.trait for stake in clause.stakes)}.")
    if clause.refines:
        facts.append(f"A special case of {', '.join(clause.refines)}.")
    if clause.rules:
        facts.append(
            f"Asked on the wire: {', '.join(f'{rule} ({RULES[rule].title})' for rule in clause.rules)}."
        )
    if clause.vectors:
        facts.append(f"Held against a table: `specs/vectors/{clause.vectors}`.")
    return "\n".join(
        [
            f"## {clause.id} {clause.title}",
            "",
            f"**{clause.statement}**",
            "",
            clause.doc,
            "",
            *(f"- {fact}" for fact in facts),
            "",
            *(_examples(clause) if isinstance(clause, Clause) else ()),
        ]
    )


def _rests_on(clause: Clause) -> list[str]:
    """What a history must hold for it, and what leaves a finding open ([soundness](soundness.md))."""
    said = [f"Needs rows of: {_kinds(clause.needs)}."]
    if clause.excuses:
        said.append(f"Could be excused by rows of: {_kinds(clause.excuses)}.")
    if clause.absence:
        said.append("Concludes from what nobody else did: at most possible in an open world.")
    said.append(f"Finds: {', '.join(f'`{name}`' for name in clause.findings)}.")
    return said


def _kinds(kinds: Iterable[Kind]) -> str:
    return ", ".join(f"`{kind}`" for kind in sorted(kinds))


_HEADS = {
    Expected.BROKEN: "Broken",
    Expected.POSSIBLE: "Possible, no more",
    Expected.KEPT: "Allowed, though it looks wrong",
    Expected.NOT_AT_STAKE: "Not at stake",
    Expected.NOT_RECORDED: "Not recorded",
}


def _examples(clause: Clause) -> Iterator[str]:
    """Its transcript; below the shortest violation, what is said of it."""
    first = True
    for example in clause.examples:
        yield from (
            f"{_HEADS[example.expected]}: {example.why}",
            "",
            "```",
            example.text.strip("\n"),
            "```",
            "",
        )
        if first and example.expected is Expected.BROKEN:
            info, rows = parse_history(example.text)
            yield from (f"> {examine(rows, info, (clause,)).tallies[clause.id].explanation}.", "")
            first = False


def _link(source: str) -> str:
    page, _, anchor = source.removeprefix("docs/").partition("#")
    return f"[{anchor.replace('-', ' ')}]({page}#{anchor})"


def history_page() -> str:
    """`docs/history.md`: columns, conventions, notation."""
    verbs = {kind: verb for verb, kind in VERBS.items()}
    return "\n".join(
        [
            GENERATED,
            f"# History v{HISTORY_VERSION}",
            "",
            "A history is a folder: `run.json` (which run it was, see `specs/schemas/run.v2.json`), `journal/` (what "
            "recorders wrote while it went on), `history/` (the same as rows, Parquet or JSON lines), `verdict.json`,",
            "and `online.json` where a broker was asked over the wire: what its answers showed in the moment in which "
            "they came (`specs/schemas/online.v1.json`), which a judge of the folder takes for its own.",
            "`inorder check` also takes one file, or stdin: the text notation, JSON lines, or one Parquet table; or a "
            "folder with the rows themselves, as Spark leaves them (`part-*.parquet`, `*.json`, `*.jsonl`). A "
            "`run.json` in the folder is read; without one JSON lines and Parquet are an open world with the usual "
            "configuration, and the command says so.",
            "Parquet needs no mark of ours: columns in any order, those that nobody has anything for left out, other "
            "widths of whole numbers (pandas' numbers with a point too), `large_string`, dictionaries. A column that "
            "the table below does not have is refused, and so is a row without a required one; the text notation has "
            "defaults.",
            "One row is one operation, or one message of an operation that has several. Its begin and its end have "
            "places in one total order; an operation that never ended has no end and the outcome `unknown`.",
            "A call ends in three ways: it happened, it did not, or nobody can say.",
            "",
            "## Columns",
            "",
            _table(
                ("column", "type", "meaning"),
                (
                    (
                        f"`{column.name}`",
                        column.type,
                        column.doc + (" Required." if column.required else ""),
                    )
                    for column in COLUMNS
                ),
            ),
            "## Kinds",
            "",
            _table(
                ("kind", "in text", "what a row says"),
                ((f"`{kind}`", verbs.get(kind, "–"), said) for kind, said in CONVENTIONS.items()),
            ),
            "## Outcomes",
            "",
            _table(
                ("outcome", "meaning"),
                ((f"`{outcome}`", said) for outcome, said in OUTCOMES.items()),
            ),
            "## Levels",
            "",
            _table(("level", "seen"), ((f"`{level}`", said) for level, said in LEVELS.items())),
            "Clauses look at the levels `client`, `wire` and `tap`; one operation seen at two levels is not two "
            "operations, so a request is recorded at one of these: a tap leaves out what its client tells itself.",
            "",
            "## Text notation",
            "",
            "```",
            inspect.cleandoc(notation.__doc__ or ""),
            "```",
            "",
        ]
    )
