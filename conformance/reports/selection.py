"""Single events of a history by lane, key or client, whatever its size."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from conformance.reports.batches import PLACE, Batch, Flags, LaneKey, Source, distinct, lane_key
from specs.errors import UsageError
from specs.history.row import Row
from specs.history.store import History

_PARTY = ("client_id", "process", "broker")
_NEAR = 3


@dataclass(frozen=True, slots=True)
class Selection:
    """Which events are wanted; what is None is not asked for.

    lane: `group/topic/broker/queue`, or without the group.
    """

    lane: str | None = None
    key: str | None = None
    client: str | None = None

    @property
    def asked(self) -> bool:
        return any(each is not None for each in (self.lane, self.key, self.client))


def select(history: History, wanted: Selection, most: int) -> tuple[list[Row], int]:
    """The first events that fit, by their places in the run, and how many fit.

    Raises UsageError, with what is nearest to it, where nothing does.
    """
    source = Source(history)
    best: list[tuple[str, int, int, int]] = []
    known: dict[str, set[str]] = {"lane": set(), "key": set(), "client": set()}
    count = 0
    for file, start, batch in source.batches(("run", "seq_begin", "sharding_key", *PLACE, *_PARTY)):
        places = np.flatnonzero(_fits(batch, wanted, known))
        count += len(places)
        runs, names = batch.coded("run")
        numbers = batch.numbers("seq_begin")
        nearest = places[np.argsort(numbers[places], kind="stable")[: most * len(names)]]
        found = [(names[runs[at]], int(numbers[at]), file, int(at) + start) for at in nearest]
        best = sorted([*best, *found])[:most]
    if not count:
        raise UsageError(_nothing(history, wanted, known))
    rows = source.rows([(file, place) for _run, _seq, file, place in best])
    return sorted(rows, key=lambda row: (row.run, row.seq_begin)), count


def _fits(batch: Batch, wanted: Selection, known: dict[str, set[str]]) -> Flags:
    fits: Flags = np.ones(batch.rows, bool)
    if wanted.lane is not None:
        codes, words = batch.places()
        columns, which = distinct(codes)
        names = [_names(lane_key(column, words)) for column in columns.T]
        known["lane"].update(name for pair in names for name in pair)
        fits &= np.array([wanted.lane in pair for pair in names], bool)[which]
    if wanted.key is not None:
        known["key"].update(batch.coded("sharding_key")[1])
        fits &= batch.says("sharding_key", wanted.key)
    if wanted.client is not None:
        theirs: Flags = np.zeros(batch.rows, bool)
        for name in _PARTY:
            known["client"].update(batch.coded(name)[1])
            theirs |= batch.says(name, wanted.client)
        fits &= theirs
    return fits


def _names(place: LaneKey) -> tuple[str, ...]:
    """What a lane is called: as a queue, and with its group."""
    group, topic, broker, queue = place
    if queue < 0:
        return ()
    named = f"{topic}/{broker}/{queue}"
    return (named, f"{group}/{named}") if group else (named,)


def _nothing(history: History, wanted: Selection, known: dict[str, set[str]]) -> str:
    asked = [
        f"the {name} {value}"
        for name, value in (("lane", wanted.lane), ("key", wanted.key), ("client", wanted.client))
        if value is not None
    ]
    hints = list(_near(wanted, known))
    hint = f"; there is {', '.join(hints)}" if hints else ""
    return f"{history.folder} holds no event of {' and '.join(asked)}{hint}"


def _near(wanted: Selection, known: dict[str, set[str]]) -> Iterator[str]:
    for name, value in (("lane", wanted.lane), ("key", wanted.key), ("client", wanted.client)):
        if value is not None and value not in known[name]:
            yield from difflib.get_close_matches(value, sorted(known[name]), n=_NEAR)
