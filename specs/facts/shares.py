"""ASSIGN rows taken apart, for the clauses about assignment. They are few: rows are gone through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from specs.facts.rows import Rows
from specs.facts.segments import NO_TEXT
from specs.vocabulary import Kind

SHARE_COLUMNS = ("client_id", "view", "detail")
BETWEEN = " | "


class Share(NamedTuple):
    """place: the row. topic, client: codes. view: as it stands. taken: the queues, in order."""

    place: int
    topic: int
    client: int
    view: str
    taken: tuple[str, ...]

    @property
    def members(self) -> list[str]:
        return self.view.split(BETWEEN, 1)[0].split()

    @property
    def queues(self) -> list[str]:
        return self.view.split(BETWEEN, 1)[1].split()


def by_group(rows: Rows) -> Iterator[list[Share]]:
    """The shares of each group that say what was seen and taken, by seq_begin."""
    group, topic, client = rows.group, rows.text("topic"), rows.client
    view, detail = rows.text("view"), rows.text("detail")
    views, details = rows.words("view"), rows.words("detail")
    found: dict[tuple[int, int], list[Share]] = {}
    for place in rows.of(Kind.ASSIGN).tolist():
        if (
            NO_TEXT in (client[place], view[place], detail[place])
            or BETWEEN not in views[view[place]]
        ):
            continue
        taken = tuple(details[detail[place]].split())
        share = Share(place, int(topic[place]), int(client[place]), views[view[place]], taken)
        found.setdefault((int(rows.run[place]), int(group[place])), []).append(share)
    yield from found.values()


def last_of_each(shares: list[Share], until: int) -> dict[int, Share]:
    """Before the share at that index: the last one of each client for the same topic."""
    return {share.client: share for share in shares[:until] if share.topic == shares[until].topic}
