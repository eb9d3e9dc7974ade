"""One mutant and one seed: is the bug found within the budget, by the clause that it names?

A mutant that a history shows is searched for with the cluster machine, or by drawn plans where it is one of leased
messages; the run that refutes the named clause is shrunk, and its witness is proved minimal. A mutant that no
well-behaved client notices is searched for with the wire machine, on real sockets, and killed by the wire rule that it
names. One of a function that has a table of vectors is held against that table.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from conformance import again, vectors
from conformance.machines.cluster import Collector
from conformance.reports.saving import save
from conformance.runner import NotRepeatable, run_machine
from conformance.shrink import shrink
from inorder.evidence.kill_matrix import of_leases
from inorder.evidence.kill_matrix.minimal import LARGEST, is_minimal
from inorder.evidence.kill_matrix.on_the_wire import break_rules
from reference_impl.mutants import HISTORY, LEASED, MODEL, VECTORS, Mutant, load
from reference_impl.sim.grouped import GROUPED
from reference_impl.sim.simulate import simulate
from specs import profiles
from specs.clauses.catalogue import get
from specs.history.clock import host_clock
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.history.store import rows_of_lines, write_history
from specs.plan.plan import Plan
from specs.verdicts.engine import of_one_run
from specs.verdicts.examine import examine

EXAMPLES = 300
"""The budget: generated runs for one mutant."""
WIRE_EXAMPLES = 20
"""The budget on the wire, where time is real."""
PROFILE = "reference"


@dataclass(frozen=True, slots=True)
class Size:
    """Of a run: rows of its history, actions and listener rules of its plan."""

    rows: int
    actions: int
    rules: int

    def to_json(self) -> dict[str, int]:
        return {"rows": self.rows, "actions": self.actions, "rules": self.rules}

    @classmethod
    def from_json(cls, data: Mapping[str, int] | None) -> Size | None:
        return None if data is None else cls(data["rows"], data["actions"], data["rules"])


@dataclass(frozen=True, slots=True)
class Kill:
    """What the search for one mutant came to.

    clause: that the mutant names. refuted: every clause (or wire rule) that the run in question refutes; of a
    survivor, what some run refuted. examples: generated runs, up to and with the one that kills. found, shrunk:
    that run, before and after. witness: as rows; empty on the wire, where one answer is the proof. minimal: None
    where there is no witness of events. search_s, shrink_s: by the clock on the wall; cpu_s: both, of this process.
    """

    name: str
    bug: str
    oracle: str
    clause: str
    seed: int
    killed: bool
    refuted: tuple[str, ...]
    examples: int
    found: Size | None = None
    shrunk: Size | None = None
    shrunk_refuted: tuple[str, ...] = ()
    witness: tuple[Row, ...] = field(default=(), repr=False)
    minimal: bool | None = None
    explanation: str = ""
    search_s: float = 0.0
    shrink_s: float = 0.0
    cpu_s: float = 0.0

    @property
    def is_good(self) -> bool:
        """Killed by the clause that it names, with a small and minimal witness."""
        if self.oracle not in (HISTORY, LEASED):
            return self.killed
        return self.killed and self.minimal is True and len(self.witness) <= LARGEST

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "bug": self.bug,
            "oracle": self.oracle,
            "clause": self.clause,
            "killed": self.killed,
            "refuted": list(self.refuted),
            "examples": self.examples,
            "found": self.found.to_json() if self.found else None,
            "shrunk": self.shrunk.to_json() if self.shrunk else None,
            "shrunk_refuted": list(self.shrunk_refuted),
            "witness": [row.to_json() for row in self.witness],
            "witness_size": len(self.witness) if self.witness else None,
            "minimal": self.minimal,
            "explanation": self.explanation,
            "search_s": round(self.search_s, 2),
            "shrink_s": round(self.shrink_s, 2),
            "cpu_s": round(self.cpu_s, 2),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], seed: int) -> Kill:
        """What `to_json` told; the seed is that of the whole matrix."""
        lines = "\n".join(json.dumps(row) for row in data["witness"])
        return cls(
            name=data["name"],
            bug=data["bug"],
            oracle=data["oracle"],
            clause=data["clause"],
            seed=seed,
            killed=data["killed"],
            refuted=tuple(data["refuted"]),
            examples=data["examples"],
            found=Size.from_json(data["found"]),
            shrunk=Size.from_json(data["shrunk"]),
            shrunk_refuted=tuple(data["shrunk_refuted"]),
            witness=tuple(rows_of_lines(lines.splitlines(), f"the witness of {data['name']}")),
            minimal=data["minimal"],
            explanation=data["explanation"],
            search_s=data["search_s"],
            shrink_s=data["shrink_s"],
            cpu_s=data["cpu_s"],
        )


class _Watch:
    """Seconds, by the wall and of this process."""

    def __init__(self) -> None:
        self._clock = host_clock().monotonic_us
        self._cpu = _cpu_s()
        self.laps: dict[str, float] = {}

    @contextmanager
    def lap(self, name: str) -> Iterator[None]:
        begun = self._clock()
        try:
            yield
        finally:
            self.laps[name] = (self._clock() - begun) / 1_000_000

    @property
    def cpu_s(self) -> float:
        return _cpu_s() - self._cpu


def _cpu_s() -> float:
    times = os.times()
    return times.user + times.system


def kill(name: str, seed: int, *, examples: int = EXAMPLES, keep: Path | None = None) -> Kill:
    """Search for the mutant. keep: the folder for the shrunk run, so that it can be explained and replayed.

    Raises UsageError for an unknown mutant, NotRepeatable when a run's plan does not give the run again.
    """
    bug = load(name)
    if bug.oracle == MODEL:
        return _kill_on_the_wire(bug, seed)
    if bug.oracle == VECTORS:
        return _kill_by_vectors(bug, seed)
    if bug.oracle == LEASED:
        return _kill_of_leases(bug, seed, examples, keep)
    return _kill_in_histories(bug, seed, examples, keep)


def _kill_in_histories(bug: Mutant, seed: int, examples: int, keep: Path | None) -> Kill:
    watch = _Watch()
    clause = get(bug.killed_by)

    def wanted(refuted: tuple[str, ...]) -> tuple[str, ...]:
        return refuted if clause.id in refuted else ()

    collector = Collector(wanted, bug)
    with watch.lap("search"):
        run_machine(collector, seed, examples)
    found = collector.broken
    done = Kill(
        name=bug.name,
        bug=bug.bug,
        oracle=bug.oracle,
        clause=clause.id,
        seed=seed,
        killed=found is not None,
        refuted=collector.total.refuted() if found is None else found.examination.refuted(),
        examples=collector.runs,
        search_s=watch.laps["search"],
        cpu_s=watch.cpu_s,
    )
    if found is None:
        return done

    size = Size(len(found.rows), len(found.plan.actions), len(found.plan.listener))
    return _shrunk(replace(done, found=size), bug, found.plan, watch, keep)


def _kill_of_leases(bug: Mutant, seed: int, examples: int, keep: Path | None) -> Kill:
    watch = _Watch()
    clause = get(bug.killed_by)
    with watch.lap("search"):
        found = of_leases.search(bug, clause, seed, examples)
    done = Kill(
        name=bug.name,
        bug=bug.bug,
        oracle=bug.oracle,
        clause=clause.id,
        seed=seed,
        killed=found.plan is not None,
        refuted=found.refuted,
        examples=found.runs,
        search_s=watch.laps["search"],
        cpu_s=watch.cpu_s,
    )
    if found.plan is None:
        return done
    _, rows = _run_of(found.plan, bug)
    size = Size(len(rows), len(found.plan.actions), len(found.plan.listener))
    return _shrunk(replace(done, found=size), bug, found.plan, watch, keep)


def _run_of(plan: Plan, bug: Mutant) -> tuple[RunInfo, list[Row]]:
    return of_leases.run_of(plan, bug) if bug.oracle == LEASED else simulate(plan, bug)


def _shrunk(done: Kill, bug: Mutant, found: Plan, watch: _Watch, keep: Path | None) -> Kill:
    """The kill with its plan made short, and with the witness of that one's run."""
    clause = get(bug.killed_by)

    def still_broken(plan: Plan) -> bool:
        info, rows = _run_of(plan, bug)
        return bool(examine(rows, info, (clause,)).refuted())

    with watch.lap("shrink"):
        if not still_broken(found):
            raise NotRepeatable(
                f"mutant:{bug.name}, seed {done.seed}: a run's plan does not refute {clause.id} again"
            )
        plan = shrink(found, still_broken)
    info, rows = _run_of(plan, bug)
    examination = examine(rows, info)
    tally = examination.tallies[clause.id]
    done = replace(
        done,
        shrunk=Size(len(rows), len(plan.actions), len(plan.listener)),
        shrunk_refuted=examination.refuted(),
        witness=tally.witness,
        minimal=is_minimal(clause, tally.witness, info),
        explanation=tally.explanation,
        shrink_s=watch.laps["shrink"],
        cpu_s=watch.cpu_s,
    )
    if keep is not None:
        name = GROUPED if bug.is_of_a_group else LEASED if bug.oracle == LEASED else PROFILE
        info = replace(info, seed=done.seed, profile=name, replay=again.command("replay", keep))
        verdict = of_one_run(examination, info, profiles.load(name))
        write_history(keep, info, rows)
        save(verdict, keep)
    return done


def _kill_on_the_wire(bug: Mutant, seed: int) -> Kill:
    watch = _Watch()
    with watch.lap("search"):
        broken, worlds = break_rules(bug, seed, WIRE_EXAMPLES, until=bug.killed_by)
    return Kill(
        name=bug.name,
        bug=bug.bug,
        oracle=bug.oracle,
        clause=bug.killed_by,
        seed=seed,
        killed=bug.killed_by in broken,
        refuted=tuple(broken),
        examples=worlds,
        explanation=broken.get(bug.killed_by, ""),
        search_s=watch.laps["search"],
        cpu_s=watch.cpu_s,
    )


def _kill_by_vectors(bug: Mutant, seed: int) -> Kill:
    watch = _Watch()
    with watch.lap("search"):
        differences = vectors.differences(bug.killed_by, bug)
    return Kill(
        name=bug.name,
        bug=bug.bug,
        oracle=bug.oracle,
        clause=bug.killed_by,
        seed=seed,
        killed=bool(differences),
        refuted=(bug.killed_by,) if differences else (),
        examples=1,
        explanation=differences[0] if differences else "",
        search_s=watch.laps["search"],
        cpu_s=watch.cpu_s,
    )
