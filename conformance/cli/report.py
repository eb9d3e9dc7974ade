"""`inorder report RUN...`: verdicts of runs for people and for other programs: tables, pages, JUnit, Allure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from rich.text import Text

from conformance.cli import completion, seam
from conformance.cli.options import (
    JSON,
    Reporting,
    carried,
    format_option,
    print_human,
    print_json,
    shown_options,
)
from conformance.cli.people import put, width
from conformance.reports import allure, github, html, junit, markdown, text
from conformance.reports.saving import check, context_of
from conformance.reports.schemas import LIST_SCHEMA
from conformance.reports.view import VerdictView, open_run, opened_in
from specs.errors import UsageError
from specs.history.row import Row
from specs.history.store import History

MARKDOWN, JUNIT, GITHUB, HTML, ALLURE = "markdown", "junit", "github", "html", "allure"


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
@shown_options
@format_option(MARKDOWN, JUNIT, GITHUB, HTML, ALLURE)
def command(
    runs: tuple[Path, ...],
    history: Path | None,
    alluredir: Path | None,
    form: str,
    quiet: bool,
    only_failures: bool,
) -> int:
    """Print the verdicts of judged RUNs. Exits with 0, whatever the verdicts.

    JSON is always a list (inorder/list/v1) of verdicts (inorder/verdict/v1); github
    prints the annotations of a job (docs/ci.md), html the page of one run, with a view
    of the whole of it, whatever its size; allure prints nothing, and writes into
    --alluredir (allure-results/ if that is not given).
    """
    verdicts = [open_run(run) for run in runs]
    alluredir = Path(allure.FOLDER) if form == ALLURE and alluredir is None else alluredir
    reporting = Reporting(form, only_failures, quiet, alluredir=alluredir)
    for verdict in verdicts:
        reporting.add_to_allure(verdict)
    if form == ALLURE:
        reporting.tell(f"Allure's results are in {alluredir}")
        return 0
    if form == JSON:
        data = {"schema": LIST_SCHEMA, "items": [dict(verdict.raw) for verdict in verdicts]}
        check(data, LIST_SCHEMA)
        print_json(data)
        return 0
    if form == HTML:
        return _page(verdicts, history)
    context = [row for verdict in verdicts for row in context_of(verdict.folder, verdict)]
    if form == MARKDOWN:
        put(markdown.render(verdicts, context=context), end=False)
    elif form == GITHUB:
        put(github.render(verdicts), end=False)
    elif form == JUNIT:
        put(junit.render(verdicts, context=context), end=False)
    else:
        _print(verdicts, context, whole=reporting.whole)
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
    put(carried(page), end=False)
    return 0


def _print(verdicts: Sequence[VerdictView], context: Sequence[Row], *, whole: bool) -> None:
    for verdict in verdicts:
        if whole:
            heading = f"{verdict.folder}  {verdict.target}  seed {verdict.seed}"
            print_human(Text(heading, style="bold"))
        told = text.report(verdict, width=width(), context=context, whole=whole)
        print_human(told)
        if whole:
            print_human("")
    if len(verdicts) > 1 and whole:
        print_human(text.runs_table(verdicts))
