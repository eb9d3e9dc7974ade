"""`inorder baseline RUN...`: write down what is broken and known, so that a gate is red on news alone."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import date, datetime
from pathlib import Path

import click

from conformance.cli import completion
from conformance.cli.people import tell
from conformance.reports.view import VerdictView, open_run
from specs.clauses.catalogue import by_id
from specs.errors import UsageError
from specs.verdicts.baseline import Known, read_baseline, today
from specs.verdicts.verdict import ClauseVerdict


@click.command(name="baseline")
@click.argument(
    "runs",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path),
    shell_complete=completion.run,
)
@click.option("--owner", required=True, metavar="NAME", help="Whose it is to mend.")
@click.option("--reason", required=True, metavar="TEXT", help="Why it may stay until then.")
@click.option(
    "--expires",
    required=True,
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="DAY",
    help="The last day on which it is let pass, as 2027-03-31.",
)
@click.option("--issue", default="", metavar="ADDRESS", help="Where it is followed up.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("baseline.toml"),
    show_default=True,
    metavar="FILE",
    help="Added to what the file holds already.",
)
def command(
    runs: tuple[Path, ...], owner: str, reason: str, expires: datetime, issue: str, out: Path
) -> int:
    """Add an entry for each finding of judged RUNs to a baseline; `--baseline FILE` of conform and check reads it.

    What the file names already is left as it is, with its owner and its day.

    \b
    Exits with 0, or 64 for a run without a verdict, a day that is over, or a wrong file.
    """
    day = expires.date()
    if day < today():
        raise UsageError(f"--expires {day} is over: it would let nothing pass")
    if not owner.strip() or not reason.strip():
        raise UsageError("--owner and --reason are for people: say something")
    there = read_baseline(out, today()).entries if out.exists() else ()
    known = {entry.names for entry in there}
    found: dict[tuple[str, str], Known] = {}
    for run in runs:
        for clause, finding in _broken(open_run(run)):
            found.setdefault((clause, finding), Known(clause, reason, owner, day, finding, issue))
    new = [entry for names, entry in found.items() if names not in known]
    if new:
        before = out.read_text(encoding="utf-8").rstrip("\n") + "\n\n" if out.exists() else _HEAD
        out.write_text(before + "\n".join(map(_block, new)), encoding="utf-8")
    for entry in new:
        tell(f"added {' '.join(filter(None, entry.names))}")
    tell(f"{out}: {len(new)} added, {len(found) - len(new)} known before")
    return 0


_HEAD = "# What is known to be broken; `inorder conform` and `inorder check` let it pass with --baseline.\n\n"


def _broken(verdict: VerdictView) -> Iterable[tuple[str, str]]:
    """Clause and finding of all that makes the run red, or leaves it open."""
    for clause in verdict.clauses:
        if clause.verdict not in (ClauseVerdict.REFUTED, ClauseVerdict.POSSIBLE):
            continue
        if clause.id not in by_id():
            yield clause.id, ""
        elif not clause.findings:
            raise UsageError(
                f"{verdict.folder} names no findings of {clause.id}: an older inorder judged it; judge it again"
            )
        else:
            yield from ((clause.id, finding) for finding in clause.findings)


def _block(entry: Known) -> str:
    """The entry in TOML, whose strings may be written as JSON's; what the file holds is left to the byte."""
    fields: list[tuple[str, str | date]] = [
        ("clause", entry.clause),
        ("finding", entry.finding),
        ("reason", entry.reason),
        ("owner", entry.owner),
        ("issue", entry.issue),
        ("expires", entry.expires),
    ]
    lines = [
        f"{name} = {value.isoformat() if isinstance(value, date) else json.dumps(value)}"
        for name, value in fields
        if value
    ]
    return "\n".join(["[[known]]", *lines, ""])
