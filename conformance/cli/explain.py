"""`inorder explain RUN`: every failure of a run, told or drawn for somebody who has seen none of the code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from conformance.cli import completion, seam
from conformance.cli.options import HUMAN, JSON, carried, format_option, print_human, print_json
from conformance.cli.people import put, tell, width
from conformance.reports import svg, swimlanes, text
from conformance.reports.saving import context_of
from conformance.reports.schemas import LIST_SCHEMA
from conformance.reports.selection import Selection, select
from conformance.reports.trace import trace
from conformance.reports.view import ClauseView, VerdictView, open_run
from specs import glossary
from specs.clauses.catalogue import by_id, meant_by
from specs.errors import UsageError
from specs.history.row import Row
from specs.links import link
from specs.model.rules import RULES

SVG, TRACE = "svg", "trace"


@click.command(name="explain")
@click.argument("run", type=click.Path(path_type=Path), shell_complete=completion.run)
@click.option(
    "--clause",
    "clause_id",
    metavar="ID",
    shell_complete=completion.clause,
    help="Explain this clause or wire rule, whatever its verdict.",
)
@click.option(
    "--lane",
    metavar="LANE",
    help="Print the events of this lane instead: group/topic/broker/queue, or without the group.",
)
@click.option("--key", metavar="KEY", help="Likewise those of a sharding key.")
@click.option("--client", metavar="NAME", help="Likewise those of a client, process or broker.")
@click.option(
    "--most",
    type=click.IntRange(1),
    default=200,
    show_default=True,
    metavar="N",
    help="So many events.",
)
@format_option(SVG, TRACE)
def command(
    run: Path,
    clause_id: str | None,
    lane: str | None,
    key: str | None,
    client: str | None,
    most: int,
    form: str,
) -> int:
    """Tell what went wrong in RUN: promise, events, timeline, replay.

    RUN is the folder of a judged run. svg draws swim lanes; trace is JSON for ui.perfetto.dev. With --lane, --key or
    --client the events of RUN, which may be any history then, are printed instead. What the words mean (lane,
    incarnation, at stake): `inorder list words`.
    Exits with 0: the explanation was given, whatever the verdict.
    """
    wanted = Selection(lane, key, client)
    if wanted.asked:
        return _print_events(run, wanted, most, form)
    verdict = open_run(run)
    chosen = (_clause(verdict, clause_id),) if clause_id else verdict.failures
    context = context_of(verdict.folder, verdict)
    if form == JSON:
        print_json({**verdict.raw, "clauses": [_raw(verdict, clause) for clause in chosen]})
        return 0
    if form in (SVG, TRACE):
        return _print_pictures(run, chosen, context, form)
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
    tell(f"what the words mean: inorder list words, or {link(glossary.PAGE)}")
    return 0


def _print_pictures(
    run: Path, chosen: Sequence[ClauseView], context: Sequence[Row], form: str
) -> int:
    shown = [clause for clause in chosen if clause.witness]
    if not shown:
        tell(f"there is nothing to draw in {run}: no events were found to be wrong")
    if form == TRACE:
        print_json(trace(shown, context))
    else:
        pictures = [swimlanes.picture(clause, context) for clause in shown]
        put(carried(svg.render(svg.stacked(pictures))), end=False)
    return 0


def _print_events(run: Path, wanted: Selection, most: int, form: str) -> int:
    rows, count = select(seam.open_source(run), wanted, most)
    if form == JSON:
        print_json({"schema": LIST_SCHEMA, "items": [_event(row) for row in rows]})
    elif form == HUMAN:
        put(text.since(rows) + text.events(rows))
    else:
        raise UsageError(f"events are printed as {HUMAN} or {JSON}: {form} draws failures")
    if count > len(rows):
        tell(f"the first {len(rows):,} of {count:,} events; --most N shows more")
    return 0


def _event(row: Row) -> dict[str, object]:
    """A row as an item of a list, which has an id: its place in the run."""
    return {"id": f"{row.run}:{row.seq_begin}", **row.to_json()}


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
