"""A pull that waits at the end of a queue is answered as soon as a message comes, whoever else waits there.

A pull that asks for what is not there yet is parked. Whose message comes then, each parked pull of the queue is
answered: that of every group, and whatever was answered before. Judged is a pull that was answered well, though more
than the slack of a timer (`schedule_slack_ms`) after a message had come at or behind the offset that it asked for.

The message *came* when its send was acknowledged, at a place that the answer names. The pull *waited* when it had begun
by the slack before the send did: what is asked and what is stored at the same time may miss each other, and a broker
looks again only after a while (Apache's after 5 s, the reference's when the pull's time is up). An answer with
messages that all lie before that one was given before it came: if it is late, then on its way to its client.

Nothing is said where something stood in the way of the pull or of its answer, where its client or its broker was
paused or died (also where the two answers name different epochs of it), of a pull that was refused or never answered
(its client asks again), of delayed and half messages, and of groups that filter, since not every message is for them.
"""

import numpy as np

from specs.clauses.premises import BROKER_LIVES, BROKER_NOT_PAUSED, NO_FILTER, NOT_PAUSED, Premise
from specs.clauses.terms import Finding, Findings, Row, Rows, at, ms, over_us, who
from specs.facts.columns import MS, NEVER, NONE, Ints
from specs.facts.segments import by_time, ints, positions
from specs.facts.stored import STORED_COLUMNS as SEND_COLUMNS
from specs.facts.stored import STORED_WEAKLY, copies, delayed, halves
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "LIV-4"
TITLE = "a waiting pull is answered"
STATEMENT = (
    "A pull that waits for messages is answered as soon as one comes, within the slack of a timer."
)
PARTY = Party.BROKER
KEY = Key.QUEUE
PREMISE = (
    NO_FILTER,
    BROKER_LIVES,
    BROKER_NOT_PAUSED,
    NOT_PAUSED,
    Premise(
        "nothing in the way",
        "no fault of the link between the client and the broker was recorded from the pull until its answer",
        told_by=frozenset({Kind.FAULT}),
    ),
    Premise("it waited", "the pull had begun by the slack of a timer before the message was sent"),
)
SOURCES = ("docs/sources.md#pull",)
STAKES = (Stake(Trait.QUIET_QUEUE),)
KINDS = frozenset({Kind.PULL, Kind.SEND})
NEEDS = frozenset({Kind.PULL, Kind.SEND})
COLUMNS = tuple(dict.fromkeys(["client_id", "started_us", "ended_us", "value", *SEND_COLUMNS]))


class NotWoken(Finding):
    """sent: the first message that came while the pull waited."""

    pull: Row
    sent: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Only pulls that took longer than a message could be sent in are looked at one by one."""
    complete = ~copies(rows) & (rows.offset != NONE) & (rows.end < NEVER) & (rows.ended < NEVER)
    complete &= rows.ended_as(Outcome.OK)
    pulls = positions(rows.are(Kind.PULL) & complete)
    pulls = pulls[rows.ended[pulls] - rows.started[pulls] >= _slack_us(rows, pulls)]
    if not len(pulls):
        return
    there = rows.are(Kind.SEND) & complete & ~halves(rows) & ~delayed(rows)
    sends = positions(there & ~np.isin(rows.number("code"), list(STORED_WEAKLY)))
    sends = sends[by_time(rows.queue[sends], rows.end[sends])]
    of_queue, wanted = rows.queue[sends], rows.queue[pulls]
    low, high = (np.searchsorted(of_queue, wanted, side) for side in ("left", "right"))
    slacks_us = _slack_us(rows, pulls)
    for pull, slack_us, start, stop in zip(
        pulls.tolist(), slacks_us.tolist(), low.tolist(), high.tolist(), strict=True
    ):
        sent = _first_that_came(rows, pull, sends[start:stop], slack_us)
        if sent is None or _ends_before(rows, pull, sent) or not _had_a_clear_way(rows, pull):
            continue
        findings.at_stake_times(pull, 1)
        if rows.ended[pull] > rows.ended[sent] + slack_us:
            findings.shown(NotWoken, {"pull": pull, "sent": sent})


def _slack_us(rows: Rows, where: Ints) -> Ints:
    """The slack of a timer, and what clocks may differ by."""
    clocks_us = ints([rows.context_of(place).info.clock_bound_us for place in where.tolist()])
    return rows.config("schedule_slack_ms", where) * MS + clocks_us


def _first_that_came(rows: Rows, pull: int, sends: Ints, slack_us: int) -> int | None:
    """The first message that was acknowledged behind the pull's offset while the pull waited. sends: by their ends."""
    ends = rows.end[sends]
    during = sends[np.searchsorted(ends, rows.begin[pull]) : np.searchsorted(ends, rows.end[pull])]
    waited = rows.started[during] - rows.started[pull] >= slack_us
    epoch, mine = rows.number("broker_epoch")[during], int(rows.number("broker_epoch")[pull])
    one_life = (epoch == mine) | (epoch == NONE) | (mine == NONE)
    found = during[waited & one_life & (rows.offset[during] >= rows.offset[pull])]
    return int(found[0]) if len(found) else None


def _ends_before(rows: Rows, pull: int, sent: int) -> bool:
    """Was the answer given for earlier messages? One of which all lie before this one was given before it came."""
    value = int(rows.value[pull])
    return int(rows.offset[pull]) < value <= int(rows.offset[sent])


def _had_a_clear_way(rows: Rows, pull: int) -> bool:
    """Did both live, and did nothing stand in the way of the pull or its answer?"""
    context, now = rows.context_of(pull), int(rows.end[pull])
    client, broker = rows.party_of(pull)
    begin, epoch = int(rows.begin[pull]), int(rows.number("broker_epoch")[pull])
    if context.broker_died_since(broker, begin, epoch, now) or context.client_died_between(
        client, begin, now
    ):
        return False
    return not rows.was_disturbed(pull, int(rows.ended[pull]), now)


def explain(found: NotWoken) -> str:
    pull, sent = found.pull, found.sent
    late = ms(over_us(pull) - over_us(sent))
    return (
        f"{who(pull)} of {pull.group} waited at offset {pull.queue_offset} of {pull.queue} from {at(pull)} on, and was "
        f"answered only {late} after message {sent.message_id} was acknowledged at offset {sent.queue_offset} "
        f"(sent at {at(sent)})"
    )
