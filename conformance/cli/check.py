"""`inorder check HISTORY|FILE|-`: judge what was recorded, by whomever, whatever its size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from conformance.cli import completion, seam
from conformance.cli.options import (
    OutFolder,
    Reporting,
    baseline_option,
    profile_option,
    reporting_options,
)
from conformance.cli.people import tell
from specs.history.elsewhere import is_elsewhere
from specs.history.files import STDIN, STDIN_NAME
from specs.verdicts.baseline import Baseline


class Source(click.Path):
    """A path, `-`, or the URI of a history on another file system."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, allow_dash=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return str(value) if is_elsewhere(value) else super().convert(value, param, ctx)


@click.command(name="check")
@click.argument("history", metavar="HISTORY|FILE|URI|-", type=Source())
@click.option(
    "--engine",
    metavar="NAME",
    default="auto",
    show_default=True,
    help="python, arrow (whole columns, on this machine's cores) or spark; they give the same verdict. auto: the one "
    "that suits the history's size, or spark with --master.",
)
@profile_option(
    "What was promised, as `inorder list profiles`. Default: the profile that the history names."
)
@click.option(
    "--clause",
    "clauses",
    multiple=True,
    metavar="ID",
    shell_complete=completion.clause,
    help="Judge this clause alone (a wire rule names the clause whose facet it is), whatever a profile says of it; "
    "repeatable. Only with --profile does that "
    "profile's word count for what it allows.",
)
@click.option("--master", metavar="URL", help="Spark's master, for --engine spark.")
@click.option(
    "--floor",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    metavar="N",
    help="At stake less often, a clause is not exercised.",
)
@click.option(
    "--out",
    type=OutFolder(),
    metavar="DIR",
    help="Keep the verdict and its reports here.",
)
@click.option(
    "--findings",
    type=OutFolder(),
    metavar="DIR",
    help="Write every finding here, as Parquet: clause, finding, evidence, lane and time. With arrow or spark.",
)
@baseline_option
@reporting_options
def command(
    history: Path | str,
    engine: str,
    profile: str | None,
    clauses: tuple[str, ...],
    master: str | None,
    floor: int,
    out: Path | None,
    findings: Path | None,
    baseline: Baseline | None,
    reporting: Reporting,
) -> int:
    """Judge a history: the folder HISTORY, a FILE, a URI as s3://bucket/history, or what comes on stdin (-).

    A FILE holds the text notation, JSON lines or one Parquet table; stdin one of the first two. A URI is read by way of
    a copy, or with --engine spark or --master by Spark where it lies. What was promised is
    said by --profile, by the history, or clause by clause with --clause.

    \b
    Exits with 0 upheld, 1 refuted, 2 inconclusive, 64 wrong usage or no history,
    69 a part that is not there (Java, for --engine spark), 70 the suite failed or the history can't be trusted.
    """
    question = seam.question(
        engine=engine,
        profile=profile,
        clauses=clauses,
        master=master,
        floor=floor,
        findings=findings,
        baseline=baseline,
    )
    named = STDIN_NAME if str(history) == STDIN else str(history)
    with seam.opened(history, question) as opened:
        for note in opened.notes:
            tell(note)
        reporting.tell(f"judging {named} with the engine {question.engine_for(opened)}")
        verdict = seam.judge(history, opened, question, out=out, name=reporting.name)
        reporting.show(verdict, opened)
        reporting.add_to_allure(verdict, opened)
    if findings is not None:
        reporting.tell(f"all findings: {findings / 'findings.parquet'}")
    if out is not None:
        reporting.tell(
            f"kept in {out} (report.html, report.txt, report.md, junit.xml, allure-results/, verdict.json)"
        )
    return verdict.exit_code
