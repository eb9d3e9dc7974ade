"""A whole conformance run on a wire target: the machine, then our own orderly clients at work, then the drain.

Everything is journalled in the run's folder while it happens; the clauses judge the history at the end, the wire
rules have judged on the way, and one verdict holds both.
"""

from __future__ import annotations

import asyncio
import platform
import shutil
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from conformance import again
from conformance.records import OF_OUR_CLIENTS
from conformance.targets.base import Asked, Searched
from conformance.targets.systems import System
from conformance.wire.brokers import make_topic
from conformance.wire.client import WireClient
from conformance.wire.machine import run_machine
from conformance.wire.nodes import PlanRunner
from conformance.wire.session import Session
from conformance.wire.work import Way, configured, round_config, round_plan, way_of
from specs.errors import TargetMisbehaved, UsageError
from specs.faults import broker_crash, crash
from specs.history.journal import Journal
from specs.history.runinfo import RunInfo, write_runinfo
from specs.history.store import History, compact_journal, write_history
from specs.plan.ability import Ability
from specs.plan.config import Config
from specs.plan.plan import Action, ClientPlan, ListenerRule, Plan, TopicPlan, Topology
from specs.plan.traits import Trait
from specs.profiles import Profile
from specs.verdicts.examine import examine
from specs.verdicts.reach import out_of_reach
from specs.verdicts.tally import Examination
from specs.verdicts.verdict import OURS, Verdict, conclude
from specs.vocabulary import Level, Outcome, Queue, dead_letter_topic

ASKED_BESIDE = frozenset({Trait.STRANGER, Trait.FAILED_SEND, Trait.LIVING_BROKER})
"""What a run on the wire has beside its plans: a raw client's part, read back before any broker is killed."""

EXAMPLES = 20
"""Of the wire machine: time is real, so they are few."""
FLOOR = 10
"""At stake less often, a clause is not exercised."""
QUEUES = 8
KEYS = 24
BROKER_KILLS = 2
BROKER_DEAD_MS = 300
POISON_EVERY = 12
SAY = Callable[[str], Any]

SHORT_LEASES = Config(
    broker_lease_ms=1_000,
    client_lease_ms=500,
    lock_interval_ms=200,
    rebalance_ms=250,
    persist_ms=500,
    persist_first_ms=500,
    heartbeat_ms=1_000,
    channel_expiry_ms=10_000,
    suspend_ms=60,
    max_reconsume_times=1,
    long_poll_ms=2_000,
    # Every level waits longer than the bound for a dead letter, so that waiting for a level is seen.
    delay_levels=" ".join(["2s"] * 18),
    dead_letter_bound_ms=1_000,
    transaction_timeout_ms=300,
    transaction_check_interval_ms=1_500,
    transaction_check_max=2,
)
"""Leases and intervals short enough that a run of seconds sees many of each; their ratios are the product's."""


@dataclass(frozen=True, slots=True)
class WireRun:
    """What a wire target needs to be judged. config: with the lease times that the target's broker really has.

    open_system: takes the configuration and whether the brokers are to be advertised at a proxy's address.
    kills_broker: the broker is killed while the clients are at work, and started again. remembers: its store may hold
    earlier runs. rounds: how many are made (`conformance.wire.work`), each on a system of its own.
    """

    target: str
    parties: Mapping[str, str]
    profile: str
    config: Config
    lease_known: bool
    open_system: Callable[[Config, bool], AbstractContextManager[System]]
    kills_broker: bool = False
    remembers: bool = False
    rounds: int = 0

    @property
    def name(self) -> str:
        """As the user gave it."""
        return self.target

    @property
    def abilities(self) -> frozenset[Ability]:
        """What can be done to it, or asked of it."""
        mine = {Ability.WIRE, Ability.READ, Ability.CRASH_CLIENT, Ability.PAUSE_CLIENT}
        if self.lease_known and not self.kills_broker:
            mine.add(Ability.BREAK_LINK)
        if self.kills_broker:
            mine.add(Ability.CRASH_BROKER)
        return frozenset(mine)

    def search(self, profile: Profile, asked: Asked) -> Searched:
        """Ask its broker over the wire, and let our clients work on it."""
        verdict, _history = conform_wire(
            self,
            profile,
            seed=asked.seed,
            examples=EXAMPLES if asked.examples is None else asked.examples,
            out=asked.out,
            floor=FLOOR if asked.floor is None else asked.floor,
            say=asked.say,
        )
        return Searched(verdict)

    @property
    def is_ours(self) -> bool:
        """Is the broker our own code, so that it answers in the dialect that we ask for?"""
        return self.parties["broker"].startswith(OURS)


def ours() -> str:
    """The name of our own code in a verdict."""
    return f"inorder reference {version('inorder')}"


def orderly_plan(
    config: Config, prefix: str, seed: int, messages: int, broker: str | None = None
) -> Plan:
    """Our consumers at work: they join, crash, come back and leave while keyed messages flow.

    Every `POISON_EVERY`-th message is suspended until it is given up, some others once. broker: one that is killed
    meanwhile, `BROKER_KILLS` times, and started again after `BROKER_DEAD_MS`.
    """
    topic, group = f"{prefix}orders", f"{prefix}billing"
    c1, c2, shop = f"{prefix}c1", f"{prefix}c2", f"{prefix}shop"
    poison = [number for number in range(1, messages + 1) if number % POISON_EVERY == 0]
    once = [number for number in range(1, messages + 1) if number % POISON_EVERY == 5]
    rules = [
        ListenerRule(duration_ms=2),
        *(ListenerRule(Outcome.SUSPEND, number=number, duration_ms=1) for number in poison),
        *(ListenerRule(Outcome.SUSPEND, 20, 1, number=number, delivery_max=1) for number in once),
    ]
    lease, step = config.broker_lease_ms, config.rebalance_ms + 500
    moments = [
        ("start", {"client": shop}, 0),
        ("start", {"client": c1}, 0),
        ("start", {"client": c2}, lease + 2 * step),
        (crash.VERB, {"client": c1}, 3 * step),
        ("restart", {"client": c1}, lease + 2 * step),
        ("stop", {"client": c2}, 3 * step),
        ("restart", {"client": c2}, 2 * step),
        (crash.VERB, {"client": c2}, 3 * step),
        ("restart", {"client": c2}, lease + 2 * step),
    ]
    actions: list[Action] = []
    at_ms = 0
    for verb, args, after in moments:
        at_ms += after
        actions.append(Action(at_ms, verb, args))
    per_key = max(1, messages // KEYS)
    until = at_ms + lease + 3 * step
    pace = max(1, (until - 2 * step) // (per_key * 2))
    actions += [
        Action(
            1_000 + turn * pace,
            "send",
            {"client": shop, "topic": topic, "key": f"k{key}", "count": 1},
        )
        for turn in range(per_key * 2)
        for key in range(turn % 2, KEYS, 2)
    ]
    for kill in range(BROKER_KILLS if broker is not None else 0):
        dies_ms = (kill + 1) * until // (BROKER_KILLS + 1)
        actions.append(Action(dies_ms, broker_crash.VERB, {"broker": broker}))
        actions.append(Action(dies_ms + BROKER_DEAD_MS, broker_crash.HEALED_BY, {"broker": broker}))
    actions.sort(key=lambda action: action.at_ms)
    return Plan(
        seed=seed,
        topology=Topology(topics=(TopicPlan(topic, QUEUES),), groups=(group,)),
        config=config,
        clients=(
            ClientPlan(shop, "producer"),
            ClientPlan(c1, "consumer", group, (topic,)),
            ClientPlan(c2, "consumer", group, (topic,)),
        ),
        actions=tuple(actions),
        listener=tuple(rules),
        until_ms=max(until, actions[-1].at_ms),
    )


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a run that has a history of its own."""

    history: History
    examination: Examination


@dataclass(frozen=True, slots=True)
class Worked:
    """A run that was made, before any profile says what counts.

    parts: what the raw clients asked while our orderly clients worked, then each round.
    """

    run: WireRun
    way: Way
    session: Session
    parts: tuple[Part, ...]

    def verdict(self, profile: Profile, floor: int) -> Verdict:
        """What it comes to under a profile; one of the same way, for others were other clients at work."""
        if way_of(profile) != self.way:
            raise UsageError(
                f"the run was {self.way}, and {profile.name} speaks of {way_of(profile)}"
            )
        total = Examination()
        for part in self.parts:
            total.merge(part.examination)
        return conclude(
            total,
            replace(self.shown(profile).history.info, profile=profile.name),
            profile,
            floor=floor,
            out_of_reach=out_of_reach(
                [Plan.from_json(part.history.info.plan) for part in self.parts],
                floor=floor,
                beside=ASKED_BESIDE,
            ),
            extra=self.session.under(profile).judged(self.run.parties["broker"], floor),
            tool={"engine": "python", "inorder": version("inorder")},
        )

    def shown(self, profile: Profile) -> Part:
        """The first part that refutes a claimed clause, else the first of all."""
        for part in self.parts:
            if any(profile.claim(name).status == "claimed" for name in part.examination.refuted()):
                return part
        return self.parts[0]


def conform_wire(
    run: WireRun,
    profile: Profile,
    *,
    seed: int,
    examples: int,
    out: Path,
    floor: int,
    messages: int = 240,
    rounds: int | None = None,
    say: SAY = lambda _: None,
) -> tuple[Verdict, History]:
    """Judge a wire target. The run's folder is `out`, replaced when it is there; say: progress, a line each.

    rounds: how many (`conformance.wire.work`), None for the target's own number. In `out` lies the history of the
    first part that refutes a claimed clause, else that of the raw clients' part; every round's own is in `rounds/`.
    """
    worked = work(
        run,
        profile,
        seed=seed,
        examples=examples,
        out=out,
        messages=messages,
        rounds=rounds,
        say=say,
    )
    shown = worked.shown(profile)
    if shown is not worked.parts[0]:
        write_history(
            out, shown.history.info, list(shown.history.rows()), why_cut=shown.history.why_cut
        )
    return worked.verdict(profile, floor), shown.history


def work(
    run: WireRun,
    profile: Profile,
    *,
    seed: int,
    examples: int,
    out: Path,
    messages: int = 240,
    rounds: int | None = None,
    say: SAY = lambda _: None,
) -> Worked:
    """Make the run, in the profile's way; see `conform_wire`."""
    replace_run_folder(out)
    config = configured(run.config, profile, our_broker=run.is_ours)
    info = RunInfo(
        run=f"{run.target.replace(':', '-').replace('/', '-')}-{seed}",
        seed=seed,
        target=run.target,
        parties=run.parties,
        profile=profile.name,
        levels=(Level.WIRE, Level.CLIENT),
        clock_bounds_us={"host": 0},
        closed_world=True,
        records=OF_OUR_CLIENTS,
        config=config,
        replay=again.command(
            *(
                "conform",
                "--target",
                run.target,
                "--profile",
                profile.name,
                "--seed",
                seed,
                "--examples",
                examples,
            )
        ),
        environment={"python": platform.python_version(), "system": platform.platform()},
    )
    say(f"starting {run.target}")
    with run.open_system(config, False) as system:
        name, address = next(iter(sorted(system.brokers.items())))
        # A remote broker may remember earlier runs: their names must not meet ours.
        may_meet_others = run.remembers or not run.lease_known
        prefix = f"r{seed}x{run_nonce(system)}-" if may_meet_others else f"r{seed}-"
        if run.kills_broker:
            messages *= 2  # so that enough happens between two kills
        plan = orderly_plan(
            config, prefix, seed, messages, broker=name if run.kills_broker else None
        )
        info = replace(info, plan=plan.to_json())
        write_runinfo(out, info)
        with Journal(out, "wire", common={"level": Level.WIRE}) as journal:
            session = Session(
                address,
                name,
                journal,
                config,
                profile.wire,
                prefix,
                run.lease_known,
                excused=profile.rules,
            )
            say(f"asking the broker over the wire ({examples} examples)")
            run_machine(
                session,
                seed,
                examples,
                progress=lambda number: say(f"example {number} of {examples}"),
            )
            if run.kills_broker:  # offsets are promised to be dense in one of its lives
                session.drain()
            say(f"our {way_of(profile)} consumers at work")
            make_topics(session, plan, system.namesrv)
            asyncio.run(PlanRunner(plan, system, out, prefix).run())
            note_queues(session, plan)
            say("reading everything back")
            session.drain_when_settled()
    history = compact_journal(out)
    if not list((out / "history").glob("*.parquet")):
        raise TargetMisbehaved(f"the run in {out} left no history")
    parts = [Part(history, examine(history.rows(), history.info, why_cut=history.why_cut))]
    rounds = run.rounds if rounds is None else rounds
    for number in range(1, rounds + 1):
        say(f"round {number} of {rounds}")
        parts.append(work_round(run, info, seed, number, out / "rounds" / f"{number}"))
    return Worked(run, way_of(profile), session, tuple(parts))


def work_round(run: WireRun, info: RunInfo, seed: int, number: int, folder: Path) -> Part:
    """Our clients at work by the plan of a round, on a system of its own; the drain is made while they still are."""
    folder.mkdir(parents=True)
    config = round_config(info.config, number)
    with run.open_system(config, False) as system:
        name, address = next(iter(sorted(system.brokers.items())))
        prefix = f"r{seed}n{number}x{run_nonce(system)}-"
        fills = Ability.FILL_DISK in system.abilities
        kills = run.kills_broker or (fills and not number % 2)
        plan = round_plan(config, prefix, seed, number, name, kills=kills, fills=fills)
        info = replace(
            info, run=f"{info.run}-{number}", config=plan.config, plan=plan.to_json(), settles=True
        )
        write_runinfo(folder, info)
        with Journal(folder, "wire", common={"level": Level.WIRE}) as journal:
            session = Session(address, name, journal, plan.config, {}, prefix)
            make_topics(session, plan, system.namesrv)
            make_groups(session, plan)
            note_queues(session, plan)
            runner = PlanRunner(plan, system, folder, prefix)
            asyncio.run(runner.run(at_the_end=partial(session.drain_at_rest, plan)))
    history = compact_journal(folder)
    return Part(history, examine(history.rows(), history.info, why_cut=history.why_cut))


def make_groups(session: Session, plan: Plan) -> None:
    """The groups of the plan that nobody joins: a commit needs its group."""
    client = session.client("setup")
    try:
        for group in set(plan.topology.groups) - {each.group for each in plan.clients}:
            client.heartbeat(group, plan.topology.topics[0].name)
    finally:
        client.close()


def replace_run_folder(out: Path) -> None:
    """Make room for a run: an earlier run of ours is replaced, anything else is left alone (UsageError)."""
    if out.exists():
        if not out.is_dir() or (any(out.iterdir()) and not (out / "run.json").is_file()):
            raise UsageError(f"{out} exists and is no run of ours; give another --out")
        shutil.rmtree(out)
    out.mkdir(parents=True)


def run_nonce(system: System) -> str:
    """A word that no earlier run on this cluster used: the clock of the broker's host moves on."""
    from specs.history.clock import host_clock

    return format(host_clock().wall_us() // 1000, "x")


def make_topics(session: Session, plan: Plan, namesrv: str) -> None:
    """Create the plan's topics on the session's broker, and wait until routes lead there."""
    client: WireClient = session.client("setup")
    try:
        for topic in plan.topology.topics:
            make_topic(client, topic.name, topic.queues, namesrv)
    finally:
        client.close()


def note_queues(session: Session, plan: Plan) -> None:
    """The queues of the plan, and its groups' dead letters, join the drain."""
    for topic in plan.topology.topics:
        for queue_id in range(topic.queues):
            session.to_drain.append((Queue(topic.name, session.broker_name, queue_id), None))
    for group in plan.topology.groups:
        session.to_drain.append((Queue(dead_letter_topic(group), session.broker_name, 0), group))
