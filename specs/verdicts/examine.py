"""Judges rows in memory: what each clause finds, and whether the history can be trusted at all."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from specs.clauses.catalogue import all_clauses
from specs.clauses.certainty import EVERYTHING, told_of
from specs.clauses.clause import Clause
from specs.clauses.judging import Finding
from specs.clauses.rows import REQUEST_LEVELS
from specs.facts.columns import NEVER
from specs.facts.findings import Findings
from specs.facts.judged import judged
from specs.facts.run_context import RunContext
from specs.history import telling
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.verdicts.tally import Examination, Found, RunFacts, Tally
from specs.vocabulary import Kind, Outcome

MOST_REASONS = 5
"""As many reasons why a history can't be trusted are named."""


@dataclass(slots=True)
class _Sum:
    """Findings of one name: how many, and the best of them."""

    violations: int = 0
    possible: int = 0
    best: Finding | None = None

    def take(self, finding: Finding) -> None:
        if finding.certain:
            self.violations += 1
        else:
            self.possible += 1
        if self.best is None or _rank(finding) < _rank(self.best):
            self.best = finding


class _Bench:
    """What is found of one clause, over all runs."""

    __slots__ = ("clause", "info", "kept", "sums", "times")

    def __init__(self, clause: Clause, info: RunInfo) -> None:
        self.clause = clause
        self.info = info
        self.times: dict[str, int] = {}  # how often it was at stake, by run
        self.sums: dict[str, _Sum] = {}  # by the finding's name
        self.kept: list[Finding] | None = None  # all findings, for who asks for them

    def take(
        self, findings: Findings, rows: Sequence[Row], by_seq: Callable[[tuple[str, int]], Row]
    ) -> None:
        """What was found. rows: those that it was found in; by_seq: by run and seq_begin, all there are."""
        for run, times in findings.opportunities.items():
            self.times[run] = self.times.get(run, 0) + times
        for finding in findings.of_rows(rows, by_seq):
            if self.kept is not None:
                self.kept.append(finding)
            self.sums.setdefault(finding.name, _Sum()).take(finding)

    def tally(self, seen: frozenset[Kind] | None) -> Tally:
        """What was found. seen: the kinds that the history holds, where nobody says what it records."""
        missing = self.clause.missing(EVERYTHING if seen is None else seen)
        if missing:
            return Tally(missing=tuple(sorted(missing)))
        tally = Tally(opportunities=sum(self.times.values()))
        for name, found in sorted(self.sums.items()):
            told = tally.found[name] = Found(found.violations, found.possible)
            if found.best is not None:
                told.witness, told.explanation = witness(self.clause, found.best, self.info)
                told.certain = found.best.certain
        if seen is not None and tally.violations:
            tally.assumed = tuple(sorted(self.clause.excuses_in(self.info) - seen))
        return tally

    def best(self, name: str | None = None) -> Finding | None:
        """The first finding, a certain one before a possible one. name: of those with that public name."""
        named = (found.best for each, found in self.sums.items() if name in (None, each))
        return min((best for best in named if best is not None), key=_rank, default=None)


def _rank(finding: Finding) -> tuple[Any, ...]:
    return (not finding.certain, finding.place)


class Examiner:
    """Takes rows, by run and seq_begin, and judges all of them together by the chosen clauses when they are over.

    Nothing of one run is known in another.
    """

    def __init__(
        self, info: RunInfo, clauses: Sequence[Clause] | None = None, *, alone: bool = False
    ) -> None:
        """alone: the rows are evidence, of which nobody expects that it holds all that a clause needs."""
        self.info = info
        chosen = all_clauses() if clauses is None else clauses
        known = EVERYTHING if alone else told_of(info)
        self._seen: set[Kind] | None = set() if known is None else None
        self._alone = alone
        self._tallies: dict[str, Tally] = {}
        self.benches: list[_Bench] = []
        for clause in chosen:
            missing = clause.missing(EVERYTHING if known is None else known)
            if clause.unmet(info) is not None:
                self._tallies[clause.id] = Tally()
            elif missing:
                self._tallies[clause.id] = Tally(missing=tuple(sorted(missing)))
            else:
                self.benches.append(_Bench(clause, info))
        self._order = [clause.id for clause in chosen]
        self.facts = RunFacts()
        self._rows: list[Row] = []
        self._begun = 0  # where this run's rows begin among them
        self._run: str | None = None
        self._runs: dict[str, RunContext] = {}  # those that are over
        self._clock_stepped = False
        self._last_seq = -1
        self._last_us: dict[str | None, int] = {}
        self._sent: set[tuple[str | None, str, int | None]] = set()
        self._reasons: list[tuple[str, int, int, str]] = []  # run, seq, number of the check, text
        # Of this run: who names incarnations in a group, and the first row of each that names none.
        self._naming: set[tuple[str | None, str | None]] = set()
        self._nameless: dict[tuple[str | None, str | None], Row] = {}
        self._subscriptions: dict[str, str] = {}

    def feed(self, rows: Iterable[Row]) -> None:
        """Take rows in the order of run and seq_begin."""
        for row in rows:
            if row.run != self._run:
                self._begin_run(row.run)
            self._check(row)
            self._rows.append(row)

    def result(self, why_cut: Sequence[str] = ()) -> Examination:
        """End the history, judge it and sum up. May be called once."""
        self.judge()
        self.facts.broken.extend(why for *_, why in sorted(self._reasons)[:MOST_REASONS])
        seen = None if self._seen is None else frozenset(self._seen)
        tallies = {**self._tallies, **{each.clause.id: each.tally(seen) for each in self.benches}}
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
        self.judge()
        return (
            self.benches[0].best(name) if self.benches else None
        )  # else the run does not meet a premise of it

    def _begin_run(self, run: str) -> None:
        self._end_run()
        self._run, self._last_seq = run, -1
        self._last_us.clear()
        self._sent.clear()

    def _end_run(self) -> None:
        self._check_names()
        rows, self._begun = self._rows[self._begun :], len(self._rows)
        if not rows:
            return
        if self._seen is not None:
            self._seen.update(row.kind for row in rows)
        context = self._runs[rows[0].run] = RunContext.of_rows(self.info, rows)
        self._clock_stepped = self._clock_stepped or context.clock_stepped != NEVER
        if self._alone:
            context.seen = None

    def judge(self) -> None:
        """End the history, and judge it."""
        by_id = {bench.clause.id: bench for bench in self.benches}
        try:
            self._end_run()
            by_seq = {(row.run, row.seq_begin): row for row in self._rows}.__getitem__
            clauses = [bench.clause for bench in self.benches]
            for clause, findings, shown in judged(clauses, self._rows, self._runs):
                by_id[clause.id].take(findings, shown, by_seq)
        except Exception:
            # A clause rests on what a history must hold to be trusted, and nothing counts that it would say of another.
            if not self._reasons:
                raise

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
    """All findings of one clause, as they happened."""
    examiner = Examiner(info, (clause,))
    if not examiner.benches:
        return []  # it does not apply, or the history lacks what it needs
    examiner.benches[0].kept = []
    examiner.feed(rows)
    examiner.judge()  # no witness is asked for
    return sorted(examiner.benches[0].kept, key=lambda finding: finding.place)


def find_in_each(
    clause: Clause, info: RunInfo, histories: Iterable[Iterable[Row]]
) -> list[tuple[int, list[Finding]]]:
    """Of each history how often the clause was at stake, and all findings; their rows are of a run of its number.

    Each is judged by itself, all in one pass, as runs that nothing else is known of.
    """
    renamed = [
        [row._replace(run=str(number)) for row in rows] for number, rows in enumerate(histories)
    ]
    examiner = Examiner(info, (clause,))
    if not examiner.benches:
        return [(0, []) for _ in renamed]
    (bench,) = examiner.benches
    bench.kept = []
    for rows in renamed:
        examiner.feed(rows)
    examiner.judge()
    found = [(bench.times.get(str(number), 0), list[Finding]()) for number in range(len(renamed))]
    for finding in bench.kept:
        found[int(finding.rows[0].run)][1].append(finding)
    return found


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
