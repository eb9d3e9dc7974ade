"""`inorder diff BEFORE AFTER`: what an upgrade broke, mended, or took out of sight."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import click
from rich.text import Text

from conformance.cli import completion
from conformance.cli.options import JSON, format_option, print_human, print_json
from conformance.reports.compare import RED, Change, Difference, compare
from conformance.reports.saving import check
from conformance.reports.schemas import DIFF_SCHEMA
from conformance.reports.view import VerdictView, open_run
from specs.verdicts.verdict import RunVerdict

_HEADS = (
    ("broke", "BROKE", "bold red"),
    ("perhaps", "possible now", "yellow"),
    ("no_longer", "no longer told", "yellow"),
    ("mended", "mended", "green"),
    ("newly", "newly told", "dim"),
)


@click.command(name="diff")
@click.argument("before", type=click.Path(path_type=Path), shell_complete=completion.run)
@click.argument("after", type=click.Path(path_type=Path), shell_complete=completion.run)
@format_option()
def command(before: Path, after: Path, form: str) -> int:
    """Compare the verdicts of two runs: BEFORE an upgrade and AFTER it.

    Findings are compared by clause and name, so a clause that was broken and now breaks in another way is news.

    \b
    Exits with 0 nothing broke, 1 something did, 2 something can't be told any more
    or is possible now, or a run was cut short or can't be trusted, 64 a run without a verdict.
    """
    runs = (open_run(before), open_run(after))
    found = compare(*runs)
    if form == JSON:
        data = _data(runs, found)
        check(data, DIFF_SCHEMA)
        print_json(data)
        return found.exit_code
    for word, run in zip(("before", "after"), runs, strict=True):
        print_human(Text(f"{word:<8}{_named(run)}", style="dim"))
    if runs[0].profile != runs[1].profile:
        print_human(Text("the two were judged by different profiles", style="yellow"))
    for sentence in found.checks:
        print_human(Text.assemble(("left open       ", "yellow"), sentence))
    for field, head, style in _HEADS:
        for told in _lines(getattr(found, field)):
            print_human(Text.assemble((f"{head:<16}", style), told))
    if found.no_longer and runs[1].verdict is RunVerdict.REFUTED and runs[1].search is None:
        print_human(
            Text("a search ends with the first refutation: --keep-going tells more", style="dim")
        )
    print_human(closing(found))
    return found.exit_code


def closing(found: Difference) -> str:
    """All of it in one line."""
    counts = [f"{len(getattr(found, field))} {head.lower()}" for field, head, _ in _HEADS]
    counts += [f"{len(found.checks)} left open"] if found.checks else []
    return ", ".join(counts)


def _named(run: VerdictView) -> str:
    made = " · ".join(f"{role} {name}" for role, name in run.parties.items())
    return (
        f"{run.folder}: {run.verdict.value}, {run.target} under {run.profile}, seed {run.seed}"
        f"{f' ({made})' if made else ''}"
    )


def _lines(changes: Sequence[Change]) -> Iterator[str]:
    """A line for each finding; clauses that only went out of sight, or came into it, share one."""
    together: dict[tuple[str, str], list[str]] = {}
    for change in changes:
        if change.finding or {change.before, change.after} & {*RED}:
            words = f"{_words(change.before)} before, {_words(change.after)} now"
            yield f"{change.name} {change.title}: {words}"
        else:
            together.setdefault((change.before, change.after), []).append(change.clause)
    for (before, after), names in together.items():
        yield f"{', '.join(names)}: {_words(before)} before, {_words(after)} now"


def _words(verdict: str) -> str:
    return verdict.replace("_", " ")


def _data(runs: Sequence[VerdictView], found: Difference) -> dict[str, object]:
    sides = {
        side: {
            "run": str(run.folder),
            "target": run.target,
            "profile": run.profile,
            "seed": run.seed,
            "verdict": run.verdict.value,
            "parties": dict(run.parties),
        }
        for side, run in zip(("before", "after"), runs, strict=True)
    }
    changes = {field: [asdict(each) for each in getattr(found, field)] for field, _, _ in _HEADS}
    return {"schema": DIFF_SCHEMA, **sides, **changes, "checks": list(found.checks)}
