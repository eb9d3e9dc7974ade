"""`inorder report RUN...`: verdicts of runs as a table, JSON, Markdown, JUnit XML or GitHub's annotations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from rich.text import Text

from conformance.cli.options import JSON, format_option, print_human, print_json
from conformance.cli.people import width
from conformance.reports import github, junit, markdown, text
from conformance.reports.saving import check, context_of
from conformance.reports.schemas import LIST_SCHEMA
from conformance.reports.view import VerdictView, open_run
from specs.history.row import Row

MARKDOWN, JUNIT, GITHUB = "markdown", "junit", "github"


@click.command(name="report")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@format_option(MARKDOWN, JUNIT, GITHUB)
def command(runs: tuple[Path, ...], form: str) -> int:
    """Print the verdicts of judged RUNs. Exits with 0, whatever the verdicts.

    JSON is always a list (inorder/list/v1) of verdicts (inorder/verdict/v1); github
    prints the annotations of a job (docs/ci.md).
    """
    verdicts = [open_run(run) for run in runs]
    if form == JSON:
        data = {"schema": LIST_SCHEMA, "items": [dict(verdict.raw) for verdict in verdicts]}
        check(data, LIST_SCHEMA)
        print_json(data)
        return 0
    context = [row for verdict in verdicts for row in context_of(verdict.folder, verdict)]
    if form == MARKDOWN:
        click.echo(markdown.render(verdicts, context=context), nl=False)
    elif form == GITHUB:
        click.echo(github.render(verdicts), nl=False)
    elif form == JUNIT:
        click.echo(junit.render(verdicts, context=context), nl=False)
    else:
        _print(verdicts, context)
    return 0


def _print(verdicts: Sequence[VerdictView], context: Sequence[Row]) -> None:
    for verdict in verdicts:
        print_human(Text(f"{verdict.folder}  {verdict.target}  seed {verdict.seed}", style="bold"))
        print_human(text.report(verdict, width=width(), context=context))
        print_human("")
    if len(verdicts) > 1:
        print_human(text.runs_table(verdicts))
