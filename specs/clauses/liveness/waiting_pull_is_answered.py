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

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import BROKER_LIVES, BROKER_NOT_PAUSED, NO_FILTER, NOT_PAUSED, Premise
from specs.clauses.rows import is_copy_topic, over_us
from specs.clauses.stored import STORED_WEAKLY, lies_at_once
from specs.clauses.words import MS, at, ms, who
from specs.history.row import Row
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


def wants(row: Row) -> bool:
    """What comes to the topics of copies was not sent by a producer."""
    return not is_copy_topic(row.topic)


@dataclass(frozen=True, slots=True)
class NotWoken(Finding):
    """sent: the first message that came while the pull waited."""

    pull: Row
    sent: Row


class QueueJudge(Judge):
    """Remembers the pulls that are open, and for each the first message that should have ended its waiting."""

    __slots__ = ("came", "open", "slack_us")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.slack_us = self.config.schedule_slack_ms * MS + context.info.clock_bound_us
        self.open: dict[int, Row] = {}
        self.came: dict[int, Row] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.PULL and row.queue_offset is not None:
            self.open[row.seq_begin] = row
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        if row.kind is Kind.PULL:
            self.open.pop(row.seq_begin, None)
            sent = self.came.pop(row.seq_begin, None)
            return NOTHING if sent is None else self._answered(row, sent)
        if row.outcome is Outcome.OK and row.code not in STORED_WEAKLY and lies_at_once(row):
            for seq, pull in self.open.items():
                if self._is_for(row, pull):
                    self.came.setdefault(seq, row)
        return NOTHING

    def _is_for(self, sent: Row, pull: Row) -> bool:
        """Does the message lie where the pull, which waited already, asks for one?"""
        if (
            sent.queue_offset is None
            or sent.queue_offset < (pull.queue_offset or 0)
            or _of_two_lives(sent, pull)
        ):
            return False
        return sent.started_us - pull.started_us >= self.slack_us

    def _answered(self, pull: Row, sent: Row) -> Iterable[Finding]:
        context, answered_us = self.context, pull.ended_us
        if pull.outcome is not Outcome.OK or answered_us is None or sent.ended_us is None:
            return NOTHING
        if (pull.queue_offset or 0) < (pull.value or 0) <= (sent.queue_offset or 0):
            return NOTHING
        if context.broker_died_since(pull.broker, pull) or context.client_died_since(
            pull.client_id, pull
        ):
            return NOTHING
        if context.is_disturbed(pull, answered_us):
            return NOTHING
        self.opportunities += 1
        if answered_us - sent.ended_us <= self.slack_us:
            return NOTHING
        return (NotWoken(pull, sent),)


def _of_two_lives(sent: Row, pull: Row) -> bool:
    """Do the two answers come from different lives of the broker?"""
    epochs = {sent.broker_epoch, pull.broker_epoch}
    return len(epochs) > 1 and None not in epochs


judge = QueueJudge


def explain(found: NotWoken) -> str:
    pull, sent = found.pull, found.sent
    late = ms(over_us(pull) - over_us(sent))
    return (
        f"{who(pull)} of {pull.group} waited at offset {pull.queue_offset} of {pull.queue} from {at(pull)} on, and was "
        f"answered only {late} after message {sent.message_id} was acknowledged at offset {sent.queue_offset} "
        f"(sent at {at(sent)})"
    )
