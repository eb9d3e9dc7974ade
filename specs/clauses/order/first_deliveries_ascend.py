"""Within one incarnation, messages are delivered for the first time in the order of their offsets.

An incarnation is one client's work on one lane, from add until drop; who has left the group and begun anew there
begins another one, also where it has the same number and no ADD is recorded. Redeliveries may go back: a suspended
batch comes again, a manual ROLLBACK replays all that was taken. So only an offset that the incarnation has never
delivered counts, and it must lie above all that it has. An incarnation that has delivered when an operator resets the
offset is judged no more: it may go back at any later moment, and a ROLLBACK may replay what it took before. One whose
pull was told to go on further back begins anew there, where a pull tells so (`specs.facts.tenures`). Where the
incarnation's ADD was not seen it may have put back, before its first row, what lies below it: an offset below the
first one seen counts only where that call, in auto mode, acknowledged it. Where nobody says in which mode the call
was, and it succeeded, it counts until a call of the incarnation has put back, or may have, what was taken before (only
possibly, in a history that begins late). Says nothing about where the incarnation begins, nor about holes.
"""

import numpy as np

from specs.clauses.premises import NO_RESET, ORDERLY
from specs.clauses.terms import Finding, Findings, Row, Rows, at, who
from specs.facts.calls import may_be_by_hand, may_put_back_unseen_of
from specs.facts.columns import NONE, NOWHERE, Mask
from specs.facts.segments import Segments, chosen, dense, first_of_each, is_first, positions
from specs.facts.tenures import TENURE_COLUMNS, TENURE_KINDS, Tenures
from specs.vocabulary import CommitMode, Key, Kind, Outcome, Party

ID = "ORD-2"
TITLE = "first deliveries ascend"
STATEMENT = "Within an incarnation, first deliveries come in the order of their offsets."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, NO_RESET)
SOURCES = ("docs/sources.md#orderly-loop",)
KINDS = TENURE_KINDS | {Kind.DELIVER}
NEEDS = frozenset({Kind.DELIVER})
HEEDED = frozenset({Kind.PULL})
COLUMNS = (*TENURE_COLUMNS, "commit_mode")


class WentBack(Finding):
    """root: shows that what lies below the highest neither came nor was put back before; where that row does not."""

    root: Row | None
    highest: Row
    second: Row


def judge(rows: Rows, findings: Findings) -> None:
    """First deliveries of a stand that lie below one that came before in it."""
    tenures = rows.shared(Tenures)
    calls = positions(tenures.named & rows.are(Kind.DELIVER) & (rows.offset >= 0))
    tenure, tenures_in_all = dense(tenures.number[calls])
    began = rows.begin[calls[first_of_each(tenure, tenures_in_all)[tenure]]]
    reset = chosen(rows.begin, tenures.reset[calls], NONE)
    calls = calls[reset < began]
    offset, add = rows.offset[calls], tenures.add[calls]
    stand, stands_in_all = dense(tenures.stand[calls])
    first, of_stand = calls[first_of_each(stand, stands_in_all)[stand]], Segments(stand)
    before = chosen(calls, of_stand.highest_before(offset), NOWHERE)
    in_auto, in_any = _leave_nothing(rows)
    untouched = of_stand.count_before(_may_put_back(rows)[calls]) == 0
    follows = before != NOWHERE
    above = follows & (offset > rows.offset[before])
    settled = in_auto[first] | (in_any[first] & untouched)
    known = (add != NOWHERE) | settled | (offset >= rows.offset[first])
    broken = follows & ~above & known
    if broken.any():
        same = positions(np.isin(offset, offset[broken]))
        broken[same] &= is_first(stand[same], offset[same])
    findings.at_stake(calls[above | broken])
    older = tenures.may_be_older(calls)
    shows = (in_auto[before] | (in_any[before] & untouched)) & ~older
    root = np.where(shows, NOWHERE, np.where(add != NOWHERE, add, first))
    new, sure = calls[broken], ~(older & (offset < rows.offset[first]))[broken]
    findings.broken(WentBack, certain=sure, root=root[broken], highest=before[broken], second=new)


def _leave_nothing(rows: Rows) -> tuple[Mask, Mask]:
    """Of each call: does it leave nothing below it to come again, for good; and as long as nothing is put back?"""
    mode = rows.text("commit_mode")
    done = rows.ended_as(Outcome.SUCCESS, Outcome.COMMIT)
    in_auto = (done | rows.ended_as(Outcome.ROLLBACK)) & ~may_be_by_hand(rows)
    return in_auto, done & (mode != rows.code("commit_mode", CommitMode.MANUAL))


def _may_put_back(rows: Rows) -> Mask:
    """Of each call: may it put back what was taken, or may nobody have seen that it did?"""
    rolled_back = rows.ended_as(Outcome.ROLLBACK) & may_be_by_hand(rows)
    return may_put_back_unseen_of(rows) | rolled_back


def explain(found: WentBack) -> str:
    first, second = found.highest, found.second
    return (
        f"{who(second)} delivered offset {second.queue_offset} of {second.lane} for the first time at {at(second)}, "
        f"after offset {first.queue_offset}, which it had delivered at {at(first)} in the same incarnation"
    )
