"""What a changed module is asked about, made once: histories with a planted defect, and histories to hold to the laws.

Planted: recordings of every mode with each defect and lookalike, and drawn runs of message leases with each of their
bugs. For the laws: every written case, runs of every mode on the correct reference, and what the laws make of them.
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

from conformance.machines.cluster import Collector
from conformance.machines.steering import ingredients_for
from conformance.runner import run_machine
from inorder.evidence import laws
from inorder.evidence.operators.helpers import helper
from reference_impl.sim.grouped import grouped_info, simulate_grouped
from reference_impl.sim.leased import leased_info, simulate_leased
from reference_impl.sim.leased_plans import drawn_plan
from spark_checkers.trace_mutants import DEFECTS, LOOKALIKES, plant, spread
from specs import profiles
from specs.clauses.catalogue import all_clauses
from specs.errors import UsageError
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.verdicts.examine import examine

SEED = 1
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
    """A history of the correct reference. at_stake, against: the ids of clauses, as nobody changed them.

    changed: by law what the law makes of it.
    """

    history: History
    at_stake: frozenset[str]
    against: frozenset[str]
    changed: dict[str, tuple[tuple[RunInfo, Rows], ...]]


@dataclass(frozen=True, slots=True)
class Prepared:
    """planted: histories with a defect, which their clause refutes; and with what looks like one, which none does."""

    planted: tuple[History, ...]
    valid: tuple[Valid, ...]


@cache
def prepared(kept: Path | None = None, number: int = SEED) -> Prepared:
    """The same for every sample of changes; takes a minute. kept: the file that holds them, or shall."""
    if kept is not None and kept.is_file():
        made: Prepared = pickle.loads(kept.read_bytes())
    else:
        made = Prepared(tuple(_planted()), tuple(map(_held_to_laws, _valid(number, RUNS))))
        if kept is not None:
            part = kept.with_suffix(f".{os.getpid()}.part")  # another worker makes the same
            part.write_bytes(pickle.dumps(made))
            part.replace(kept)
    gc.freeze()  # what children share stays as it is
    return made


# ------------------------------------------------------------------------------------------ planted


def _planted() -> Iterator[History]:
    """Each defect and lookalike in its recording; of message leases each bug that is about them."""
    recorded: Callable[..., tuple[RunInfo, Rows]] = cache(helper("recorded")["recorded"])
    for mutant in (*DEFECTS.values(), *LOOKALIKES.values()):
        info, _rows = recorded(*mutant.consumed, tagged=mutant.tagged)
        with suppress(UsageError):  # raised where there is no place for it
            changed = plant(mutant, _spread(*mutant.consumed, mutant.tagged), info, seed=1)
            yield History(f"planted {mutant.name}", mutant.under(info), changed.rows, mutant.clause)


@cache
def _spread(mode: str, model: str, tagged: bool) -> list[Row]:
    return spread(helper("recorded")["recorded"](mode, model, tagged=tagged)[1])


# ------------------------------------------------------------------------------------------ for the laws


def _valid(number: int, runs: int) -> Iterator[History]:
    for case, (info, rows) in enumerate(laws.played(), start=1):
        if rows:  # a run is known by the name that its rows have
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
