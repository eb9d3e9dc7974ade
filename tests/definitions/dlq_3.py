"""DLQ-3: after its dead letter was acknowledged, a message is not delivered again by the same incarnation.

Decisions where the page leaves room:

- The batch is that of the message's last call before the one in question; a reset makes it forgotten.
- Another message of the batch has to come again unless its own dead letter was acknowledged, or it came again since,
  before the call in question began.
- A batch may have been put back unless its call ended well.
- A dead letter counts no more once another one of the message has failed that began after it had come again.
- A message of which no call is in the history was alone in its batch, as the configuration has it.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome
from tests.definitions.words import (
    MANUAL,
    WEAK,
    Rows,
    before,
    began_before,
    calls,
    ended_well,
    is_about,
    may_have_rolled_back,
    of,
    same_call,
    same_incarnation,
    was_reset,
)


def broken(rows: Rows, config: Config) -> bool:
    return any(
        _is_certain(letter)
        and before(letter, call)
        and letter.queue_offset == call.queue_offset
        and same_incarnation(rows, letter, call)
        and not _was_in_vain_since(rows, letter, call)
        and not _was_manual(rows, call)
        and not was_reset(rows, letter, call)
        and not _comes_with_others(rows, letter, call)
        for letter in of(rows, Kind.DEAD_LETTER)
        for call in calls(rows)
    )


def _is_certain(letter: Row) -> bool:
    """Was it stored for good, and not in manual mode?"""
    by_hand = letter.commit_mode == MANUAL
    return letter.outcome is Outcome.OK and letter.code not in WEAK and not by_hand


def _was_in_vain_since(rows: Rows, letter: Row, call: Row) -> bool:
    """Did the message come again after the dead letter, and was given up once more, in vain, before that call?"""
    return any(
        again.queue_offset == vain.queue_offset == letter.queue_offset
        and same_incarnation(rows, again, letter)
        and same_incarnation(rows, vain, letter)
        and before(letter, again)
        and began_before(again, vain)
        and before(vain, call)
        and vain.outcome is not Outcome.OK
        for again in calls(rows)
        for vain in of(rows, Kind.DEAD_LETTER)
    )


def _was_manual(rows: Rows, call: Row) -> bool:
    letters = any(
        letter.commit_mode == MANUAL
        and same_incarnation(rows, letter, call)
        and before(letter, call)
        for letter in of(rows, Kind.DEAD_LETTER)
    )
    return letters or any(
        same_incarnation(rows, other, call)
        and began_before(other, call)
        and (
            (other.commit_mode == MANUAL and not same_call(other, call))
            or (
                may_have_rolled_back(other)
                and (other.outcome is not Outcome.ROLLBACK or before(other, call))
            )
        )
        for other in calls(rows)
    )


def _comes_with_others(rows: Rows, letter: Row, call: Row) -> bool:
    """Was it last called in a batch of which others have to come again?"""
    earlier = [
        other
        for other in calls(rows)
        if other.queue_offset == call.queue_offset
        and same_incarnation(rows, other, call)
        and began_before(other, call)
        and not was_reset(rows, other, call)
    ]
    if not earlier or ended_well(earlier[-1]):
        return False
    batch = earlier[-1]
    return any(
        same_call(other, batch) and other is not batch and not _is_done(rows, other, call)
        for other in calls(rows)
    )


def _is_done(rows: Rows, message: Row, call: Row) -> bool:
    """Was it given up, or did it come again, before that call?"""
    given_up = any(
        _is_certain(letter)
        and is_about(rows, letter, message)
        and before(letter, call)
        and not _was_in_vain_since(rows, letter, call)
        for letter in of(rows, Kind.DEAD_LETTER)
        if before(message, letter)
    )
    return given_up or any(
        other.queue_offset == message.queue_offset
        and same_incarnation(rows, other, message)
        and before(message, other)
        and began_before(other, call)
        and not same_call(other, call)
        for other in calls(rows)
    )
