"""Make a run smaller: fewer faults, actions, clients and listener rules, while the same clause stays refuted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from conformance import again
from conformance.replay import REFERENCE, mutant_of
from conformance.reports.saving import save
from conformance.reports.schemas import SHRINK_SCHEMA
from conformance.shrink import shrink
from conformance.targets.simulated import PROFILE
from reference_impl.sim.simulate import simulate
from specs.clauses.catalogue import by_id, get
from specs.clauses.clause import Clause
from specs.errors import UsageError
from specs.faults import FAULTS
from specs.history.store import open_history, write_history
from specs.plan.plan import Plan, read_plan
from specs.profiles import Profile
from specs.profiles import load as load_profile
from specs.verdicts.engine import of_one_run
from specs.verdicts.examine import examine
from specs.verdicts.tally import Examination

BUDGET = 2_000
"""How many plans are tried. Eight times what a search spends: here somebody waits for the smallest one."""

Progress = Callable[[int, int, str], None]
"""(plans tried, plans to be tried at most, a few words)."""


@dataclass(frozen=True, slots=True)
class PlanSize:
    """How large a run and its plan are. queues: per broker. faults: what ends them again is not counted."""

    rows: int
    actions: int
    faults: int
    messages: int
    rules: int
    clients: int
    brokers: int
    queues: int

    @classmethod
    def of(cls, plan: Plan, rows: int) -> PlanSize:
        sends = (int(action.args["count"]) for action in plan.actions if action.do == "send")
        return cls(
            rows=rows,
            actions=len(plan.actions),
            faults=sum(
                do in FAULTS
                for do in (*(each.do for each in plan.actions), *(each.do for each in plan.steps))
            ),
            messages=sum(sends),
            rules=len(plan.listener),
            clients=len(plan.clients),
            brokers=len(plan.topology.brokers),
            queues=sum(topic.queues for topic in plan.topology.topics),
        )


@dataclass(frozen=True, slots=True)
class Shrunk:
    """run, out: the folders before and after. tried: how many plans were run. explanation: of the violation left."""

    run: Path
    out: Path
    clause: Clause
    before: PlanSize
    after: PlanSize
    tried: int
    explanation: str

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": SHRINK_SCHEMA,
            "run": str(self.run),
            "out": str(self.out),
            "clause": self.clause.id,
            "before": asdict(self.before),
            "after": asdict(self.after),
            "tried": self.tried,
            "explanation": self.explanation,
            "replay": again.command("replay", self.out),
        }


def shrink_run(
    run: Path,
    out: Path,
    *,
    clause_id: str | None = None,
    target: str | None = None,
    budget: int = BUDGET,
    progress: Progress = lambda tried, most, words: None,
) -> Shrunk:
    """Shrink the plan of a run (its folder, or a plan's file) and keep the smaller run, judged, in `out`.

    clause_id: which clause has to stay refuted; by default the one that the run's mutant names, else the first
    claimed one that is refuted, a special case before the general one. target: `reference` or `mutant:NAME`, by
    default the run's own. Raises UsageError for a run that was not simulated, and where nothing, or not that
    clause, is refuted.
    """
    plan, target, profile, seed = _read(run, target)
    mutant = mutant_of(target)
    info, rows = simulate(plan, mutant)
    clause = _chosen(
        clause_id, mutant.killed_by if mutant else None, examine(rows, info), profile, run
    )
    before = PlanSize.of(plan, len(rows))
    tried = 0

    def still_broken(smaller: Plan) -> bool:
        nonlocal tried
        tried += 1
        progress(tried, budget, f"tries, {len(smaller.actions)} actions")
        info, rows = simulate(smaller, mutant)
        return bool(examine(rows, info, (clause,)).refuted())

    plan = shrink(plan, still_broken, budget)
    info, rows = simulate(plan, mutant)
    info = replace(info, seed=seed, profile=profile.name, replay=again.command("replay", out))
    examination = examine(rows, info)
    write_history(out, info, rows)
    save(of_one_run(examination, info, profile), out)
    explanation = examination.tallies[clause.id].explanation
    return Shrunk(run, out, clause, before, PlanSize.of(plan, len(rows)), tried, explanation)


def _read(run: Path, target: str | None) -> tuple[Plan, str, Profile, int]:
    """The plan, the target, the profile and the seed of a run's folder or of a plan's file."""
    if run.is_dir():
        info = open_history(run).info
        if info.plan is None:
            raise UsageError(f"{run} can't be shrunk: its run.json has no plan")
        plan = Plan.from_json(info.plan, f"{run}/run.json, plan")
        return plan, target or info.target, load_profile(info.profile or PROFILE), info.seed
    if not run.exists():
        raise UsageError(f"{run} does not exist; give a run's folder or a plan's file")
    plan = read_plan(run)
    return plan, target or REFERENCE, load_profile(PROFILE), plan.seed


def _chosen(
    clause_id: str | None, usual: str | None, examination: Examination, profile: Profile, run: Path
) -> Clause:
    refuted = examination.refuted()
    if clause_id is not None:
        clause = get(clause_id.upper())
        if clause.id not in refuted:
            raise UsageError(
                f"{clause.id} is not refuted by {run}; refuted: {', '.join(refuted) or 'none'}"
            )
        return clause
    claimed = [name for name in refuted if profile.claim(name).status == "claimed"]
    if not claimed:
        raise UsageError(f"nothing that is claimed under {profile.name} is refuted by {run}")
    if usual in claimed:
        return get(usual)
    general = {name for clause_id in claimed for name in by_id()[clause_id].refines}
    return get(next((name for name in claimed if name not in general), claimed[0]))
