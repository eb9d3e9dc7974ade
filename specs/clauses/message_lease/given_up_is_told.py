"""What the floor passes and nobody acknowledged was given up, and is told so.

Judged of messages that were handed out as often as they may be, and of which no acknowledgement was begun since: once a
witness has read a floor beyond such a message, and another reading, begun later by more than a timer may be late, finds
the floor beyond it still, somebody has to have told that the message was given up (DEAD_LETTER: a dead letter, an
advisory, whatever shows it). An acknowledgement that was refused is none. Where either may be of any message of the
lane (`specs.facts.message_leases`), nothing is said of it any more. Nor is anything said where the message was handed
out once more between the two readings, or where the floor had passed it before its last hand-out, which is a matter of
the floor's own clause. A history that begins late may lack an acknowledgement that was under way.
"""

import numpy as np

from specs.clauses.premises import BROKER_LIVES, NO_RESET, NOT_REMOVED
from specs.clauses.terms import Finding, Findings, Row, Rows, at, who
from specs.facts.columns import MS, NEVER, NO_TEXT, NONE, Ints
from specs.facts.message_leases import may_be_gone
from specs.facts.message_names import may_be_any, offsets
from specs.facts.segments import is_first, positions
from specs.vocabulary import Key, Kind, Level, Outcome, Party

ID = "PML-6"
TITLE = "what is given up is told"
STATEMENT = (
    "A message that was handed out as often as it may be, was not acknowledged, and does not come again is told as "
    "given up."
)
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (BROKER_LIVES, NOT_REMOVED, NO_RESET)
SOURCES = ("docs/sources.md#leases-of-messages",)
KINDS = frozenset({Kind.RECEIVE, Kind.ACK, Kind.DEAD_LETTER, Kind.PROGRESS})
LEVELS = frozenset(Level)
NEEDS = frozenset({Kind.RECEIVE, Kind.ACK, Kind.DEAD_LETTER, Kind.PROGRESS})
SETTINGS = ("max_reconsume_times",)
CONCLUDES_FROM_ABSENCE = True
LOOKS_BACK = True
COLUMNS = ("lease_id", "message_id", "queue_offset", "reconsume_times", "value")


class GivenUpInSilence(Finding):
    """passed: the first reading beyond the message. reading: one that came long after."""

    handed: Row
    passed: Row
    reading: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Only messages that were handed out as often as they may be are looked at: the first such hand-out of each."""
    done = rows.ended_as(Outcome.OK) & (rows.end < NEVER) & (rows.group != NO_TEXT)
    times = rows.number("reconsume_times")
    handed = positions(rows.are(Kind.RECEIVE) & done & (rows.offset != NONE))
    handed = handed[np.argsort(rows.end[handed], kind="stable")]
    reads = positions(rows.are(Kind.PROGRESS) & done & (rows.value != NONE))
    reads = reads[np.argsort(rows.end[reads], kind="stable")]
    tells = rows.are(Kind.ACK, Kind.DEAD_LETTER) & ~rows.ended_as(Outcome.REFUSED)
    offset, of_any = rows.shared(offsets), may_be_any(rows)
    limit = rows.config("max_reconsume_times", handed)
    last = handed[(limit >= 0) & (times[handed] >= limit)]
    for place in last[is_first(rows.lane[last], rows.offset[last])].tolist():
        message = rows.lane[place], rows.offset[place]
        about = positions(tells & (rows.lane == message[0]) & ((offset == message[1]) | of_any))
        lent = handed[(rows.lane[handed] == message[0]) & (rows.offset[handed] == message[1])]
        _judge(rows, findings, lent, place, reads[rows.lane[reads] == message[0]], about)


def _judge(
    rows: Rows, findings: Findings, lent: Ints, place: int, reads: Ints, about: Ints
) -> None:
    """A last hand-out: was it told what came of it before a reading showed that it was given up, or at all?

    lent: all hand-outs of the message. reads: of its lane, by their ends. about: rows that tell something of it.
    """
    info, over = rows.context_of(place).info, int(rows.begin[about].min(initial=NEVER))
    if over <= rows.end[place]:
        return
    bound_us = info.config.schedule_slack_ms * MS + info.clock_bound_us
    beyond = reads[(rows.value[reads] > rows.offset[place]) & (rows.end[reads] < over)]
    for passed in beyond[:1].tolist():
        due_us = int(rows.ended[passed]) + bound_us
        later = beyond[(rows.end[beyond] > rows.end[passed]) & (rows.started[beyond] > due_us)]
        for reading in later[:1].tolist():
            now = int(rows.end[reading])
            again = (rows.end[lent] > rows.begin[passed]) & (rows.begin[lent] < now)
            if not (again.any() or may_be_gone(rows, place, now)):
                findings.at_stake_times(place, 1)
                roles = {"handed": place, "passed": passed, "reading": reading}
                findings.shown(GivenUpInSilence, roles)
            return
    first = about[rows.begin[about] == over]
    first = first[rows.are(Kind.DEAD_LETTER)[first] & (rows.shared(offsets)[first] != NONE)]
    findings.at_stake(np.full(len(first), place))


def explain(found: GivenUpInSilence) -> str:
    handed, passed, reading = found.handed, found.passed, found.reading
    return (
        f"at {at(passed)} the store had {passed.value} for {handed.lane}, beyond offset {handed.queue_offset}, which "
        f"{who(handed)} had been handed for the last time at {at(handed)} and which nobody acknowledged; by "
        f"{at(reading)} nobody had told that it was given up"
    )
