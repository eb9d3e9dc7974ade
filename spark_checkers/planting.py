"""Planting a defect into a valid history: how it is declared, and what is looked through for a place.

A *defect* changes as little as it can so that one clause is broken (now and then another one is broken with it:
whoever skips a message also commits past it). A *lookalike* changes as much, and breaks nothing.
Both work on generated and on recorded histories; what they need (a suspended call, a handover) must be there.

A file of `spark_checkers.clauses` lies as the file of its clause does in `specs.clauses`. Functions in it are declared
by `@defect` where they break the clause, and by `@lookalike` where it only looks so. A selection finds rows that fit
together, and the function says what is done to them (`changes`). Selections that several clauses share are in `places`.
"""

import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any

from spark_checkers.changes import Change, Given, Planted
from specs.clauses.rows import REQUEST_LEVELS, is_copy_topic, is_manual
from specs.errors import UsageError
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.plan.config import Config, config_of
from specs.vocabulary import Kind, Lane, Outcome

Pairs = Iterator[tuple[Given, Given]]
"""Two rows at a time that belong together."""


def grouped(rows: Iterable[Any], key: Callable[[Any], Hashable]) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def pairs(rows: Iterable[Any], key: Callable[[Any], Hashable] = lambda row: None) -> Pairs:
    """Two rows that follow each other among those of one key."""
    last: dict[Hashable, Any] = {}
    for row in rows:
        before = last.get(key(row))
        last[key(row)] = row
        if before is not None:
            yield before, row


def triples(rows: Sequence[Given]) -> Iterator[tuple[Given, Given, Given]]:
    return zip(rows, rows[1:], rows[2:], strict=False)


def place(row: Row) -> Hashable:
    return row.queue, row.queue_offset


class Work:
    """What one incarnation did, which began once, with an ADD."""

    def __init__(self, rows: list[Given]) -> None:
        self.rows = rows

    def of(self, *kinds: Kind) -> list[Given]:
        return [row for row in self.rows if row.kind in kinds]

    @cached_property
    def add(self) -> Given:
        return self.of(Kind.ADD)[0]

    @cached_property
    def drop(self) -> Given | None:
        return next(iter(self.of(Kind.DROP)), None)

    @property
    def until(self) -> float:
        """When it was dropped, as a seq number."""
        return float("inf") if self.drop is None else float(self.drop.seq_begin)

    @cached_property
    def calls(self) -> list[Given]:
        return self.of(Kind.DELIVER)

    @cached_property
    def commits(self) -> list[Given]:
        """As the client made them: those that were corrected are left out."""
        return [row for row in self.of(Kind.COMMIT) if row.value is not None and row.detail is None]

    @property
    def first_tries(self) -> list[Given]:
        """The calls that ended in success in auto mode, of messages that had not come before."""
        done = (row for row in self.calls if row.outcome is Outcome.SUCCESS and not is_manual(row))
        return [row for row in done if row.seq_end is not None and not row.reconsume_times]

    @cached_property
    def finished(self) -> list[Given]:
        """The calls that ended in success in auto mode, one message each, before the drop."""
        sizes = Counter(row.op_id for row in self.calls)
        return [
            row
            for row in self.calls
            if row.outcome is Outcome.SUCCESS and not is_manual(row) and sizes[row.op_id] == 1
            if row.seq_end is not None and row.seq_end < self.until
        ]


class Trace:
    """The rows of one run (or of one queue of it), by seq_begin, with what selections ask about them."""

    def __init__(self, rows: Sequence[Row], info: RunInfo) -> None:
        self.rows: list[Given] = list(rows)
        self.config = info.config

    def of(self, *kinds: Kind) -> Iterator[Given]:
        return (row for row in self.rows if row.kind in kinds and row.level in REQUEST_LEVELS)

    @cached_property
    def lanes(self) -> dict[Lane, list[Given]]:
        """The requests of each lane of an original topic."""
        requests = (
            row
            for row in self.rows
            if row.level in REQUEST_LEVELS and row.group and row.queue_id is not None
            if not is_copy_topic(row.topic)
        )
        return grouped(requests, lambda row: row.lane)

    @cached_property
    def works(self) -> list[Work]:
        of_somebody = (row for rows in self.lanes.values() for row in rows if row.incarnation)
        works = map(Work, grouped(of_somebody, lambda row: (row.lane, row.incarnation)).values())
        return [work for work in works if len(work.of(Kind.ADD)) == 1]

    @cached_property
    def sent(self) -> dict[Hashable, Given]:
        """Acknowledged sends by their place."""
        return {
            place(row): row
            for row in self.of(Kind.SEND)
            if row.outcome is Outcome.OK and row.queue_offset is not None
        }

    def send_of(self, row: Row) -> Given:
        """The acknowledged send of the message at that place, or None."""
        return self.sent.get(place(row))

    def locks(self, lane: Lane, client: str | None = None) -> list[Given]:
        """The lane's granted locks (a client's) that were answered, in the order of their answers."""
        found = [
            row
            for row in self.lanes[lane]
            if row.kind is Kind.LOCK and row.outcome is Outcome.OK and row.seq_end is not None
            if client in (None, row.client_id)
        ]
        return sorted(found, key=lambda row: row.seq_end)


Selection = Callable[[Trace], Iterable[Any]]
Changes = Iterator[Change]
"""Every place where a change can be made, as the change there."""


# ------------------------------------------------------------------------------------------ what is planted


@dataclass(frozen=True, slots=True)
class Mutant:
    """A defect or a lookalike: where it can be planted, and what it changes there.

    selection: finds rows (some at a time in a tuple) that fit together; where: which of them will do; change: what is
    done to them. Without a change the selection finds changes.

    breaks: whether it is a defect. clause: which one it breaks.

    generated: whether generated histories have a place for it; recorded ones have. dead_letters: planted into the
    dead-letter queues. by_hand: into the lanes of a group in manual mode. consumed: the mode and the model of the
    histories that have a place for it. config: what the run's configuration is said to have been. tagged: into a run
    whose groups subscribe to some tags, and in which batches are sent.
    """

    name: str
    why: str
    selection: Selection
    change: Callable[..., Change] = lambda change: change
    where: Callable[..., Any] = lambda *found: True
    dead_letters: bool = False
    generated: bool = True
    by_hand: bool = False
    consumed: tuple[str, str] = ("orderly", "clustering")
    config: Mapping[str, Any] = field(default_factory=dict)
    tagged: bool = False
    breaks: bool = True
    clause: str | None = None

    def sites(self, trace: Trace) -> Changes:
        for found in self.selection(trace):
            rows = found if type(found) is tuple else (found,)
            if self.where(*rows):
                yield self.change(*rows)

    def under(self, info: RunInfo) -> RunInfo:
        """The run's description as the changed history has it: another system's where RocketMQ has no such setting."""
        if set(self.config) <= {each.name for each in fields(Config)}:
            return replace(info, config=replace(info.config, **self.config))
        told = {**info.config.to_json(), **self.config, "system": "planted"}
        return replace(info, config=config_of(told))


def defect(
    selection: Selection | None = None, **how: Any
) -> Callable[[Callable[..., Any]], Mutant]:
    """Declare a function as a defect: a `Mutant` of its name, which its docstring explains in one sentence.

    selection: finds the rows that the function is given, which returns what is done to them; without a selection the
    function is given a `Trace`, and finds changes. how: further fields of the `Mutant`.
    """

    def declared(function: Callable[..., Any]) -> Mutant:
        name, says = function.__name__.replace("_", "-"), (function.__doc__ or "").strip(".")
        parts = (function,) if selection is None else (selection, function)
        return Mutant(name, says[:1].lower() + says[1:], *parts, **how)

    return declared


lookalike = partial(defect, breaks=False)
"""The same for what breaks nothing."""
RECORDED: dict[str, Any] = {"generated": False}
CONCURRENT = {**RECORDED, "consumed": ("concurrent", "clustering")}
KEY_ORDERED = {**RECORDED, "consumed": ("key_ordered", "clustering")}
BROADCASTING = {**RECORDED, "consumed": ("concurrent", "broadcasting")}
LEASED = {**RECORDED, "consumed": ("leased", "clustering")}
"""Of a system that leases messages one by one."""
DEAD_LETTERS: dict[str, Any] = {"dead_letters": True}


def plant(
    mutant: Mutant, rows: Sequence[Row], info: RunInfo, *, seed: int = 0, first: bool = False
) -> Planted:
    """Make the change somewhere (first: at the first place where it can be made).

    rows: by seq_begin, with room between their seq numbers (see `spread`). Raises UsageError where the history has
    no place for it.
    """
    sites = mutant.sites(Trace(rows, info))
    if first:
        site = next(sites, None)
    else:
        all_sites = list(sites)
        site = random.Random(seed).choice(all_sites) if all_sites else None
    if site is None:
        raise UsageError(f"this history has no place for the defect {mutant.name}: {mutant.why}")
    return site.made(rows)
