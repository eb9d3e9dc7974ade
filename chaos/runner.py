"""One chaos run: a scenario's workload and faults as a plan, the run of it, and the verdict.

A run in real time is made by `conformance.run`, one on a simulated target by `chaos.twin`.

A run that ends badly is judged all the same: where something was waited for in vain all is healed, drained and judged.
What breaks a promise is refuted, and otherwise the run is inconclusive.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from chaos.reached import CONDITIONS, expected
from chaos.scenario import Scenario, Workload
from chaos.twin import Twin, play
from conformance import again
from conformance.replay import mutant_of
from conformance.reports.recovery import Recovered, recovered
from conformance.run import SHORT, EndedEarly, fresh_names, run
from conformance.targets.base import ClockKind, Target
from conformance.wire.runner import SHORT_LEASES, replace_run_folder
from specs.errors import UsageError
from specs.history.row import Row, make_row
from specs.history.runinfo import RunInfo
from specs.history.store import History, write_history
from specs.plan.ability import Ability
from specs.plan.config import IN_MEMORY, IN_SYNC, Config
from specs.plan.plan import Action, ClientPlan, ListenerRule, Plan, TopicPlan, Topology
from specs.profiles import Profile
from specs.verdicts.engine import of_one_run
from specs.verdicts.examine import examine
from specs.verdicts.tally import Check, Examination, FaultTold
from specs.verdicts.verdict import ClauseVerdict, Verdict, by_python, with_exposures
from specs.vocabulary import Kind, Outcome

SHOP = "shop"
FIRST_SEND_MS = 1_500
"""By then everybody who starts with the run has met: what moves a lane afterwards is a fault, or a step."""
NO_LIMIT = -1
SAY = Callable[[str], Any]


def plan_of(
    scenario: Scenario, config: Config, seed: int, prefix: str = "", *, gives_up: bool = True
) -> Plan:
    """The scenario as a plan: one producer, consumers c1, c2, ..., keyed messages at a pace, and the faults as steps.

    The seed decides the numbers of which the scenario gives a range. prefix: what the names of the topic and the group
    begin with, so that two runs on one system don't meet. gives_up: poisoned messages end as dead letters.
    """
    workload, draw = scenario.workload, Random(seed)
    topic, group = f"{prefix}orders", f"{prefix}billing"
    if not gives_up:
        config = Config.from_json({**config.to_json(), "max_reconsume_times": NO_LIMIT})
    if Ability.SLOW_DISK in scenario.needs and config.flush == IN_MEMORY:
        config = replace(config, flush=IN_SYNC)  # else nobody waits for the disk
    rounds = max(1, workload.messages // workload.keys)
    at_first = workload.clients[: workload.at_first or None]
    sends = [
        Action(
            FIRST_SEND_MS + turn * workload.pace_ms,
            "send",
            {"client": SHOP, "topic": topic, "key": f"k{key}", "count": 1},
        )
        for turn in range(rounds)
        for key in range(workload.keys)
    ]
    return Plan(
        seed=seed,
        topology=Topology(workload.broker_names, (TopicPlan(topic, workload.queues),), (group,)),
        config=config,
        clients=(
            ClientPlan(SHOP, "producer"),
            *(ClientPlan(name, "consumer", group, (topic,)) for name in workload.clients),
        ),
        actions=(*(Action(0, "start", {"client": name}) for name in (SHOP, *at_first)), *sends),
        listener=_rules(workload, gives_up=gives_up),
        until_ms=FIRST_SEND_MS + rounds * workload.pace_ms,
        settle_ms=Plan().settle_ms + workload.messages * workload.work_ms,
        steps=tuple(
            step for fault in scenario.faults for step in fault.steps(draw, workload.broker_names)
        ),
    )


def _rules(workload: Workload, *, gives_up: bool) -> tuple[ListenerRule, ...]:
    poison = range(workload.poison_every, workload.messages + 1, workload.poison_every)
    most = None if gives_up else 1
    return (
        ListenerRule(duration_ms=workload.work_ms),
        *(
            ListenerRule(Outcome.SUSPEND, number=number, duration_ms=1, delivery_max=most)
            for number in poison
        ),
    )


def lacks(scenario: Scenario, target: Target) -> list[Ability]:
    """What the scenario's faults need and the target can't have done to it."""
    return [need for need in scenario.needs if need not in target.abilities]


def run_scenario(
    scenario: Scenario,
    target: Target,
    profile: Profile,
    *,
    seed: int,
    out: Path,
    asked: Sequence[object] = (),
    say: SAY = lambda _: None,
) -> tuple[Verdict, History]:
    """Run and judge one scenario; the run's folder is `out`. say: progress, a line each.

    asked: the words by which a user asks for the same. Raises UsageError where the target can't have the faults.
    """
    if missing := lacks(scenario, target):
        raise UsageError(
            f"scenario {scenario.name} needs a target that can {missing[0].value}; {target.name} can't"
        )
    config = target.config_for(profile)
    replace_run_folder(out)
    if target.clock is ClockKind.VIRTUAL:
        return _simulated(scenario, target, profile, seed, out)
    prefix = fresh_names(seed, 0)
    gives_up = Ability.GIVE_UP in target.abilities
    if target.takes_config:
        config = Config.from_json({**config.to_json(), **scenario.config})
    plan = plan_of(scenario, config, seed, prefix, gives_up=gives_up)
    (out / "plan.json").write_text(json.dumps(plan.to_json()), encoding="utf-8")
    info = {
        "run": f"{scenario.name}-{seed}",
        "profile": profile.name,
        "replay": again.command(*(asked or ("replay", out))),
        "workload_floor": scenario.workload.messages,
    }
    say(f"starting {target.name}")
    more: tuple[Check, ...] = ()
    try:
        history = run(plan, target, out, info=info, prefix=prefix, say=say)
    except EndedEarly as error:
        history, more = error.history, (error.check,)
        say(f"{error}; what was recorded until then is judged")
    rows = list(history.rows())
    found = examine(rows, history.info, why_cut=history.why_cut)
    told = [fault_told(rows, row) for row in rows if row.kind is Kind.FAULT]
    made = Made(history.info, rows, found, told, more)
    return judged(scenario, made, profile, target.abilities), history


def _simulated(
    scenario: Scenario, target: Target, profile: Profile, seed: int, out: Path
) -> tuple[Verdict, History]:
    """The same in virtual time. What is kept is a plan of actions, which `inorder replay` repeats to the byte."""
    twin = play(target.suited(twin_plan(scenario, seed)), mutant_of(target.name))
    info = replace(
        twin.info,
        seed=seed,
        profile=profile.name,
        workload_floor=scenario.workload.messages,
        replay=again.command("replay", out),
    )
    (out / "plan.json").write_text(json.dumps(twin.plan.to_json()), encoding="utf-8")
    history = write_history(out, info, twin.rows)
    return judged(scenario, of_twin(twin, info), profile, target.abilities), history


def twin_plan(scenario: Scenario, seed: int) -> Plan:
    """The scenario's plan for a simulated cluster, with the leases that our cluster on sockets has."""
    return plan_of(scenario, Config.from_json({**SHORT_LEASES.to_json(), **scenario.config}), seed)


@dataclass(frozen=True, slots=True)
class Made:
    """A run to be judged. told: its faults, each with its time and what shows that it had an effect. more: further
    checks of the run."""

    info: RunInfo
    rows: Sequence[Row]
    found: Examination
    told: Sequence[FaultTold]
    more: Sequence[Check] = ()


def of_twin(twin: Twin, info: RunInfo) -> Made:
    """A simulated run: its steps decide which faults had an effect, as in a real one."""
    found = examine(twin.rows, info)
    found.facts.faults = [(fault.name, fault.shown is not None) for fault in twin.faults]
    told = []
    for fault in twin.faults:
        row = make_row(kind=Kind.FAULT, started_us=fault.from_us, ended_us=fault.to_us)
        outcome = Outcome.REFUSED if fault.shown is None else Outcome.OK
        told.append(
            fault_told(
                twin.rows, row._replace(detail=fault.name, outcome=outcome, view=fault.shown)
            )
        )
    return Made(info, twin.rows, found, told)


def fault_told(rows: Sequence[Row], fault: Row) -> FaultTold:
    """fault: its row, whose `view` is what shows its effect."""
    first_us = min(row.started_us for row in rows)
    ends_us = fault.ended_us
    after = Recovered(0, None) if ends_us is None else recovered(rows, ends_us)
    return FaultTold(
        name=fault.detail or "fault",
        effective=fault.outcome is Outcome.OK,
        from_ms=(fault.started_us - first_us) // 1000,
        to_ms=None if ends_us is None else (ends_us - first_us) // 1000,
        evidence=fault.view or "",
        lanes=after.lanes,
        recovered_ms=after.ms,
    )


def judged(
    scenario: Scenario, made: Made, profile: Profile, abilities: frozenset[Ability]
) -> Verdict:
    """The verdict of a scenario's run: the clauses, and did it do what it is there for?"""
    info, rows, found = made.info, made.rows, made.found
    kinds = {Kind(kind) for recorded in (info.records or {}).values() for kind in recorded}
    wanted = expected(scenario.must_reach, kinds, abilities)
    checks = [*made.more, _reached(rows, wanted, info.environment.get(SHORT, ""))]
    tool = by_python(evidence="; ".join(fault.evidence for fault in made.told if fault.evidence))
    verdict = of_one_run(found, info, profile, more=checks, tool=tool)
    idle = _idle(scenario, verdict)
    if idle:
        checks += [Check("MET-8", "the scenario's clauses were exercised", False, ", ".join(idle))]
        verdict = of_one_run(found, info, profile, more=checks, tool=tool)
    return with_exposures(replace(verdict, told=tuple(made.told)), rows)


def _idle(scenario: Scenario, verdict: Verdict) -> list[str]:
    """The scenario's clauses that were never at stake.

    Where a client does not tell all, as somebody else's, one of them is enough: what it tells decides what can be.
    """
    named = [each for each in verdict.clauses if each.id in scenario.clauses]
    idle = [each.id for each in named if each.verdict is ClauseVerdict.NOT_EXERCISED]
    tells_all = not verdict.of(ClauseVerdict.NOT_RECORDED)
    judged = [each for each in named if each.opportunities and each.id not in idle]
    return idle if tells_all or not judged else []


def _reached(rows: Sequence[Row], wanted: Sequence[str], short: str) -> Check:
    missing = [name for name in wanted if CONDITIONS[name].shown(rows) is None]
    told = "; ".join(filter(None, (short, ", ".join(missing)))) or ", ".join(wanted)
    return Check("MET-7", "the scenario reached what it must", not (missing or short), told)
