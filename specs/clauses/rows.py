"""What one row says: questions that many clauses ask of it."""

from functools import lru_cache

from specs.history.row import Row
from specs.vocabulary import (
    DLQ_PREFIX,
    LISTENER_SUSPENDS,
    RETRY_PREFIX,
    CommitMode,
    Kind,
    Level,
    Outcome,
)

REQUEST_LEVELS = frozenset({Level.CLIENT, Level.WIRE, Level.TAP})
"""Requests as their sender saw them, or as they passed a tap. Broker-side (`store`) rows repeat them and are left out
unless asked for. A request is recorded at one of these levels: who taps a client that tells its sends, skips them."""


OFFSET_MOVED, NOTHING_HERE = 21, (19, 20)
"""The codes of pulls that are told to go on elsewhere, or that found nothing."""
CHANGE_NOTHING_REFUSED = frozenset(
    {Kind.ADD, Kind.ASSIGN, Kind.DROP, Kind.JOIN, Kind.LEAVE, Kind.RESET, Kind.TRIM, Kind.UNLOCK}
)
"""Kinds of which no clause asks whether they were refused: such a row is as if it were not there."""


def changed_nothing(row: Row) -> bool:
    """Was it refused, and is it of a kind that no clause asks for its refusal? Nobody is shown such a row.

    Whoever judges requests that may be refused (locks, commits, sends, dead letters) asks for the outcome. An operation
    without an answer (`unknown`, or one way) may have happened, then or later.
    """
    return row.outcome is Outcome.REFUSED and row.kind in CHANGE_NOTHING_REFUSED


def is_unsure(row: Row) -> bool:
    """Is it a send of which nobody knows whether it happened?"""
    return row.kind is Kind.SEND and row.outcome is Outcome.UNKNOWN


def is_astray(row: Row) -> bool:
    """Is it a send that may lie in any queue of its topic, and of its broker where it names one?"""
    told = row.queue_id is not None or row.queue_offset is not None
    return row.kind is Kind.SEND and not told and row.outcome is not Outcome.REFUSED


def ended_before(earlier: Row, later: Row) -> bool:
    """Did `earlier` certainly end before `later` began? By the total order (one clock domain)."""
    return earlier.seq_end is not None and earlier.seq_end < later.seq_begin


def over_us(row: Row) -> int:
    """When its operation was over, in µs; where nobody saw its end, when it began."""
    return row.started_us if row.ended_us is None else row.ended_us


def answered_offset(look: Row) -> int | None:
    """What a look-up was told: the offset, -1 for "nothing stored"; None when that is not known."""
    if look.outcome is Outcome.OK:
        return look.value
    return -1 if look.outcome is Outcome.REFUSED and look.value == -1 else None


def is_manual(row: Row) -> bool:
    """Did the listener choose the manual mode for this call?"""
    return row.commit_mode == CommitMode.MANUAL


def asks_again(row: Row) -> bool:
    """Does the call's result ask for the same messages again, after the suspend time?"""
    return result_asks_again(row.outcome, manual=is_manual(row))


def acknowledges(row: Row) -> bool:
    """Does the call's result finish its messages?"""
    return result_acknowledges(row.outcome, manual=is_manual(row))


def result_asks_again(outcome: Outcome, *, manual: bool) -> bool:
    """Does a listener's result ask for the same messages again, in this mode?"""
    return outcome in LISTENER_SUSPENDS or (outcome is Outcome.ROLLBACK and manual)


def result_acknowledges(outcome: Outcome, *, manual: bool) -> bool:
    """Does a listener's result finish the messages? In auto mode a ROLLBACK does so as well.

    Where nobody says in which mode the call was, they may be finished, and nobody may call them unfinished: see
    `specs.facts.calls.certainly_acknowledged`.
    """
    return outcome is Outcome.COMMIT if manual else outcome in _AUTO_ACKNOWLEDGES


_AUTO_ACKNOWLEDGES = frozenset({Outcome.SUCCESS, Outcome.COMMIT, Outcome.ROLLBACK})


@lru_cache(maxsize=4096)
def is_copy_topic(topic: str | None) -> bool:
    """A topic that holds copies: of messages to retry, or of messages given up."""
    return topic is not None and topic.startswith((RETRY_PREFIX, DLQ_PREFIX))
