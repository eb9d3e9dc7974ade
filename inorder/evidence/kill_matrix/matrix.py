"""The kill matrix: every mutant searched for, in worker processes, with one result however many work on it.

Workers are fresh processes ("spawn"): nothing of this one, no thread and no lock, is copied into them. A Ctrl-C
reaches us alone (they ignore it), and we end them; if we are killed, the kernel ends them (Linux).
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from conformance.parts.leash import PR_SET_PDEATHSIG
from conformance.reports.schemas import MATRIX_SCHEMA
from inorder.evidence.kill_matrix.kill import EXAMPLES, Kill, kill
from reference_impl.mutants import every_mutant, load
from specs.history.clock import host_clock

WORKERS = 2

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
    done: Done = lambda result, count, total: None,
) -> Matrix:
    """Search for each of the mutants. keep: the folder in which each shrunk run gets one of its own.

    The result does not depend on the number of workers, but for the seconds. With one worker all is done in this
    process.
    """
    clock = host_clock().monotonic_us
    begun = clock()
    kills: dict[str, Kill] = {}
    for result in _results(names, seed, examples, workers, keep):
        kills[result.name] = result
        done(result, len(kills), len(names))
    elapsed_s = (clock() - begun) / 1_000_000
    return Matrix(seed, examples, workers, elapsed_s, tuple(kills[name] for name in sorted(kills)))


def _results(
    names: Sequence[str], seed: int, examples: int, workers: int, keep: Path | None
) -> Iterable[Kill]:
    folders: Mapping[str, Path | None] = {
        name: None if keep is None else keep / name for name in names
    }
    if workers == 1 or len(names) == 1:
        for name in names:
            yield kill(name, seed, examples=examples, keep=folders[name])
        return
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=begin_work,
        initargs=(os.getpid(),),
    )
    try:
        futures = [
            pool.submit(kill, name, seed, examples=examples, keep=folders[name]) for name in names
        ]
        for future in as_completed(futures):
            yield future.result()
    except BaseException:
        for worker in set(multiprocessing.active_children()) - before:
            worker.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def begin_work(parent: int) -> None:
    """In a worker, first of all: it ends when we say so, and with us."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
