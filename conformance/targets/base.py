"""What a target is, and how one is found by name.

A target is one file with a factory, registered in the entry-point group `inorder.targets` under its name. The
factory gets what follows the colon of `NAME:ARG` (None when there is no colon) and raises UsageError when it
can't make anything of it, or when a part that it needs is not there: before anything is started.

`conformance.run.run` is the only one that drives a target; it asks what a target can (`abilities`) and what it writes
down (`records`), and never what it is.
"""

from __future__ import annotations

import asyncio
import difflib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from importlib.metadata import entry_points
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from conformance.answers import Quiet, Told
from conformance.stopping import Stop
from conformance.targets.options import COMMANDS
from conformance.waiting import now_s
from specs.errors import TargetMisbehaved, UsageError
from specs.history.clock import RecorderClock
from specs.history.journal import Journal
from specs.history.row import Row
from specs.plan.ability import Ability
from specs.plan.config import MESSAGE_MODELS, MODES, Config
from specs.plan.listener import Listener
from specs.plan.messages import Numbering
from specs.plan.plan import Action, ClientPlan, Plan
from specs.plan.step import Step
from specs.profiles import Profile
from specs.secrets import refuse_in_target
from specs.verdicts.verdict import Verdict
from specs.vocabulary import Kind, Outcome, Queue

if TYPE_CHECKING:
    from conformance.targets.systems import System

ENTRY_POINTS = "inorder.targets"
QUIET_LOOK_S = 0.05
AWAKE_LOOK_S = 0.5
"""So often it is asked, while nothing happens, whether all parties are there."""
NEVER_ASKED = frozenset({Kind.CHECK, Kind.END_TRANSACTION, Kind.SEND_BACK})
"""What a target without half messages and delayed retries declares too: it can't have happened.

A dead letter is not among it: a system that is never asked to give a message up may do it by itself. A target declares
that kind where it tells of each, or where its system knows no dead letters.
"""


class CutShort(TargetMisbehaved):
    """A queue could not be read to its end, or nobody said where that is. found: what could be read of it."""

    def __init__(self, why: str, found: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(why)
        self.found = found


class ClockKind(StrEnum):
    """virtual: the target's own, nothing waits. wall: real time."""

    VIRTUAL = "virtual"
    WALL = "wall"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a search is asked: None stands for the target's own default.

    out: the run's folder. say: takes a step of the work in words. progress: takes (done, total, words). stop: when it
    ends, and what it is told besides. part: of how many searches at once it is which, from 0; each makes its part of
    the runs, and is asked for its part of the floor.
    """

    seed: int
    examples: int | None
    floor: int | None
    out: Path
    say: Callable[[str], Any] = lambda _: None
    progress: Callable[[int, int, str], Any] = lambda done, total, what: None
    stop: Stop = field(default_factory=Stop)
    part: tuple[int, int] = (0, 1)

    def runs(self, default: int) -> int | None:
        """How many runs are to be made; None: as many as the budget allows."""
        if self.examples is None and self.stop.bounds.budget_s is not None:
            return None
        return self.number(default)

    def number(self, default: int) -> int:
        """How many of whatever is counted by `examples`, its part of them; at least one."""
        return max(1, self._part_of(default if self.examples is None else self.examples))

    def at_stake(self, default: int) -> int:
        """How often a clause is to be at stake. default: the target's own floor."""
        return self._part_of(default if self.floor is None else self.floor)

    def _part_of(self, number: int) -> int:
        which, of = self.part
        return number // of + (which < number % of)


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search came to. events: how many were judged, where that is not what lies in the run's folder.

    reached: for each run the abstract states that no earlier one had reached.
    """

    verdict: Verdict
    events: int | None = None
    reached: tuple[frozenset[Any], ...] = ()


class Run:
    """What a target is told of the run that it is prepared for, and what it writes into.

    messages: makes the messages of an action `send`. listener: decides about calls by the plan's rules. prefix: what
    the ids of this run's messages begin with.
    """

    def __init__(self, plan: Plan, folder: Path, prefix: str = "") -> None:
        self.plan = plan
        self.folder = folder
        self.messages = Numbering(prefix)
        self.prefix = prefix
        self.listener = Listener(plan.listener)
        self._journals: list[Journal] = []
        self._began_s = now_s()

    def began(self) -> None:
        """The plan's time begins now: all who start at 0 are up."""
        self._began_s = now_s()

    def client(self, party: str) -> ClientPlan:
        """A client of the plan. UsageError for anybody else."""
        for client in self.plan.clients:
            if client.id == party:
                return client
        raise UsageError(f"{party} is no client of the plan")

    def journal(
        self, process: str, *, clock: RecorderClock | None = None, **common: Any
    ) -> Journal:
        """A journal in the run's folder, closed at its end. common: columns that every row of it has."""
        made = Journal(self.folder, process, clock=clock, common=common)
        self._journals.append(made)
        return made

    @property
    def now_ms(self) -> int:
        """Since the run began; what a listener's rules call `from_ms`."""
        return round((now_s() - self._began_s) * 1000)

    def close(self) -> None:
        """Close the journals. May be called again."""
        for journal in self._journals:
            journal.close()


@contextmanager
def operation(journal: Journal, kind: Kind, columns: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Write one operation down: its begin now, and its end when the block is left.

    What the block puts into the mapping are the end's columns; `outcome` is its outcome, ok if there is none. Where the
    block raises the operation stays open: nobody knows how it ended, as with a party that is killed.
    """
    this, told = object(), dict[str, Any]()
    journal.begin(this, kind, columns)
    yield told
    outcome = told.pop("outcome", Outcome.OK)
    journal.end(this, outcome, told)


class Target(ABC):
    """One system under test.

    name: as given on the command line. parties: who implements broker, client and producer. profile: the one that fits
    it, used when the user names none. config: what plans for it are drawn from; its lease times and intervals are those
    that the system really has. takes_config: a plan may say others, and the system is started with them. records: the
    kinds of rows, by level, that the target writes down whenever they happen (`specs.history.runinfo.declared`); asked
    again after the run, when it may know more. hindered: what it could have done to it elsewhere, each with why not on
    this machine.

    reads_at_work: its queues are read while its clients are still at work, and then all of them vanish without a word,
    so that nothing comes after what was found; otherwise they are stopped in good order before. remembers: its queues
    may hold what earlier runs left. sleeps: its brokers promise something of a consumer that stands still for too long
    and goes on, so that drawn plans have one. lease_known: `config` holds the lease time that its brokers really have,
    not one that is taken for it. modes: how its groups can be told to consume, the first one where nobody says.
    any_way: its search works in whatever way a profile says. call_ms_max: a call that takes longer may lose its message
    to another, since nobody renews a lease while a listener works; None where somebody does.

    `JOIN`, `LEAVE`, `CRASH` and `READ` are written by who makes the run, unless the target says that it does.
    """

    name: str
    parties: Mapping[str, str]
    profile: str
    config: Config
    clock: ClassVar[ClockKind] = ClockKind.WALL
    takes_config: ClassVar[bool] = False
    abilities: frozenset[Ability] = frozenset()
    hindered: Mapping[Ability, str] = MappingProxyType({})
    records: Mapping[str, tuple[str, ...]]
    reads_at_work: bool = False
    remembers: bool = False
    sleeps: bool = False
    modes: tuple[str, ...] = MODES[:1]
    any_way: ClassVar[bool] = False
    lease_known: bool = True
    call_ms_max: int | None = None

    def config_for(self, profile: Profile) -> Config:
        """Its configuration in the way in which the groups consume that the profile speaks about.

        Raises UsageError where they can't: what they did would be judged by promises of another way.
        """
        config = replace(self.config, mode=profile.mode, message_model=profile.message_model)
        if profile.mode not in self.modes or config.message_model != self.config.message_model:
            raise UsageError(
                f"the profile {profile.name} speaks of groups that consume {_way(config)}, and those of {self.name} "
                f"consume {_way(replace(self.config, mode=self.modes[0]))}: name another --profile (a driver's hello "
                "says by `modes` what its queue can)"
            )
        return config

    def own_plan(self, prefix: str, seed: int, draw: Random) -> Plan | None:
        """A plan that is drawn for this target alone; None for one that is drawn for all (`conformance.rounds`).

        prefix: what the name of everything in it begins with.
        """
        return None

    def suited(self, plan: Plan) -> Plan:
        """The plan with what the target's configuration says whatever the plan does."""
        return plan

    def settings(self, plan: Plan) -> Config:
        """What `run.json` says that the system was told: the plan's configuration, which is RocketMQ's.

        A target of another system gives its own (`specs.plan.config.config_of`), with `system`; what it leaves out
        nobody knows, and a clause that rests on it is not judged.
        """
        return plan.config

    @abstractmethod
    async def prepare(self, run: Run) -> None:
        """Bring up what the plan's topology needs: its topics, empty, and nobody at work."""

    @abstractmethod
    async def start(self, party: str) -> None:
        """Start a client, or a broker that was killed, by its id in the plan; again after a stop or a crash.

        Returns once it is up.
        """

    @abstractmethod
    async def act(self, action: Action) -> None:
        """Do one of the plan's actions that neither starts nor stops anybody; its time has come.

        Raises UsageError for one that it has no ability for.
        """

    @abstractmethod
    async def stop(self, party: str) -> None:
        """Stop a client in good order; returns once it is gone."""

    async def read(self, queue: Queue) -> Sequence[Mapping[str, Any]]:
        """All messages of a queue in their order, as columns of a history (`queue_offset`, `message_id`, ...).

        Called at the end of a run, when nothing happens any more; needs Ability.READ. Raises CutShort with what it
        found where there is more that can't be read, or nobody says whether there is.
        """
        raise UsageError(f"the target {self.name} can't {Ability.READ.value}")

    async def progress(self, group: str, queue: Queue) -> Told[int]:
        """What the store says that a group has reached in a queue: the next offset that it would hand out.

        Read by somebody who is not the client under test; None where the store says that there is nothing. Needs
        Ability.PROGRESS.
        """
        raise UsageError(f"the target {self.name} can't {Ability.PROGRESS.value}")

    def queues(self, run: Run) -> Sequence[tuple[Queue, str | None]]:
        """What is read at the end, each with the group whose dead letters it holds (None for a topic's queue)."""
        brokers, topics = run.plan.topology.brokers, run.plan.topology.topics
        return [
            (Queue(topic.name, broker, number), None)
            for broker in brokers
            for topic in topics
            for number in range(topic.queues)
        ]

    def check(self) -> None:  # noqa: B027 - most have no parts that could die by themselves
        """Raise TargetMisbehaved when a part of ours has died that nobody killed."""

    def tells(self, party: str) -> str | None:
        """What a client that is at work says of itself, where that is part of what is tried: its version, say."""
        return None

    def open_system(self, config: Config) -> AbstractContextManager[System]:
        """Its brokers alone, with nobody at work, for who asks them over the wire; needs Ability.WIRE."""
        raise UsageError(f"the target {self.name} can't {Ability.WIRE.value}")

    async def until(self, run: Run, at_ms: int) -> None:
        """Wait for a moment of the plan's time."""
        await asyncio.sleep(max(0.0, (at_ms - run.now_ms) / 1000))

    async def settle(self, run: Run) -> bool:
        """Wait until nothing happens any more, at most the plan's `settle_ms`. Did it come to rest?

        Who stands still is not at rest: the wait begins anew whenever a party, or this process itself, was not there.
        """
        config = run.plan.config
        rest_s = (config.broker_lease_ms + config.rebalance_ms + config.suspend_ms) / 1000
        until_s = now_s() + run.plan.settle_ms / 1000
        size, asked_s, quiet = -1, now_s(), Quiet(rest_s)
        while now_s() < until_s:
            is_awake = True
            if now_s() - asked_s >= AWAKE_LOOK_S:
                is_awake, asked_s = await self.is_awake(), now_s()
            grown = self.written(run)
            if quiet.look(is_quiet=is_awake and grown == size) >= rest_s:
                return True
            size = grown
            await asyncio.sleep(QUIET_LOOK_S)
        return False

    async def is_awake(self) -> bool:
        """Does every party answer whose silence would look like rest? It is taken to stand still if it takes long."""
        return True

    def written(self, run: Run) -> int:
        """How much was written of what happens; it stands still once the target has come to rest."""
        return sum(path.stat().st_size for path in (run.folder / "journal").glob("*.jsonl"))

    def search(self, profile: Profile, asked: Asked) -> Searched:
        """Judge the target: look for a plan on which it breaks what the profile claims, and keep the run in `out`."""
        from conformance.rounds import FLOOR, ROUNDS, conform_rounds

        verdict, _rounds = conform_rounds(
            self,
            profile,
            seed=asked.seed,
            rounds=asked.runs(ROUNDS),
            out=asked.out,
            floor=asked.at_stake(FLOOR),
            say=asked.say,
            stop=asked.stop,
        )
        return Searched(verdict)

    @abstractmethod
    async def close(self) -> None:
        """The run is over: nobody of it is left at work. May be called at any time, and again."""

    def saw(self, step: Step, fault: Row) -> str | None:
        """What the target itself saw of a fault's effect, once the run is over. fault: its row.

        Empty where it saw that there was none, whatever the history looks like; None where it can't tell.
        """
        return None

    def completed(self, rows: list[Row]) -> list[Row]:
        """The history's rows, with what only the whole of it tells."""
        return rows

    def release(self) -> None:  # noqa: B027 - most keep nothing
        """Give back what was kept from one run to the next. May be called at any time, and again."""


def names() -> tuple[str, ...]:
    """The names under which targets are registered."""
    return tuple(sorted(point.name for point in entry_points(group=ENTRY_POINTS)))


def find(text: str) -> Target:
    """The target that `NAME` or `NAME:ARG` names. Raises UsageError with the nearest known names.

    And for a registered factory that makes none, and for an address with credentials in it.
    """
    refuse_in_target(text, COMMANDS)
    name, colon, argument = text.partition(":")
    for point in entry_points(group=ENTRY_POINTS):
        if point.name == name:
            factory: Callable[[str | None], object] = point.load()
            made = factory(argument if colon else None)
            if not isinstance(made, Target):
                raise UsageError(
                    f"{point.value} made a {type(made).__name__} for {text!r}, which is no Target: let its class be "
                    f"one of conformance.targets.base (docs/targets.md)"
                )
            return made
    raise UsageError(f"there is no target {name!r}; {known_names(name, names())}")


def _way(config: Config) -> str:
    alike = config.message_model == MESSAGE_MODELS[0]
    return config.mode if alike else f"{config.mode}, {config.message_model}"


def known_names(asked: str, known: tuple[str, ...]) -> str:
    """For an error: what was probably meant, and what there is."""
    close = difflib.get_close_matches(asked, known, n=3)
    meant = f"did you mean {' or '.join(close)}? " if close else ""
    return f"{meant}known are {', '.join(known) or 'none'}"
