"""What the rows of one judge have in common: a lane, a queue, a message, ..."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from specs.history.row import Row
from specs.vocabulary import Key

KeyValue = tuple[Any, ...]


def key_of(key: Key) -> Callable[[Row], KeyValue | None]:
    """The function that finds a row's key; None when the row has none (and no judge of that key sees it)."""
    return _KEYS[key]


def _lane(row: Row) -> KeyValue | None:
    if row.queue_id is None or row.group is None:
        return None
    return (row.run, row.group, row.topic, row.broker, row.queue_id)


def _queue(row: Row) -> KeyValue | None:
    return None if row.queue_id is None else (row.run, row.topic, row.broker, row.queue_id)


def _message(row: Row) -> KeyValue | None:
    source = row.origin_id or row.message_id
    return None if source is None else (row.run, source)


def _producer_key(row: Row) -> KeyValue | None:
    return (
        None if row.sharding_key is None else (row.run, row.client_id, row.topic, row.sharding_key)
    )


def _topic_key(row: Row) -> KeyValue | None:
    return None if row.sharding_key is None else (row.run, row.topic, row.sharding_key)


def _group_key(row: Row) -> KeyValue | None:
    if row.group is None or row.sharding_key is None:
        return None
    return (row.run, row.group, row.topic, row.sharding_key)


def _group(row: Row) -> KeyValue | None:
    return None if row.group is None else (row.run, row.group)


def _run(row: Row) -> KeyValue | None:
    return (row.run,)


_KEYS: dict[Key, Callable[[Row], KeyValue | None]] = {
    Key.LANE: _lane,
    Key.QUEUE: _queue,
    Key.MESSAGE: _message,
    Key.PRODUCER_KEY: _producer_key,
    Key.TOPIC_KEY: _topic_key,
    Key.GROUP_KEY: _group_key,
    Key.GROUP: _group,
    Key.RUN: _run,
}
