"""A search on a wire target: a raw client asks its broker, then our own clients do plans by `conformance.run.run`.

Each part has a history of its own, which the clauses judge; the wire rules have judged on the way, what they found
lies in the run's folder, and one verdict holds all of it.
"""

from __future__ import annotations

import platform
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from conformance import again
from conformance.keeping import keep_first
from conformance.records import OF_OUR_CLIENTS
from conformance.run import EndedEarly, Interrupted, fresh_names, run
from conformance.stopping import TO_THE_END, Stop
from conformance.targets.systems import System
from conformance.wire.machine import run_machine
from conformance.wire.session import Session
from conformance.wire.target import WireTarget
from conformance.wire.work import Way, configured, round_config, round_plan, way_of
from specs.errors import UsageError
from specs.faults import broker_crash, crash
from specs.history.journal import Journal
from specs.history.runinfo import RunInfo, all_untold, write_runinfo
from specs.history.store import History, compact_journal, write_history
from specs.plan.ability import Ability
from specs.plan.config import Config
from specs.plan.plan import Action, ClientPlan, ListenerRule, Plan, TopicPlan, Topology
from specs.plan.traits import Trait
from specs.profiles import Profile
from specs.verdicts.engine import of_a_search
from specs.verdicts.examine import examine
from specs.verdicts.online import OnlineFindings, write_online
from specs.verdicts.tally import Check, Examination
from specs.verdicts.verdict import Search, Verdict, including
from specs.vocabulary import Level, Outcome

ASKED_BESIDE = frozenset({Trait.STRANGER, Trait.FAILED_SEND, Trait.LIVING_BROKER})
"""What a run on the wire has beside its plans: a raw client's part, read back before any broker is killed."""

EXAMPLES = 20
"""Of the wire machine: time is real, so they are few."""
FLOOR = 10
"""At stake less often, a clause is not exercised."""
MESSAGES = 240
QUEUES = 8
KEYS = 24
BROKER_KILLS = 2
BROKER_DEAD_MS = 300
POISON_EVERY = 12
PLANNED = "b0"
"""What plans call the broker of a system, whatever it calls it itself."""
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
    """What a search found, before any profile says what counts.

    asked: what the raw clients asked, online: what was found in the answers while they asked. rounds: what our clients
    did, plan by plan. ended: that a part failed, if one did.
    """

    target: WireTarget
    way: Way
    online: OnlineFindings
    asked: Part
    rounds: tuple[Part, ...]
    stop: Stop
    ended: tuple[Check, ...] = ()

    def verdict(self, profile: Profile, floor: int) -> Verdict:
        """What it comes to under a profile; one of the same way, for others were other clients at work."""
        if way_of(profile) != self.way:
            raise UsageError(
                f"the run was {self.way}, and {profile.name} speaks of {way_of(profile)}"
            )
        total = Examination()
        for part in (self.asked, *self.rounds):
            total.merge(part.examination)
        info = replace(self.shown(profile).history.info, profile=profile.name)
        parts = (self.asked, *self.rounds)
        info = replace(info, untold=all_untold(part.history.info for part in parts))
        verdict = of_a_search(
            total,
            info,
            profile,
            floor=floor,
            plans=[Plan.from_json(part.history.info.plan) for part in self.rounds],
            beside=ASKED_BESIDE,
            more=(*self.stop.checks(1 + len(self.rounds)), *self.ended),
        )
        return including(verdict, self.online.judged(info, profile, floor))

    def shown(self, profile: Profile) -> Part:
        """The first part that refutes a claimed clause, else the first in which our clients were at work."""
        for part in (self.asked, *self.rounds):
            if _refutes(part, profile):
                return part
        return self.rounds[0] if self.rounds else self.asked


def conform_wire(
    target: WireTarget,
    profile: Profile,
    *,
    seed: int,
    examples: int,
    out: Path,
    floor: int,
    rounds: int | None = None,
    part: tuple[int, int] = (0, 1),
    say: SAY = lambda _: None,
    stop: Stop | None = None,
) -> tuple[Verdict, History]:
    """Judge a wire target. The run's folder is `out`, replaced when it is there; say: progress, a line each.

    rounds: how many (`conformance.wire.work`), None for the target's own number. part: of how many searches at once it
    is which, from 0: a round is made by one of them, by turns, since each number has another configuration. In `out`
    lies the history of the first part that refutes a claimed clause, else of the first plan, and what was found online;
    what was asked is in `asked/`, every plan's own run in `rounds/`. stop: when it ends, else with all rounds; a budget
    leaves time for as many as fit into it.
    """
    stop = Stop(TO_THE_END) if stop is None else stop
    worked = work(
        target,
        profile,
        seed=seed,
        examples=examples,
        out=out,
        rounds=rounds,
        part=part,
        say=say,
        stop=stop,
    )
    shown = worked.shown(profile)
    info = shown.history.info
    if info.plan is not None:
        info = replace(info, replay=again.command("replay", out))
    history = write_history(out, info, list(shown.history.rows()), why_cut=shown.history.why_cut)
    write_online(out, worked.online)
    verdict = worked.verdict(profile, floor)
    search = _record(worked, profile, out)
    verdict = replace(verdict, info=replace(verdict.info, replay=info.replay), search=search)
    return verdict, history


def _refutes(part: Part, profile: Profile) -> bool:
    return any(profile.claim(name).status == "claimed" for name in part.examination.refuted())


def _record(worked: Worked, profile: Profile, out: Path) -> Search | None:
    """What the search did, if it was told more than how many rounds to make."""
    stop, kept = worked.stop, dict[str, str]()
    parts = (worked.asked, *worked.rounds)
    if stop.bounds.keep_going and stop.bounds.keeps:
        kept = keep_first(out, profile, [(part.history, part.examination) for part in parts])
    is_over = not stop.bounds.keep_going and any(_refutes(part, profile) for part in parts)
    most = None if stop.bounds.budget_s is not None else len(parts)
    return stop.record(len(parts), most, refuted=is_over, kept=kept)


def work(
    target: WireTarget,
    profile: Profile,
    *,
    seed: int,
    examples: int,
    out: Path,
    rounds: int | None = None,
    part: tuple[int, int] = (0, 1),
    say: SAY = lambda _: None,
    stop: Stop | None = None,
) -> Worked:
    """Ask, and let our clients work, in the profile's way; see `conform_wire`.

    The raw clients and the first plan share a system; each further plan has one of its own.
    """
    stop = Stop(TO_THE_END) if stop is None else stop
    replace_run_folder(out)
    config = replace(
        configured(target.config, profile, our_broker=target.is_ours), **target.plan_config
    )
    way = way_of(profile)
    # From its begin on the folder is known as a run of ours.
    write_runinfo(out, _asked_info(target, config, profile, seed, examples))
    say(f"starting {target.name}")
    done: list[Part] = []
    told: tuple[OnlineFindings, Part] | None = None
    ended: tuple[Check, ...] = ()
    stop.breaks_in = True
    try:
        with target.open_system(config) as system:
            say(f"asking the broker over the wire ({examples} examples)")
            told = online, asked = ask(
                target,
                system,
                config,
                profile,
                seed=seed,
                examples=examples,
                folder=out / "asked",
                say=say,
                stop=stop,
            )
            if stop.interrupted or target.sought in {
                *asked.examination.refuted(),
                *online.broken(),
            }:
                return Worked(target, way, online, asked, (), stop)
            say(f"our {way} consumers at work")
            prefix = fresh_names(seed, 0)
            first = orderly_plan(
                config,
                prefix,
                seed,
                MESSAGES
                * (2 if target.kills_broker else 1),  # so that enough happens between two kills
                broker=PLANNED if target.kills_broker else None,
            )
            done.append(_done(target.on(system), profile, first, prefix, out / "rounds" / "0", say))
        more = target.rounds if rounds is None else rounds
        which, of = part
        number = which + 1
        while _goes_on(target, done[-1], number <= more, profile, stop):
            say(f"round {number}{'' if stop.bounds.budget_s is not None else f' of {more}'}")
            prefix = fresh_names(seed, number)
            fills = Ability.FILL_DISK in target.of_system  # which hears of it at once
            plan = round_plan(
                round_config(config, number),
                prefix,
                seed,
                number,
                PLANNED,
                kills=target.kills_broker or (fills and not number % 2),
                fills=fills,
            )
            done.append(_done(target, profile, plan, prefix, out / "rounds" / f"{number}", say))
            number += of
    except EndedEarly as error:
        if told is None:
            raise
        say(f"{error}; what was recorded until then is judged")
        done.append(_part(error.history))
        ended = (error.check,)
    except KeyboardInterrupt as cut:
        if told is None or not stop.interrupted or stop.again:
            raise
        if isinstance(cut, Interrupted):
            done.append(_part(cut.history))
    finally:
        stop.breaks_in = False
    return Worked(target, way, *told, tuple(done), stop, ended)


def _goes_on(target: WireTarget, last: Part, more: bool, profile: Profile, stop: Stop) -> bool:
    """Is there another plan? A mutant's search ends with the breach that it looks for, any other with the first.

    more: is there one of those that were asked for? A budget alone says how many there are.
    """
    if stop.why is not None or (stop.bounds.budget_s is None and not more):
        return False
    if target.sought:
        return target.sought not in last.examination.refuted()
    return stop.bounds.keep_going or not _refutes(last, profile)


def ask(
    target: WireTarget,
    system: System,
    config: Config,
    profile: Profile,
    *,
    seed: int,
    examples: int,
    folder: Path,
    say: SAY = lambda _: None,
    stop: Stop | None = None,
) -> tuple[OnlineFindings, Part]:
    """Let raw clients ask the target's first broker: what was found in its answers, and the part with the history.

    Both are kept in `folder`, a run's like any other. stop: where it says so, a Ctrl-C ends the questions, and what
    was asked until then is the part.
    """
    info = _asked_info(target, config, profile, seed, examples)
    write_runinfo(folder, info)
    name = min(system.brokers)
    with Journal(folder, "wire", common={"level": Level.WIRE}) as journal:
        session = Session(
            system.brokers[name],
            name,
            journal,
            config,
            profile.wire,
            fresh_names(seed, 0),
            target.lease_known or "broker_lease_ms" in target.told_us,
        )
        try:
            run_machine(
                session,
                seed,
                examples,
                progress=lambda number: say(f"example {number} of {examples}"),
            )
            session.drain_when_settled()
        except KeyboardInterrupt:
            if stop is None or not stop.interrupted or stop.again or not session.worlds:
                raise
    if session.untold:
        write_runinfo(folder, replace(info, untold=tuple(session.untold)))
    found = session.found()
    write_online(folder, found)
    return found, _part(compact_journal(folder))


def _asked_info(
    target: WireTarget, config: Config, profile: Profile, seed: int, examples: int
) -> RunInfo:
    """Of a run in which raw clients ask."""
    words = ("--target", target.name, "--profile", profile.name, "--seed", seed)
    return RunInfo(
        run=f"{_word(target.name)}-{seed}-asked",
        seed=seed,
        target=target.name,
        parties=target.parties,
        profile=profile.name,
        levels=(Level.WIRE, Level.CLIENT),
        clock_bounds_us={"host": 0},
        records=OF_OUR_CLIENTS,
        config=target.settings(Plan(config=config)),
        replay=again.command("conform", *words, "--examples", examples),
        environment={"python": platform.python_version(), "system": platform.platform()},
    )


def _done(
    target: WireTarget, profile: Profile, plan: Plan, prefix: str, folder: Path, say: SAY
) -> Part:
    folder.mkdir(parents=True)
    info = {
        "profile": profile.name,
        "run": f"{_word(target.name)}-{plan.seed}-{folder.name}",
        "replay": again.command("replay", folder),
    }
    return _part(run(plan, target, folder, info=info, prefix=prefix, say=say))


def _part(history: History) -> Part:
    return Part(history, examine(history.rows(), history.info, why_cut=history.why_cut))


def _word(name: str) -> str:
    """A target's name as a word of a file's name."""
    return "".join(letter if letter.isalnum() or letter in "+.-" else "-" for letter in name)


def replace_run_folder(out: Path) -> None:
    """Make room for a run: an earlier run of ours is replaced, anything else is left alone (UsageError)."""
    if out.exists():
        if not out.is_dir() or (any(out.iterdir()) and not (out / "run.json").is_file()):
            raise UsageError(f"{out} exists and is no run of ours; give another --out")
        shutil.rmtree(out)
    out.mkdir(parents=True)
