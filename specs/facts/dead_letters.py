"""Dead letters as they were sent, and as they were read: which rows these are, and of which group."""

import numpy as np

from specs.clauses.certainty import recorded
from specs.facts.columns import NO_TEXT, NOWHERE, Ints, Mask
from specs.facts.moments import Line
from specs.facts.rows import Rows
from specs.facts.run_context import RunContext
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


def may_be_untold(rows: Rows, where: Ints, *letters: Kind, moment: Ints | None = None) -> Mask:
    """When each of these rows began, might a message of its lane have been given up without a word?

    As long as no dead letter of the lane was told of, where no recorder says that it tells; always where the history
    begins late, and once a dead letter named no incarnation: whose message it finished nobody knows. letters: the kinds
    of rows that give a message up, dead letters by default. moment: as of these moments instead.
    """
    told = Line(rows.lane, rows.begin, rows.of(*(letters or (Kind.DEAD_LETTER,))))
    moment = rows.begin[where] if moment is None else moment
    shown = told.last_before(rows.lane[where], moment) != NOWHERE
    nameless = rows.of(Kind.DEAD_LETTER)
    nameless = nameless[~rows.names_incarnation[nameless]]
    unclear = Line(rows.lane, rows.begin, nameless).last_before(rows.lane[where], moment) != NOWHERE
    declared = rows.of_runs(_declares, where) != 0
    found: Mask = rows.begins_late(where) | unclear | ~(shown | declared)
    return found


def _declares(context: RunContext) -> bool:
    info = context.info
    return info.records is not None and Kind.DEAD_LETTER in (recorded(info) or ())
