"""One run and one verdict: the only place that turns a plan and a target into a history, and a history into a verdict.

Everything else (`conform`, `chaos`, `replay`) is a search or a grid over these two.

The order of a run: the target is prepared; who starts at 0 is started, and the plan's time begins when they are up;
every action is done at its time, those of one client one after the other, so that one that takes long to start holds
up nobody else; the plan's steps go on beside it (`conformance.steps`); at `until_ms` who was killed is started again,
the target comes to rest, the clients are stopped in good order, producers first, and every queue is read to its end. A
target may ask to be read while its clients are still at work; then nobody is stopped in good order, and what was read
is all that there is.
"""

from __future__ import annotations

import asyncio
import json
import platform
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from types import MappingProxyType
from typing import Any

from conformance.answers import NotTold
from conformance.live import Live
from conformance.parts import extras
from conformance.parts.processes import kill_all
from conformance.records import BEFALLS
from conformance.steps import Steps, attested, lacking
from conformance.targets.base import ClockKind, CutShort, Run, Target, known_names
from specs.errors import DriverFailed, HistoryError, PartFailed, Unavailable, UsageError
from specs.faults import broker_crash, clock_step, crash, pause, slow_cpu
from specs.history.clock import host_clock
from specs.history.journal import Journal
from specs.history.runinfo import RunInfo, declared, write_runinfo
from specs.history.store import History, open_history, write_history
from specs.plan.ability import Ability
from specs.plan.plan import Action, ClientPlan, Plan
from specs.profiles import Profile
from specs.verdicts.online import read_online
from specs.verdicts.tally import Check
from specs.verdicts.verdict import LIVED, Verdict, including
from specs.vocabulary import Kind, Lane, Level, Outcome

MOVES = frozenset({Kind.JOIN, Kind.LEAVE, Kind.CRASH, Kind.PAUSE, Kind.CLOCK_STEP})
"""What the harness orders, and writes down where the target does not."""
HARNESS = "harness"
SETTLED = {"detail": "settled"}
"""On the marker of a reading of a system at rest, whose clients could still have done something (docs/history.md)."""
OWN = "inorder-"
"""What everything begins with that a search makes on a system, so that whoever lends one knows it for ours."""
NAMES = "names"
"""In a run's environment: what the names of its topics, groups, clients and messages begin with."""
SHORT = "did not come"
"""And what its steps waited for in vain."""
SAY = Callable[[str], Any]
ENGINES_GROUP = "inorder.engines"
Engine = Callable[[History, Profile, Mapping[str, Any]], Verdict]


class EndedEarly(PartFailed):
    """A part of a run, as a driver, failed in its midst. history: what was recorded until then, kept like any other."""

    def __init__(self, why: str, history: History) -> None:
        super().__init__(why)
        self.history = history

    @property
    def check(self) -> Check:
        """For the verdict on that history."""
        return Check(LIVED, "every part lived to the end of the run", False, str(self))


class Interrupted(KeyboardInterrupt):
    """A Ctrl-C once the plan's time has begun. history: what was recorded until then, kept like any other."""

    def __init__(self, history: History) -> None:
        super().__init__()
        self.history = history


class PartUnavailable(Unavailable):
    """Something is registered, but the part that brings it can't be imported."""

    def __init__(self, what: str, error: ImportError) -> None:
        super().__init__(f"{what} can't be loaded: {extras.why(error)}")


def run(
    plan: Plan,
    target: Target,
    folder: Path,
    *,
    info: Mapping[str, Any] | None = None,
    prefix: str = "",
    say: SAY = lambda _: None,
) -> History:
    """Do a plan on a target and keep what happened in `folder`, which is there and empty.

    info: what `run.json` says besides (a profile, a replay line, a floor). prefix: what the ids of messages begin with.
    Raises UsageError for an action that the target has no ability for, TargetMisbehaved where a party breaks down.
    What was recorded until then stays in the folder; where a part failed, or a Ctrl-C came, the error brings it
    (EndedEarly, Interrupted).
    A step whose moment or end does not come ends the run like any other: `environment` says what was waited for, and
    its fault counts for one without effect.
    """
    plan = target.suited(plan)
    if cant := lacking(plan, target):
        raise UsageError(f"{cant[0]}, which {target.name} can't")
    told = RunInfo(
        run=f"{target.name}-{plan.seed}",
        seed=plan.seed,
        target=target.name,
        parties=target.parties,
        profile=target.profile,
        clock_bounds_us={"virtual" if target.clock is ClockKind.VIRTUAL else "host": 0},
        config=target.settings(plan),
        plan=plan.to_json(),
        environment={
            **({NAMES: prefix} if prefix else {}),
            "python": platform.python_version(),
            "system": platform.platform(),
        },
    )
    told = replace(_recording(told, target), **(info or {}))
    write_runinfo(folder, told)
    this = Run(plan, folder, prefix)
    made = _Made(this, target, say)
    settled, ended, interrupted = False, "", False
    try:
        settled = asyncio.run(made.make())
    except PartFailed as error:
        if not made.is_begun and not isinstance(error, DriverFailed):
            raise  # nobody has worked
        ended = str(error)
    except KeyboardInterrupt:
        if not made.is_begun:  # nobody has worked
            raise
        interrupted = True
    finally:
        this.close()
    try:
        history = _kept(made, this, target, told, settled=settled)
    except HistoryError:
        if interrupted:  # once more, in the midst of the clean-up
            raise KeyboardInterrupt from None
        raise
    if ended:
        raise EndedEarly(ended, history)
    if interrupted:
        raise Interrupted(history)
    return history


def _kept(made: _Made, this: Run, target: Target, told: RunInfo, *, settled: bool) -> History:
    """What was recorded of a run that is over, as one history in its folder."""
    plan, folder = this.plan, this.folder
    if made.steps.short:
        short = {SHORT: "; ".join(made.steps.short)}
        told = replace(told, environment={**told.environment, **short})
    told = replace(told, untold=tuple(dict.fromkeys(made.untold)))
    told = _recording(replace(told, settles=settled), target)
    write_runinfo(folder, told)
    recorded = open_history(folder)
    rows = target.completed(list(recorded.rows()))
    if plan.steps:
        rows = attested(rows, HARNESS, made.steps.done, target.saw)
    # A process that was killed, or vanished at the end, leaves a journal without an end: no loss.
    cut = {row.client_id for row in rows if row.kind is Kind.CRASH}
    cut |= {client.id for client in plan.clients} if target.reads_at_work else set()
    why_cut = [why for why in recorded.why_cut if why.partition(".")[0] not in cut]
    return write_history(folder, told, rows, why_cut=why_cut)


def fresh_names(seed: int, number: int) -> str:
    """What no earlier run on the same queues has named anything by."""
    return f"{OWN}r{seed}n{number}x{host_clock().wall_us() // 1000:x}-"


def run_again(info: RunInfo, target: Target, folder: Path, say: SAY = lambda _: None) -> History:
    """Do a run's plan once more, under other names: what it left may still be there. Raises as `run` does."""
    old, new = info.environment.get(NAMES, ""), fresh_names(info.seed, 0)
    text = json.dumps(info.plan)
    plan = Plan.from_json(json.loads(text.replace(old, new) if old else text), "the run's plan")
    told = {"profile": info.profile, "run": info.run}
    return run(plan, target, folder, info=told, prefix=new if old else "", say=say)


def judge(
    history: History,
    profile: Profile,
    engine: str = "python",
    options: Mapping[str, Any] | None = None,
) -> Verdict:
    """What the history comes to under a profile, by the engine of that name (`inorder.engines`).

    With it goes what was judged while the run went on, where its folder holds that (`specs.verdicts.online`): a line
    for each wire rule. options: the engine's, and `rules`, the ids of those that were asked for where not all were.

    A search judges many histories at once: it takes the two halves of the engine `python` (`specs.verdicts.engine`).
    Raises UsageError for an unknown engine.
    """
    options = dict(options or {})
    rules = options.pop("rules", None)
    verdict = find_engine(engine)(history, profile, options)
    online = None if history.is_a_file else read_online(history.folder)
    if online is None:
        return verdict
    floor = int(options.get("floor", 1))
    return including(verdict, online.judged(verdict.info, profile, floor, rules))


def engine_names() -> tuple[str, ...]:
    """The engines that are registered."""
    return tuple(sorted(entry.name for entry in entry_points(group=ENGINES_GROUP)))


def find_engine(name: str) -> Engine:
    """The engine of that name. Raises UsageError for an unknown one, before anything is read."""
    for entry in entry_points(group=ENGINES_GROUP):
        if entry.name == name:
            try:
                found: Engine = entry.load()
            except ImportError as error:
                raise PartUnavailable(f"the engine {name}", error) from error
            return found
    raise UsageError(f"there is no engine {name!r}; {known_names(name, engine_names())}")


def records_of(target: Target) -> dict[str, tuple[str, ...]]:
    """What is written down of a run of the target: by itself, and by who makes the run."""
    by_level = {
        level: frozenset(Kind(kind) for kind in kinds) for level, kinds in target.records.items()
    }
    by_level[Level.CLIENT.value] = by_level.get(Level.CLIENT.value, frozenset()) | BEFALLS | MOVES
    if Ability.PROGRESS in target.abilities:
        store = by_level.get(Level.STORE.value, frozenset())
        by_level[Level.STORE.value] = store | {Kind.PROGRESS}
    if Ability.READ in target.abilities:
        by_level[Level.WIRE.value] = by_level.get(Level.WIRE.value, frozenset()) | {Kind.READ}
    return declared(**by_level)


def _recording(info: RunInfo, target: Target) -> RunInfo:
    records = records_of(target)
    return replace(info, records=records, levels=tuple(records))


class _Made:
    """A run while it is made."""

    def __init__(self, run: Run, target: Target, say: SAY) -> None:
        self._run = run
        self._target = target
        self._say = say
        self._clients = {client.id: client for client in run.plan.clients}
        self._brokers = run.plan.topology.brokers
        self._at_work: set[str] = set()
        self._killed: set[str] = set()
        self._paused: dict[str, int | None] = {}
        self._lines: dict[str, _Line] = {}
        own = {Kind(kind) for kinds in target.records.values() for kind in kinds}
        self._written = MOVES - own
        self._reads_itself = Kind.READ in own
        self._marks = 0
        self.untold: list[str] = []
        self.is_begun = False
        self._harness: Journal = run.journal(HARNESS)
        live = Live(run.folder)
        self.steps = Steps(run.plan, live, self._do_of_step, target.check, self._harness)

    async def make(self) -> bool:
        """Do it all. Did the target come to rest?"""
        target, plan = self._target, self._run.plan
        try:
            await self._prepare()
            await self._act_in_time()
            self._say("waiting until nothing happens any more")
            await self._heal()
            settled = await target.settle(self._run)
            if not target.reads_at_work:
                await self._stop_all()
            if Ability.PROGRESS in target.abilities:
                await self._witness()
            if plan.drain and Ability.READ in target.abilities and not self._reads_itself:
                self._say("reading everything back")
                await self._read_all(SETTLED if settled and target.reads_at_work else {})
        finally:
            await target.close()
        return settled

    async def _prepare(self) -> None:
        """Ended early it leaves no thread that waits for a server to start: Python would wait for it in turn."""
        try:
            await self._target.prepare(self._run)
        except asyncio.CancelledError:
            kill_all()
            raise

    async def _act_in_time(self) -> None:
        plan, target = self._run.plan, self._target
        at_once = [action for action in plan.actions if _starts_at_once(action)]
        try:
            for action in at_once:
                self._line_of(action).add(self._do(action))
            for line in list(self._lines.values()):
                await line.empty()
            self._run.began()
            self.is_begun = True
            self.steps.begin()
            for action in plan.actions:
                if not _starts_at_once(action):
                    await target.until(self._run, action.at_ms)
                    self._check()
                    if target.clock is ClockKind.VIRTUAL:
                        await self._do(action)
                    else:
                        self._line_of(action).add(self._do(action))
            await target.until(self._run, plan.until_ms)
            await self._send_until_steps_are_over()
            for line in self._lines.values():
                await line.empty()
        finally:
            await self.steps.cancel()
            for line in self._lines.values():
                await line.end()
        self._check()

    async def _send_until_steps_are_over(self) -> None:
        """Make the plan's sends again, at the same pace, each once those before it are done.

        Two messages a second are sent while more wait for consumers than the plan has sends: where one is worked on
        after the other (a Kafka consumer's thread) and somebody is waited for, they would never catch up.
        """
        sends = [action for action in self._run.plan.actions if action.do == "send"]
        turn_ms = self._run.plan.until_ms - min((send.at_ms for send in sends), default=0)
        turn = 1
        while sends and not self.steps.are_over:
            for action in sends:
                if self.steps.are_over:
                    break
                await self._target.until(self._run, action.at_ms + turn * turn_ms)
                await self.steps.until_no_more_wait_than(len(sends))
                await self._line_of(action).empty()
                self._line_of(action).add(self._do(action))
            turn += 1
        await self.steps.end()

    async def _do_of_step(self, action: Action) -> None:
        """An action that came because of what happened."""
        self._say(" ".join([action.do, *map(str, action.args.values())]))
        await self._do(action)

    def _line_of(self, action: Action) -> _Line:
        """Whose turn it is: the actions of one party are done one after the other."""
        party = str(
            action.args.get("client")
            or action.args.get("node")
            or next(iter(action.args.values()), "")
        )
        if party not in self._lines:
            self._lines[party] = _Line()
        return self._lines[party]

    def _check(self) -> None:
        for line in self._lines.values():
            line.check()

    async def _do(self, action: Action) -> None:
        args = action.args
        match action.do:
            case "start" | "restart":
                await self._start(args["client"])
            case "stop":
                await self._stop(args["client"])
            case broker_crash.HEALED_BY:
                await self._target.start(args["broker"])
            case crash.VERB:
                await self._crash(action)
            case pause.VERB | slow_cpu.VERB if args["node"] not in self._brokers:
                await self._pause(action)
            case pause.HEALED_BY if args["node"] not in self._brokers:
                await self._resume(action)
            case clock_step.VERB:
                await self._step_clock(action)
            case _:
                await self._target.act(action)

    async def _start(self, name: str) -> None:
        if name in self._at_work:
            return
        mark = self._begin(Kind.JOIN, name)
        await self._target.start(name)
        self._at_work.add(name)
        self._killed.discard(name)
        said = self._target.tells(name)
        self._end(mark, {} if said is None else {"detail": said})

    async def _stop(self, name: str) -> None:
        if name not in self._at_work:
            return
        mark = self._begin(Kind.LEAVE, name)
        await self._target.stop(name)
        self._at_work.discard(name)
        self._end(mark)

    async def _crash(self, action: Action) -> None:
        name = action.args["client"]
        if name not in self._at_work:
            return
        await self._resume(Action(0, pause.HEALED_BY, {"node": name}))
        await self._target.act(action)
        self._at_work.discard(name)
        self._killed.add(name)
        if Kind.CRASH in self._written:
            client = self._clients[name]
            fields = {"process": name, "client_id": name, "group": client.group or None}
            self._harness.note(Kind.CRASH, Outcome.OK, fields)

    async def _pause(self, action: Action) -> None:
        """The row lasts from the order to stop until the party goes on."""
        name = action.args["node"]
        if name not in self._at_work or name in self._paused:
            return
        self._paused[name] = self._begin(Kind.PAUSE, name)
        await self._target.act(action)

    async def _resume(self, action: Action) -> None:
        name = action.args["node"]
        if name in self._paused:
            await self._target.act(action)
            self._end(self._paused.pop(name))

    async def _step_clock(self, action: Action) -> None:
        """The row stands before it: what the wall clock then leads to came later for certain."""
        node, ms = action.args["node"], action.args["ms"]
        if Kind.CLOCK_STEP in self._written:
            party = "broker" if node in self._brokers else "client_id"
            self._harness.note(Kind.CLOCK_STEP, Outcome.OK, {party: node, "value": ms})
        await self._target.act(action)

    async def _heal(self) -> None:
        """Who stands still goes on, and who was killed is started again."""
        for name in sorted(self._paused):
            await self._resume(Action(0, pause.HEALED_BY, {"node": name}))
        for name in sorted(self._killed):
            await self._start(name)

    async def _stop_all(self) -> None:
        for kinds in (("producer", "prober"), ("consumer",)):
            names = [client.id for client in self._run.plan.clients if client.kind in kinds]
            await asyncio.gather(*(self._stop(name) for name in names))

    async def _witness(self) -> None:
        """Write down what the store says of each group, in the queues that it may have consumed."""
        plan = self._run.plan
        journal = self._run.journal("witness", level=Level.STORE)
        wanted = {client.group: client.topics for client in plan.clients if client.topics}
        everything = tuple(topic.name for topic in plan.topology.topics)
        for group in dict.fromkeys((*plan.topology.groups, *wanted)):
            for queue, dead in self._target.queues(self._run):
                if dead is None and queue.topic in wanted.get(group, everything):
                    lane = Lane(group, *queue)
                    journal.begin(lane, Kind.PROGRESS, lane._asdict())
                    value = await self._target.progress(group, queue)
                    if isinstance(value, NotTold):
                        self.untold.append(value.why)
                        journal.end(lane, Outcome.UNKNOWN)
                    else:
                        outcome = Outcome.REFUSED if value is None else Outcome.OK
                        journal.end(lane, outcome, {"value": -1 if value is None else value})

    async def _read_all(self, mark: Mapping[str, Any]) -> None:
        """mark: what the markers say besides (docs/history.md)."""
        journal = self._run.journal("drain", level=Level.WIRE, client_id="drain")
        for number, (queue, group) in enumerate(self._target.queues(self._run)):
            common = {**queue._asdict(), "group": group}
            journal.begin(number, Kind.READ, common)
            outcome, upto = Outcome.OK, 0
            try:
                rows = await self._target.read(queue)
            except CutShort as cut:
                outcome, rows = Outcome.UNKNOWN, cut.found
                self.untold.append(str(cut))
            for found in rows:
                journal.note(Kind.READ, Outcome.OK, {**common, **found})
                upto = found["queue_offset"] + 1
            journal.end(number, outcome, {"value": upto, **mark})

    def _begin(self, kind: Kind, name: str) -> int | None:
        client: ClientPlan | None = self._clients.get(name)
        if kind not in self._written or client is None:
            return None
        if client.kind != "consumer" and kind is not Kind.PAUSE:
            return None
        self._marks += 1
        # It is the client's own process that comes, stands still or goes, whoever writes that down.
        fields = {"process": name, "client_id": name, "group": client.group or None}
        self._harness.begin(self._marks, kind, fields)
        return self._marks

    def _end(self, mark: int | None, columns: Mapping[str, Any] = MappingProxyType({})) -> None:
        if mark is not None:
            self._harness.end(mark, Outcome.OK, columns)


def _starts_at_once(action: Action) -> bool:
    return action.at_ms == 0 and action.do == "start"


class _Line:
    """The jobs of one party, done one after the other. What one raises is raised by `check` and `empty`."""

    def __init__(self) -> None:
        self._jobs: asyncio.Queue[Coroutine[Any, Any, None]] = asyncio.Queue()
        self._error: BaseException | None = None
        self._task = asyncio.create_task(self._work())

    def add(self, job: Coroutine[Any, Any, None]) -> None:
        self._jobs.put_nowait(job)

    async def _work(self) -> None:
        while True:
            job = await self._jobs.get()
            try:
                if self._error is None:
                    await job
                else:
                    job.close()
            except Exception as error:
                self._error = error
            finally:
                self._jobs.task_done()

    async def empty(self) -> None:
        await self._jobs.join()
        self.check()

    def check(self) -> None:
        if self._error is not None:
            raise self._error

    async def end(self) -> None:
        while not self._jobs.empty():
            self._jobs.get_nowait().close()
        self._task.cancel()
        await asyncio.wait([self._task])
