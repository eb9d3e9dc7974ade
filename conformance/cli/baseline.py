"""`inorder baseline RUN...`: write down what is broken and known, so that a gate is red on news alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from pathlib import Path

import click

from conformance.cli import completion
from conformance.cli.options import OutFile
from conformance.cli.people import tell
from conformance.reports.view import VerdictView, open_run
from specs.clauses.catalogue import by_id
from specs.errors import UsageError
from specs.model.rules import RULES
from specs.verdicts.baseline import Known, read_baseline, today
from specs.verdicts.verdict import ClauseVerdict, RunVerdict


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
    type=OutFile(),
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
    known = {entry.names: entry for entry in there}
    found: dict[tuple[str, str], Known] = {}
    for run in runs:
        for clause, finding in _broken(open_run(run)):
            found.setdefault((clause, finding), Known(clause, reason, owner, day, finding, issue))
    new = [entry for names, entry in found.items() if names not in known]
    if new:
        _write(out, new)
    for entry in new:
        tell(f"added {' '.join(filter(None, entry.names))}")
    over = [known[names] for names in found if names in known and known[names].expires < today()]
    for entry in over:
        name = " ".join(filter(None, entry.names))
        tell(f"{name} is there, but expired with {entry.expires}: its day is yours to change")
    if not found and not out.exists():
        tell(f"nothing is broken or possible there: {out} is not written")
    else:
        tell(f"{out}: {len(new)} added, {len(found) - len(new)} known before")
    return 0


def _write(out: Path, new: Sequence[Known]) -> None:
    """What was there stays to the byte; a file that could not be read again never takes its place."""
    part = out.with_name(f"{out.name}.part")
    try:
        before = out.read_text(encoding="utf-8").rstrip("\n") + "\n\n" if out.exists() else _HEAD
        part.write_text(before + "\n".join(map(_block, new)), encoding="utf-8")
        read_baseline(part, today())
        part.replace(out)
    except OSError as error:
        raise UsageError(f"{out} can't be written: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)


_HEAD = "# What is known to be broken; `inorder conform` and `inorder check` let it pass with --baseline.\n\n"


def _broken(verdict: VerdictView) -> Iterable[tuple[str, str]]:
    """Clause and finding of all that makes the run red, or leaves it open."""
    if verdict.verdict is RunVerdict.INADMISSIBLE:
        raise UsageError(
            f"{verdict.folder} can't be trusted, so what it says is not known: `inorder report` says why"
        )
    for clause in verdict.clauses:
        if clause.verdict not in (ClauseVerdict.REFUTED, ClauseVerdict.POSSIBLE):
            continue
        if clause.id in RULES:
            yield clause.id, ""
        elif clause.id not in by_id() or not set(clause.findings) <= set(
            by_id()[clause.id].findings
        ):
            what = " ".join((clause.id, *clause.findings))
            raise UsageError(
                f"{verdict.folder} speaks of {what}, which this version does not know: judge it again"
            )
        elif not clause.findings:
            raise UsageError(
                f"{verdict.folder} names no findings of {clause.id}: an older inorder judged it; judge it again"
            )
        else:
            yield from ((clause.id, finding) for finding in clause.findings)


def _block(entry: Known) -> str:
    """The entry in TOML."""
    fields: list[tuple[str, str | date]] = [
        ("clause", entry.clause),
        ("finding", entry.finding),
        ("reason", entry.reason),
        ("owner", entry.owner),
        ("issue", entry.issue),
        ("expires", entry.expires),
    ]
    lines = [
        f"{name} = {value.isoformat() if isinstance(value, date) else _quoted(value)}"
        for name, value in fields
        if value
    ]
    return "\n".join(["[[known]]", *lines, ""])


def _quoted(text: str) -> str:
    """As TOML has strings: as JSON's, but with a delete sign spelt out, and no halves of a character."""
    whole = text.encode("utf-8", "replace").decode()
    return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007f")
