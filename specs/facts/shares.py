"""ASSIGN rows taken apart, for the clauses about assignment. They are few: rows are gone through."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from specs.facts.columns import NO_TEXT, Mask
from specs.facts.rows import Rows
from specs.vocabulary import Kind

SHARE_COLUMNS = ("client_id", "view", "detail")
GONE_BY = frozenset({Kind.CRASH, Kind.LEAVE})
BETWEEN = " | "


class Share(NamedTuple):
    """place: the row. client: its code. member: its name. view: as it stands. taken: the queues, in order."""

    place: int
    client: int
    member: str
    view: str
    taken: tuple[str, ...]

    @property
    def members(self) -> list[str]:
        return self.view.split(BETWEEN, 1)[0].split()

    @property
    def queues(self) -> list[str]:
        return self.view.split(BETWEEN, 1)[1].split()


def each_share(rows: Rows) -> Iterator[tuple[Share, dict[int, Share]]]:
    """The shares that say what was seen and taken, by seq_begin.

    With each the last one before it of each client of its group, for its topic, that has neither left nor died since.
    """
    group, topic, client = rows.group, rows.text("topic"), rows.client
    view, detail = rows.text("view"), rows.text("detail")
    views, details = rows.words("view"), rows.words("detail")
    found: dict[tuple[int, int, int], dict[int, Share]] = {}
    for place in rows.of(Kind.ASSIGN).tolist():
        told = NO_TEXT not in (client[place], view[place], detail[place])
        if not told or BETWEEN not in views[view[place]]:
            continue
        taken = tuple(details[detail[place]].split())
        who = int(client[place]), rows.client_of(place)
        share = Share(place, *who, views[view[place]], taken)
        key = (int(rows.run[place]), int(group[place]), int(topic[place]))
        context, here = rows.context_of(place), rows.name_of("group", place)
        before = found.setdefault(key, {})
        for other in list(before.values()):
            since, now = rows.begin[[other.place, place]].tolist()
            if context.is_gone(here, other.member, since, now):
                del before[other.client]
        yield share, before
        before[share.client] = share


def that_hold(rows: Rows, queue: str) -> Mask:
    """The assignments in which somebody took this queue (BROKER/ID), whatever the topic."""
    holds = [*(queue in text.split() for text in rows.words("detail")), False]
    return rows.are(Kind.ASSIGN) & np.asarray(holds, np.bool_)[rows.text("detail")]
