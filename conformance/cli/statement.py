"""`inorder statement RUN...`: what a system was found to keep, and on how much evidence, for people and programs."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import click

from conformance.cli import completion
from conformance.cli.options import JSON, OutFile, carried, print_json
from conformance.cli.people import put, tell
from conformance.reports import statement_pages as pages
from conformance.reports import svg
from conformance.reports.saving import check
from conformance.reports.statement import STATEMENT_SCHEMA, Statement, state
from conformance.reports.view import open_run
from conformance.reports.visible import visible
from specs.errors import UsageError
from specs.verdicts.baseline import today

MARKDOWN, HTML = "md", "html"
_FORMS = (MARKDOWN, JSON, HTML)
_BY_SUFFIX = {".md": MARKDOWN, ".markdown": MARKDOWN, ".json": JSON, ".html": HTML, ".htm": HTML}


@click.command(name="statement")
@click.argument(
    "runs",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path),
    shell_complete=completion.run,
)
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMS),
    help="By the suffix of --out, or md, if not given.",
)
@click.option(
    "--out",
    type=OutFile(),
    metavar="FILE",
    help="Where to write it; stdout if not given.",
)
@click.option(
    "--date",
    "day",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="DAY",
    help="The day it is about, as 2027-03-31; today (UTC) if not given.",
)
@click.option(
    "--badge",
    type=OutFile(),
    metavar="FILE",
    help="Write a badge too: FILE.svg is a picture, FILE.json an endpoint for shields.io.",
)
@click.option("--exit-code", "by_verdict", is_flag=True, help="Exit as the sum's verdict says.")
def command(
    runs: tuple[Path, ...],
    form: str | None,
    out: Path | None,
    day: datetime | None,
    badge: Path | None,
    by_verdict: bool,
) -> int:
    """Write a conformance statement on judged RUNs of one target and profile; several are summed.

    It names the system, its profile, the tool and the hash of its code, and for each promise the
    verdict, how often it was at stake, what is allowed and until when, how good `upheld` is, and
    what was not told. JSON is inorder/statement/v1.

    \b
    Exits with 0 when it is written, whatever it says, or with --exit-code as the gate would:
    0 upheld, 1 refuted, 2 inconclusive, 70 a run can't be trusted. 64: no verdict there, runs of
    different systems or profiles, one named twice, an allowance whose day is over.
    """
    if badge is not None and badge.suffix not in (".svg", ".json"):
        raise UsageError(f"--badge {badge}: it ends in .svg or .json")
    found = state([open_run(run) for run in runs], today() if day is None else day.date())
    if form is None:
        form = MARKDOWN if out is None else _BY_SUFFIX.get(out.suffix.lower(), MARKDOWN)
    written = _written(found, form)
    if out is None and form == JSON:
        print_json(found.to_json())
    elif out is None:
        put(carried(written) if form == HTML else written, end=False)
    else:
        _write(out, written)
        tell(f"{out}: {found.verdict.value.upper()}, {found.sentence}")
    if badge is not None:
        picture = badge.suffix == ".svg"
        data = json.dumps(pages.endpoint(found), indent=2) + "\n"
        _write(badge, svg.render(pages.badge(found)) if picture else data)
        tell(f"{badge}: {pages.message(found)}")
    return found.exit_code if by_verdict else 0


def _written(found: Statement, form: str) -> str:
    data = found.to_json()
    check(data, STATEMENT_SCHEMA)
    if form == JSON:
        return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    return pages.html(found) if form == HTML else visible(pages.markdown(found))


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror}") from error
