"""Judges rows in memory, all clauses at once: in one pass, and at a run's end those that are relations over columns."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from specs.clauses.catalogue import all_clauses
from specs.clauses.certainty import (
    EVERYTHING,
    OF_THE_RUN,
    THAT_MUST_END,
    Mark,
    is_one_life,
    is_quiet,
    marks_of,
    moved_meanwhile,
    told_of,
)
from specs.clauses.clause import Clause
from specs.clauses.context import CONTEXT_KINDS, LOOKS, Context
from specs.clauses.judging import Finding, Judge
from specs.clauses.keys import KeyValue, key_of
from specs.clauses.premises import NO_WALL_CLOCK_STEP, NOT_MOVED, STAMPS_COMPARE
from specs.clauses.rows import REQUEST_LEVELS, changed_nothing, is_unsure, moved_nothing
from specs.facts.findings import Findings
from specs.facts.judged import judged
from specs.facts.run_context import RunContext
from specs.history import telling
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.verdicts.identity import Identity, as_recorded
from specs.verdicts.tally import Examination, Found, RunFacts, Tally
from specs.vocabulary import Key, Kind, Level, Outcome

_BY_WALL_CLOCKS = frozenset({NO_WALL_CLOCK_STEP, STAMPS_COMPARE})
"""After a recorded step of a wall clock their clauses stop judging."""
MOST_REASONS = 5
"""As many reasons why a history can't be trusted are named."""


@dataclass(slots=True)
class _Sum:
    """Findings of one name, in one group: how many, and the best of them."""

    violations: int = 0
    possible: int = 0
    best: Finding | None = None

    def take(self, finding: Finding) -> None:
        if finding.certain:
            self.violations += 1
        else:
            self.possible += 1
        best = self.best
        if best is None or (not finding.certain, finding.place) < (not best.certain, best.place):
            self.best = finding


class _Bench:
    """All judges of one clause."""

    __slots__ = (
        "clause",
        "context",
        "counted",
        "finished",
        "judges",
        "kept",
        "marks",
        "stops_at_clock_step",
        "sums",
        "unended",
        "waiting",
    )

    def __init__(self, clause: Clause, context: Context) -> None:
        self.clause = clause
        self.context = context
        self.judges: list[
            tuple[str | None, Judge]
        ] = []  # with the group that it judges, if it judges one only
        self.finished = 0  # so many of them are of runs that are over
        # Of a relation, when it was at stake in the runs that are over: (seq_begin, how often).
        self.counted: list[tuple[int, int]] = []
        self.sums: dict[
            tuple[str | None, str], _Sum
        ] = {}  # by the evidence's group and the finding's name
        self.kept: list[Finding] | None = None  # all findings, for who asks for them
        # With several clocks a finding waits for what another clock may yet time close to its evidence.
        self.waiting: list[Finding] | None = [] if context.info.clock_bound_us else None
        self.marks: dict[KeyValue, list[Mark]] = {}
        self.unended: dict[
            tuple[KeyValue | None, str | None], int
        ] = {}  # by key and client: the first such seq
        self.stops_at_clock_step = not _BY_WALL_CLOCKS.isdisjoint(clause.premise)

    @property
    def silenced(self) -> bool:
        return self.stops_at_clock_step and self.context.clock_stepped is not None

    def new_judge(self, key: KeyValue) -> Judge:
        assert self.clause.judge is not None
        judge = self.clause.judge(self.context)
        self.judges.append((str(key[1]) if self.clause.key in _OF_A_GROUP else None, judge))
        return judge

    def take(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            if self.context.resets and self._was_moved(finding.rows):
                continue
            if finding.certain and not self._stands(finding.rows):
                finding = replace(finding, certain=False)
            if self.waiting is None:
                self._count(finding)
            else:
                self.waiting.append(finding)

    def _was_moved(self, evidence: Sequence[Row]) -> bool:
        """Did an operator move the offset of its lane before, of whom the clause then says nothing?"""
        if NOT_MOVED not in self.clause.premise:
            return False
        return any(row.lane in self.context.resets for row in evidence if row.group)

    def _stands(self, evidence: Sequence[Row]) -> bool:
        clause = self.clause
        ended = all(row.seq_end is not None for row in evidence if row.kind in THAT_MUST_END)
        if ended and self.unended:
            last, key = evidence[-1].seq_begin, key_of(clause.key)
            ended = all(
                self.unended.get((key(row), row.client_id), last) >= last for row in evidence
            )
        epochs = all(row.broker_epoch is not None for row in evidence if row.broker)
        client = evidence[-1].client_id
        lanes = [row.incarnation for row in evidence if row.client_id == client and row.incarnation]
        return not self._may_be_moved(evidence) and clause.stands_in(
            self.context.info, epochs=epochs, ended=ended, one_life=is_one_life(lanes)
        )

    def _may_be_moved(self, evidence: Sequence[Row]) -> bool:
        """Could a reset excuse it that was under way meanwhile?"""
        resets = self.context.slow_resets.get(evidence[-1].run)
        if not resets or Kind.RESET not in self.clause.excuses:
            return False
        lanes = {row.lane for row in evidence if row.queue_id is not None}
        return moved_meanwhile([row.seq_begin for row in evidence], lanes, resets)

    def without_end(self, row: Row) -> None:
        """A row of which the history does not hold the end, in an open world."""
        clause = self.clause
        if (
            clause.asks_what_a_client_knew
            and row.kind in clause.kinds
            and row.level in clause.levels
        ):
            self.unended.setdefault((key_of(clause.key)(row), row.client_id), row.seq_begin)

    def take_of_run(
        self, findings: Findings, rows: Sequence[Row], by_seq: Callable[[int], Row]
    ) -> None:
        """What a relation found in a run that is over. rows: those that it was shown."""
        self.counted.extend(findings.stakes())
        for finding in findings.of_rows(rows, by_seq):
            self._count(finding)

    def _count(self, finding: Finding) -> None:
        if self.kept is not None:
            self.kept.append(finding)
        self.sums.setdefault((_group_of(finding), finding.name), _Sum()).take(finding)

    def end_run(self) -> None:
        """A run is over: what its judges conclude from that they do while the context is still that of their run."""
        if self.clause.needs_finish and not self.silenced:
            for _group, judge in self.judges[self.finished :]:
                self.take(judge.finish())
        self.finished = len(self.judges)

    def finish(self, of_the_run: Sequence[Mark]) -> None:
        """The history is over. of_the_run: when things happened that bear on every key, by their times."""
        self.end_run()
        for marks in self.marks.values():
            marks.sort(key=_when)
        waiting, self.waiting = self.waiting or (), None
        for finding in waiting:
            self._count(
                finding if self._is_quiet(finding, of_the_run) else replace(finding, certain=False)
            )

    def _is_quiet(self, finding: Finding, of_the_run: Sequence[Mark]) -> bool:
        bound_us = self.context.info.clock_bound_us
        evidence = [mark for row in finding.timed for mark in marks_of(row)]
        # What is told of another queue is no part of what the finding's own key went through.
        queues = [row.queue for row in finding.timed if row.queue_id is not None]
        of_key = [row for row in finding.timed if not queues or row.queue == queues[-1]]
        keys = {key_of(self.clause.key)(row) for row in of_key}
        near = [self.marks.get(key, ()) for key in keys if key is not None]
        return all(is_quiet(evidence, others, bound_us) for others in (of_the_run, *near))

    def mark(self, row: Row) -> None:
        """Remember when the row's operation began and ended, if it is one that the judges of its key see."""
        clause = self.clause
        if clause.key in _OF_A_QUEUE and row.kind in clause.kinds and row.level in clause.levels:
            key = key_of(clause.key)(row)
            if key is not None:
                self.marks.setdefault(key, []).extend(marks_of(row))

    def tally(self, seen: Mapping[str | None, set[Kind]] | None) -> Tally:
        """What was found. seen: the kinds that the history holds, by group, where nobody says what it records."""
        clause = self.clause
        everything = EVERYTHING if seen is None else frozenset().union(*seen.values())
        missing = clause.missing(everything)
        if missing:
            self.kept = None if self.kept is None else []
            return Tally(missing=tuple(sorted(missing)))
        judged = {
            group: seen is None
            or group is None
            or not clause.missing(frozenset(seen.get(group, set()) | seen[None]))
            for group in {*(group for group, _ in self.judges), *(group for group, _ in self.sums)}
        }
        if self.kept is not None:
            self.kept = [finding for finding in self.kept if judged[_group_of(finding)]]
        tally = Tally(
            opportunities=sum(judge.opportunities for group, judge in self.judges if judged[group])
            + sum(times for _, times in self.counted)
        )
        merged: dict[str, _Sum] = {}
        for (group, name), found in self.sums.items():
            if judged[group]:
                into = merged.setdefault(name, _Sum())
                into.violations += found.violations
                into.possible += found.possible
                if found.best is not None and (
                    into.best is None or _rank(found.best) < _rank(into.best)
                ):
                    into.best = found.best
        for name, found in sorted(merged.items()):
            told = tally.found[name] = Found(found.violations, found.possible)
            if found.best is not None:
                shown, told.explanation = witness(clause, found.best, self.context.info)
                told.witness = tuple(as_recorded(row) for row in shown)
                told.certain = found.best.certain
        if seen is not None and tally.violations:
            tally.assumed = tuple(sorted(clause.excuses_in(self.context.info) - everything))
        return tally

    def best(self, name: str | None = None) -> Finding | None:
        """The first finding, a certain one before a possible one. name: of those with that public name."""
        named = (found for (_group, each), found in self.sums.items() if name in (None, each))
        return min(
            (found.best for found in named if found.best is not None), key=_rank, default=None
        )


def _group_of(finding: Finding) -> str | None:
    """The group that the evidence is about, if any."""
    return next((row.group for row in reversed(finding.rows) if row.group), None)


def _rank(finding: Finding) -> tuple[Any, ...]:
    return (not finding.certain, finding.place)


def _when(mark: Mark) -> int:
    return mark[0]


_OF_A_GROUP = frozenset({Key.LANE, Key.GROUP, Key.GROUP_KEY})
_OF_A_QUEUE = frozenset({Key.LANE, Key.QUEUE})
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

    def __init__(
        self, info: RunInfo, clauses: Sequence[Clause] | None = None, *, alone: bool = False
    ) -> None:
        """alone: the rows are evidence, of which nobody expects that it holds all that a clause needs."""
        self.info = info
        self.context = Context(info)
        self.identity = Identity(self.context)
        chosen = all_clauses() if clauses is None else clauses
        known = EVERYTHING if alone else told_of(info)
        self._seen: dict[str | None, set[Kind]] | None = {None: set()} if known is None else None
        met = [clause for clause in chosen if clause.unmet(info) is None]
        missing = {
            clause.id: clause.missing(EVERYTHING if known is None else known) for clause in met
        }
        self.benches = [_Bench(clause, self.context) for clause in met if not missing[clause.id]]
        self._not_judged = {
            clause.id: Tally() for clause in chosen if clause.unmet(info) is not None
        }
        self._not_judged.update(
            (id_, Tally(missing=tuple(sorted(kinds)))) for id_, kinds in missing.items() if kinds
        )
        self._order = [clause.id for clause in chosen]
        self._of_the_run: list[Mark] = []
        self.facts = RunFacts()
        self._relations = {
            bench.clause.id: bench for bench in self.benches if bench.clause.relation is not None
        }
        self._rows: list[Row] = []  # of this run, for the relations
        self._alone = alone
        row_by_row = [bench for bench in self.benches if bench.clause.judge is not None]
        self._panels = [
            _Panel(key_of(key), tuple(bench for bench in row_by_row if bench.clause.key is key))
            for key in dict.fromkeys(bench.clause.key for bench in row_by_row)
        ]
        self._open: list[
            tuple[int, int, Row]
        ] = []  # by seq_end; the second number breaks ties of a broken history
        self._begin_routes: dict[tuple[Kind, Level], _Route] = {}
        self._end_routes: dict[tuple[Kind, Level], _Route] = {}
        self._run: str | None = None
        self._clock_stepped = False
        self._last_seq = -1
        self._last_us: dict[str | None, int] = {}
        self._sent: set[tuple[str | None, str, int | None]] = set()
        self._reasons: list[tuple[str, int, int, str]] = []  # run, seq, number of the check, text
        # Of this run: who names incarnations in a group, and the first row of each that names none.
        self._naming: set[tuple[str | None, str | None]] = set()
        self._nameless: dict[tuple[str | None, str | None], Row] = {}
        self._subscriptions: dict[str, str] = {}
        self._judging = True

    def feed(self, rows: Iterable[Row]) -> None:
        """Observe rows in the order of run and seq_begin."""
        left = iter(rows)
        try:
            self._feed(left)
        except Exception:
            self._only_if_broken()
            for row in left:
                self._check(row)

    def _only_if_broken(self) -> None:
        """A judge rests on what a history must hold to be trusted, and may fail on one that does not.

        Nothing counts that it would say then: the checks go on, without the judges. Raises again for any other history.
        """
        if not self._reasons:
            raise
        self._judging = False

    def _feed(self, rows: Iterable[Row]) -> None:
        waiting = self._open
        for row in rows:
            if row.run != self._run:
                self._begin_run(row.run)
            if waiting and waiting[0][0] < row.seq_begin:
                self._end_until(row.seq_begin)
            self._check(row)
            if self._relations:
                self._rows.append(row)
            if self._seen is not None:
                self._seen.setdefault(row.group, set()).add(row.kind)
            if row.broker_epoch is not None:
                self.context.epoch(row)
            if changed_nothing(row):
                continue
            if row.kind is Kind.CRASH and row.client_id is not None:
                self.identity.crashed(row.client_id)
            if row.kind in CONTEXT_KINDS:
                self._clock_stepped = self._clock_stepped or row.kind is Kind.CLOCK_STEP
                self.context.begins(row)
            elif row.kind in LOOKS and row.level in REQUEST_LEVELS:
                self.context.looked(row)
            elif is_unsure(row):
                self.context.not_told(row)
            row = self.identity.named(row)
            if self.info.clock_bound_us:
                self._mark(row)
            if row.seq_end is None and not self.info.closed_world:
                for bench in self.benches:
                    bench.without_end(row)
            self._begin(row)
            if row.seq_end is not None:
                if row.seq_end == row.seq_begin:
                    self._end(row)
                else:
                    heapq.heappush(waiting, (row.seq_end, self.facts.rows, row))

    def result(self, why_cut: Sequence[str] = ()) -> Examination:
        """End the history and sum up. May be called once."""
        try:
            self._finish()
        except Exception:
            self._only_if_broken()
        self._check_names()
        self.facts.broken.extend(why for *_, why in sorted(self._reasons)[:MOST_REASONS])
        tallies = dict(self._not_judged)
        tallies.update((bench.clause.id, bench.tally(self._seen)) for bench in self.benches)
        return Examination(
            {id_: tallies[id_] for id_ in self._order},
            self.facts,
            list(why_cut),
            clock_stepped=self._clock_stepped,
        )

    def first_finding(self, name: str | None = None) -> Finding | None:
        """End the history; the first violation of the first clause, a certain one before a possible one.

        name: only of findings with that public name.
        """
        self._finish()
        return (
            self.benches[0].best(name) if self.benches else None
        )  # else the run does not meet a premise of it

    def _finish(self) -> None:
        if not self._judging:
            return
        self._end_until(None)
        self._relate()
        self._of_the_run.sort(key=_when)
        for bench in self.benches:
            bench.finish(self._of_the_run)

    def _relate(self) -> None:
        """Judge the run, which is over, by the clauses that are relations over columns."""
        rows, self._rows = self._rows, []
        if not rows:
            return
        context = RunContext.of_rows(self.info, rows)
        if self._alone:
            context.seen = None
        clauses = [bench.clause for bench in self._relations.values()]
        by_seq = {row.seq_begin: row for row in rows}.__getitem__
        for clause, findings, shown in judged(clauses, rows, context):
            self._relations[clause.id].take_of_run(findings, shown, by_seq)

    def _mark(self, row: Row) -> None:
        if row.kind in OF_THE_RUN:
            self._of_the_run.extend(marks_of(row))
        for bench in self.benches:
            bench.mark(row)

    def _begin_run(self, run: str) -> None:
        """Runs of one file are judged one after the other; nothing of one is known in the next."""
        self._end_until(None)
        self._relate()
        if self._run is not None:
            for bench in self.benches:
                bench.end_run()
            self.context.forget()
            self._check_names()
        self._run, self._last_seq = run, -1
        self._last_us.clear()
        self._sent.clear()
        self.identity.forget()

    def _end_until(self, seq: int | None) -> None:
        waiting = self._open
        while waiting and (seq is None or waiting[0][0] < seq):
            self._end(heapq.heappop(waiting)[2])

    def _begin(self, row: Row) -> None:
        route = self._begin_routes.get((row.kind, row.level))
        if route is None:
            route = self._begin_routes[(row.kind, row.level)] = self._route(
                row.kind, row.level, "begins"
            )
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
                    judge = seats[index] = bench.new_judge(key)
                found = judge.begins(row)
                if found:
                    bench.take(found)

    def _end(self, row: Row) -> None:
        route = self._end_routes.get((row.kind, row.level))
        if route is None:
            route = self._end_routes[(row.kind, row.level)] = self._route(
                row.kind, row.level, "ends"
            )
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
                    judge = seats[index] = bench.new_judge(key)
                found = judge.ends(row)
                if found:
                    bench.take(found)

    def _route(self, kind: Kind, level: Level, phase: str) -> _Route:
        """Who listens to such rows: only clauses whose judge does something in this phase."""
        route: _Route = []
        for panel in self._panels:
            members = [
                (index, bench, _wants(bench.clause, kind))
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
            self._broken(row, 0, f"seq {row.seq_begin} does not follow seq {self._last_seq}")
        self._last_seq = row.seq_begin
        if row.ended_us is not None and row.ended_us < row.started_us:
            self._broken(row, 1, f"seq {row.seq_begin} ends before it begins")
        if row.started_us < self._last_us.get(row.clock, row.started_us):
            self._broken(row, 2, f"clock {row.clock} runs backwards at seq {row.seq_begin}")
        self._last_us[row.clock] = row.started_us
        match row.kind:
            case Kind.SEND:
                facts.sends += 1
                if row.message_id is not None and row.level in REQUEST_LEVELS:
                    mark = (row.topic, row.message_id, row.attempt)
                    if mark in self._sent:
                        self._broken(
                            row,
                            3,
                            f"message id {row.message_id} was sent twice as the same attempt",
                        )
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
        for name in telling.untold(row):
            why = telling.why_untold(row.kind, row.seq_begin, name)
            self._broken(row, telling.check_of(name), why)
        if row.kind in telling.OF_AN_INCARNATION and row.level in REQUEST_LEVELS:
            who = (row.group, row.client_id)
            if row.incarnation is not None:
                self._naming.add(who)
            else:
                self._nameless.setdefault(who, row)

    def _check_names(self) -> None:
        """The run is over: does each client name its incarnations in a group always, or never?"""
        for who, row in self._nameless.items():
            if who in self._naming:
                why = telling.why_of_none(row.seq_begin)
                self._reasons.append((row.run, row.seq_begin, telling.LAST_CHECK, why))
        self._naming.clear()
        self._nameless.clear()

    def _broken(self, row: Row, check: int, why: str) -> None:
        if len(self._reasons) < MOST_REASONS:
            self._reasons.append((row.run, row.seq_begin, check, why))


def _wants(clause: Clause, kind: Kind) -> _Wants:
    """Which rows of a kind a clause is shown; None for all of them."""
    wants = clause.wants
    if kind is not Kind.COMMIT or clause.told_of_refused_commits:
        return wants
    return lambda row: not moved_nothing(row) and (wants is None or wants(row))


def examine(
    rows: Iterable[Row],
    info: RunInfo,
    clauses: Sequence[Clause] | None = None,
    why_cut: Sequence[str] = (),
) -> Examination:
    """Judge rows (by seq_begin) against the clauses (all by default)."""
    examiner = Examiner(info, clauses)
    examiner.feed(rows)
    return examiner.result(why_cut)


def find_violations(clause: Clause, rows: Iterable[Row], info: RunInfo) -> list[Finding]:
    """All findings of one clause, in the order in which they are made."""
    examiner = Examiner(info, (clause,))
    if not examiner.benches:
        return []  # it does not apply, or the history lacks what it needs
    examiner.benches[0].kept = []
    examiner.feed(rows)
    examiner.result()
    return examiner.benches[0].kept or []


def witness(
    clause: Clause, finding: Finding, info: RunInfo, name: str | None = None
) -> tuple[tuple[Row, ...], str]:
    """The smallest part of a finding's evidence that the same clause still refutes alike, and its explanation.

    Only rows of the evidence are left out, one at a time, latest first; the rest of the history plays no part. name:
    the finding's public name, where its class does not tell.
    """
    rows, name = finding.rows, name or finding.name
    best = found_alone(clause, rows, info, name, certain=finding.certain)
    if best is None:  # the evidence alone does not stand: show it whole, never less than was found
        # Its name may rest on what is no evidence, as that the client was leaving.
        alike = found_alone(clause, rows, info, None, certain=finding.certain)
        told = f"these events break the promise: {clause.statement}"
        return rows, told if alike is None else clause.explain(alike)
    before = -1
    while len(rows) != before:  # without one of them another may be of no use any more
        before = len(rows)
        for row in reversed(rows):
            smaller = tuple(each for each in rows if each is not row)
            found = (
                found_alone(clause, smaller, info, name, certain=finding.certain)
                if smaller
                else None
            )
            if found is not None:
                rows, best = smaller, found
    return rows, clause.explain(best)


def found_alone(
    clause: Clause, rows: Sequence[Row], info: RunInfo, name: str | None, *, certain: bool
) -> Finding | None:
    """What the clause finds of this name (None: of any) in the rows alone, at least as certain; None: nothing."""
    examiner = Examiner(info, (clause,), alone=True)
    examiner.feed(rows)
    best = examiner.first_finding(name)
    return best if best is not None and best.certain >= certain else None
