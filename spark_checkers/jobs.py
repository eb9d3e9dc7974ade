"""Who carries the work out: some processes of this machine, or Spark. Both do tasks that have numbers.

The work of a task is one function of its number, the same for both, and what it gives back is small. All rows that a
task needs lie in files, which it reads by itself: so nothing travels through the process that asks, nor through Java.
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing.process import BaseProcess
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from spark_checkers.catalogue import planted_modules
from spark_checkers.session import on_workers, parallelism
from specs.errors import TargetMisbehaved

T = TypeVar("T")
_C = ctypes.CDLL(None)
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
KEPT = {_MMAP_THRESHOLD: 32 << 20, _TRIM_THRESHOLD: 1 << 30, _TOP_PAD: 64 << 20}
"""For mallopt(3), in bytes: what is taken from the system on its own, what is kept, and what is taken at once."""
COLLECT_AFTER = (200_000, 1000, 20)
"""So many new objects, and so many collections of the generation before, until a generation is looked through."""


class Jobs(Protocol):
    """Does numbered tasks, several at once. name: as a verdict tells it."""

    @property
    def name(self) -> str: ...

    @property
    def tasks(self) -> int:
        """How many run at once."""

    def each(self, work: Callable[[int], T], count: int) -> list[T]:
        """What the work gives for 0..count-1, in any order. It must be picklable."""


class InProcesses:
    """The tasks on processes of this machine, or one after the other in this one where that is enough."""

    name = "arrow"

    def __init__(self, tasks: int | None = None, *, alone: bool = False) -> None:
        """tasks: how many to make; one for every core by default. alone: none but this process does them."""
        self.tasks = tasks or len(os.sched_getaffinity(0))
        self._alone = alone or self.tasks == 1
        self._pool: ProcessPoolExecutor | None = None
        self._others: set[BaseProcess] = set()

    def __enter__(self) -> InProcesses:
        _settle()
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        gc.unfreeze()
        give_back()
        if self._pool is not None:
            if error is not None:
                # Nobody waits for what they do: a long lane may take them an hour.
                for child in set(multiprocessing.active_children()) - self._others:
                    child.terminate()
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def each(self, work: Callable[[int], T], count: int) -> list[T]:
        if self._alone or count < 2:
            return [work(number) for number in range(count)]
        if self._pool is None:
            # A process that is forked while threads of Arrow run may stand still for ever: fork from a fresh one.
            context = multiprocessing.get_context("forkserver")
            # What all of them import, Arrow's import of pandas among it, they share.
            judges = [module.__name__ for module in planted_modules()]
            context.set_forkserver_preload(["spark_checkers.engine", *judges, "pandas"])
            self._others = set(multiprocessing.active_children())
            self._pool = ProcessPoolExecutor(self.tasks, context, initializer=_settle)
        try:
            return list(self._pool.map(work, range(count)))
        except BrokenProcessPool as error:
            raise TargetMisbehaved(
                "a process of --engine arrow ended before its work did (out of memory? of a queue it holds up to a "
                "million rows at a time, a kilobyte each, and what is unfinished; on fewer cores fewer processes run)"
            ) from error


class OnSpark:
    """The tasks as a Spark job, without a shuffle."""

    name = "spark"

    def __init__(self, session: Any) -> None:
        self.session = session
        self.tasks = parallelism(session)

    def each(self, work: Callable[[int], T], count: int) -> list[T]:
        if not count:
            return []
        numbers = self.session.range(0, count, 1, count)
        job = on_workers(numbers, partial(_on_a_worker, work=work), "report binary")
        return [pickle.loads(data) for data in job.toArrow().column(0).to_pylist()]


def keep_memory() -> None:
    """Let Arrow allocate as numpy does, and the C library keep what is freed: the next columns are as large.

    Either gives it back to the system again and again, and to have the same memory mapped anew took a quarter of a
    check's CPU time because of the one, and a tenth because of the other. And let the collector of cycles look less
    often: machines make many small objects that are in none, and what is large is collected where it is done with.
    """
    pa.set_memory_pool(pa.system_memory_pool())
    gc.set_threshold(*COLLECT_AFTER)
    for option, size in KEPT.items() if hasattr(_C, "mallopt") else ():  # glibc's
        _C.mallopt(option, size)


def give_back() -> None:
    """Give the memory that was kept to the system."""
    if hasattr(_C, "malloc_trim"):
        _C.malloc_trim(0)


def _settle() -> None:
    """What is imported stays: the collector of cycles need not look at it again and again."""
    keep_memory()
    planted_modules()
    gc.freeze()


def _on_a_worker(
    numbers: Iterator[pa.RecordBatch], *, work: Callable[[int], Any]
) -> Iterator[pa.RecordBatch]:
    keep_memory()
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            data = pickle.dumps(work(number))
            yield pa.RecordBatch.from_arrays([pa.array([data], pa.binary())], names=["report"])
