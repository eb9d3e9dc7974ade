"""A producer's retry may store a message twice, but not its first copy behind a later message of its key.

The producer numbers the messages of a key and goes on to the next one when the last has ended, well or badly. A message
whose tries were all refused so far is not there; when a further try stores it behind a message with a higher number,
the two lie the wrong way round, and nobody who reads the queue can tell. Decided where every earlier try was certainly
refused (as for SND-3), both were acknowledged in one queue, and that broker did not crash between; a try that was not
answered may have stored the first copy in time, and a second copy may lie anywhere. A producer did not send in turn
where the later message began before any try of the earlier one had ended, or while one was under way; then nothing is
said of the two. Nor is it of messages of two lives of a producer, which numbers its keys anew. Where frames may come
twice, a refusal says nothing. It is the case of SND-4 that does harm, and the one that is left where retries of keyed
messages are allowed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import BROKER_LIVES, NO_FRAME_TWICE, SENT_IN_TURN
from specs.clauses.rows import ended_before, is_copy_topic
from specs.clauses.stored import is_half, is_refused
from specs.clauses.words import at, who
from specs.history.row import Row
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "SND-9"
TITLE = "a retry never reorders"
STATEMENT = "A retry of a send may store a message twice, but never its first copy behind a later message of its key."
PARTY = Party.PAIR
KEY = Key.PRODUCER_KEY
PREMISE = (SENT_IN_TURN, NO_FRAME_TWICE, BROKER_LIVES)
SOURCES = ("docs/sources.md#send",)
REFINES = ("SND-4",)
STAKES = (Stake(Trait.FULL_DISK),)
KINDS = frozenset({Kind.SEND})
NEEDS = frozenset({Kind.SEND})

TRIES_MAX = 8
"""Of a message with more refusals nothing is said: a witness is short."""


def wants(row: Row) -> bool:
    """Numbered messages that lie where they are sent to."""
    named = row.key_seq is not None and row.message_id is not None
    return named and not row.delay_level and not is_half(row) and not is_copy_topic(row.topic)


@dataclass(frozen=True, slots=True)
class StoredBehind(Finding):
    refused: tuple[Row, ...]
    later: Row
    stored: Row


def is_in_turn(tries: list[Row], later: Row) -> bool:
    """When the later message began, had the first of these tries ended, and was none of them under way?"""
    apart = (ended_before(each, later) or later.seq_begin < each.seq_begin for each in tries)
    return ended_before(tries[0], later) and all(apart)


class KeyJudge(Judge):
    """Remembers, for one key, the refusals of messages that are not stored, and the highest number in each queue."""

    __slots__ = ("highest", "refused", "unclear")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.refused: dict[str, list[Row]] = {}
        self.unclear: set[str] = set()  # messages that may be stored
        self.highest: dict[tuple[str | None, int | None], Row] = {}

    def begins(self, row: Row) -> Iterable[Finding]:
        if row.seq_end is None:
            self._may_be_stored(row)
        return NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        message = row.message_id or ""
        if is_refused(row):
            if message not in self.unclear:
                self.refused.setdefault(message, []).append(row)
            return NOTHING
        is_placed = row.outcome is Outcome.OK and row.queue_offset is not None
        found = self._stored(row) if is_placed and not self._is_gone(row) else NOTHING
        self._may_be_stored(row)
        return found

    def _may_be_stored(self, row: Row) -> None:
        message = row.message_id or ""
        self.unclear.add(message)
        self.refused.pop(message, None)

    def _stored(self, row: Row) -> Iterable[Finding]:
        number, place = row.key_seq or 0, (row.broker, row.queue_id)
        mine = self.refused.get(row.message_id or "", [])
        if any(
            (rows[0].key_seq or 0) < number and is_in_turn(rows, row) and not self._is_gone(rows[0])
            for rows in self.refused.values()
        ):
            self.opportunities += 1
        later = self.highest.get(place)
        if later is None or number > (later.key_seq or 0) or self._is_gone(later):
            self.highest[place] = row
            return NOTHING
        first_copy = mine and len(mine) == (row.attempt or 1) - 1 and len(mine) <= TRIES_MAX
        behind = (row.queue_offset or 0) > (later.queue_offset or 0) and number < (
            later.key_seq or 0
        )
        silent = self.context.frames_twice is not None or self.context.broker_died_since(
            row.broker, later
        )
        if not first_copy or not behind or silent or self._is_gone(mine[0]):
            return NOTHING
        if not is_in_turn([*mine, row], later):
            return NOTHING
        self.opportunities += 1
        return (StoredBehind(tuple(mine), later, row),)

    def _is_gone(self, sent: Row) -> bool:
        """Did its producer die, or leave and come again, since?"""
        return self.context.is_of_an_old_life(sent.client_id, sent.group, sent)


judge = KeyJudge


def explain(found: StoredBehind) -> str:
    first, later, stored = found.refused[0], found.later, found.stored
    return (
        f"message {stored.message_id}, number {stored.key_seq} of key {stored.sharding_key}, was refused at "
        f"{at(first)}, and attempt {stored.attempt} of {who(stored)} stored it at offset {stored.queue_offset} of "
        f"{stored.queue} at {at(stored)}, behind number {later.key_seq} at offset {later.queue_offset}"
    )
