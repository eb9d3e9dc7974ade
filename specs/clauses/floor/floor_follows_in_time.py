"""The floor that a store tells of a group does not stay below messages that were acknowledged long before.

A witness reads the floor (PROGRESS): the offset of the next message after all that is finished; nothing stored is the
queue's begin. It is late when the queue's first message from the floor on had been acknowledged, and the server had
said so, for longer than a timer of a healthy process may be late when the witness asked. The first is the one with the
lowest offset that any row shows, whenever it does. That is certain where it lies at the floor itself; beyond a gap in
the offsets only where the history holds every producer, each of their sends has named its place, and no frames came
twice. A message that waits for its time lies elsewhere, and a send that names no queue may lie in any of its topic. A
server that died or stood still since is not held to it.
"""

import numpy as np

from specs.clauses.premises import BROKER_LIVES, BROKER_NOT_PAUSED, NOT_MOVED
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, ms, over_us, who
from specs.facts.columns import MS, NEVER, NONE, NOWHERE, Ints, Mask
from specs.facts.message_names import offsets
from specs.facts.messages import GIVEN
from specs.facts.presence import brokers_died
from specs.facts.segments import chosen, dense, first_above, positions
from specs.facts.stored import delayed
from specs.vocabulary import Key, Kind, Level, Outcome, Party

ID = "FLR-2"
TITLE = "the floor follows in time"
STATEMENT = (
    "Once the first unfinished message of a group was acknowledged, the floor that the store tells passes it, no later "
    "than a timer may be late."
)
PARTY = Party.BROKER
KEY = Key.QUEUE
PREMISE = (BROKER_LIVES, BROKER_NOT_PAUSED, NOT_MOVED)
SOURCES = ("docs/sources.md#acknowledgement-floor",)
SHOWS = GIVEN | {Kind.SEND, Kind.READ}
KINDS = SHOWS | {Kind.PROGRESS}
LEVELS = frozenset(Level)
NEEDS = frozenset({Kind.ACK, Kind.PROGRESS})
HEEDED = GIVEN | {Kind.READ}
CONCLUDES_FROM_ABSENCE = True
COLUMNS = ("delay_level", "detail", "message_id", "queue_offset", "value")


class FloorIsLate(Finding):
    acknowledged: Row
    reading: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Whenever a message is shown, it lies there already: offsets ascend."""
    offset, end = rows.shared(offsets), rows.end
    acks = positions(rows.are(Kind.ACK) & rows.ended_as(Outcome.OK) & (end < NEVER) & (offset >= 0))
    answered = rows.ended_as(Outcome.OK, Outcome.REFUSED) & (end < NEVER)
    reads = positions(rows.are(Kind.PROGRESS) & answered)
    slack_us = rows.config("schedule_slack_ms", reads) * MS + rows.clocks_us(reads)
    due_us = rows.started[reads] - slack_us
    begun = Line(rows.lane, end, acks).first_after(rows.lane[reads], np.full(len(reads), NONE))
    due = chosen(rows.ended, begun, NEVER) < due_us
    due &= chosen(end, begun, NEVER) < end[reads]
    reads, due_us = reads[due], due_us[due]
    findings.at_stake(reads)
    floor = np.where(rows.ended_as(Outcome.OK), np.maximum(rows.value, 0), 0)[reads]
    elsewhere = rows.are(Kind.SEND) & rows.ended_as(Outcome.REFUSED) | delayed(rows)
    shown = positions(rows.are(*SHOWS) & (offset >= 0) & ~elsewhere)
    shown = shown[np.lexsort((offset[shown], rows.queue[shown]))]
    place = first_above(rows.queue[shown], offset[shown], rows.queue[reads], floor - 1)
    first = chosen(shown, np.where(place < len(shown), place, NOWHERE), NOWHERE)
    first[chosen(rows.queue, first, NOWHERE) != rows.queue[reads]] = NOWHERE
    lanes = rows.lane[np.append(acks, reads)]
    lies, count = dense(lanes, offset[np.append(acks, first)])
    earliest = np.full(count, NOWHERE, np.int64)
    in_turn = np.argsort(-end[acks], kind="stable")
    earliest[lies[: len(acks)][in_turn]] = acks[in_turn]  # the earliest is written last
    ack = np.where(first == NOWHERE, NOWHERE, earliest[lies[len(acks) :]])
    late = (chosen(end, ack, NEVER) < end[reads]) & (chosen(rows.ended, ack, NEVER) < due_us)
    late &= (offset[first] == floor) | _are_all_placed(rows, reads)
    late[late] = ~brokers_died(rows, ack[late], end[reads[late]])
    for acknowledged, reading in zip(ack[late].tolist(), reads[late].tolist(), strict=True):
        since_us, now = int(rows.started[acknowledged]), int(end[reading])
        broker = rows.name_of("broker", acknowledged)
        if not rows.context_of(reading).broker_paused_since(broker, since_us, now):
            findings.shown(FloorIsLate, {"acknowledged": acknowledged, "reading": reading})


def _are_all_placed(rows: Rows, reads: Ints) -> Mask:
    """Of each reading: is it known of every send to its queue so far where it lies?"""
    named = rows.ended_as(Outcome.OK) & (rows.offset >= 0) & ~delayed(rows)
    named = (named | rows.ended_as(Outcome.REFUSED)) & (rows.end < NEVER)
    untold = Line(rows.queue, rows.begin, positions(rows.are(Kind.SEND) & ~named))
    found: Mask = untold.count_before(rows.queue[reads], rows.end[reads]) == 0
    found &= ~rows.frames_twice(reads)
    for index in positions(found).tolist():
        reading = int(reads[index])
        found[index] = not rows.context_of(reading).may_hold_astray(rows.queue_of(reading))
    return found


def explain(found: FloorIsLate) -> str:
    ack, reading = found.acknowledged, found.reading
    told = "nothing" if reading.outcome is Outcome.REFUSED else f"{reading.value}"
    return (
        f"at {at(reading)} the store had {told} for {reading.lane}, {ms(reading.started_us - over_us(ack))} after "
        f"{who(ack)} was told that offset {ack.queue_offset}, the first from there on, is acknowledged"
    )
