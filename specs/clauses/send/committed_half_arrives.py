"""A half message that its producer committed is in the queue that it was meant for.

An end of a transaction is one way: it arrives within the bound for delays, unless something on the way stops it. So a
commit counts that began after its half message was acknowledged. From the begin of the half message's send until the
bound after the commit was handed to the network, no fault may have been recorded, the broker not have died, and the
producer not have left; since that begin, the producer not have died, and the broker not have been paused. Nor may a
pause of the producer have lasted into the bound before the commit, or have come in the bound after it. That somebody
else was paused is no fault here: its row names a client or a broker, and neither there nor in its detail one of these
two. Then each reading of the queue to its end that begins after that, and after the slack of a timer, must show the
message.

Nothing is said where the half message was sent more than once by the end of the reading, as its rows or their `attempt`
tell, with a delay level (which may count from the commit on) or weakly stored, or where a rollback was told by then;
where the commit came so late that the broker may have given the message up after asking as often as it may, where the
broker removed messages of the queue on purpose, or where a read failed. Where brokers flush later, none of those that
died since is judged. That nobody sees the message before is the business of SND-6, that it comes once that of SND-2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import FLUSHED_LATER, Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import BROKER_NOT_PAUSED, CLOSED_WORLD, DRAINED, NOT_REMOVED, Premise
from specs.clauses.readings import Readings
from specs.clauses.rows import ended_before, is_copy_topic, over_us
from specs.clauses.stored import COMMIT, ROLLBACK, STORED_WEAKLY, is_half, is_refused
from specs.clauses.words import MS, at, who
from specs.history.row import Row
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

NOTHING_IN_THE_WAY = Premise(
    "nothing in the way",
    "no fault was recorded from the half message's send until its commit had to be there, nobody died or left, and the "
    "producer did not stand still",
    told_by=frozenset({Kind.FAULT, Kind.CRASH, Kind.LEAVE, Kind.PAUSE}),
)

ID = "SND-13"
TITLE = "a committed half arrives"
STATEMENT = "A half message that its producer committed is in the queue that it was meant for."
PARTY = Party.BROKER
KEY = Key.QUEUE
PREMISE = (CLOSED_WORLD, DRAINED, NOT_REMOVED, NOTHING_IN_THE_WAY, BROKER_NOT_PAUSED)
SOURCES = ("docs/sources.md#transactions",)
STAKES = (Stake(Trait.HALF),)
KINDS = frozenset({Kind.SEND, Kind.END_TRANSACTION, Kind.READ})
SETTINGS = ("transaction_check_interval_ms", "transaction_check_max", "transaction_timeout_ms")
NEEDS = frozenset({Kind.READ, Kind.SEND, Kind.END_TRANSACTION})


def wants(row: Row) -> bool:
    """Half messages are originals."""
    return not is_copy_topic(row.topic)


@dataclass(frozen=True, slots=True)
class NotThere(Finding):
    half: Row
    commit: Row
    read: Row


class QueueJudge(Judge):
    """Remembers the half messages for the queue, and of each the first commit that it has since its acknowledgement.

    unclear: those that were sent again, or rolled back, and those that were found missing already.
    """

    __slots__ = ("commits", "halves", "readings", "unclear")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.halves: dict[str, Row] = {}
        self.commits: dict[str, Row] = {}
        self.unclear: set[str] = set()
        self.readings = Readings(context)

    def begins(self, row: Row) -> Iterable[Finding]:
        self.readings.begins(row)
        message = row.message_id
        if message is None or row.kind is Kind.READ:
            return NOTHING
        if row.kind is Kind.SEND and not is_refused(row):
            if message in self.halves or not _is_stored_once(row):
                self.unclear.add(message)
            else:
                self.halves[message] = row
        elif row.kind is Kind.END_TRANSACTION:
            if row.value == ROLLBACK:
                self.unclear.add(message)
            elif row.value == COMMIT and row.outcome in (Outcome.OK, Outcome.SENT):
                half = self.halves.get(message)
                if half is not None and ended_before(half, row):
                    self.commits.setdefault(message, row)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        reading = self.readings.ends(row, self.halves)
        return NOTHING if reading is None else self._read_to_end(reading)

    def _read_to_end(self, reading: Row) -> Iterable[Finding]:
        found: list[Finding] = []
        if self.context.kept_from.get(reading.queue):
            return NOTHING
        for message, commit in self.commits.items():
            half = self.halves[message]
            if message in self.unclear or not ended_before(commit, reading):
                continue
            there_us = over_us(commit) + self._bound_us
            if not self.readings.in_time(half, there_us, reading) or not self._arrived(
                half, commit, there_us
            ):
                continue
            self.opportunities += 1
            if message not in self.readings.shown:
                self.unclear.add(message)
                found.append(NotThere(half, commit, reading))
        return found

    @property
    def _bound_us(self) -> int:
        return self.config.delay_bound_ms * MS + self.context.info.clock_bound_us

    def _arrived(self, half: Row, commit: Row, there_us: int) -> bool:
        """Was nothing in the way of the commit, until the moment by which it has to be there?"""
        context, config = self.context, self.config
        open_ms = (
            config.transaction_timeout_ms
            + config.transaction_check_max * config.transaction_check_interval_ms
        )
        if there_us - half.started_us > open_ms * MS:
            return False
        if context.fault_between(half.started_us, there_us, commit.client_id, half.broker):
            return False
        if context.broker_paused_since(half.broker, half.started_us) or context.is_disturbed(
            commit, there_us
        ):
            return False
        left = context.left.get(commit.client_id or "", ())
        if any(half.seq_begin < row.seq_begin and row.started_us <= there_us for row in left):
            return False
        if context.client_died_since(commit.client_id, half):
            return False
        broker = half.broker or ""
        if any(row.seq_begin > half.seq_begin for row in context.epoch_deaths.get(broker, ())):
            return False
        crashes = [
            row for row in context.broker_deaths.get(broker, ()) if row.seq_begin > half.seq_begin
        ]
        return not crashes or (
            config.flush != FLUSHED_LATER and all(row.started_us > there_us for row in crashes)
        )


def _is_stored_once(row: Row) -> bool:
    """Is this the only send of a half message, was it well stored, and does it wait for nothing but the commit?"""
    return (
        is_half(row)
        and (row.attempt or 1) == 1
        and (row.delay_level or 0) <= 0
        and row.outcome is Outcome.OK
        and row.code not in STORED_WEAKLY
    )


judge = QueueJudge


def explain(found: NotThere) -> str:
    half, commit, read = found.half, found.commit, found.read
    return (
        f"message {half.message_id}, which {who(half)} sent to {half.queue} as a half message at {at(half)} and "
        f"committed at {at(commit)}, was not there when the queue was read up to {read.value} at {at(read)}"
    )
