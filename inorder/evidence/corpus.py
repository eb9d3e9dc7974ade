"""Histories that were frozen once, and what two versions of the judges say of them: is anything lost?

A clause that is mended must not go blind. `inorder.evidence.freezing` writes histories of every kind to a folder,
once; any later version judges the same folder (`judge`), and two totals are held against each other (`compare`).
Wherever certain findings or opportunities became fewer, a line names the clause, the history and the reason, which
a TOML file gives:

    [[LSE-2]]
    loses = "opportunities"         # or "certain": what excuses the one does not excuse the other
    histories = "recorded/*"        # optional: a pattern of KIND/NAME; without it any history
    why = "a call counts only where a grant is known"

A line without a reason makes the exit code 1. Judging rests on `open_history` and `examine` alone, so that this file
also runs as a script over the judges of another checkout:
`PYTHONPATH=CHECKOUT python inorder/evidence/corpus.py judge FOLDER --out TOTALS`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import click

from specs.documents import toml_in
from specs.errors import InorderError, UsageError
from specs.history.store import open_history
from specs.verdicts.examine import examine

ADMISSIBLE = "admissible"
"""Stands beside the clauses: 1 where the history can be trusted. Of one that can't, no verdict comes."""
COUNTS = ("opportunities", "certain", "possible")
NOTHING = (0, 0, 0)
UNEXPLAINED = "NO REASON"
FEW = 5
"""So many histories a line of the table names; the lines' file names all."""

Totals = Mapping[str, Mapping[str, Sequence[int]]]
"""By history and clause the COUNTS; a clause with none of them is left out."""


# ---------------------------------------------------------------- judge


def judge(folder: Path, kinds: Sequence[str] = ()) -> dict[str, dict[str, list[int]]]:
    """What the judges of this code say of each history (of these kinds; of all by default), by clause."""
    found = {}
    for place in sorted(
        path.parent for kind in kinds or ("*",) for path in folder.glob(f"{kind}/*/run.json")
    ):
        history = open_history(place)
        examination = examine(history.rows(), history.info)
        counts = {
            clause: [tally.opportunities, tally.violations, tally.possible]
            for clause, tally in examination.tallies.items()
        }
        counts[ADMISSIBLE] = [int(not examination.facts.broken), 0, 0]
        found[place.relative_to(folder).as_posix()] = {
            clause: each for clause, each in counts.items() if any(each)
        }
    if not found:
        raise UsageError(
            f"{folder} holds no frozen histories; `inorder.evidence.freezing` writes them as KIND/NAME"
        )
    return found


# ---------------------------------------------------------------- compare


@dataclass(frozen=True, slots=True)
class Change:
    """Of one clause in one history. of: which of the COUNTS."""

    clause: str
    history: str
    of: str
    before: int
    after: int

    @property
    def kind(self) -> str:
        return self.history.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a clause rightly says less about some histories. loses: "certain" or "opportunities"."""

    clause: str
    loses: str
    why: str
    histories: str = "*"

    def explains(self, change: Change) -> bool:
        mine = (self.clause, self.loses) == (change.clause, change.of)
        return mine and fnmatchcase(change.history, self.histories)


def read_reasons(path: Path) -> list[Reason]:
    """Raises UsageError for a file that is none of reasons."""
    try:
        data = toml_in(path)
        reasons = [Reason(clause, **each) for clause, several in data.items() for each in several]
    except TypeError as error:
        raise UsageError(f"{path} gives no reasons: {error}") from error
    for reason in reasons:
        if reason.loses not in COUNTS[:2] or not reason.why.strip():
            raise UsageError(
                f'{path}: {reason.clause} needs a why, and loses = "certain" or "opportunities"'
            )
    return reasons


def changes(before: Totals, after: Totals) -> Iterator[Change]:
    """Every count that is another one. Raises UsageError where the two are not of the same histories."""
    if before.keys() != after.keys():
        few = ", ".join(sorted(before.keys() ^ after.keys())[:FEW])
        raise UsageError(f"the two files are not of the same corpus; only one of them knows {few}")
    for history, old in before.items():
        new = after[history]
        for clause in sorted(old.keys() | new.keys(), key=_place):
            counts = zip(COUNTS, old.get(clause, NOTHING), new.get(clause, NOTHING), strict=True)
            yield from (
                Change(clause, history, of, was, now) for of, was, now in counts if was != now
            )


def of_kinds(totals: Totals, kinds: Sequence[str]) -> Totals:
    """Those of these kinds; all of them by default."""
    return {
        history: each
        for history, each in totals.items()
        if not kinds or history.partition("/")[0] in kinds
    }


def _place(clause: str) -> tuple[str, int]:
    family, _, number = clause.partition("-")
    return family, int(number or 0)


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """In Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def totals(before: Totals, after: Totals) -> str:
    """By clause: each count, and the histories with a certain finding, before and after."""
    sums: dict[str, list[list[int]]] = defaultdict(lambda: [[0] * 4, [0] * 4])
    for side, judged in enumerate((before, after)):
        for counts in judged.values():
            for clause, each in counts.items():
                sums[clause][side] = [
                    a + b
                    for a, b in zip(sums[clause][side], [*each, int(each[1] > 0)], strict=True)
                ]
    rows = []
    for clause in sorted(sums, key=_place):
        pairs = zip(*sums[clause], strict=True)
        rows.append([clause, *(str(was) if was == now else f"{was} → {now}" for was, now in pairs)])
    return table(("clause", *COUNTS, "histories refuted"), rows)


def grouped(found: Iterable[tuple[Change, str]]) -> str:
    """A line for each clause, kind of history, count and reason."""
    groups: dict[tuple[str, str, str, str], list[Change]] = defaultdict(list)
    for change, why in found:
        groups[change.clause, change.kind, change.of, why].append(change)
    rows = []
    for (clause, kind, of, why), members in sorted(
        groups.items(), key=lambda item: (_place(item[0][0]), item[0])
    ):
        names = [change.history.partition("/")[2] for change in members]
        shown = ", ".join(names[:FEW]) + (
            f" and {len(names) - FEW} more" if len(names) > FEW else ""
        )
        amount = f"{sum(each.before for each in members)} → {sum(each.after for each in members)}"
        gone = sum(not each.after for each in members)
        rows.append((clause, kind, of, len(members), amount, gone, shown, why))
    return table(
        ("clause", "kind", "count", "histories", "in all", "to 0 in", "such as", "reason"), rows
    )


# ---------------------------------------------------------------- the commands


@click.group()
def main() -> None:
    """A corpus of frozen histories: judge it, and compare what two versions say."""


_KINDS = click.option(
    "--kind", "kinds", multiple=True, help="Histories of some kinds only, by their folders' names."
)


@main.command("judge")
@click.argument("folder", type=click.Path(path_type=Path, exists=True))
@click.option("--out", type=click.Path(path_type=Path), required=True)
@_KINDS
def judge_command(folder: Path, out: Path, kinds: tuple[str, ...]) -> None:
    """Judge every history in FOLDER by all clauses."""
    out.write_text(
        json.dumps(judge(folder, kinds), indent=0, sort_keys=True) + "\n", encoding="utf-8"
    )


@main.command("compare")
@click.argument("before", type=click.Path(path_type=Path, exists=True))
@click.argument("after", type=click.Path(path_type=Path, exists=True))
@click.option(
    "--reasons", "given", type=click.Path(path_type=Path, exists=True), help="TOML, see the module."
)
@click.option(
    "--lines",
    type=click.Path(path_type=Path),
    help="A file for every loss with its reason, one a line.",
)
@_KINDS
def compare_command(
    before: Path, after: Path, given: Path | None, lines: Path | None, kinds: tuple[str, ...]
) -> None:
    """Exit code 1 where AFTER says less than BEFORE and no reason is given."""
    old, new = (
        of_kinds(json.loads(path.read_text(encoding="utf-8")), kinds) for path in (before, after)
    )
    reasons = read_reasons(given) if given else []
    losses, gains, used = [], [], set()
    for change in changes(old, new):
        if change.of in COUNTS[:2] and change.after < change.before:
            reason = next((each for each in reasons if each.explains(change)), None)
            used.add(reason)
            losses.append((change, reason.why if reason else UNEXPLAINED))
        elif change.of == "certain" and not change.before:
            gains.append((change, ""))
    click.echo(
        f"{totals(old, new)}\n\nLess is said:\n\n{grouped(losses)}\n\nNewly refuted:\n\n{grouped(gains)}\n"
    )
    if lines:
        rows = [
            (each.clause, each.history, each.of, each.before, each.after, why)
            for each, why in losses
        ]
        lines.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows), encoding="utf-8")
    for reason in reasons:
        if reason not in used:
            click.echo(
                f"a reason explains nothing: {reason.clause}, {reason.histories}: {reason.why}",
                err=True,
            )
    without = sum(why == UNEXPLAINED for _, why in losses)
    click.echo(f"{len(old)} histories; {len(losses)} losses, {without} of them without a reason")
    raise SystemExit(1 if without else 0)


if __name__ == "__main__":
    try:
        main()
    except InorderError as error:
        click.echo(error, err=True)
        raise SystemExit(error.exit_code) from None
