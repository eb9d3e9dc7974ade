"""Every profile on every body of the reference.

Which clients are at work is decided by the way in which a profile's groups consume and by the broker's dialect
(`conformance.wire.work.Way`); what counts of what was found then is the profile's. So one run for each way and target
is judged by all profiles of that way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from conformance.runner import EXAMPLES, FLOOR, conform_simulated
from conformance.targets.base import find
from conformance.targets.simulated import SimulatedTarget
from conformance.waiting import now_s
from conformance.wire import runner as wire
from conformance.wire.runner import work
from conformance.wire.work import Way, way_of
from specs import profiles
from specs.errors import UsageError
from specs.plan.ability import Ability
from specs.profiles import Profile
from specs.verdicts.engine import of_a_search
from specs.verdicts.verdict import ClauseVerdict, RunVerdict, Verdict

TARGETS = (
    "reference", "reference:sync", "reference:async", "reference+tcp", "reference+tcp:sync", "reference+tcp:async",
)  # fmt: skip
SAY = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Kept:
    """A profile on a target. clauses: those of each verdict but upheld. reasons: for what is not upheld, by clause.

    counts: of clauses and wire rules, by verdict. seconds: of the run, which profiles of one way share.
    """

    profile: str
    target: str
    way: str
    verdict: RunVerdict
    counts: Mapping[ClauseVerdict, int]
    clauses: Mapping[ClauseVerdict, tuple[str, ...]]
    reasons: Mapping[str, str]
    seconds: int
    seed: int
    date: str

    def to_json(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "verdict": self.verdict.value,
            "counts": {verdict.value: count for verdict, count in self.counts.items()},
            "clauses": {verdict.value: list(names) for verdict, names in self.clauses.items()},
        }


def from_json(data: Mapping[str, Any]) -> Kept:
    """What `Kept.to_json` told."""
    return Kept(
        **{
            **data,
            "verdict": RunVerdict(data["verdict"]),
            "counts": {ClauseVerdict(name): count for name, count in data["counts"].items()},
            "clauses": {ClauseVerdict(name): tuple(each) for name, each in data["clauses"].items()},
        }
    )


def ways(names: Sequence[str] = ()) -> dict[Way, tuple[Profile, ...]]:
    """The profiles of each way, the one that claims most first; all of the project's where none is named."""
    found: dict[Way, list[Profile]] = {}
    for name in names or profiles.names():
        profile = profiles.load(name)
        found.setdefault(way_of(profile), []).append(profile)
    return {way: tuple(sorted(each, key=_least_claimed)) for way, each in found.items()}


def _least_claimed(profile: Profile) -> tuple[bool, int, str]:
    """The reference's own first: it promises to have no excuse."""
    claimed = sum(claim.status == "claimed" for claim in profile.claims.values())
    return not profile.name.startswith("reference"), -claimed, profile.name


def keep(
    target: str,
    chosen: Sequence[Profile],
    *,
    seed: int,
    folder: Path,
    date: str,
    examples: int | None = None,
    rounds: int | None = None,
    say: SAY = lambda _: None,
) -> Iterator[Kept]:
    """Judge a target by profiles of one way, from one run. examples, rounds: fewer, for who has no time."""
    began_s = now_s()
    system: Any = find(target)
    verdicts: list[Verdict]
    if Ability.WIRE in system.abilities:
        worked = work(
            system,
            chosen[0],
            seed=seed,
            examples=wire.EXAMPLES if examples is None else examples,
            out=folder,
            rounds=rounds,
            say=say,
        )
        verdicts = [worked.verdict(profile, wire.FLOOR) for profile in chosen]
    elif isinstance(system, SimulatedTarget) and system.mutant is None:
        result = conform_simulated(
            None,
            seed,
            chosen[0],
            examples=EXAMPLES if examples is None else examples,
            config=system.plan_config,
        )
        result.save(folder)
        verdicts = [result.verdict]
        verdicts += [
            of_a_search(result.examination, result.info, profile, floor=FLOOR)
            for profile in chosen[1:]
        ]
    else:
        raise UsageError(f"{target} is no body of the reference; those are {', '.join(TARGETS)}")
    seconds = round(now_s() - began_s)
    for profile, verdict in zip(chosen, verdicts, strict=True):
        yield kept_by(profile, target, verdict, seconds=seconds, seed=seed, date=date)


def kept_by(
    profile: Profile, target: str, verdict: Verdict, *, seconds: int, seed: int, date: str
) -> Kept:
    """What a verdict comes to."""
    other = [judged for judged in verdict.clauses if judged.verdict is not ClauseVerdict.UPHELD]
    return Kept(
        profile=profile.name,
        target=target,
        way=str(way_of(profile)),
        verdict=verdict.verdict,
        counts={each: len(verdict.of(each)) for each in ClauseVerdict},
        clauses={
            each: tuple(judged.id for judged in other if judged.verdict is each)
            for each in ClauseVerdict
            if each is not ClauseVerdict.UPHELD
        },
        reasons={judged.id: judged.explanation or judged.reason for judged in other},
        seconds=seconds,
        seed=seed,
        date=date,
    )
