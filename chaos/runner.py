"""One chaos run: start everything, break it, heal it, wait until it has caught up, read it all back, judge.

Safety is judged over the whole history; first everything heals, then progress is asked for.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from docker import DockerClient

from chaos.live import all_finished
from chaos.reached import CONDITIONS
from chaos.rig import OF_CLIENTS, OF_PROXIES, Rig
from chaos.scenario import Scenario, Workload
from chaos.step import Step
from conformance import again
from conformance.parts import docker_engine
from conformance.records import BEFALLS, BY_WIRE_CLIENTS
from conformance.targets.base import Target
from conformance.targets.systems import System
from conformance.waiting import now_s
from conformance.wire.nodes import PlanRunner
from conformance.wire.runner import make_topics, note_queues, replace_run_folder
from conformance.wire.session import Session
from reference_impl import records
from specs.errors import UsageError
from specs.history.journal import Journal
from specs.history.row import Row
from specs.history.runinfo import RunInfo, declared, write_runinfo
from specs.history.store import History, open_history, write_history
from specs.plan.ability import Ability
from specs.plan.config import Config
from specs.plan.plan import Action, ClientPlan, ListenerRule, Plan, TopicPlan, Topology
from specs.profiles import Profile
from specs.verdicts.examine import examine
from specs.verdicts.tally import Check
from specs.verdicts.verdict import ClauseVerdict, Verdict, conclude
from specs.vocabulary import Kind, Level, Outcome

CATCH_UP_S = 90.0
READY_S = 30.0
SHOP = "shop"
RECORDED = declared(client=records.OF_CLIENTS | BEFALLS | BY_WIRE_CLIENTS)
"""Each client writes what it does, be it a process or a container, and the harness what it does to them."""
OF_SYSTEMS = frozenset({Ability.CRASH_BROKER, Ability.FILL_DISK})
"""What some systems can have done to their brokers; whether the target's can is known once it runs."""
SAY = Callable[[str], Any]


def plan_of(workload: Workload, config: Config, seed: int) -> Plan:
    """The scenario's workload as a plan: one producer, consumers c1, c2, ..., keyed messages at a pace."""
    topic, group = "orders", "billing"
    consumers = [f"c{number}" for number in range(1, workload.consumers + 1)]
    poison = [n for n in range(1, workload.messages + 1) if n % workload.poison_every == 0]
    rounds = max(1, workload.messages // workload.keys)
    actions = [
        Action(
            500 + turn * workload.pace_ms,
            "send",
            {"client": SHOP, "topic": topic, "key": f"k{key}", "count": 1},
        )
        for turn in range(rounds)
        for key in range(workload.keys)
    ]
    return Plan(
        seed=seed,
        topology=Topology(topics=(TopicPlan(topic, workload.queues),), groups=(group,)),
        config=config,
        clients=(
            ClientPlan(SHOP, "producer"),
            *(ClientPlan(name, "consumer", group, (topic,)) for name in consumers),
        ),
        actions=(Action(0, "start", {"client": SHOP}), *actions),
        listener=(
            ListenerRule(duration_ms=workload.work_ms),
            *(ListenerRule(Outcome.SUSPEND, number=number, duration_ms=1) for number in poison),
        ),
        until_ms=500 + rounds * workload.pace_ms,
    )


def run_scenario(
    scenario: Scenario,
    target: Target,
    profile: Profile,
    *,
    backend: str,
    seed: int,
    out: Path,
    say: SAY = lambda _: None,
) -> tuple[Verdict, History]:
    """Run and judge one scenario; the run's folder is `out`. say: progress, a line each.

    Raises UsageError when a fault can't be injected on this target and backend.
    """
    engine = _check(scenario, backend)
    replace_run_folder(out)
    config = Config.from_json({**target.config.to_json(), **scenario.config})
    plan = plan_of(scenario.workload, config, seed)
    info = RunInfo(
        run=f"{scenario.name}-{seed}",
        seed=seed,
        target=target.name,
        parties=target.parties,
        profile=profile.name,
        levels=(Level.CLIENT,),
        clock_bounds_us={"host": 0},
        records=RECORDED,
        config=config,
        plan=plan.to_json(),
        replay=again.command(
            *(
                "chaos",
                scenario.asked_for or scenario.name,
                "--target",
                target.name,
                "--profile",
                profile.name,
            ),
            *("--backend", backend, "--seed", seed),
        ),
        workload_floor=scenario.workload.messages,
        environment={"backend": backend, "scenario": scenario.name},
    )
    write_runinfo(out, info)
    (out / "plan.json").write_text(json.dumps(plan.to_json()), encoding="utf-8")
    say(f"starting {target.name}")
    with target.open_system(config, scenario.needs_proxy) as system:
        _run(scenario, plan, system, out, engine, say)
    return _judge(scenario, info, profile, out)


def _check(scenario: Scenario, backend: str) -> DockerClient | None:
    if backend not in scenario.backends:
        raise UsageError(
            f"scenario {scenario.name} is for the backend {' or '.join(scenario.backends)}"
        )
    for step in scenario.faults:
        if step.need not in OF_CLIENTS | OF_PROXIES | OF_SYSTEMS:
            raise UsageError(
                f"scenario {scenario.name}: {step.fault.verb} needs a target that can {step.need};"
                " processes and proxies can't"
            )
    return docker_engine.connect() if backend == "docker" else None


def _run(
    scenario: Scenario, plan: Plan, system: System, out: Path, engine: DockerClient | None, say: SAY
) -> None:
    with (
        Journal(out, "harness", common={"level": Level.CLIENT, "client_id": None}) as journal,
        Rig(system, out, journal, proxied=scenario.needs_proxy) as rig,
    ):
        for step in scenario.faults:
            if step.need not in rig.abilities:
                raise UsageError(
                    f"scenario {scenario.name}: {step.fault.verb} needs a target that can {step.need}"
                )
        broker = next(iter(sorted(system.upstreams)))
        session = Session(system.upstreams[broker], broker, journal, plan.config, {}, "")
        make_topics(session, plan, system.namesrv)
        began_s = now_s()
        for client in plan.clients:
            if client.kind == "consumer":
                arguments = [
                    "--plan",
                    str(out / "plan.json"),
                    "--client",
                    client.id,
                    "--namesrv",
                    system.namesrv,
                ]
                arguments += ["--began-s", f"{began_s:.6f}"]
                if engine is not None:
                    rig.add_container(client.id, arguments, engine)
                else:
                    rig.add_process(client.id, arguments)
        for party in rig.parties.values():
            party.start()
        rig.live.wait_for("all consumers to join", _all_joined(tuple(rig.parties)), READY_S)
        with _Producer(plan, system, out):
            for step in scenario.faults:
                say(f"fault: {step.told(rig)['detail']}")
                _inject_and_heal(step, rig)
        say("healed; waiting until everything is consumed")
        rig.live.wait_for("every message to be consumed after healing", all_finished, CATCH_UP_S)
        for party in rig.parties.values():
            party.stop()
        say("reading everything back")
        note_queues(session, plan)
        session.drain_when_settled()


def _all_joined(names: Sequence[str]) -> Callable[[list[Row]], bool]:
    return lambda rows: set(names) <= {row.client_id for row in rows if row.kind is Kind.JOIN}


def _inject_and_heal(step: Step, rig: Rig) -> None:
    """The FAULT row spans injection to healing; whether it had an effect is attested from the history."""
    step.await_moment(rig)
    since_us = rig.now_us()
    operation = (Kind.FAULT, since_us)
    rig.journal.begin(operation, Kind.FAULT, step.told(rig))
    try:
        step.inject(rig)
    finally:
        step.heal(rig, since_us)
        rig.journal.end(operation, Outcome.OK)


class _Producer:
    """The plan's producer at work in a thread of its own; leaving the block waits until it has sent everything."""

    def __init__(self, plan: Plan, system: System, out: Path) -> None:
        self._runner = PlanRunner(plan, system, out, "")
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="producer")

    def _work(self) -> None:
        try:
            asyncio.run(self._runner.run())
        except BaseException as error:
            self._error = error

    def __enter__(self) -> _Producer:
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._thread.join()
        if self._error is not None and kind is None:
            raise self._error


def _judge(
    scenario: Scenario, info: RunInfo, profile: Profile, out: Path
) -> tuple[Verdict, History]:
    recorded = open_history(out)
    rows = list(recorded.rows())
    attested: list[Row] = []
    evidence: list[str] = []
    faults = iter(scenario.faults)
    for row in rows:
        if row.kind is Kind.FAULT:
            shown = next(faults).attest(rows, row)
            evidence.append(shown or "")
            outcome = Outcome.OK if shown else Outcome.REFUSED
            row = row._replace(outcome=outcome, view=shown)
        attested.append(row)
    # A killed process leaves a journal without an end: here that is the fault itself, not a loss.
    killed = {row.client_id for row in rows if row.kind is Kind.CRASH}
    why_cut = [why for why in recorded.why_cut if why.partition(".")[0] not in killed]
    history = write_history(out, info, attested, why_cut=why_cut)
    examination = examine(attested, info, why_cut=why_cut)
    reached = {name: CONDITIONS[name](rows) for name in scenario.must_reach}
    missing = [name for name, shown in reached.items() if shown is None]
    more = [
        Check(
            "MET-7", "the scenario reached what it must", not missing, ", ".join(missing or reached)
        ),
    ]
    verdict = conclude(
        examination,
        info,
        profile,
        floor=1,
        require_exercised=False,
        more=more,
        tool={
            "engine": "python",
            "inorder": version("inorder"),
            "evidence": "; ".join(filter(None, evidence)),
        },
    )
    idle = [
        judged.id
        for judged in verdict.clauses
        if judged.id in scenario.clauses
        and judged.verdict in (ClauseVerdict.NOT_EXERCISED, ClauseVerdict.NOT_RECORDED)
    ]
    if idle:
        more.append(Check("MET-8", "the scenario's clauses were exercised", False, ", ".join(idle)))
        verdict = conclude(
            examination,
            info,
            profile,
            floor=1,
            require_exercised=False,
            more=more,
            tool=verdict.tool,
        )
    return verdict, history
