"""Readings of a queue, for the clauses that ask whether a message is in it without knowing its offset."""

from __future__ import annotations

from collections.abc import Container

from specs.clauses.context import Context
from specs.clauses.rows import over_us
from specs.clauses.stored import is_marker
from specs.clauses.words import MS
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome

SETTLED = "settled"
"""The detail of a reading before which nothing was left to happen."""
PUT_AGAIN_MS = 10_000
"""After so long a broker tries again what it could not store when its time had come (docs/sources.md#delay)."""


class Readings:
    """Which of some messages the reading under way has shown, and since when the broker has been up again.

    A reading in which a read failed, or that did not tell a message's id, shows nothing for certain.
    """

    __slots__ = ("_context", "_is_whole", "_reading", "shown", "up")

    def __init__(self, context: Context) -> None:
        self._context = context
        self._reading: dict[int, Row] = {}
        self._is_whole = True
        self.shown: set[str] = set()
        self.up: Row | None = None  # the first thing that the broker answered since it died last

    def begins(self, row: Row) -> None:
        if is_marker(row):
            if not self._reading:
                self.shown, self._is_whole = set(), True
            self._reading[row.op_id] = row
        elif row.kind is Kind.READ and row.seq_end is None:
            self._is_whole = False

    def ends(self, row: Row, asked: Container[str]) -> Row | None:
        """A reading that has ended and is whole, as its marker. asked: the messages in question."""
        died = self._context.broker_died_since
        if (
            row.outcome is Outcome.OK
            and not died(row.broker, row)
            and (self.up is None or died(row.broker, self.up))
        ):
            self.up = row
        if row.kind is not Kind.READ:
            return None
        if not is_marker(row):
            if row.outcome is not Outcome.OK or row.message_id is None:
                self._is_whole = False
            elif self._reading and row.message_id in asked:
                self.shown.add(row.message_id)
            return None
        known = self._reading.pop(row.op_id, None) is not None
        return (
            row
            if known and self._is_whole and row.outcome is Outcome.OK and row.value is not None
            else None
        )

    def in_time(self, sent: Row, due_us: int, reading: Row) -> bool:
        """Was the message due, by that time and the slack of everybody, when the reading began?

        A broker that died meanwhile has to have been up again for so long. One that stood still may have woken in the
        middle of a write, and have failed in it: it is given the time after which it tries again besides. A disk that
        was full is an excuse for good. Nothing of this counts where nothing was left to happen.
        """
        context, slack_us = self._context, slack_of(self._context)
        if due_us + slack_us > reading.started_us:
            return False
        if reading.detail == SETTLED:
            return True
        awake_us = reading.started_us - slack_us - PUT_AGAIN_MS * MS
        pauses = context.broker_pauses.get(sent.broker or "", ())
        slept = any(pause.ended_us is None or pause.ended_us > awake_us for pause in pauses)
        if slept or context.is_crowded(sent.broker):
            return False
        if not context.broker_died_since(sent.broker, sent):
            return True
        up = self.up
        if up is None or context.broker_died_since(sent.broker, up):
            return False
        return over_us(up) + slack_us <= reading.started_us


def slack_of(context: Context) -> int:
    """How late what has its time may be, in µs: for a timer, for a request, and for another clock."""
    config = context.config
    return (config.delay_bound_ms + config.schedule_slack_ms) * MS + context.info.clock_bound_us
