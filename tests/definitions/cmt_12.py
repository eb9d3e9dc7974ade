"""CMT-12: a broadcast client tells the broker no offset, and goes on where it wrote last.

Decisions where the page leaves room:

- An ADD of an earlier incarnation, or life, was a begin too.
- A reset excuses what a process wrote before it was over; of a commit nothing is claimed while one is under way, or was
  when its client began.
"""

from __future__ import annotations

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind, Level
from tests.definitions.words import (
    Rows,
    began_before,
    same_lane,
    took_effect,
    was_reset,
)


def broken(rows: Rows, config: Config) -> bool:
    return config.message_model == "broadcasting" and any(
        _told_the_broker(rows, add) or _began_elsewhere(rows, add)
        for add in took_effect(rows, Kind.ADD)
    )


def _told_the_broker(rows: Rows, add: Row) -> bool:
    return any(
        commit.client_id == add.client_id
        and same_lane(commit, add)
        and began_before(add, commit)
        and not was_reset(rows, commit, commit)
        and not was_reset(rows, add, add)
        for commit in took_effect(rows, Kind.COMMIT)
    )


def _began_elsewhere(rows: Rows, add: Row) -> bool:
    written = [
        persist
        for persist in took_effect(rows, Kind.PERSIST)
        if persist.level is Level.CLIENT
        and persist.process == add.process
        and same_lane(persist, add)
        and persist.value is not None
        and began_before(persist, add)
    ]
    return (
        bool(written)
        and add.value not in (None, written[-1].value)
        and not was_reset(rows, written[-1], add)
    )
