"""A whole run, small: counts and owners in bins of time, and the single events around what was found.

Rules:
- its size is bounded whatever the run's length: BINS of time, MOST_LANES lanes, MOST_CLIENTS clients, MOST_BEFELL
  faults and MOST_EVENTS events around each of MOST_FINDINGS findings; what is left out is counted;
- lanes with a finding come first, then those with most events;
- the owner of a lane in a bin is whoever was handed messages of it or was granted its lease then;
- of a history of several runs one is shown: that of the first finding, or else the first;
- a history is read in batches, and of its columns only those that are needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from conformance.reports.batches import (
    PLACE,
    Batch,
    Flags,
    Ints,
    LaneKey,
    Source,
    distinct,
    lane_key,
)
from conformance.reports.incident import CONTEXT_KINDS
from conformance.reports.view import VerdictView
from specs.history.row import Row
from specs.history.store import History
from specs.vocabulary import LISTENER_SUSPENDS, SERVER_CONSUMER, Kind, Outcome

BINS = 240
MOST_LANES = 500
MOST_CLIENTS = 40
MOST_BEFELL = 200
MOST_FINDINGS = 40
MOST_EVENTS = 50

RATES = (
    "messages sent",
    "messages delivered",
    "calls that suspend or fail",
    "commits",
    "dead letters",
    "refused or unanswered",
    "faults, crashes, departures",
)
_OWNS = (Kind.DELIVER, Kind.LOCK, Kind.RENEW)
_LANE_KINDS = (
    *_OWNS,
    Kind.UNLOCK,
    Kind.COMMIT,
    Kind.PULL,
    Kind.ADD,
    Kind.DROP,
    Kind.FETCH_OFFSET,
    Kind.DEAD_LETTER,
)
_PARTY = ("client_id", "process", "broker")
_FIRST = ("run", "kind", "started_us", "ended_us", *PLACE)
_SECOND = (*_FIRST, "outcome", "client_id", "process", "seq_begin")
_NOBODY, _SEVERAL = -1, -2
_MOST_COUNTED = 5_000
"""So many clients are counted, so that memory is bounded too; of more, those that come first."""


@dataclass(frozen=True, slots=True)
class LaneLine:
    """One lane over time. owners: (first bin, last bin, client), where somebody owned it; client is its place in
    `Overview.owners`, or -2 for several. delivered: messages for each bin."""

    name: str
    events: int
    owners: tuple[tuple[int, int, int], ...]
    delivered: tuple[int, ...]
    found: bool


@dataclass(frozen=True, slots=True)
class Overview:
    """The run in bins of time. befell: faults, pauses, crashes, departures. around: for a clause, the events around
    its violation, where the history holds them; at_us: for a clause, when that was."""

    run: str
    runs: int
    events: int
    start_us: int
    end_us: int
    rates: Mapping[str, tuple[int, ...]]
    lanes: tuple[LaneLine, ...]
    all_lanes: int
    owners: tuple[str, ...]
    clients: tuple[tuple[str, tuple[int, ...]], ...]
    all_clients: int
    befell: tuple[Row, ...]
    all_befell: int
    around: Mapping[str, tuple[Row, ...]]
    at_us: Mapping[str, int]

    @property
    def bin_us(self) -> int:
        return bin_width(self.start_us, self.end_us)

    @property
    def bins(self) -> int:
        return (self.end_us - self.start_us) // self.bin_us + 1


def bin_width(start_us: int, end_us: int) -> int:
    """How long a bin is, in µs, so that at most BINS of them hold both ends."""
    return (end_us - start_us) // BINS + 1


def overview(history: History, verdict: VerdictView) -> Overview | None:
    """The run that a verdict is about, as far as a history holds it; None of a history without events."""
    source = Source(history)
    survey = _survey(source)
    if not survey.runs:
        return None
    found = [clause for clause in verdict.failures if clause.witness][:MOST_FINDINGS]
    run = next((c.witness[0].run for c in found if c.witness[0].run in survey.runs), None)
    chosen = next(iter(survey.runs)) if run is None else run
    here = [_Finding(c.id, c.witness) for c in found if c.witness[0].run == chosen]
    return _Count(source, survey, chosen, here).made()


class _Finding:
    """A violation whose neighbourhood is looked for."""

    def __init__(self, clause: str, witness: Sequence[Row]) -> None:
        self.clause = clause
        self.row = max(witness, key=lambda row: row.seq_begin)
        self.queues = {row.queue for row in witness if row.queue_id is not None}
        self.lanes = {tuple(row.lane) for row in witness if row.queue_id is not None}
        self.parties = {
            name for row in witness for name in (row.client_id, row.process, row.broker) if name
        }
        self.before: list[tuple[int, int, int]] = []  # (distance, file, row of it), nearest first
        self.after: list[tuple[int, int, int]] = []

    def sees(self, distances: Ints, file: int, rows: Ints) -> None:
        """Keep the nearest on each side. distances: of their begins from the violation's, signed."""
        half = MOST_EVENTS // 2
        for side, mask in (("before", distances < 0), ("after", distances >= 0)):
            near, places = np.abs(distances[mask]), rows[mask]
            best = np.argsort(near, kind="stable")[:half]
            found = [
                *getattr(self, side),
                *((int(near[i]), file, int(places[i])) for i in best),
            ]
            setattr(self, side, sorted(found)[:half])


# ------------------------------------------------------------------------------------------ first pass


@dataclass(slots=True)
class _Survey:
    """What must be known before anything is counted: when a run began and ended, and which lanes it has."""

    runs: dict[str, tuple[int, int, int]] = field(default_factory=dict)  # events, first, last
    lanes: dict[str, Counter[LaneKey]] = field(default_factory=dict)


def _survey(source: Source) -> _Survey:
    survey = _Survey()
    for _file, _start, batch in source.batches(_FIRST):
        started, ended = batch.numbers("started_us"), batch.numbers("ended_us", empty=-(2**63))
        runs, names = batch.coded("run")
        on_lanes = batch.is_kind(*_LANE_KINDS) & batch.there("queue_id") & batch.there("group")
        codes, words = batch.places()
        for code, name in enumerate(names):
            mine = runs == code
            if not mine.any():
                continue
            count, first, last = survey.runs.get(name, (0, 2**63 - 1, -(2**63)))
            last = max(last, int(started[mine].max()), int(ended[mine].max()))
            first = min(first, int(started[mine].min()))
            survey.runs[name] = (count + int(mine.sum()), first, last)
            lanes = survey.lanes.setdefault(name, Counter())
            found, which = distinct(codes[:, mine & on_lanes])
            for column, number in zip(found.T, np.bincount(which), strict=True):
                lanes[lane_key(column, words)] += int(number)
    return survey


# ----------------------------------------------------------------------------------------- second pass


class _Count:
    """One run, counted into bins."""

    def __init__(
        self, source: Source, survey: _Survey, run: str, findings: Sequence[_Finding]
    ) -> None:
        self.source = source
        self.run = run
        self.findings = findings
        self.runs = len(survey.runs)
        self.events, self.start_us, self.end_us = survey.runs[run]
        self.width = bin_width(self.start_us, self.end_us)
        self.bins = (self.end_us - self.start_us) // self.width + 1
        self.counted = survey.lanes[run]
        with_finding = {lane for finding in findings for lane in finding.lanes}
        ordered = sorted(
            self.counted, key=lambda key: (key not in with_finding, -self.counted[key], key)
        )
        self.keys = ordered[:MOST_LANES]
        self.number = {key: place for place, key in enumerate(self.keys)}
        self.found = with_finding
        self.rates = np.zeros((len(RATES), self.bins), np.int64)
        self.delivered = np.zeros(len(self.keys) * self.bins, np.int64)
        self.least = np.full(len(self.keys) * self.bins, 2**31, np.int64)
        self.most = np.full(len(self.keys) * self.bins, -1, np.int64)
        self.parties: dict[str, int] = {}
        self.active: dict[int, Ints] = {}
        self.seen: set[int] = set()
        self.befell: list[tuple[int, int, int]] = []
        self.all_befell = 0

    def made(self) -> Overview:
        for file, start, batch in self.source.batches(_SECOND):
            self._batch(file, start, batch)
        befell = self.source.rows([(file, place) for _at, file, place in self.befell])
        used, lanes = self._lanes()
        clients = sorted(self.active, key=lambda code: (-int(self.active[code].sum()), code))
        names = list(self.parties)
        return Overview(
            run=self.run,
            runs=self.runs,
            events=self.events,
            start_us=self.start_us,
            end_us=self.end_us,
            rates={name: _ints(line) for name, line in zip(RATES, self.rates, strict=True)},
            lanes=lanes,
            all_lanes=len(self.counted),
            owners=tuple(names[code] for code in used),
            clients=tuple(
                sorted((names[c], _ints(self.active[c])) for c in clients[:MOST_CLIENTS])
            ),
            all_clients=len(self.seen),
            befell=tuple(sorted(befell, key=lambda row: (row.started_us, row.seq_begin))),
            all_befell=self.all_befell,
            around={finding.clause: self._around(finding) for finding in self.findings},
            at_us={finding.clause: finding.row.started_us for finding in self.findings},
        )

    def _around(self, finding: _Finding) -> tuple[Row, ...]:
        places = [(file, place) for _, file, place in (*finding.before, *finding.after)]
        return tuple(sorted(self.source.rows(places), key=lambda row: row.seq_begin))

    def _batch(self, file: int, start: int, batch: Batch) -> None:
        mine = batch.says("run", self.run)
        if not mine.any():
            return
        since = batch.numbers("started_us") - self.start_us
        bins = np.clip(since // self.width, 0, self.bins - 1)
        parties = self._parties(batch)
        self._count_rates(batch, mine, bins)
        self._count_lanes(batch, mine, bins, parties)
        self._count_clients(batch, mine, bins, parties)
        self._note_befell(file, start, batch, mine)
        for finding in self.findings:
            places = np.flatnonzero(mine & self._touches(batch, finding, parties))
            away = batch.numbers("seq_begin")[places] - finding.row.seq_begin
            finding.sees(away, file, places + start)

    def _parties(self, batch: Batch) -> Ints:
        """Whose row each is, as a code that stays the same from batch to batch."""
        codes = np.full(batch.rows, _NOBODY, np.int64)
        for name in reversed(_PARTY):
            local, words = batch.coded(name)
            known = np.array([self.parties.setdefault(word, len(self.parties)) for word in words])
            there = local >= 0
            if name == "client_id":  # as `Row.party`: whose work it is says the next column
                there &= ~batch.says(name, SERVER_CONSUMER)
            if there.any():
                codes[there] = known[local[there]]
        return codes

    def _count_rates(self, batch: Batch, mine: Flags, bins: Ints) -> None:
        delivered = batch.is_kind(Kind.DELIVER)
        lines = (
            batch.is_kind(Kind.SEND),
            delivered,
            delivered & batch.ended(*LISTENER_SUSPENDS),
            batch.is_kind(Kind.COMMIT),
            batch.is_kind(Kind.DEAD_LETTER),
            ~delivered & batch.ended(Outcome.REFUSED, Outcome.UNKNOWN),
            batch.is_kind(*CONTEXT_KINDS),
        )
        self.rates += [np.bincount(bins[mine & line], minlength=self.bins) for line in lines]

    def _count_lanes(self, batch: Batch, mine: Flags, bins: Ints, parties: Ints) -> None:
        delivered = batch.is_kind(Kind.DELIVER)
        granted = batch.is_kind(*_OWNS) & (batch.ended(Outcome.OK) | delivered)
        places = np.flatnonzero(mine & granted & batch.there("queue_id"))
        if not len(places):
            return
        codes, words = batch.places()
        found, which = distinct(codes[:, places])
        lanes = np.array([self.number.get(lane_key(column, words), -1) for column in found.T])[
            which
        ]
        places, lanes = places[lanes >= 0], lanes[lanes >= 0]
        cell = lanes * self.bins + bins[places]
        np.minimum.at(self.least, cell, parties[places])
        np.maximum.at(self.most, cell, parties[places])
        self.delivered += np.bincount(cell[delivered[places]], minlength=len(self.delivered))

    def _count_clients(self, batch: Batch, mine: Flags, bins: Ints, parties: Ints) -> None:
        theirs = mine & batch.there("client_id") & ~batch.is_kind(Kind.READ, *CONTEXT_KINDS)
        codes, which = np.unique(parties[theirs], return_inverse=True)
        if not len(codes):
            return
        cells = which.reshape(-1) * self.bins + bins[theirs]
        lines = np.bincount(cells, minlength=len(codes) * self.bins).reshape(-1, self.bins)
        for code, line in zip(codes, lines, strict=True):
            self.seen.add(int(code))
            if int(code) in self.active or len(self.active) < _MOST_COUNTED:
                before = self.active.get(int(code), 0)
                self.active[int(code)] = before + line

    def _note_befell(self, file: int, start: int, batch: Batch, mine: Flags) -> None:
        places = np.flatnonzero(mine & batch.is_kind(*CONTEXT_KINDS))
        self.all_befell += len(places)
        if len(places):
            at = batch.numbers("started_us")[places]
            found = [
                (int(t), file, int(place) + start) for t, place in zip(at, places, strict=True)
            ]
            self.befell = sorted([*self.befell, *found])[:MOST_BEFELL]

    def _touches(self, batch: Batch, finding: _Finding, parties: Ints) -> Flags:
        """Rows of its queues, those of its parties that are of no queue, and faults."""
        queue = batch.numbers("queue_id", empty=-1)
        touched: Flags = batch.is_kind(Kind.FAULT).copy()
        for topic, broker, number in sorted(finding.queues):
            touched |= batch.says("topic", topic) & batch.says("broker", broker) & (queue == number)
        known = [self.parties[name] for name in sorted(finding.parties) if name in self.parties]
        touched |= (queue < 0) & np.isin(parties, known)
        return touched

    def _lanes(self) -> tuple[list[int], tuple[LaneLine, ...]]:
        """The parties that own anything, and the lanes, in which they go by their place among those."""
        least = self.least.reshape(len(self.keys), self.bins)
        most = self.most.reshape(len(self.keys), self.bins)
        delivered = self.delivered.reshape(len(self.keys), self.bins)
        used = sorted({int(code) for code in np.unique(most[(most >= 0) & (least == most)])})
        place = {code: number for number, code in enumerate(used)}
        lines = []
        for number, key in enumerate(self.keys):
            owners = [
                _NOBODY if high < 0 else place[int(low)] if low == high else _SEVERAL
                for low, high in zip(least[number], most[number], strict=True)
            ]
            group, topic, broker, queue = key
            lines.append(
                LaneLine(
                    f"{group}/{topic}/{broker}/{queue}",
                    self.counted[key],
                    tuple(_stretches(owners)),
                    _ints(delivered[number]),
                    key in self.found,
                )
            )
        return used, tuple(lines)


def _stretches(owners: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Bins with the same owner, joined; a lane that was quiet between two bins of one owner stayed that one's."""
    first = last = 0
    current = _NOBODY
    for place, owner in enumerate(owners):
        if owner == _NOBODY:
            continue
        if owner != current or owner == _SEVERAL:
            if current != _NOBODY:
                yield first, last, current
            first, current = place, owner
        last = place
    if current != _NOBODY:
        yield first, last, current


def _ints(line: Any) -> tuple[int, ...]:
    return tuple(int(each) for each in line)
