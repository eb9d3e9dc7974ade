"""Dead letters as they were sent, and as they were read: which rows these are, and of which group."""

from __future__ import annotations

import numpy as np

from specs.facts.rows import Rows
from specs.facts.segments import NO_TEXT, Ints, Mask
from specs.vocabulary import DLQ_PREFIX, Kind

ONLY_DEAD_READS = {Kind.READ: ("topic", DLQ_PREFIX)}
"""Which reads a clause about dead letters needs."""


def dead_reads(rows: Rows) -> Mask:
    """Is this a read of a dead letter?"""
    found: Mask = rows.are(Kind.READ) & rows.starts_with("topic", DLQ_PREFIX)
    return found


def group_of(rows: Rows, where: Ints) -> Ints:
    """Of which group each of these rows is, as a number: a dead letter says it, the topic of a read names it."""
    groups: dict[str, int] = {}

    def numbers(names: list[str]) -> Ints:
        return np.asarray([groups.setdefault(name, len(groups)) for name in names], np.int64)

    topics = [
        topic.removeprefix(DLQ_PREFIX) if topic.startswith(DLQ_PREFIX) else ""
        for topic in rows.words("topic")
    ]
    by_topic = np.append(numbers(topics), NO_TEXT)
    by_group = numbers([*rows.words("group"), ""])
    return np.where(
        rows.are(Kind.READ)[where], by_topic[rows.text("topic")[where]], by_group[rows.group[where]]
    )
