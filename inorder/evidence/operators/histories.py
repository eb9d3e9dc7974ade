"""What the engines are asked about, made once: histories to compare them on, and histories to hold the laws to.

To compare: recordings of every mode with each planted defect and lookalike, drawn histories as the tests of the
kernels draw them, drawn runs of message leases and of generations with and without each of their bugs, generated
histories in which up to three groups work on the same queues for long without anything happening. Of the drawn and
the generated ones also what is near: with changes, and with things that happen somewhere in them. For the laws: every
written case, runs of every mode on the correct reference, and what the laws make of them.
"""

from __future__ import annotations

import gc
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random

from hypothesis import HealthCheck, Phase, given, seed, settings

from conformance.machines.cluster import Collector
from conformance.machines.steering import ingredients_for
from conformance.runner import run_machine
from inorder.evidence import laws
from inorder.evidence.kill_matrix.of_leases import run_of
from inorder.evidence.operators.helpers import helper
from reference_impl.mutants import LEASED, every_mutant
from reference_impl.sim.grouped import grouped_info, simulate_grouped
from reference_impl.sim.leased import leased_info, simulate_leased
from reference_impl.sim.leased_plans import drawn_plan
from reference_impl.sim.simulate import with_config
from spark_checkers.generate import plan_defect, queue_tables, run_info
from spark_checkers.trace_mutants import DEFECTS, LOOKALIKES, plant, spread
from specs import profiles
from specs.clauses.catalogue import all_clauses
from specs.errors import UsageError
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.history.store import rows_of_table
from specs.verdicts.examine import examine

SEED = 1
DRAWN = 400
"""Drawn histories."""
DRAWN_NEAR = 120
"""So many histories near drawn ones."""
LONG = 12
"""Generated histories, one after another of one, two and three groups."""
LONG_ROWS, LONG_QUEUES, LONG_CHANGES = 500, 2, 4
LEASED_PLANS = 3
RUNS = 2
"""Runs of each mode."""
STEERED = ("LSE-1", "ORD-2", "RTY-1", "DLQ-1", "CMT-1", "SND-1", "ASG-1", "LIV-1")
"""Towards whose ingredients the runs are steered, one after the other."""
LONGEST = 1500
"""Of more rows a valid history is too long to be changed by every law."""
Rows = Sequence[Row]


@dataclass(frozen=True, slots=True)
class History:
    """name: where it is from. clause: which one it was planted for, if any."""

    name: str
    info: RunInfo
    rows: Rows
    clause: str | None = None


@dataclass(frozen=True, slots=True)
class Valid:
    """A history of the correct reference. at_stake, against: the ids of clauses, by judges that nobody changed.

    changed: by law what the law makes of it.
    """

    history: History
    at_stake: frozenset[str]
    against: frozenset[str]
    changed: dict[str, tuple[tuple[RunInfo, Rows], ...]]


@dataclass(frozen=True, slots=True)
class Prepared:
    """planted: long ones, each of which is about something: recordings, what was planted in them, generated ones."""

    planted: tuple[History, ...]
    drawn: tuple[History, ...]
    valid: tuple[Valid, ...]


@cache
def prepared(kept: Path | None = None, number: int = SEED) -> Prepared:
    """The same for every sample of changes; takes a minute. kept: the file that holds them, or shall."""
    if kept is not None and kept.is_file():
        made: Prepared = pickle.loads(kept.read_bytes())
    else:
        valid = tuple(map(_held_to_laws, _valid(number, RUNS)))
        drawn = _drawn(number, DRAWN)
        near = (_near(each, f"{number} {turn}") for turn, each in enumerate(drawn[:DRAWN_NEAR]))
        made = Prepared(
            (*_planted(), *long_histories(number)), (*_leased(number), *drawn, *near), valid
        )
        if kept is not None:
            part = kept.with_suffix(f".{os.getpid()}.part")  # another worker makes the same
            part.write_bytes(pickle.dumps(made))
            part.replace(kept)
    gc.freeze()  # what children share stays as it is
    return made


# ------------------------------------------------------------------------------------------ to compare


def _planted() -> Iterator[History]:
    """Every recording that a defect asks for, as it is; then each defect and lookalike in its recording."""
    recorded: Callable[..., tuple[RunInfo, Rows]] = cache(helper("recorded")["recorded"])
    mutants = (*DEFECTS.values(), *LOOKALIKES.values())
    for mode, model, tagged in sorted({(*each.consumed, each.tagged) for each in mutants}):
        info, rows = recorded(mode, model, tagged=tagged)
        yield History(f"recorded {mode} {model}{' tagged' if tagged else ''}", info, rows)
    for mutant in mutants:
        info, rows = recorded(*mutant.consumed, tagged=mutant.tagged)
        with suppress(UsageError):  # raised where there is no place for it
            changed = plant(mutant, _spread(*mutant.consumed, mutant.tagged), info, seed=1)
            yield History(f"planted {mutant.name}", mutant.under(info), changed.rows, mutant.clause)


@cache
def _spread(mode: str, model: str, tagged: bool) -> list[Row]:
    return spread(helper("recorded")["recorded"](mode, model, tagged=tagged)[1])


def _drawn(number: int, count: int) -> list[History]:
    found: list[History] = []

    @seed(number)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(helper("drawn")["histories"]())
    def draw(history: tuple[RunInfo, list[Row]]) -> None:
        found.append(History(f"drawn {len(found) + 1}", *history))

    draw()
    return found


def _near(history: History, words: str, rounds: int = 1) -> History:
    """What is near a history that was drawn or generated. rounds: so often one to three changes."""
    info, rows = history.info, history.rows
    draw, nearby = Random(f"near {words}"), helper("nearby")["nearby"]
    for _ in range(rounds):
        info, rows = nearby(info, rows, draw)
    return replace(history, name=f"near {history.name}", info=info, rows=rows)


def long_histories(number: int) -> Iterator[History]:
    """Histories of one to three groups on two queues, one of which has another group in manual mode: as they are
    generated, with a defect, or with things that happen in the midst of them."""
    defects = [mutant.name for mutant in DEFECTS.values() if mutant.generated and not mutant.tagged]
    for turn in range(LONG):
        draw, groups = Random(f"long {number} {turn}"), turn % 3 + 1
        events = LONG_ROWS * draw.choice((1, 2))
        run = number * 1000 + turn
        info, tables = run_info(run, events), queue_tables(events, run, LONG_QUEUES, groups)
        planting = plan_defect(draw.choice(defects), events, run, LONG_QUEUES)
        found = [planting(each)[0] if turn % 2 else each.table for each in tables]
        if planting.about:
            info = planting.mutant.under(info)
        rows = sorted(
            (row for table in found for row in rows_of_table(table)), key=lambda row: row.seq_begin
        )
        history = History(f"long {turn + 1}", info, rows)
        yield history if turn < 3 else _near(history, f"long {number} {turn}", LONG_CHANGES)


def _leased(number: int) -> Iterator[History]:
    """Message leases and generations: runs of the correct system, and with each of the bugs that are about them."""
    bugs = [bug for bug in every_mutant() if bug.oracle == LEASED]
    for turn in range(1, LEASED_PLANS + 1):
        plan = drawn_plan(Random(f"operators {number} {turn}"), turn)
        yield History(f"leased {turn}", leased_info(plan), list(simulate_leased(plan)))
        yield History(f"grouped {turn}", grouped_info(plan), list(simulate_grouped(plan)))
        for bug in bugs:
            info, rows = run_of(with_config(plan, bug.config), bug)
            yield History(f"leased {turn} {bug.name}", info, rows)


# ------------------------------------------------------------------------------------------ for the laws


def _valid(number: int, runs: int) -> Iterator[History]:
    for case, (info, rows) in enumerate(laws.played(), start=1):
        if rows:  # kernels know a run by the name that its rows have
            yield History(f"case {case}", replace(info, run=rows[0].run), rows)
    for mode in laws.MODES:
        for turn, steered in enumerate(STEERED, start=1):
            found: list[History] = []
            collector = Collector(
                lambda refuted: (),
                on_run=lambda run, found=found: found.append(  # type: ignore[misc]
                    History(f"run {mode} {turn}", run.info, run.rows)  # noqa: B023
                ),
                config=profiles.load(mode).config,
            )
            run_machine(collector, number * 1000 + turn, runs, ingredients_for(steered))
            yield from found
    for turn in range(1, 2 * runs + 1):
        plan = drawn_plan(Random(f"valid {number} {turn}"), turn)
        yield History(f"run leased {turn}", leased_info(plan), list(simulate_leased(plan)))
        yield History(f"run grouped {turn}", grouped_info(plan), list(simulate_grouped(plan)))


def _held_to_laws(history: History) -> Valid:
    before = examine(history.rows, history.info, all_clauses()).tallies
    changed: dict[str, tuple[tuple[RunInfo, Rows], ...]] = {
        law: tuple(change((history.info, list(history.rows))))
        for law, change in laws.TAKEN_AWAY.items()
        if len(history.rows) <= LONGEST
    }
    return Valid(
        history,
        frozenset(clause for clause, tally in before.items() if tally.opportunities),
        frozenset(clause for clause, tally in before.items() if tally.violations),
        changed,
    )
