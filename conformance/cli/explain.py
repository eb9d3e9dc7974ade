"""`inorder explain RUN`: every failure of a run, told for somebody who has seen none of the code."""

from __future__ import annotations

from pathlib import Path

import click

from conformance.cli.options import JSON, format_option, print_human, print_json
from conformance.cli.people import tell, width
from conformance.reports import text
from conformance.reports.saving import context_of
from conformance.reports.view import ClauseView, VerdictView, open_run
from specs.clauses.catalogue import by_id, meant_by
from specs.errors import UsageError
from specs.model.rules import RULES


@click.command(name="explain")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--clause",
    "clause_id",
    metavar="ID",
    help="Explain this clause or wire rule, whatever its verdict.",
)
@format_option()
def command(run: Path, clause_id: str | None, form: str) -> int:
    """Tell what went wrong in RUN: promise, events, timeline, replay.

    RUN is the folder of a judged run. Exits with 0: the explanation was given, whatever the verdict.
    """
    verdict = open_run(run)
    chosen = (_clause(verdict, clause_id),) if clause_id else verdict.failures
    context = context_of(verdict.folder, verdict)
    if form == JSON:
        print_json({**verdict.raw, "clauses": [_raw(verdict, clause) for clause in chosen]})
        return 0
    if not chosen:
        tell(f"nothing was refuted in {run}")
    for clause in chosen:
        if clause.explanation:
            print_human(
                text.coloured(text.failure(verdict, clause, width=width(), context=context))
            )
        else:
            print_human(text.plain(verdict, clause, width=width(), doc=_doc(clause)))
        print_human("")
    print_human(text.closing_line(verdict))
    return 0


def _clause(verdict: VerdictView, clause_id: str) -> ClauseView:
    asked = clause_id.upper()
    by_name = {clause.id.upper(): clause for clause in verdict.clauses}
    for name in (
        asked,
        meant_by(asked),
    ):  # of a run that nobody asked online a facet's clause is what there is
        if name in by_name:
            return by_name[name]
    known = ", ".join(clause.id for clause in verdict.clauses)
    raise UsageError(f"the run has no clause {clause_id}; it has {known}")


def _raw(verdict: VerdictView, clause: ClauseView) -> dict[str, object]:
    return next(dict(each) for each in verdict.raw["clauses"] if each["id"] == clause.id)


def _doc(clause: ClauseView) -> str:
    if clause.id in by_id():
        return by_id()[clause.id].doc
    if clause.id not in RULES:
        return ""
    meant = meant_by(clause.id)
    of = "no clause's facet" if meant == clause.id else f"a facet of {meant}"
    return f"A wire rule, {of}: a raw client held the broker's answers against it while the run went on."
