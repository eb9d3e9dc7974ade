"""One grid for all evidence: cells that are made once, kept as each is finished, and gone on with at any time.

A cell is named for people and keyed by all that its result depends on: what is run, by which seed and budget, and the
digest of the code that decides it. So a result is never older than its code, and a change makes anew what it touches.

Rules:
- each finished cell is one JSON file, written beside its place, synced and moved there in one step, by the process
  that made it: Ctrl-C and SIGKILL at any moment lose no finished cell, and half a file is never taken for one;
- a store holds one cell of a name; one under another key takes its place when it is begun;
- a store is one run's at a time, and a run begins when the workers of one that was killed are gone;
- workers are fresh processes ("spawn"): nothing of this one, no thread and no lock, is copied into them. Ctrl-C
  reaches us alone (they ignore it), and we end them; if we are killed, the kernel ends them (Linux);
- a budget is a time after which no cell is begun; what is being made then is finished.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import multiprocessing
import os
import re
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

from conformance.parts.leash import die_with
from specs.errors import InorderError, UsageError
from specs.fingerprint import DIGITS, code_digest
from specs.history.clock import host_clock

FORMAT = 1
_LOCK, _WORKERS_LOCK = ".lock", ".workers"
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a grid.

    name: what people call it, unique in its store. key: all that the result depends on, as JSON values.
    """

    grid: str
    name: str
    key: Mapping[str, Any] = field(hash=False)

    @property
    def stem(self) -> str:
        """How the file's name begins, whatever the key."""
        plain = re.sub(r"[^A-Za-z0-9.+_-]+", "-", self.name)[:_LONGEST_NAME]
        return f"{plain}-{_digest(f'{self.grid}/{self.name}')[:8]}"

    @property
    def id(self) -> str:
        """The same for the same grid, name and key, in every process."""
        return f"{self.stem}-{_digest(_canonical(self.key))[:DIGITS]}"


@dataclass(frozen=True, slots=True)
class Done:
    """A cell that is finished, or that could not be made.

    value: what the work returned, as JSON gives it back. made_us: when, by the clock on the wall. resumed: it was
    there already. error: why there is no value; the next run tries again.
    """

    cell: Cell
    value: Any = None
    made_us: int = 0
    seconds: float = 0.0
    resumed: bool = False
    error: InorderError | None = None


Work = Callable[[Cell], Any]
"""Makes a cell: returns what JSON can hold. With more than one worker it is called in another process."""


def run(
    cells: Sequence[Cell],
    work: Work,
    store: Path | None = None,
    *,
    budget_s: float | None = None,
    workers: int = 1,
    fresh: bool = False,
    stands: Callable[[Cell, Any], bool] = lambda cell, value: True,
) -> Iterator[Done]:
    """Make the cells that the store does not hold: first come those that it holds, then each as it is finished.

    What a budget left undone is not told of. store: None keeps nothing. stands: whether what a cell tells of (a run
    in a folder) is still there. With one worker, or one cell to make, all is done in this process.
    Raises UsageError for a store in which another run is at work, and whatever the work raises but an InorderError.
    """
    names = [cell.name for cell in cells]
    if len(set(names)) != len(names):
        raise ValueError(f"cells of one name: {sorted({n for n in names if names.count(n) > 1})}")
    with nullcontext() if store is None else _held(store):
        missing: list[Cell] = []
        for cell in cells:
            kept = None if store is None or fresh else read_cell(store, cell)
            if kept is None or not stands(cell, kept.value):
                missing.append(cell)
            else:
                yield kept
        if fresh and store is not None:
            for cell in missing:
                _forget(store, cell)
        is_over = _timer(budget_s)
        if workers == 1 or len(missing) == 1:
            for cell in missing:
                if is_over():
                    return
                yield _attempt(cell, work, store)
        else:
            yield from _in_processes(missing, work, store, workers, is_over)


def is_store(folder: Path) -> bool:
    """Whether a grid was at work in the folder."""
    return (folder / _LOCK).is_file()


def read_cell(store: Path, cell: Cell) -> Done | None:
    """The finished cell of this very key, None if the store does not hold it whole."""
    try:
        data = json.loads((store / f"{cell.id}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    try:
        is_it = (data["format"], data["key"]) == (FORMAT, json.loads(_canonical(cell.key)))
        kept = Done(cell, data["result"], int(data["made_us"]), float(data["seconds"]), True)
    except (KeyError, TypeError, ValueError):
        return None
    return kept if is_it else None


def code_key(*places: str) -> dict[str, str]:
    """What a key says of the code: the digest of these places, and what draws and runs beneath it."""
    return {
        "code": code_digest(*places),
        "python": ".".join(map(str, sys.version_info[:2])),
        "hypothesis": version("hypothesis"),
    }


def told_of_kept(done: Sequence[Done]) -> str:
    """How many cells were there already and how old they are, a sentence; empty when none was."""
    kept = sorted(each.made_us for each in done if each.resumed)
    if not kept:
        return ""
    now_us = host_clock().wall_us()
    ages = [age(now_us - made_us) for made_us in (kept[0], kept[-1])]
    old = ages[0] if ages[0] == ages[1] else f"{ages[1]} to {ages[0]}"
    are = "cell is" if len(kept) == 1 else "cells are"
    return f"{len(kept)} {are} {old} old and kept; --fresh makes them anew"


def told_of_left(left: int, total: int) -> str:
    """What a budget left undone, a sentence; empty when all is done."""
    return f"{left} of {total} cells are not made yet; the same again goes on" if left else ""


def age(passed_us: int) -> str:
    """A time that passed, in its largest unit."""
    seconds = max(0, passed_us) // 1_000_000
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def begin_work(parent: int) -> None:
    """In a worker, first of all: it ends when we say so, and with us."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with(parent)


# ------------------------------------------------------------------------------------------------- making


def _attempt(cell: Cell, work: Work, store: Path | None) -> Done:
    try:
        return _make(cell, work, store)
    except InorderError as error:
        return Done(cell, error=error)


def _make(cell: Cell, work: Work, store: Path | None) -> Done:
    """In whatever process: do the work, and keep it before anybody is told."""
    clock = host_clock()
    if store is not None:
        _forget(
            store, cell
        )  # what it leaves elsewhere, as a run's folder, is about to be written over
    begun = clock.monotonic_us()
    result = json.loads(json.dumps(work(cell)))
    seconds = round((clock.monotonic_us() - begun) / 1_000_000, 2)
    done = Done(cell, result, clock.wall_us(), seconds)
    if store is not None:
        data = {
            "format": FORMAT,
            "grid": cell.grid,
            "name": cell.name,
            "key": dict(cell.key),
            "made_us": done.made_us,
            "seconds": done.seconds,
            "result": result,
        }
        _write(store / f"{cell.id}.json", json.dumps(data, ensure_ascii=False) + "\n")
    return done


def _in_processes(
    missing: Sequence[Cell],
    work: Work,
    store: Path | None,
    workers: int,
    is_over: Callable[[], bool],
) -> Iterator[Done]:
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_begin_work_in,
        initargs=(os.getpid(), store),
    )
    waiting, at_work = deque(missing), dict[Future[Done], Cell]()
    try:
        while waiting or at_work:
            while waiting and len(at_work) < workers and not is_over():
                cell = waiting.popleft()
                at_work[pool.submit(_make, cell, work, store)] = cell
            if not at_work:
                break
            for future in wait(at_work, return_when=FIRST_COMPLETED).done:
                cell = at_work.pop(future)
                try:
                    yield future.result()
                except InorderError as error:
                    yield Done(cell, error=error)
    except BaseException:  # a Ctrl-C, an error, or whoever asked has enough
        for worker in set(multiprocessing.active_children()) - before:
            worker.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_working: list[IO[bytes]] = []
"""A worker's hold on its store; the kernel lets go of it when the process ends, however it does."""


def _begin_work_in(parent: int, store: Path | None) -> None:
    begin_work(parent)
    if store is not None:
        file = (store / _WORKERS_LOCK).open("ab")
        fcntl.flock(file, fcntl.LOCK_SH)
        _working.append(file)


def _timer(budget_s: float | None) -> Callable[[], bool]:
    clock = host_clock().monotonic_us
    begun = clock()
    return lambda: budget_s is not None and clock() - begun >= budget_s * 1_000_000


# ------------------------------------------------------------------------------------------------ keeping


@contextmanager
def _held(store: Path) -> Iterator[None]:
    """The store is ours alone, and nobody's worker writes into it any more."""
    store.mkdir(parents=True, exist_ok=True)
    with (store / _LOCK).open("ab") as ours, (store / _WORKERS_LOCK).open("ab") as workers:
        try:
            fcntl.flock(ours, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(
                f"another run is at work in {store}; wait for it, or end it"
            ) from error
        fcntl.flock(workers, fcntl.LOCK_EX)
        fcntl.flock(workers, fcntl.LOCK_UN)
        for torn in store.glob(".*.json.part"):
            torn.unlink()
        yield


def _write(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.part")
    with part.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def _forget(store: Path, cell: Cell) -> None:
    for path in store.glob(f"{cell.stem}-*.json"):
        path.unlink(missing_ok=True)


def _canonical(key: Mapping[str, Any]) -> str:
    return json.dumps(dict(key), sort_keys=True, ensure_ascii=False)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
