"""SND-10: a message is read and delivered with the content that it was sent with.

Decisions where the page leaves room:

- Content is the hash of the body, the tags and the key; the level and the hash of the own properties where both rows
  tell one.
- A send counts from its begin, whatever its answer. Two sends differ in their levels also where only one tells one.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import DLQ_PREFIX, RETRY_PREFIX, Kind
from tests.definitions.words import Rows, of, was_seen


def broken(rows: Rows, config: Config) -> bool:
    seen = [row for row in of(rows, Kind.DELIVER, Kind.READ) if was_seen(row)]
    return any(_is_changed(rows, each) for each in seen)


def _is_changed(rows: Rows, seen: Row) -> bool:
    moment = seen.seq_begin if seen.kind is Kind.DELIVER else seen.seq_end
    sent = [
        send
        for send in of(rows, Kind.SEND)
        if send.message_id == seen.message_id
        and send.topic == seen.topic
        and send.body_hash is not None
        and moment is not None
        and send.seq_begin < moment
    ]
    plain = not (seen.topic or "").startswith((RETRY_PREFIX, DLQ_PREFIX))
    return (
        plain
        and seen.message_id is not None
        and seen.body_hash is not None
        and bool(sent)
        and not any(_differ(sent[0], send) or _levels(sent[0], send) for send in sent)
        and _differ(sent[0], seen)
    )


def _levels(first: Row, second: Row) -> bool:
    return first.delay_level != second.delay_level


def _differ(first: Row, second: Row) -> bool:
    if (first.body_hash, first.tags, first.sharding_key) != (
        second.body_hash,
        second.tags,
        second.sharding_key,
    ):
        return True
    return any(
        None not in pair and pair[0] != pair[1]
        for pair in (
            (first.delay_level, second.delay_level),
            (first.props_hash, second.props_hash),
        )
    )
