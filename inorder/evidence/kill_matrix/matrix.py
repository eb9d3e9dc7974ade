"""The kill matrix: every mutant searched for, in worker processes, with one result however many work on it.

A cell of the grid is one mutant (`inorder.evidence.grid`).
"""

from __future__ import annotations

import shutil
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from conformance.reports.schemas import MATRIX_SCHEMA
from conformance.reports.view import VERDICT_FILE
from inorder.evidence import grid
from inorder.evidence.kill_matrix.kill import EXAMPLES, Kill, kill
from reference_impl.mutants import every_mutant, load
from specs.history.clock import host_clock

WORKERS = 2
CODE = (
    "specs",
    "reference_impl",
    "conformance",
    "inorder/evidence/kill_matrix/kill.py",
    "inorder/evidence/kill_matrix/minimal.py",
    "inorder/evidence/kill_matrix/of_leases.py",
    "inorder/evidence/kill_matrix/on_the_wire.py",
)
"""What a search depends on."""

Done = Callable[[Kill, int, int], None]
"""Told of each result as it comes: (the result, how many are done, how many there are)."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """kills: by the mutants' names. elapsed_s: by the clock on the wall."""

    seed: int
    examples: int
    workers: int
    elapsed_s: float
    kills: tuple[Kill, ...]

    @property
    def survivors(self) -> tuple[Kill, ...]:
        return tuple(each for each in self.kills if not each.killed)

    @property
    def bad(self) -> tuple[Kill, ...]:
        """Not killed, or with a witness that is too large or not minimal."""
        return tuple(each for each in self.kills if not each.is_good)

    @property
    def witness_sizes(self) -> tuple[int, ...]:
        return tuple(len(each.witness) for each in self.kills if each.witness)

    @property
    def exit_code(self) -> int:
        return 1 if self.bad else 0

    @property
    def median(self) -> float | None:
        """Of the witnesses' sizes."""
        return float(statistics.median(self.witness_sizes)) if self.witness_sizes else None

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": MATRIX_SCHEMA,
            "seed": self.seed,
            "examples": self.examples,
            "workers": self.workers,
            "elapsed_s": round(self.elapsed_s, 1),
            "summary": {
                "mutants": len(self.kills),
                "killed": len(self.kills) - len(self.survivors),
                "survivors": [each.name for each in self.survivors],
                "not_good": [each.name for each in self.bad],
                "witness_median": self.median,
                "witness_max": max(self.witness_sizes, default=None),
                "cpu_s": round(sum(each.cpu_s for each in self.kills), 1),
            },
            "mutants": [each.to_json() for each in self.kills],
            "tool": {
                "inorder": version("inorder"),
                "python": ".".join(map(str, sys.version_info[:3])),
            },
        }


def chosen(names: Sequence[str] = ()) -> tuple[str, ...]:
    """The mutants of these names, or all of them. Raises UsageError for an unknown one."""
    if names:
        return tuple(sorted({load(name).name for name in names}))
    return tuple(mutant.name for mutant in every_mutant())


def run_matrix(
    names: Sequence[str],
    seed: int,
    *,
    examples: int = EXAMPLES,
    workers: int = WORKERS,
    keep: Path | None = None,
    store: Path | None = None,
    budget_s: float | None = None,
    fresh: bool = False,
    done: Done = lambda result, count, total: None,
    told: Callable[[Sequence[grid.Done]], None] = lambda cells: None,
) -> Matrix:
    """Search for each of the mutants. keep: the folder in which each shrunk run gets one of its own.

    The result does not depend on the number of workers, but for the seconds. store, budget_s, fresh: as
    `inorder.evidence.grid.run` has them; what a budget left undone is not in the matrix. told: of all cells, at last.
    Raises what the search for a mutant raises.
    """
    clock = host_clock().monotonic_us
    begun = clock()
    kills: dict[str, Kill] = {}
    cells: list[grid.Done] = []
    for cell in grid.run(
        [cell_of(name, seed, examples) for name in names],
        partial(search, keep=keep),
        store,
        budget_s=budget_s,
        workers=workers,
        fresh=fresh,
        stands=partial(is_kept, keep=keep),
    ):
        if cell.error is not None:
            raise cell.error
        cells.append(cell)
        result = Kill.from_json(cell.value, seed)
        kills[result.name] = result
        if not cell.resumed:
            done(result, len(kills), len(names))
    told(cells)
    elapsed_s = (clock() - begun) / 1_000_000
    return Matrix(seed, examples, workers, elapsed_s, tuple(kills[name] for name in sorted(kills)))


def cell_of(name: str, seed: int, examples: int) -> grid.Cell:
    """The search for one mutant, and all that its result depends on."""
    key = {"mutant": name, "seed": seed, "examples": examples, **grid.code_key(*CODE)}
    return grid.Cell("kill matrix", name, key)


def search(cell: grid.Cell, keep: Path | None = None) -> dict[str, Any]:
    """Make a cell. What an earlier search left in its folder goes first: it may be half a run."""
    name = cell.key["mutant"]
    folder = None if keep is None else keep / name
    if folder is not None and folder.exists():
        shutil.rmtree(folder)
    found = kill(name, cell.key["seed"], examples=cell.key["examples"], keep=folder)
    return found.to_json()


def is_kept(cell: grid.Cell, value: Any, keep: Path | None = None) -> bool:
    """Whether the run that a cell tells of is still there."""
    return keep is None or not value["witness"] or (keep / value["name"] / VERDICT_FILE).exists()
