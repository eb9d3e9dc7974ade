"""From an examination and a profile to a verdict.

Per run: inadmissible (the history can't be trusted) > refuted > inconclusive > upheld.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from importlib.metadata import version
from typing import Any

from specs.clauses.catalogue import all_clauses
from specs.clauses.certainty import THAT_LAST, recorded
from specs.clauses.clause import Clause
from specs.clauses.premises import SETTLED
from specs.errors import EXIT_INCONCLUSIVE, EXIT_REFUTED, EXIT_SUITE, EXIT_UNAVAILABLE, EXIT_UPHELD
from specs.facts.settled import LEASE
from specs.fingerprint import of_this_tool
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.profiles import Claim, Profile
from specs.verdicts.exposures import Exposure, exposed
from specs.verdicts.tally import Check, Examination, FaultTold, Tally
from specs.vocabulary import Party

VERDICT_SCHEMA = "inorder/verdict/v1"
OURS = "inorder"
CAN_BE_TRUSTED = "MET-1"
"""The check of a run without which nothing is concluded from it."""
EACH_FAULT_HAD_AN_EFFECT = "MET-4"
"""The check of a run that its faults decide."""
LIVED = "MET-11"
"""The check of a run that fails where a part of it did not live to its end: unless what it did until then refutes
something, there is no more to say than that this part is not there."""
"""An implementation whose name begins with this word is our own code."""
ASSUMING = "assuming that the history would tell"
"""How the reason of a refuted clause begins where nobody says what was recorded."""


class ClauseVerdict(StrEnum):
    UPHELD = "upheld"
    REFUTED = "refuted"
    POSSIBLE = "possible"
    NOT_EXERCISED = "not_exercised"
    NOT_RECORDED = "not_recorded"
    NOT_CLAIMED = "not_claimed"
    ALLOWED = "allowed"


class NotJudged(StrEnum):
    """Why nothing came of a clause. The first five are ways of being not claimed.

    own_code: those who are to keep it are ours, on a system that is not. no_setting: it rests on a number of the
    system's configuration that nobody has told. not_recorded: nobody tells the rows that it needs.
    """

    NOT_PROMISED = "not_promised"
    PREMISE = "premise"
    NO_SETTING = "no_setting"
    OUT_OF_REACH = "out_of_reach"
    OWN_CODE = "own_code"
    NOT_RECORDED = "not_recorded"


NOT_JUDGED = {
    why: ClauseVerdict.NOT_RECORDED if why is NotJudged.NOT_RECORDED else ClauseVerdict.NOT_CLAIMED
    for why in NotJudged
}
"""What a clause then comes to."""


class RunVerdict(StrEnum):
    UPHELD = "upheld"
    REFUTED = "refuted"
    INCONCLUSIVE = "inconclusive"
    INADMISSIBLE = "inadmissible"


EXIT_CODES = {
    RunVerdict.UPHELD: EXIT_UPHELD,
    RunVerdict.REFUTED: EXIT_REFUTED,
    RunVerdict.INCONCLUSIVE: EXIT_INCONCLUSIVE,
    RunVerdict.INADMISSIBLE: EXIT_SUITE,
}


def exit_code(verdict: RunVerdict, met: Iterable[tuple[str, bool | None]]) -> int:
    """What a command exits with. met: of each check of the run its id, and whether it passed."""
    if verdict is RunVerdict.INCONCLUSIVE and (LIVED, False) in met:
        return EXIT_UNAVAILABLE
    return EXIT_CODES[verdict]


@dataclass(frozen=True, slots=True)
class Judged:
    """One clause (or wire rule) in a verdict."""

    id: str
    title: str
    statement: str
    verdict: ClauseVerdict
    party: str
    implementations: tuple[str, ...]
    opportunities: int
    floor: int
    violations: int
    witness: tuple[Row, ...] = ()
    explanation: str = ""
    reason: str = ""
    hides: tuple[str, ...] = ()  # general clauses with the same witness
    findings: tuple[
        str, ...
    ] = ()  # the public names of what was found and counts; the witness shows the first
    not_judged: NotJudged | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "title": self.title,
            "statement": self.statement,
            "verdict": self.verdict.value,
            "party": self.party,
            "implementations": list(self.implementations),
            "opportunities": self.opportunities,
            "floor": self.floor,
            "violations": self.violations,
            "findings": list(self.findings),
            "witness": [row.to_json() for row in self.witness],
            "explanation": self.explanation,
            "reason": self.reason,
            **({} if self.not_judged is None else {"not_judged": self.not_judged.value}),
        }


@dataclass(frozen=True, slots=True)
class Further:
    """Runs that a search made beyond those that were asked for.

    most: so many it might make. sought: the claimed clauses that were below their floor when it went on.
    """

    runs: int
    most: int
    sought: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {"runs": self.runs, "most": self.most, "sought": list(self.sought)}


@dataclass(frozen=True, slots=True)
class Coverage:
    """Of a search: distinct abstract states in all runs, and how many of them the last tenth of the runs added.

    further: of these runs those that were made beyond what was asked for; None where there was no need. growth: so many
    runs had reached so many states, at GROWTH_POINTS places at most, the last run's among them.
    """

    states: int
    runs: int
    new_at_the_end: int
    further: Further | None = None
    growth: tuple[tuple[int, int], ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "states": self.states,
            "runs": self.runs,
            "new_at_the_end": self.new_at_the_end,
            **({} if self.further is None else {"further": self.further.to_json()}),
            **({"growth": [list(point) for point in self.growth]} if self.growth else {}),
        }


def coverage_of(reached: Sequence[Collection[Any]]) -> Coverage:
    """Of runs one after the other. reached: for each the abstract states that are new in it, in its search."""
    known: set[Any] = set()
    growth: list[int] = []
    for states in reached:
        known.update(states)
        growth.append(len(known))
    before = growth[-1 - max(1, len(growth) // 10)] if len(growth) > 1 else 0
    return Coverage(len(known), len(growth), len(known) - before, growth=_some(growth))


GROWTH_POINTS = 40


def _some(growth: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Some of the points, each as (runs, states): closer together where a search is young, and so grows."""
    most = len(growth)
    places = (
        {round(most ** (n / (GROWTH_POINTS - 1))) for n in range(GROWTH_POINTS)} if most else ()
    )
    return tuple((place, growth[place - 1]) for place in sorted(places))


class Ended(StrEnum):
    """Why a search made no further run."""

    FINISHED = "finished"
    REFUTED = "refuted"
    BUDGET = "budget"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Search:
    """What a search did that was told more than how many runs to make, or that was cut short.

    runs: those that were judged. most: so many it was to make; None for as many as the budget allows. workers: into how
    many searches, each with a seed of its own, it was split. kept: for clauses that are refuted, by id, the folder of a
    run that breaks them, as seen from the run's own.
    """

    runs: int
    most: int | None = None
    ended: Ended = Ended.FINISHED
    budget_s: float | None = None
    workers: int = 1
    kept: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "runs": self.runs,
            "most": self.most,
            "ended": self.ended.value,
            "budget_s": self.budget_s,
            "workers": self.workers,
            "kept": dict(self.kept),
        }


@dataclass(frozen=True, slots=True)
class Verdict:
    """coverage: of a search by a machine; None for any other run. search: what a search says of itself, if anything.

    told: the faults again, with more of each, where somebody looked. exposures: what a stepped clock let happen.
    baseline: what came of what was known to be broken, where a gate was told (`specs.verdicts.baseline`).
    """

    verdict: RunVerdict
    info: RunInfo
    profile: str
    clauses: tuple[Judged, ...]
    met: tuple[Check, ...]
    faults: tuple[tuple[str, bool], ...] = ()
    told: tuple[FaultTold, ...] = ()
    exposures: tuple[Exposure, ...] = ()
    cut: tuple[str, ...] = ()
    tool: Mapping[str, str] = field(default_factory=dict)
    coverage: Coverage | None = None
    search: Search | None = None
    baseline: Mapping[str, Any] | None = None

    @property
    def exit_code(self) -> int:
        return exit_code(self.verdict, ((check.id, check.ok) for check in self.met))

    @property
    def distrust(self) -> str:
        """Why the history can't be trusted, in one sentence; empty where it can."""
        return distrust((check.id, check.ok, check.detail) for check in self.met)

    def __str__(self) -> str:
        why = f": {self.distrust}" if self.distrust else ""
        return f"{self.verdict.value} under {self.profile}{why}"

    def of(self, verdict: ClauseVerdict) -> tuple[Judged, ...]:
        return tuple(judged for judged in self.clauses if judged.verdict is verdict)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": VERDICT_SCHEMA,
            "verdict": self.verdict.value,
            "target": self.info.target,
            "parties": dict(self.info.parties),
            "levels": list(self.info.levels),
            "profile": self.profile,
            "seed": self.info.seed,
            "run": self.info.run,
            "replay": self.info.replay,
            "cut": list(self.cut),
            "faults": [fault.to_json() for fault in self.told]
            or [{"fault": name, "effective": effective} for name, effective in self.faults],
            "met": [
                {"id": c.id, "title": c.title, "ok": c.ok, "detail": c.detail} for c in self.met
            ],
            "clauses": [judged.to_json() for judged in self.clauses],
            "tool": dict(self.tool),
            **({"coverage": self.coverage.to_json()} if self.coverage is not None else {}),
            **({"search": self.search.to_json()} if self.search is not None else {}),
            **({"baseline": dict(self.baseline)} if self.baseline is not None else {}),
            **(
                {"exposures": [each.to_json() for each in self.exposures]} if self.exposures else {}
            ),
        }


_PARTIES: dict[Party, tuple[str, ...]] = {
    Party.BROKER: ("broker",),
    Party.CLIENT: ("client",),
    Party.PRODUCER: ("producer",),
    Party.PAIR: ("client", "broker"),
    Party.RUN: (),
}


def implementations(party: Party, info: RunInfo) -> tuple[str, ...]:
    """Who implements a party, for a verdict: one name per role; unknown ones are said to be."""
    return tuple(info.parties.get(role, "unknown") for role in _PARTIES[party])


def is_own_code_on_foreign_target(names: Sequence[str], info: RunInfo) -> bool:
    """Testing our own code says nothing about a foreign system; on our own system it is the point."""
    foreign = any(not name.startswith(OURS) for name in info.parties.values())
    return foreign and bool(names) and all(name.startswith(OURS) for name in names)


def judge_clause(
    clause: Clause,
    tally: Tally,
    info: RunInfo,
    profile: Profile,
    floor: int,
    out_of_reach: str | None = None,
    *,
    ours_too: bool = False,
) -> Judged:
    """One clause's verdict under a profile. out_of_reach: why such a run can't put it at stake.

    ours_too: our own code is judged on a foreign target as well.
    """
    names = implementations(clause.party, info)
    claim = profile.claim(clause.id)
    allowed = (claim.findings or tuple(tally.found)) if claim.status == "allowed" else ()
    left = tally.total(without=allowed)
    reason = ""
    seldom = tally.opportunities < floor and not (tally.violations or tally.possible)
    aside = (
        _not_promised(clause, tally, info, claim)
        or ((NotJudged.OUT_OF_REACH, out_of_reach) if seldom and out_of_reach else None)
        or (None if ours_too else _own_code(names, info))
        or _not_recorded(tally)
    )
    if aside:
        not_judged, reason = aside
        verdict = NOT_JUDGED[not_judged]
    elif left.violations:
        verdict = ClauseVerdict.REFUTED
        reason = f"{ASSUMING} {_kinds(tally.assumed)}" if tally.assumed else ""
    elif left.possible:
        verdict, reason = ClauseVerdict.POSSIBLE, why_possible(clause, info)
    elif tally.violations or tally.possible:
        verdict, reason = ClauseVerdict.ALLOWED, claim.reason
        left, allowed = tally.total(), ()
    elif tally.opportunities < floor:
        verdict = ClauseVerdict.NOT_EXERCISED
        reason = f"at stake {tally.opportunities} times, the floor is {floor}"
    else:
        verdict = ClauseVerdict.UPHELD
    return Judged(
        id=clause.id,
        title=clause.title,
        statement=clause.statement,
        verdict=verdict,
        party=clause.party.value,
        implementations=names,
        opportunities=tally.opportunities,
        floor=floor,
        violations=left.violations + left.possible,
        witness=left.witness,
        explanation=left.explanation,
        reason=reason,
        findings=tally.names(without=allowed),
        not_judged=aside[0] if aside else None,
    )


_Aside = tuple[NotJudged, str]
"""Why nothing came of a clause, and that in words."""


def _not_promised(clause: Clause, tally: Tally, info: RunInfo, claim: Claim) -> _Aside | None:
    """Neither the profile nor the clause itself promises it of such a run."""
    if claim.status == "not_applicable":
        return NotJudged.NOT_PROMISED, claim.reason
    premise = clause.unmet(info) if tally == Tally() else None  # of many runs some may have met it
    if premise is None:
        return None
    untold = clause.untold(info)
    why = NotJudged.NO_SETTING if untold else NotJudged.PREMISE
    return why, f"its premise is not met: {premise.name}"


def _own_code(names: Sequence[str], info: RunInfo) -> _Aside | None:
    if not is_own_code_on_foreign_target(names, info):
        return None
    return NotJudged.OWN_CODE, "its only party is our own code"


def _not_recorded(tally: Tally) -> _Aside | None:
    if not tally.missing:
        return None
    return NotJudged.NOT_RECORDED, f"the history does not tell {_kinds(tally.missing)}"


def _kinds(kinds: Sequence[str]) -> str:
    return ", ".join(kind.replace("_", " ") for kind in kinds)


def why_possible(clause: Clause, info: RunInfo) -> str:
    """What leaves a violation of the clause open."""
    if lost := clause.gaps(info):
        return f"rows that are missing from the history may explain it: {_kinds(sorted(lost))}"
    if clause.absence and not info.closed_world:
        return "somebody who is not recorded may have done what explains it"
    if info.begins_late and (clause.looks_back or clause.excuses_in(info) & THAT_LAST):
        return "what began before the history does may explain it"
    known = recorded(info)
    if known is not None and (unseen := clause.excuses_in(info) - known):
        return f"what is not recorded may explain it: {_kinds(sorted(unseen))}"
    if SETTLED in clause.premise and LEASE in info.config.untold:
        return (
            f"nobody has told how long the lease of a client that died lasts ({LEASE}; a driver's hello says it by "
            "lease_ms), so nobody knows that the run had come to rest"
        )
    if info.clock_bound_us:
        return "only the bound between clocks leaves the violation open"
    return "what the history tells leaves it open"


def checks(
    examination: Examination, info: RunInfo, clauses: Sequence[Judged], *, require_exercised: bool
) -> tuple[Check, ...]:
    """The MET checks of a run."""
    facts = examination.facts
    dead = [name for name, effective in facts.faults if not effective]
    return (
        Check(
            CAN_BE_TRUSTED, "the history can be trusted", not facts.broken, "; ".join(facts.broken)
        ),
        Check("MET-2", "closed world as declared", True if info.closed_world else None, ""),
        Check(
            "MET-3",
            "workload floor reached",
            facts.sends + facts.deliveries >= info.workload_floor if info.workload_floor else None,
            f"{facts.sends} sends and {facts.deliveries} deliveries, floor {info.workload_floor}",
        ),
        Check(
            EACH_FAULT_HAD_AN_EFFECT,
            "each fault had an effect",
            not dead if facts.faults else None,
            ", ".join(dead),
        ),
        Check(
            "MET-5",
            "one group, one subscription",
            not facts.subscriptions_differ,
            ", ".join(sorted(set(facts.subscriptions_differ))),
        ),
        exercised_check(clauses, asked=require_exercised),
        *(
            [
                Check(
                    "MET-12",
                    "what was asked at the end was answered",
                    False,
                    "; ".join(info.untold),
                )
            ]
            if info.untold
            else []
        ),
    )


def exercised_check(clauses: Sequence[Judged], *, asked: bool = True) -> Check:
    """Whether each claimed clause was at stake often enough. asked: whether that is held against the run."""
    idle = [judged.id for judged in clauses if judged.verdict is ClauseVerdict.NOT_EXERCISED]
    ok = not idle if asked else None
    return Check("MET-6", "claimed clauses exercised", ok, ", ".join(idle))


def conclude(
    examination: Examination,
    info: RunInfo,
    profile: Profile,
    *,
    floor: int = 1,
    require_exercised: bool = True,
    clauses: Sequence[Clause] | None = None,
    out_of_reach: Mapping[str, str] | None = None,
    ours_too: bool = False,
    more: Sequence[Check] = (),
    tool: Mapping[str, str] | None = None,
) -> Verdict:
    """The verdict of a run. more: further checks of the run itself (what a scenario must reach); one that fails makes
    the run inconclusive.

    require_exercised: whether a claimed clause below its floor makes the run inconclusive. out_of_reach: for clauses
    that such a run does not, or hardly, put at stake, what it lacks; they are not claimed unless they were. ours_too:
    clauses whose parties are all our own code are judged on a foreign target too: our clients on somebody's broker.
    tool: what judged, as `by_python` says it.
    """
    chosen = all_clauses() if clauses is None else clauses
    judged = [
        judge_clause(
            clause,
            examination.tallies.get(clause.id, Tally()),
            info,
            profile,
            floor,
            (out_of_reach or {}).get(clause.id),
            ours_too=ours_too,
        )
        for clause in chosen
    ]
    judged = _specific_first(judged, chosen)
    met = (*checks(examination, info, judged, require_exercised=require_exercised), *more)
    verdict = run_verdict(judged, met)
    return Verdict(
        verdict=verdict,
        info=info,
        profile=profile.name,
        clauses=tuple(judged),
        met=met,
        faults=tuple(examination.facts.faults),
        cut=tuple(examination.cut),
        tool=tool or {},
    )


def including(verdict: Verdict, lines: Sequence[Judged]) -> Verdict:
    """The verdict with what was judged while the run went on; it counts as any clause does."""
    if not lines:
        return verdict
    judged = (*verdict.clauses, *lines)
    exercised = exercised_check(judged)
    met = tuple(
        replace(exercised, ok=None if check.ok is None else exercised.ok)
        if check.id == exercised.id
        else check
        for check in verdict.met
    )
    return replace(verdict, verdict=run_verdict(judged, met), clauses=judged, met=met)


def checked(verdict: Verdict, check: Check) -> Verdict:
    """The verdict with one more check of its run."""
    met = (*verdict.met, check)
    return replace(verdict, verdict=run_verdict(verdict.clauses, met), met=met)


def with_exposures(verdict: Verdict, rows: Iterable[Row]) -> Verdict:
    """The verdict with what stepped wall clocks let happen, by the clauses that are judged. rows: of its history."""
    claimed = frozenset(each.id for each in verdict.clauses if each.not_judged is None)
    return replace(verdict, exposures=exposed(rows, verdict.info, claimed))


def by_python(**more: str) -> dict[str, str]:
    """What a verdict says of the tool: the Python judges of this version. more: what else it is to say."""
    return {"engine": "python", "inorder": version("inorder"), "code": of_this_tool(), **more}


def distrust(met: Iterable[tuple[str, bool | None, str]]) -> str:
    """Why a history can't be trusted, in one sentence; empty where it can. met: of each check its id, whether it
    passed, and its detail."""
    for name, ok, detail in met:
        if name == CAN_BE_TRUSTED and ok is False:
            return f"the history can't be trusted{f': {detail}' if detail else ''}"
    return ""


def run_verdict(judged: Sequence[Judged], met: Sequence[Check]) -> RunVerdict:
    """What clauses and checks of a run come to; see the module."""
    failed = {check.id for check in met if check.ok is False}
    verdicts = {each.verdict for each in judged}
    if CAN_BE_TRUSTED in failed:
        return RunVerdict.INADMISSIBLE
    if ClauseVerdict.REFUTED in verdicts:
        return RunVerdict.REFUTED
    if failed or ClauseVerdict.POSSIBLE in verdicts or ClauseVerdict.UPHELD not in verdicts:
        return RunVerdict.INCONCLUSIVE
    return RunVerdict.UPHELD


def _specific_first(judged: Sequence[Judged], clauses: Sequence[Clause]) -> list[Judged]:
    """Where one clause refines another and both are refuted by the same last event, the general one steps back.

    It is still refuted in the JSON; its reason names the specific clause, and reports hide it.
    """
    refined_by: dict[str, list[str]] = {}
    for clause in clauses:
        for general in clause.refines:
            refined_by.setdefault(general, []).append(clause.id)
    by_id = {each.id: each for each in judged}
    result: list[Judged] = []
    for each in judged:
        specific = [
            name
            for name in refined_by.get(each.id, ())
            if name in by_id
            and by_id[name].verdict is ClauseVerdict.REFUTED
            and each.witness
            and by_id[name].witness
            and by_id[name].witness[-1] == each.witness[-1]
        ]
        if each.verdict is ClauseVerdict.REFUTED and specific:
            each = replace(each, reason=f"shown as {specific[0]}")
        result.append(each)
    return result
