"""The witness of a bug, kept: the few events that refute the clause, as a run that can be judged and explained again.

inorder explain docs/track-record/B-77c
inorder check docs/track-record/B-77c

Where the run did a plan, it goes with the witness, so that it can be done once more:

inorder replay docs/track-record/K-1
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from conformance import again
from conformance.parts.places import CHECKOUT
from conformance.reports.view import VERDICT_FILE
from conformance.run import NAMES, judge
from specs import profiles
from specs.errors import SpecError
from specs.history.row import Row
from specs.history.store import open_history, write_history
from specs.verdicts.verdict import ClauseVerdict, Judged
from specs.vocabulary import Kind, Lane, Outcome


def keep_witness(found: Judged, run: Path, folder: Path) -> None:
    """Write the witness of a refuted clause, from the run in which it was found, into `folder`, which is replaced.

    With it go the sends of its messages, and may go the grant under which a client worked, so that no other clause
    takes the cut for a message or a lease that was missing; and what tells which shape of the bug it is, namely that a
    client was leaving, or had dropped its lane. Times are counted from the first event. The cut declares
    what the run did: nothing that was left out is about the clause. Raises SpecError if the events alone are not
    refuted again.
    """
    history = open_history(run)
    info = history.info
    kept = _with_what_explains(found.witness, list(history.rows()))
    begin = min(row.started_us for row in kept)
    rows = [
        row._replace(
            started_us=row.started_us - begin,
            ended_us=None if row.ended_us is None else row.ended_us - begin,
            wall_us=None if row.wall_us is None else row.wall_us - begin,
        )
        for row in kept
    ]
    if folder.exists():
        shutil.rmtree(folder)
    # Whoever does it again has another machine; only the names that the plan's runs begin with are of use.
    environment = {NAMES: info.environment[NAMES]} if NAMES in info.environment else {}
    info = replace(info, environment=environment)
    if info.plan is not None:
        info = replace(info, replay=again.command("replay", _in_checkout(folder)))
    history = write_history(folder, info, rows, as_text=True)
    profile = profiles.load(info.profile or "")
    # It is kept in the repository, where the version that judged it is the commit's.
    verdict = replace(judge(history, profile, options={"clauses": (found.id,)}), tool={})
    if verdict.clauses[0].verdict is not ClauseVerdict.REFUTED:
        raise SpecError(f"the witness of {found.id} alone is {verdict.clauses[0].verdict.value}")
    text = json.dumps(verdict.to_json(), indent=2, sort_keys=True, ensure_ascii=False)
    (folder / VERDICT_FILE).write_text(text + "\n", encoding="utf-8")


def _in_checkout(folder: Path) -> Path:
    """As whoever stands in a checkout names it."""
    return folder.relative_to(CHECKOUT) if folder.is_relative_to(CHECKOUT) else folder


def _with_what_explains(witness: Sequence[Row], rows: Sequence[Row]) -> list[Row]:
    """The witness, with what its rows stand on: sends, grants, and departures and drops until the last of them."""
    messages = {
        name for row in witness for name in (row.message_id, row.origin_id) if name is not None
    }
    sends = {
        row.seq_begin: row for row in rows if row.kind is Kind.SEND and row.message_id in messages
    }
    last = max(row.seq_begin for row in witness)
    incarnations = {row.incarnation for row in witness} - {None}
    members = {(row.client_id, row.group) for row in witness if row.group is not None}
    ways = {
        row.seq_begin: row
        for row in rows
        if row.seq_begin < last
        and (
            (row.kind is Kind.DROP and row.incarnation in incarnations)
            or (row.kind is Kind.LEAVE and (row.client_id, row.group) in members)
        )
    }
    kept = {**_with_grants(witness, rows), **sends, **ways}
    return [kept[seq] for seq in sorted(kept)]


def _with_grants(witness: Sequence[Row], rows: Iterable[Row]) -> dict[int, Row]:
    """The witness by seq_begin; where it watches a client's work from its begin (ADD), also the grants that it had."""
    watched = {row.incarnation for row in witness if row.kind is Kind.ADD}
    last: dict[tuple[str | None, Lane], Row] = {}
    wanted = {row.seq_begin: row for row in witness}
    kept = dict(wanted)
    for row in rows:
        if row.kind is Kind.LOCK and row.outcome is Outcome.OK:
            last[row.client_id, row.lane] = row
        elif (
            row.seq_begin in wanted
            and row.kind in (Kind.ADD, Kind.DELIVER)
            and row.incarnation in watched
        ):
            grant = last.get((row.client_id, row.lane))
            if grant is not None and grant.seq_end is not None and grant.seq_end < row.seq_begin:
                kept[grant.seq_begin] = grant
    return kept
