"""`inorder report RUN...`: verdicts of runs as a table, JSON, Markdown, JUnit XML, a page or GitHub's annotations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from rich.text import Text

from conformance.cli import completion, seam
from conformance.cli.options import JSON, carried, format_option, print_human, print_json
from conformance.cli.people import width
from conformance.reports import github, html, junit, markdown, text
from conformance.reports.saving import check, context_of
from conformance.reports.schemas import LIST_SCHEMA
from conformance.reports.view import VerdictView, open_run, opened_in
from specs.errors import UsageError
from specs.history.row import Row
from specs.history.store import History

MARKDOWN, JUNIT, GITHUB, HTML = "markdown", "junit", "github", "html"


@click.command(name="report")
@click.argument(
    "runs",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path),
    shell_complete=completion.run,
)
@click.option(
    "--history",
    type=click.Path(path_type=Path),
    metavar="HISTORY",
    help="For html: what was judged, where it does not lie in RUN.",
)
@format_option(MARKDOWN, JUNIT, GITHUB, HTML)
def command(runs: tuple[Path, ...], history: Path | None, form: str) -> int:
    """Print the verdicts of judged RUNs. Exits with 0, whatever the verdicts.

    JSON is always a list (inorder/list/v1) of verdicts (inorder/verdict/v1); github
    prints the annotations of a job (docs/ci.md), html the page of one run, with a view
    of the whole of it, whatever its size.
    """
    verdicts = [open_run(run) for run in runs]
    if form == JSON:
        data = {"schema": LIST_SCHEMA, "items": [dict(verdict.raw) for verdict in verdicts]}
        check(data, LIST_SCHEMA)
        print_json(data)
        return 0
    if form == HTML:
        return _page(verdicts, history)
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


def _page(verdicts: Sequence[VerdictView], history: Path | None) -> int:
    if len(verdicts) > 1:
        raise UsageError("a page is about one run: name one RUN")
    verdict = verdicts[0]
    if history is not None:
        opened: History | None = seam.open_source(history)
    else:
        opened = None if verdict.folder is None else opened_in(verdict.folder)
    page = html.render(verdict, opened, context=context_of(opened, verdict))
    click.echo(carried(page), nl=False)
    return 0


def _print(verdicts: Sequence[VerdictView], context: Sequence[Row]) -> None:
    for verdict in verdicts:
        print_human(Text(f"{verdict.folder}  {verdict.target}  seed {verdict.seed}", style="bold"))
        print_human(text.report(verdict, width=width(), context=context))
        print_human("")
    if len(verdicts) > 1:
        print_human(text.runs_table(verdicts))
