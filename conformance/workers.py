"""One search split into several at once: each in a process of its own, with a seed of its own; one verdict of all.

Rules:
- a worker finds the target by its name, and searches in `workers/NUMBER` of the run's folder; its seed follows from the
  user's and its number, it makes its part of the runs and is asked for its part of the floor;
- what comes of it is put together in the order of the workers, whoever was first: one seed and one number of workers
  give the same bytes. Where a refutation ends the search, the verdict is that of the first worker, in this order, that
  refutes; those after it are ended, those before it are waited for;
- a Ctrl-C reaches us alone, and we tell them; they are ended with us, however we end.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import shutil
import signal
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path

from conformance import again
from conformance.further import seed_of
from conformance.parts.leash import die_with
from conformance.parts.processes import exit_on_sigterm
from conformance.stopping import Bounds, Stop, listening
from conformance.targets.base import Asked, Searched, find
from specs.errors import InorderError
from specs.history.runinfo import RunInfo, write_runinfo
from specs.profiles import Profile
from specs.verdicts.online import read_online, write_online
from specs.verdicts.online import together as all_online
from specs.verdicts.together import together
from specs.verdicts.verdict import (
    ClauseVerdict,
    Ended,
    Further,
    Search,
    Verdict,
    coverage_of,
)

WORKERS = "workers"
GRACE_S = 20.0
"""So long a worker that is ended may take to stop what it started."""
AT_ONCE_S = 2.0
"""And so long, where somebody does not want to wait."""
_HISTORY = "history"
_SEEDS = 2**31


class WorkerFailed(InorderError):
    """The suite itself failed in a worker (exit 70): its traceback is in the message."""


@dataclass(frozen=True, slots=True)
class Job:
    """What a worker is told."""

    target: str
    profile: Profile
    seed: int
    examples: int | None
    floor: int | None
    out: Path
    bounds: Bounds
    part: tuple[int, int]


def seed_of_worker(seed: int, number: int) -> int:
    """The seed of a worker, another one for each; small enough to be typed."""
    return seed_of(seed, -1_000_000 - number) % _SEEDS


def search_by_workers(target: str, profile: Profile, asked: Asked) -> Searched:
    """The same as the target's own search, by as many workers as the bounds say.

    Raises what the first worker that failed raised, and KeyboardInterrupt where a Ctrl-C came before any run was done.
    """
    workers = asked.stop.bounds.workers
    jobs = [
        Job(
            target,
            profile,
            seed_of_worker(asked.seed, number),
            asked.examples,
            asked.floor,
            asked.out / WORKERS / f"{number + 1}",
            asked.stop.bounds,
            (number, workers),
        )
        for number in range(workers)
    ]
    with _Team(jobs, asked) as team:
        found = team.work()
    return _as_one(found, asked)


# ------------------------------------------------------------------------------------------------ the team


@dataclass(slots=True)
class _Worker:
    process: SpawnProcess
    pipe: Connection
    ready: bool = False
    told: bool = False
    progress: tuple[int, int] = (0, 0)


@dataclass(slots=True)
class _Team:
    """The workers while they work."""

    jobs: Sequence[Job]
    asked: Asked
    _at_work: dict[int, _Worker] = field(default_factory=dict)
    _found: dict[int, Searched | BaseException | None] = field(default_factory=dict)

    def __enter__(self) -> _Team:
        for number, job in enumerate(self.jobs):
            ours, theirs = multiprocessing.get_context("spawn").Pipe()
            process = multiprocessing.get_context("spawn").Process(
                target=_work,
                args=(theirs, os.getpid(), job),
                name=f"inorder-worker-{number + 1}",
                daemon=True,
            )
            with _no_ctrl_c():
                process.start()
            theirs.close()
            self._at_work[number] = _Worker(process, ours)
        return self

    def __exit__(self, *_: object) -> None:
        self._end(list(self._at_work), AT_ONCE_S if self.asked.stop.again else GRACE_S)

    def work(self) -> dict[int, Searched]:
        """What those found that count, by their number."""
        while self._at_work:
            self._tell_of_ctrl_c()
            pipes = {worker.pipe: number for number, worker in self._at_work.items()}
            for pipe in wait(list(pipes), timeout=0.1):
                number = pipes[pipe]  # type: ignore[index]
                if number in self._at_work:
                    self._hear(number, self._at_work[number])
        return self._that_count()

    def _that_count(self) -> dict[int, Searched]:
        """In their order, up to the first refutation that ends the search."""
        found: dict[int, Searched] = {}
        for number, result in sorted(self._found.items()):
            if isinstance(result, BaseException):
                raise result
            if result is not None:
                found[number] = result
                if self._ends_all(result):
                    break
        if not found:
            raise KeyboardInterrupt
        return found

    def _hear(self, number: int, worker: _Worker) -> None:
        try:
            what, *words = worker.pipe.recv()
        except (EOFError, OSError):
            worker.process.join()
            code = worker.process.exitcode
            what, words = "failed", [WorkerFailed(f"worker {number + 1} ended with {code}")]
        match what:
            case "ready":
                worker.ready = True
            case "say":
                self.asked.say(f"worker {number + 1}: {words[0]}")
            case "progress":
                self._progress(worker, *words)
            case "found" | "failed" | "nothing":
                self._found[number] = words[0] if words else None
                del self._at_work[number]
                worker.process.join(GRACE_S)
                _end(worker.process)
                if what == "failed" or (what == "found" and self._ends_all(words[0])):
                    self._end([other for other in self._at_work if other > number])

    def _ends_all(self, found: Searched) -> bool:
        """Does this one's refutation end the search? Those before it count all the same."""
        return not self.asked.stop.bounds.keep_going and _refutes(found.verdict)

    def _progress(self, worker: _Worker, done: int, total: int, what: str) -> None:
        worker.progress = (done, total)
        everybody = [each.progress for each in self._at_work.values()]
        mine = f"{len(self.jobs)} workers, {what}"
        self.asked.progress(sum(d for d, _ in everybody), sum(t for _, t in everybody), mine)

    def _tell_of_ctrl_c(self) -> None:
        for worker in self._at_work.values():
            if self.asked.stop.interrupted and worker.ready and not worker.told:
                worker.told = True
                if worker.process.pid is not None and worker.process.is_alive():
                    os.kill(worker.process.pid, signal.SIGINT)

    def _end(self, numbers: Sequence[int], grace_s: float = GRACE_S) -> None:
        ended = [self._at_work.pop(number) for number in numbers]
        for worker in ended:
            worker.process.terminate()
        for worker in ended:
            worker.process.join(grace_s)
            _end(worker.process)
            worker.pipe.close()


def _end(process: SpawnProcess) -> None:
    if process.is_alive():
        process.kill()
    process.join()


@contextmanager
def _no_ctrl_c() -> Iterator[None]:
    """What is started meanwhile hears of no Ctrl-C until it says so; one that comes to us is heard afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# ------------------------------------------------------------------------------------------------ a worker


def _work(pipe: Connection, parent: int, job: Job) -> None:
    """In a worker: search, and tell what was found, or why not."""
    os.setpgid(0, 0)  # the terminal's Ctrl-C is for our parent, who tells us
    die_with(parent)
    exit_on_sigterm()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # what came meanwhile is forgotten
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    stop = Stop(job.bounds)
    asked = Asked(
        job.seed,
        job.examples,
        job.floor,
        job.out,
        lambda line: pipe.send(("say", line)),
        lambda done, total, what: pipe.send(("progress", done, total, what)),
        stop,
        job.part,
    )
    try:
        with listening(stop, lambda _: None):
            pipe.send(("ready",))
            job.out.parent.mkdir(parents=True, exist_ok=True)
            found: Searched = find(job.target).search(job.profile, asked)
        pipe.send(("found", found))
    except KeyboardInterrupt:
        pipe.send(("nothing",))
    except InorderError as error:
        pipe.send(("failed", _carried(error)))
    except Exception:
        pipe.send(("failed", WorkerFailed(traceback.format_exc())))


def _carried(error: InorderError) -> BaseException:
    """The error, as far as it comes through a pipe whole."""
    try:
        if str(pickle.loads(pickle.dumps(error))) == str(error):
            return error
    except Exception:
        pass
    return WorkerFailed(f"{type(error).__name__}: {error}")


# ------------------------------------------------------------------------------------------------ as one


def _refutes(verdict: Verdict) -> bool:
    return bool(verdict.of(ClauseVerdict.REFUTED))


def _as_one(found: Mapping[int, Searched], asked: Asked) -> Searched:
    """One verdict, and one run to be shown, of what the workers found. The folders of those that don't count go."""
    ends = not asked.stop.bounds.keep_going
    alone = next((n for n, each in found.items() if ends and _refutes(each.verdict)), None)
    counted = found if alone is None else {alone: found[alone]}
    verdict = together([each.verdict for each in counted.values()])
    shown = next((n for n, each in counted.items() if _refutes(each.verdict)), min(counted))
    reached = tuple(states for each in counted.values() for states in each.reached)
    coverage = verdict.coverage
    if coverage is not None:
        coverage = replace(coverage_of(reached), further=_further(counted.values()))
    verdict = replace(
        verdict,
        info=_brought(found[shown].verdict.info, asked, shown),
        coverage=coverage,
        search=_record(found, asked.stop.bounds, alone),
    )
    _keep_online(asked.out, sorted(counted))
    for folder in (asked.out / WORKERS).iterdir():
        if folder.name not in {f"{number + 1}" for number in found}:
            shutil.rmtree(folder)
    events = [each.events for each in counted.values() if each.events is not None]
    return Searched(verdict, sum(events) if len(events) == len(counted) else None, reached)


def _brought(info: RunInfo, asked: Asked, number: int) -> RunInfo:
    """Copy the run that a worker shows into the run's folder, as a run by the user's seed."""
    folder = asked.out / WORKERS / f"{number + 1}"
    info = replace(info, seed=asked.seed)
    if (info.replay or "").startswith(again.command("replay")):
        info = replace(info, replay=again.command("replay", asked.out))
    shutil.copytree(folder / _HISTORY, asked.out / _HISTORY, dirs_exist_ok=True)
    write_runinfo(asked.out, info)
    return info


def _keep_online(out: Path, numbers: Sequence[int]) -> None:
    """What those that count judged while they asked, as that of one run."""
    each = (read_online(out / WORKERS / f"{number + 1}") for number in numbers)
    if found := [online for online in each if online is not None]:
        write_online(out, all_online(found))


def _further(found: Iterable[Searched]) -> Further | None:
    made = [
        each.verdict.coverage.further
        for each in found
        if each.verdict.coverage is not None and each.verdict.coverage.further is not None
    ]
    if not made:
        return None
    sought = dict.fromkeys(clause for each in made for clause in each.sought)
    return Further(sum(e.runs for e in made), sum(e.most for e in made), tuple(sought))


def _record(found: Mapping[int, Searched], bounds: Bounds, alone: int | None) -> Search:
    each = {number: searched.verdict.search for number, searched in found.items()}
    made = [search for search in each.values() if search is not None]
    most = [search.most for search in made if search.most is not None]
    kept: dict[str, str] = {}
    for number, search in each.items():
        for clause, folder in ({} if search is None else search.kept).items():
            kept.setdefault(clause, f"{WORKERS}/{number + 1}/{folder}")
    ended = Ended.REFUTED if alone is not None else Ended.FINISHED
    for why in (Ended.BUDGET, Ended.INTERRUPTED):
        if alone is None and why in {search.ended for search in made}:
            ended = why
    return Search(
        sum(search.runs for search in made),
        sum(most) if len(most) == len(found) else None,
        ended,
        bounds.budget_s,
        bounds.workers,
        kept,
    )
