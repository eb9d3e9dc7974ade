"""A half message that its producer committed is in the queue that it was meant for.

An end of a transaction is one way: it arrives within the bound for delays, unless something on the way stops it. So a
commit counts that began after its half message was acknowledged. From the begin of the half message's send until the
bound after the commit was handed to the network, no fault may have been recorded, the broker not have died, and the
producer not have left; since that begin, the producer not have died, and the broker not have been paused. Nor may a
pause of the producer have lasted into the bound before the commit, or have come in the bound after it. That somebody
else was paused is no fault here: its row names a client or a broker, and neither there nor in its detail one of these
two. Then each reading of the queue to its end that begins after that, and after the slack of a timer, must show the
message. Where the broker died after the bound, a sign of life is asked for: its first answer about the queue since must
have come before the reading began, by that slack, unless the reading is a settled one.

Nothing is said where the half message was sent more than once by the end of the reading, as its rows or their `attempt`
tell, with a delay level (which may count from the commit on) or weakly stored, or where a rollback was told by then;
where the commit came so late that the broker may have given the message up after asking as often as it may, where the
broker removed messages of the queue on purpose, or where a read failed. Where brokers flush later, none of those that
died since is judged. That nobody sees the message before is the business of SND-6, that it comes once that of SND-2.
"""

import numpy as np

from specs.clauses.premises import BROKER_NOT_PAUSED, CLOSED_WORLD, DRAINED, NOT_REMOVED, Premise
from specs.clauses.stored import COMMIT, ROLLBACK
from specs.clauses.terms import Finding, Findings, Row, Rows, at, who
from specs.facts.columns import MS, NEVER, NO_TEXT, Ints
from specs.facts.readings import COLUMNS as READING_COLUMNS
from specs.facts.readings import Queue, queues_with
from specs.facts.stored import STORED_COLUMNS, STORED_WEAKLY, copies, halves, refused
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
COLUMNS = tuple(dict.fromkeys(["client_id", "attempt", *STORED_COLUMNS, *READING_COLUMNS]))


class NotThere(Finding):
    half: Row
    commit: Row
    read: Row


def judge(rows: Rows, findings: Findings) -> None:
    named = (rows.text("message_id") != NO_TEXT) & ~copies(rows)
    half = np.flatnonzero(halves(rows) & named & ~refused(rows))
    if len(half):
        for queue, _ in queues_with(rows, half, (Kind.SEND, Kind.END_TRANSACTION, Kind.READ)):
            _Halves(queue, findings, queue.where[named[queue.where]]).judge()


class _Halves:
    """The half messages of one queue."""

    def __init__(self, queue: Queue, findings: Findings, where: Ints) -> None:
        self.queue, self.rows, self.findings = queue, queue.rows, findings
        rows, message = self.rows, self.rows.text("message_id")
        weak = np.isin(rows.number("code"), STORED_WEAKLY)
        good = halves(rows) & rows.ended_as(Outcome.OK) & ~weak & (rows.number("delay_level") <= 0)
        good &= rows.number("attempt") <= 1
        told = rows.ended_as(Outcome.OK, Outcome.SENT)
        self.half: dict[int, int] = {}
        self.commit: dict[int, int] = {}
        self.unclear: dict[int, int] = {}  # from which seq on
        vain, is_send, is_end = refused(rows), rows.are(Kind.SEND), rows.are(Kind.END_TRANSACTION)
        for row in where.tolist():
            each, begin = int(message[row]), int(rows.begin[row])
            if is_send[row] and not vain[row]:
                if good[row] and each not in self.half:
                    self.half[each] = row
                else:
                    self.unclear.setdefault(each, begin)
            elif is_end[row] and rows.value[row] == ROLLBACK:
                self.unclear.setdefault(each, begin)
            elif is_end[row] and told[row] and rows.value[row] == COMMIT:
                half = self.half.get(each)
                if half is not None and rows.end[half] < begin:
                    self.commit.setdefault(each, row)

    def judge(self) -> None:
        rows = self.rows
        left = dict(self.commit)
        for reading in self.queue.readings():
            marker, now = reading.marker, int(rows.end[reading.marker])
            if rows.context_of(marker).kept_from(rows.queue_of(marker), now):
                continue
            for message, commit in list(left.items()):
                half = self.half[message]
                if self.unclear.get(message, NEVER) < now or rows.end[commit] >= rows.begin[marker]:
                    continue
                if not self._is_due(half, commit, marker):
                    continue
                self.findings.at_stake(np.asarray([marker], np.int64))
                if not any(rows.begin[half] < end for end in reading.shown.get(message, ())):
                    del left[message]
                    roles = {"half": half, "commit": commit, "read": marker}
                    self.findings.shown(NotThere, roles)

    def _is_due(self, half: int, commit: int, marker: int) -> bool:
        """Has the commit arrived for certain, and was there time enough since?"""
        rows = self.rows
        context, now = rows.context_of(half), int(rows.end[marker])
        config = context.info.config
        handed = rows.started[commit] if rows.ended[commit] >= NEVER else rows.ended[commit]
        there_us = int(handed) + config.delay_bound_ms * MS + context.info.clock_bound_us
        sent_us, begin = int(rows.started[half]), int(rows.begin[half])
        if not self.queue.in_time(half, there_us, marker):
            return False
        party = (rows.client_of(commit), rows.name_of("broker", half))
        if context.fault_between(sent_us, there_us, now, party):
            return False
        if rows.was_disturbed(commit, there_us, now, broker=party[1]):
            return False
        asked_ms = config.transaction_check_max * config.transaction_check_interval_ms
        if there_us - sent_us > (config.transaction_timeout_ms + asked_ms) * MS:
            return False
        client, broker = party
        if context.broker_paused_since(broker, sent_us, now) or context.client_died_between(
            client, begin, now
        ):
            return False
        for seq, _group, row in context.work.get(client, ()):
            if row.kind is Kind.LEAVE and begin < seq <= now and row.started_us <= there_us:
                return False
        if any(begin < seq <= now for seq in context.epoch_deaths(broker)):
            return False
        crashes = [us for seq, us in context.broker_deaths.get(broker, ()) if begin < seq <= now]
        return not crashes or (config.flush != "async" and min(crashes) > there_us)


def explain(found: NotThere) -> str:
    half, commit, read = found.half, found.commit, found.read
    return (
        f"message {half.message_id}, which {who(half)} sent to {half.queue} as a half message at {at(half)} and "
        f"committed at {at(commit)}, was not there when the queue was read up to {read.value} at {at(read)}"
    )
