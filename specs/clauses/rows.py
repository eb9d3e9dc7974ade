"""What one row says: questions that many clauses ask of it."""

from __future__ import annotations

from functools import lru_cache

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import (
    DLQ_PREFIX,
    LISTENER_RESULTS,
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


CHANGE_NOTHING_REFUSED = frozenset(
    {
        Kind.ADD,
        Kind.ASSIGN,
        Kind.DROP,
        Kind.JOIN,
        Kind.LEAVE,
        Kind.RESET,
        Kind.TRIM,
        Kind.UNLOCK,
    }
)
"""Kinds of which no clause asks whether they were refused: such a row is as if it were not there."""


def own_process(row: Row) -> str | None:
    """The process that the row names as its client's. Only what a client records of itself does: on the wire it may be
    a connection."""
    return row.process if row.level is Level.CLIENT else None


def are_of_two_processes(one: Row, other: Row) -> bool:
    """Do both rows, of one client id, name their client's process, and two of them?"""
    mine, others = own_process(one), own_process(other)
    return mine is not None and others is not None and mine != others


def changed_nothing(row: Row) -> bool:
    """Was it refused, and is it of a kind that no clause asks for its refusal? Nobody is shown such a row.

    Whoever judges requests that may be refused (locks, commits, sends, dead letters) asks for the outcome. An operation
    without an answer (`unknown`, or one way) may have happened, then or later.
    """
    return row.outcome is Outcome.REFUSED and row.kind in CHANGE_NOTHING_REFUSED


def moved_nothing(row: Row) -> bool:
    """Is it a refused commit? Nobody can be accused by it, and few clauses are shown it.

    They are those that it tells something (`TOLD_OF_REFUSED_COMMITS`). GEN-1 asks for the refusal. That one was sent
    says that its client works (LSE-13), and that it reported in time (CMT-2) or before it gave the lane back (CMT-13);
    that one was refused says that the broker lives (CMT-7).
    """
    return row.kind is Kind.COMMIT and row.outcome is Outcome.REFUSED


def is_unsure(row: Row) -> bool:
    """Is it a send of which nobody knows whether it happened?"""
    return row.kind is Kind.SEND and row.outcome is Outcome.UNKNOWN


def ended_before(earlier: Row, later: Row) -> bool:
    """Did `earlier` certainly end before `later` began? By the total order (one clock domain)."""
    return earlier.seq_end is not None and earlier.seq_end < later.seq_begin


def over_us(row: Row) -> int:
    """When its operation was over, in µs; where nobody saw its end, when it began."""
    return row.started_us if row.ended_us is None else row.ended_us


def is_manual(row: Row) -> bool:
    """Did the listener choose the manual mode for this call?"""
    return row.commit_mode == CommitMode.MANUAL


def may_be_manual(row: Row) -> bool:
    """Was the call in manual mode, or did it end with a listener's result and nobody say in which?

    A log that lacks the column tells nothing of the mode. Where that decides, nothing is found.
    """
    return is_manual(row) or (row.commit_mode is None and row.outcome in LISTENER_RESULTS)


def may_put_back(row: Row) -> bool:
    """Does the call's result put back all that was taken, as a manual ROLLBACK does, as far as anybody says?"""
    return row.outcome is Outcome.ROLLBACK and may_be_manual(row)


def may_put_back_unseen(row: Row) -> bool:
    """May it have done so, or do so yet, where nobody sees it? The call is not over, was cut, or ended unknown."""
    return row.outcome not in LISTENER_RESULTS and row.commit_mode != CommitMode.AUTO


def may_have_put_back(row: Row) -> bool:
    """Does its result put back all that was taken, or may it have done so unseen?"""
    return may_put_back(row) or may_put_back_unseen(row)


def asks_again(row: Row) -> bool:
    """Does the call's result ask for the same messages again, after the suspend time?"""
    return row.outcome in LISTENER_SUSPENDS or (row.outcome is Outcome.ROLLBACK and is_manual(row))


def acknowledges(row: Row) -> bool:
    """Does the call's result finish its messages? In auto mode a ROLLBACK does so as well.

    Where nobody says in which mode the call was, they may be finished, and nobody may call them unfinished: see
    `certainly_acknowledges`.
    """
    if is_manual(row):
        return row.outcome is Outcome.COMMIT
    return row.outcome in _AUTO_ACKNOWLEDGES


def certainly_acknowledges(row: Row) -> bool:
    """Does the call's result finish its messages, in whatever mode it may have been?"""
    return row.outcome is Outcome.COMMIT or (acknowledges(row) and not may_be_manual(row))


_AUTO_ACKNOWLEDGES = frozenset({Outcome.SUCCESS, Outcome.COMMIT, Outcome.ROLLBACK})


@lru_cache(maxsize=4096)
def is_copy_topic(topic: str | None) -> bool:
    """A topic that holds copies: of messages to retry, or of messages given up."""
    return topic is not None and topic.startswith((RETRY_PREFIX, DLQ_PREFIX))


def may_be_given_up(row: Row, config: Config) -> bool:
    """Could this delivery, by what is known of its counter, have been the last one allowed?"""
    limit, times = config.max_reconsume_times, row.reconsume_times
    return limit >= 0 and (times is None or times >= limit)
