"""The Python judge: one pass over the rows, all clauses at once, constant memory per key."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import Any

from specs.clauses.base import CONTEXT_KINDS, Clause, Context, Finding, Judge, key_of
from specs.clauses.catalogue import all_clauses
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.verdicts.tally import Examination, RunFacts, Tally
from specs.vocabulary import Key, Kind, Level, Outcome

_LEASE_PREMISE = "no wall-clock step"


class _Bench:
    """All judges of one clause, by key."""

    __slots__ = ("best", "clause", "context", "judges", "kept", "possible", "stops_at_clock_step", "violations")

    def __init__(self, clause: Clause, context: Context) -> None:
        self.clause = clause
        self.context = context
        self.judges: dict[tuple[Any, ...], Judge] = {}
        self.violations = 0
        self.possible = 0
        self.best: Finding | None = None
        self.kept: list[Finding] | None = None  # all findings, for who asks for them
        self.stops_at_clock_step = any(premise.name == _LEASE_PREMISE for premise in clause.premise)

    def judge(self, key: tuple[Any, ...]) -> Judge:
        found = self.judges.get(key)
        if found is None:
            found = self.judges[key] = self.clause.judge(self.context)
        return found

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


class Examiner:
    """Feeds rows, given by seq_begin, to the judges of the chosen clauses."""

    def __init__(self, info: RunInfo, clauses: Sequence[Clause] | None = None) -> None:
        self.info = info
        self.context = Context(info)
        self.benches = [_Bench(clause, self.context) for clause in (all_clauses() if clauses is None else clauses)]
        self.facts = RunFacts()
        self._open: list[tuple[int, Row]] = []
        self._routes: dict[tuple[Kind, Level], list[tuple[Key, list[_Bench]]]] = {}
        self._last_seq = 0
        self._last_us: dict[str | None, int] = {}
        self._sent: set[tuple[str | None, int | None]] = set()
        self._subscriptions: dict[str, str] = {}

    def feed(self, rows: Iterable[Row]) -> None:
        """Observe rows in the order of seq_begin."""
        for row in rows:
            self._end_until(row.seq_begin)
            self._check(row)
            if row.kind in CONTEXT_KINDS:
                self.context.begins(row)
            self._dispatch(row, begin=True)
            if row.seq_end is not None:
                if row.seq_end == row.seq_begin:
                    self._dispatch(row, begin=False)
                else:
                    heapq.heappush(self._open, (row.seq_end, row))

    def result(self, why_cut: Sequence[str] = ()) -> Examination:
        """End the history and sum up. May be called once."""
        self._end_until(None)
        tallies: dict[str, Tally] = {}
        for bench in self.benches:
            if bench.clause.needs_finish and not self._silenced(bench):
                for judge in bench.judges.values():
                    bench.take(judge.finish())
            tally = Tally(
                opportunities=sum(judge.opportunities for judge in bench.judges.values()),
                violations=bench.violations,
                possible=bench.possible,
            )
            if bench.best is not None:
                tally.witness, tally.explanation = witness(bench.clause, bench.best, self.info)
                tally.witness_certain = bench.best.certain
            tallies[bench.clause.id] = tally
        return Examination(tallies, self.facts, list(why_cut))

    def _end_until(self, seq: int | None) -> None:
        waiting = self._open
        while waiting and (seq is None or waiting[0][0] < seq):
            self._dispatch(heapq.heappop(waiting)[1], begin=False)

    def _silenced(self, bench: _Bench) -> bool:
        return bench.stops_at_clock_step and self.context.clock_stepped is not None

    def _dispatch(self, row: Row, *, begin: bool) -> None:
        route = self._routes.get((row.kind, row.level))
        if route is None:
            route = self._routes[(row.kind, row.level)] = self._route(row.kind, row.level)
        for key_kind, benches in route:
            key = key_of(key_kind)(row)
            if key is None:
                continue
            for bench in benches:
                if bench.stops_at_clock_step and self.context.clock_stepped is not None:
                    continue
                judge = bench.judges.get(key) or bench.judge(key)
                for finding in judge.begins(row) if begin else judge.ends(row):
                    bench.take((finding,))

    def _route(self, kind: Kind, level: Level) -> list[tuple[Key, list[_Bench]]]:
        by_key: dict[Key, list[_Bench]] = {}
        for bench in self.benches:
            if kind in bench.clause.kinds and level in bench.clause.levels:
                by_key.setdefault(bench.clause.key, []).append(bench)
        return list(by_key.items())

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
                if row.message_id is not None:
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
    examiner._end_until(None)
    bench = examiner.benches[0]
    if clause.needs_finish:
        for judge in bench.judges.values():
            bench.take(judge.finish())
    best = bench.best
    return best if best is not None and best.certain >= certain else None
