"""A whole conformance run of a driven client: rounds of drawn plans, each judged; one verdict over all of them.

Every round has a history of its own, in which come together what the driver tells (calls, results, sends, its share
of the lanes), what the harness does, what the drain finds, and, where the broker is ours, the requests that the
broker saw (`conformance.drivers.watching`). Where it is not, nobody sees what the client asks the broker for: the
history says so (`records`), and the clauses that rest on it are not recorded.
"""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from conformance import again
from conformance.drivers.planned import DrivenPlan, protocol_names
from conformance.drivers.plans import CHANGES, drawn_plan
from conformance.drivers.protocol import REQUIRED_EVENTS
from conformance.drivers.recording import told_by
from conformance.drivers.watching import ANSWER_WAY_MS, WATCHED, Watch, complete
from conformance.records import BEFALLS, OF_OUR_CLIENTS
from conformance.targets.base import Asked, Searched
from conformance.targets.systems import System
from conformance.waiting import pass_time
from conformance.wire.brokers import make_topic
from conformance.wire.client import WireClient
from conformance.wire.nodes import PlanRunner
from conformance.wire.runner import replace_run_folder, run_nonce
from specs.errors import TargetMisbehaved
from specs.history.journal import Journal
from specs.history.runinfo import RunInfo, declared, write_runinfo
from specs.history.store import History, open_history, write_history
from specs.plan.ability import Ability
from specs.plan.config import Config
from specs.plan.plan import Plan
from specs.profiles import Profile
from specs.verdicts.examine import examine
from specs.verdicts.reach import out_of_reach
from specs.verdicts.tally import Examination
from specs.verdicts.verdict import Verdict, conclude
from specs.vocabulary import Kind, Level, Queue, dead_letter_topic

ROUNDS = 2
FLOOR = 5
SAY = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class DrivenRun:
    """A system and clients at work on it. version: of Apache's Java client; None for our own client.

    watched: the broker is ours and writes down what the clients ask. open_system: takes the configuration and, where
    watched, the watch. config: what the plans are drawn from.
    """

    target: str
    parties: Mapping[str, str]
    profile: str
    config: Config
    version: str | None
    watched: bool
    open_system: Callable[[Config, Watch | None], AbstractContextManager[System]]
    abilities: ClassVar[frozenset[Ability]] = frozenset({Ability.READ, Ability.CRASH_CLIENT})

    @property
    def name(self) -> str:
        """As the user gave it."""
        return self.target

    def search(self, profile: Profile, asked: Asked) -> Searched:
        """Let its clients do drawn plans."""
        verdict, _rounds = conform_driven(
            self,
            profile,
            seed=asked.seed,
            rounds=ROUNDS if asked.examples is None else asked.examples,
            out=asked.out,
            floor=FLOOR if asked.floor is None else asked.floor,
            say=asked.say,
        )
        return Searched(verdict)


@dataclass(frozen=True, slots=True)
class Round:
    """A plan that was done: its history and what the judge found in it."""

    plan: Plan
    history: History
    examination: Examination


def conform_driven(
    run: DrivenRun,
    profile: Profile,
    *,
    seed: int,
    rounds: int,
    out: Path,
    floor: int,
    changes: int = CHANGES,
    ours_too: bool = False,
    say: SAY = lambda _: None,
) -> tuple[Verdict, list[Round]]:
    """Judge driven clients by `rounds` drawn plans. The run's folder is `out`, replaced when it is there.

    The first round has one message per call and no manual commits, the others what is drawn. In `out` lies the
    history of the first round that refutes a claimed clause, else of the last; every round's own is in `rounds/`.
    changes: how many times a consumer comes or goes in a round. ours_too: judge our own client on a foreign broker as
    well. Raises UsageError where a part is missing.
    """
    replace_run_folder(out)
    draw = Random(seed)
    total = Examination()
    done: list[Round] = []
    with ExitStack() as stack:
        shared: System | None = None
        for number in range(1, rounds + 1):
            folder = out / "rounds" / f"{number}"
            folder.mkdir(parents=True)
            say(f"round {number} of {rounds} on {run.target}")
            plan = drawn_plan(
                run.config, f"r{seed}n{number}-", seed, draw, plain=number == 1, changes=changes
            )
            info = _info(run, profile, seed, number, rounds)
            with (
                Journal(folder, "wire", common={"level": Level.WIRE}) as journal,
                ExitStack() as mine,
            ):
                if run.watched:
                    watch = Watch(mine.enter_context(_broker_journal(folder)), protocol_names(plan))
                    system = mine.enter_context(run.open_system(plan.config, watch))
                else:
                    shared = shared or stack.enter_context(run.open_system(plan.config, None))
                    system = shared
                info = replace(info, config=plan.config, plan=plan.to_json())
                write_runinfo(folder, info)
                events = _work(
                    run,
                    plan,
                    system,
                    folder,
                    f"r{seed}n{number}x{run_nonce(system)}-",
                    journal,
                    say,
                )
            info = replace(info, records=records_of(run, events))
            one = _examined(folder, info, plan, watched=run.watched and run.version is not None)
            total.merge(one.examination)
            done.append(one)
    shown = next((one for one in done if refutes(one.examination, profile)), done[-1])
    write_history(
        out, shown.history.info, list(shown.history.rows()), why_cut=shown.history.why_cut
    )
    verdict = conclude(
        total,
        shown.history.info,
        profile,
        floor=floor,
        require_exercised=False,
        out_of_reach=out_of_reach([one.plan for one in done], floor=floor),
        ours_too=ours_too,
        tool={"engine": "python", "inorder": version("inorder")},
    )
    return verdict, done


def _broker_journal(folder: Path) -> Journal:
    return Journal(folder, "broker", common={"level": Level.WIRE})


def _info(run: DrivenRun, profile: Profile, seed: int, number: int, rounds: int) -> RunInfo:
    name = run.target.replace(":", "-").replace("/", "-")
    told = again.command(
        *(
            "conform",
            "--target",
            run.target,
            "--profile",
            profile.name,
            "--seed",
            seed,
            "--examples",
            rounds,
        )
    )
    if run.version is None:  # a target of that name asks the broker by a raw client first
        told = f"python -m inorder.evidence.interop {run.target} --seed {seed} --rounds {rounds}"
    return RunInfo(
        run=f"{name}-{seed}-{number}",
        seed=seed,
        target=run.target,
        parties=run.parties,
        profile=profile.name,
        levels=(Level.CLIENT, Level.WIRE),
        clock_bounds_us={"host": 0},
        closed_world=True,
        records=records_of(run, REQUIRED_EVENTS),  # what each driver tells besides, it says itself
        config=run.config,
        replay=told,
        environment={"python": platform.python_version(), "system": platform.platform()},
    )


def records_of(run: DrivenRun, events: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """What is written down of a round whenever it happens. events: those that its drivers tell."""
    if run.version is None:
        return OF_OUR_CLIENTS
    # Nobody sends back or ends a half message: a driver is asked for neither.
    told = told_by(events) | BEFALLS | {Kind.JOIN, Kind.LEAVE, Kind.CHECK, Kind.END_TRANSACTION}
    return declared(client=told, wire=WATCHED | {Kind.READ} if run.watched else {Kind.READ})


def _work(
    run: DrivenRun,
    plan: Plan,
    system: System,
    folder: Path,
    prefix: str,
    journal: Journal,
    say: SAY,
) -> frozenset[str]:
    """The plan, and then the drain. The events that the drivers said to tell."""
    events: frozenset[str] = frozenset()
    name, address = next(iter(sorted(system.brokers.items())))
    setup = WireClient("setup", address, name, journal)
    try:
        for topic in plan.topology.topics:
            make_topic(setup, topic.name, topic.queues, system.namesrv)
    finally:
        setup.close()
    if run.version is None:
        asyncio.run(PlanRunner(plan, system, folder, prefix).run())
    else:
        less_ms = ANSWER_WAY_MS if run.watched else 0
        driven = DrivenPlan(plan, system, run.version, folder, prefix, lease_less_ms=less_ms)
        driven.run()
        if driven.faults:
            raise TargetMisbehaved(
                f"the driver of the Java client {run.version} wrote {driven.faults[0]}"
            )
        events = driven.events
    say("reading everything back")
    # What waits for a delay level is to show up too.
    pass_time(plan.config.dead_letter_bound_ms * 2 / 1000)
    reader = WireClient("drain", address, name, journal)
    try:
        for queue, group in _to_drain(plan, name):
            reader.read(queue, reader.max_offset(queue) or 0, group)
    finally:
        reader.close()
    return events


def _to_drain(plan: Plan, broker: str) -> list[tuple[Queue, str | None]]:
    queues: list[tuple[Queue, str | None]] = [
        (Queue(topic.name, broker, number), None)
        for topic in plan.topology.topics
        for number in range(topic.queues)
    ]
    return [
        *queues,
        *((Queue(dead_letter_topic(group), broker, 0), group) for group in plan.topology.groups),
    ]


def _examined(folder: Path, info: RunInfo, plan: Plan, *, watched: bool) -> Round:
    journalled = open_history(folder)
    rows = list(journalled.rows())
    history = write_history(
        folder, info, complete(rows) if watched else rows, why_cut=journalled.why_cut
    )
    return Round(plan, history, examine(history.rows(), history.info, why_cut=history.why_cut))


def refutes(examination: Examination, profile: Profile) -> bool:
    """Is a clause refuted that the profile claims?"""
    return any(profile.claim(name).status == "claimed" for name in examination.refuted())
