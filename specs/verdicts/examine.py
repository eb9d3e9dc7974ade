"""The Python judge: one pass over the rows, all clauses at once, constant memory per key."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from specs.clauses.base import (
    CONTEXT_KINDS,
    REQUEST_LEVELS,
    Clause,
    Context,
    Finding,
    Judge,
    KeyValue,
    key_of,
)
from specs.clauses.catalogue import all_clauses
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.verdicts.tally import Examination, RunFacts, Tally
from specs.vocabulary import Kind, Level, Outcome

_LEASE_PREMISE = "no wall-clock step"


class _Bench:
    """All judges of one clause."""

    __slots__ = ("best", "clause", "context", "judges", "kept", "possible", "stops_at_clock_step", "violations")

    def __init__(self, clause: Clause, context: Context) -> None:
        self.clause = clause
        self.context = context
        self.judges: list[Judge] = []
        self.violations = 0
        self.possible = 0
        self.best: Finding | None = None
        self.kept: list[Finding] | None = None  # all findings, for who asks for them
        self.stops_at_clock_step = any(premise.name == _LEASE_PREMISE for premise in clause.premise)

    @property
    def silenced(self) -> bool:
        return self.stops_at_clock_step and self.context.clock_stepped is not None

    def new_judge(self) -> Judge:
        judge = self.clause.judge(self.context)
        self.judges.append(judge)
        return judge

    def take(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            if self.kept is not None:
                self.kept.append(finding)
            if finding.certain:
                self.violations += 1
            else:
                self.possible += 1
            best = self.best
            if best is None or (not finding.certain, finding.place) < (not best.certain, best.place):
                self.best = finding

    def finish(self) -> None:
        if self.clause.needs_finish and not self.silenced:
            for judge in self.judges:
                self.take(judge.finish())


_Wants = Callable[[Row], bool] | None
_Seats = list[Judge | None]
"""The judges of one key, one seat for each clause of that kind of key."""


@dataclass(frozen=True, slots=True)
class _Panel:
    """The clauses of one kind of key: one look-up finds the judges of all of them."""

    key_of: Callable[[Row], KeyValue | None]
    benches: tuple[_Bench, ...]
    seats: dict[KeyValue, _Seats] = field(default_factory=dict)


_Route = list[tuple[_Panel, list[tuple[int, _Bench, _Wants]]]]
"""For one kind of row in one phase: the panels, and in each the seats of the clauses that listen."""


class Examiner:
    """Feeds rows, given by run and seq_begin, to the judges of the chosen clauses."""

    def __init__(self, info: RunInfo, clauses: Sequence[Clause] | None = None) -> None:
        self.info = info
        self.context = Context(info)
        chosen = all_clauses() if clauses is None else clauses
        self.benches = [_Bench(clause, self.context) for clause in chosen if clause.unmet(info) is None]
        self._unmet = [clause for clause in chosen if clause.unmet(info) is not None]
        self.facts = RunFacts()
        self._panels = [
            _Panel(key_of(key), tuple(bench for bench in self.benches if bench.clause.key is key))
            for key in dict.fromkeys(bench.clause.key for bench in self.benches)
        ]
        self._open: list[tuple[int, int, Row]] = []  # by seq_end; the second number breaks ties of a broken history
        self._begin_routes: dict[tuple[Kind, Level], _Route] = {}
        self._end_routes: dict[tuple[Kind, Level], _Route] = {}
        self._run: str | None = None
        self._last_seq = 0
        self._last_us: dict[str | None, int] = {}
        self._sent: set[tuple[str | None, int | None]] = set()
        self._subscriptions: dict[str, str] = {}

    def feed(self, rows: Iterable[Row]) -> None:
        """Observe rows in the order of run and seq_begin."""
        waiting = self._open
        for row in rows:
            if row.run != self._run:
                self._begin_run(row.run)
            if waiting and waiting[0][0] < row.seq_begin:
                self._end_until(row.seq_begin)
            self._check(row)
            if row.kind in CONTEXT_KINDS:
                self.context.begins(row)
            self._begin(row)
            if row.seq_end is not None:
                if row.seq_end == row.seq_begin:
                    self._end(row)
                else:
                    heapq.heappush(waiting, (row.seq_end, self.facts.rows, row))

    def result(self, why_cut: Sequence[str] = ()) -> Examination:
        """End the history and sum up. May be called once."""
        self._end_until(None)
        tallies: dict[str, Tally] = {}
        for bench in self.benches:
            bench.finish()
            tally = Tally(
                opportunities=sum(judge.opportunities for judge in bench.judges),
                violations=bench.violations,
                possible=bench.possible,
            )
            if bench.best is not None:
                tally.witness, tally.explanation = witness(bench.clause, bench.best, self.info)
                tally.witness_certain = bench.best.certain
            tallies[bench.clause.id] = tally
        tallies.update((clause.id, Tally()) for clause in self._unmet)
        return Examination(tallies, self.facts, list(why_cut))

    def first_finding(self) -> Finding | None:
        """End the history; the first violation of the first clause, a certain one before a possible one."""
        self._end_until(None)
        if not self.benches:
            return None  # the run does not meet a premise of the clause
        bench = self.benches[0]
        bench.finish()
        return bench.best

    def _begin_run(self, run: str) -> None:
        """Runs of one file are judged one after the other; nothing of one is known in the next."""
        self._end_until(None)
        if self._run is not None:
            self.context.forget()
        self._run, self._last_seq = run, 0
        self._last_us.clear()
        self._sent.clear()

    def _end_until(self, seq: int | None) -> None:
        waiting = self._open
        while waiting and (seq is None or waiting[0][0] < seq):
            self._end(heapq.heappop(waiting)[2])

    def _begin(self, row: Row) -> None:
        route = self._begin_routes.get((row.kind, row.level))
        if route is None:
            route = self._begin_routes[(row.kind, row.level)] = self._route(row.kind, row.level, "begins")
        stepped = self.context.clock_stepped is not None
        for panel, members in route:
            key = panel.key_of(row)
            if key is None:
                continue
            seats = panel.seats.get(key)
            if seats is None:
                seats = panel.seats[key] = [None] * len(panel.benches)
            for index, bench, wants in members:
                if (wants is not None and not wants(row)) or (stepped and bench.silenced):
                    continue
                judge = seats[index]
                if judge is None:
                    judge = seats[index] = bench.new_judge()
                found = judge.begins(row)
                if found:
                    bench.take(found)

    def _end(self, row: Row) -> None:
        route = self._end_routes.get((row.kind, row.level))
        if route is None:
            route = self._end_routes[(row.kind, row.level)] = self._route(row.kind, row.level, "ends")
        stepped = self.context.clock_stepped is not None
        for panel, members in route:
            key = panel.key_of(row)
            if key is None:
                continue
            seats = panel.seats.get(key)
            if seats is None:
                seats = panel.seats[key] = [None] * len(panel.benches)
            for index, bench, wants in members:
                if (wants is not None and not wants(row)) or (stepped and bench.silenced):
                    continue
                judge = seats[index]
                if judge is None:
                    judge = seats[index] = bench.new_judge()
                found = judge.ends(row)
                if found:
                    bench.take(found)

    def _route(self, kind: Kind, level: Level, phase: str) -> _Route:
        """Who listens to such rows: only clauses whose judge does something in this phase."""
        route: _Route = []
        for panel in self._panels:
            members = [
                (index, bench, bench.clause.wants)
                for index, bench in enumerate(panel.benches)
                if kind in bench.clause.kinds
                and level in bench.clause.levels
                and getattr(bench.clause.judge, phase, None) is not getattr(Judge, phase)
            ]
            if members:
                route.append((panel, members))
        return route

    def _check(self, row: Row) -> None:
        """Can the history be trusted? What is found goes into the facts, once per reason."""
        facts = self.facts
        facts.rows += 1
        if row.seq_begin <= self._last_seq:
            self._broken(f"seq {row.seq_begin} does not follow seq {self._last_seq}")
        self._last_seq = row.seq_begin
        if row.ended_us is not None and row.ended_us < row.started_us:
            self._broken(f"seq {row.seq_begin} ends before it begins")
        if row.started_us < self._last_us.get(row.clock, row.started_us):
            self._broken(f"clock {row.clock} runs backwards at seq {row.seq_begin}")
        self._last_us[row.clock] = row.started_us
        match row.kind:
            case Kind.SEND:
                facts.sends += 1
                if row.message_id is not None and row.level in REQUEST_LEVELS:
                    mark = (row.message_id, row.attempt)
                    if mark in self._sent:
                        self._broken(f"message id {row.message_id} was sent twice as the same attempt")
                    self._sent.add(mark)
            case Kind.DELIVER:
                facts.deliveries += 1
            case Kind.FAULT:
                facts.faults.append((row.detail or "fault", row.outcome is Outcome.OK))
            case Kind.JOIN if row.group and row.view is not None:
                if self._subscriptions.setdefault(row.group, row.view) != row.view:
                    facts.subscriptions_differ.append(row.group)
            case _:
                pass

    def _broken(self, why: str) -> None:
        if len(self.facts.broken) < 5:
            self.facts.broken.append(why)


def examine(
    rows: Iterable[Row], info: RunInfo, clauses: Sequence[Clause] | None = None, why_cut: Sequence[str] = ()
) -> Examination:
    """Judge rows (by seq_begin) against the clauses (all by default)."""
    examiner = Examiner(info, clauses)
    examiner.feed(rows)
    return examiner.result(why_cut)


def find_violations(clause: Clause, rows: Iterable[Row], info: RunInfo) -> list[Finding]:
    """All findings of one clause, in the order in which they are made."""
    examiner = Examiner(info, (clause,))
    if not examiner.benches:
        return []
    found = examiner.benches[0].kept = []
    examiner.feed(rows)
    examiner.result()
    return found


def witness(clause: Clause, finding: Finding, info: RunInfo) -> tuple[tuple[Row, ...], str]:
    """The smallest part of a finding's evidence that the same clause still refutes, and its explanation.

    Only rows of the evidence are left out, one at a time, latest first; the rest of the history plays no part.
    """
    rows = finding.rows
    best = _first(clause, rows, info, certain=finding.certain)
    if best is None:  # the evidence alone does not stand: show it whole, never less than was found
        return rows, clause.explain(finding)
    for row in reversed(rows):
        smaller = tuple(each for each in rows if each is not row)
        found = _first(clause, smaller, info, certain=finding.certain) if smaller else None
        if found is not None:
            rows, best = smaller, found
    return rows, clause.explain(best)


def _first(clause: Clause, rows: Sequence[Row], info: RunInfo, *, certain: bool) -> Finding | None:
    examiner = Examiner(info, (clause,))
    examiner.feed(rows)
    best = examiner.first_finding()
    return best if best is not None and best.certain >= certain else None
