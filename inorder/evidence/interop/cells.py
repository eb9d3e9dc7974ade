"""The cells of the matrix: what runs in each, and what its verdict comes to.

A cell is a broker and a client, each ours or Apache's of a version, put to work by the same drawn plans
(`conformance.drivers.plans`). Its profile is that of its broker beside that of its client, as built; so what is
refuted is nowhere written down as known: a bug of ours until shown otherwise. What is known comes out as allowed, with
the profile's reason and source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.drivers.plans import CHANGES
from conformance.rounds import FLOOR, ROUNDS, conform_rounds
from conformance.stopping import TO_THE_END, Stop
from conformance.targets.driven import Paired, pair
from specs import profiles
from specs.errors import UsageError
from specs.profiles import Profile
from specs.verdicts.verdict import ClauseVerdict, RunVerdict, Verdict

BROKERS: tuple[str | None, ...] = (None, "4.9.7", "5.4.0")
CLIENTS: tuple[str | None, ...] = (None, "4.9.8", "5.4.0")
"""Versions of Apache's, and None for ours."""
OURS = "ours"


@dataclass(frozen=True, slots=True)
class Deviation:
    """A clause that a cell broke. known: the profile's reason, with its source; empty for what nobody knew."""

    clause: str
    title: str
    violations: int
    opportunities: int
    seen: str
    known: str
    source: str

    def to_json(self) -> dict[str, Any]:
        return {
            "clause": self.clause,
            "title": self.title,
            "violations": self.violations,
            "opportunities": self.opportunities,
            "seen": self.seen,
            "known": self.known,
            "source": self.source,
        }


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell that was run. counts: clauses by verdict. clauses: what each came to, by id. date: ISO."""

    target: str
    broker: str
    client: str
    profile: str
    verdict: RunVerdict
    counts: Mapping[ClauseVerdict, int]
    deviations: tuple[Deviation, ...]
    rounds: int
    seed: int
    date: str
    clauses: Mapping[str, ClauseVerdict] = field(default_factory=dict)

    @property
    def news(self) -> tuple[Deviation, ...]:
        """What is refuted and not known."""
        return tuple(each for each in self.deviations if not each.known)

    def to_json(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "broker": self.broker,
            "client": self.client,
            "profile": self.profile,
            "verdict": self.verdict.value,
            "counts": {verdict.value: self.counts[verdict] for verdict in ClauseVerdict},
            "deviations": [each.to_json() for each in self.deviations],
            "rounds": self.rounds,
            "seed": self.seed,
            "date": self.date,
            "clauses": {clause: verdict.value for clause, verdict in self.clauses.items()},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Cell:
        """What `to_json` told."""
        counts = {verdict: data["counts"][verdict.value] for verdict in ClauseVerdict}
        deviations = tuple(Deviation(**each) for each in data["deviations"])
        clauses = {clause: ClauseVerdict(word) for clause, word in data.get("clauses", {}).items()}
        told: dict[str, Any] = {"counts": counts, "deviations": deviations, "clauses": clauses}
        told["verdict"] = RunVerdict(data["verdict"])
        return cls(**{**data, **told})


def all_runs() -> tuple[Paired, ...]:
    """Every cell, by broker and then by client."""
    return tuple(pair(broker, client) for broker in BROKERS for client in CLIENTS)


def chosen_runs(names: tuple[str, ...]) -> tuple[Paired, ...]:
    """The cells of these names, all where none is given. UsageError for a name that is none."""
    known = {run.name: run for run in all_runs()}
    for name in names:
        if name not in known:
            raise UsageError(f"there is no cell {name!r}; known are {', '.join(known)}")
    return tuple(run for name, run in known.items() if not names or name in names)


def run_cell(
    run: Paired,
    *,
    seed: int,
    folder: Path,
    date: str,
    rounds: int = ROUNDS,
    changes: int | None = None,
    say: Callable[[str], Any] = lambda _: None,
) -> Cell:
    """Put one cell to work and judge it. Raises UsageError where a part is missing."""
    profile = profiles.load(run.profile)
    verdict, done = conform_rounds(
        run,
        profile,
        seed=seed,
        rounds=rounds,
        out=folder,
        floor=FLOOR,
        ours_too=True,
        changes=CHANGES if changes is None else changes,
        say=say,
        stop=Stop(TO_THE_END),  # what a cell shows is all that its rounds find
    )
    return summed_up(run, profile, verdict, rounds=len(done), seed=seed, date=date)


def summed_up(
    run: Paired, profile: Profile, verdict: Verdict, *, rounds: int, seed: int, date: str
) -> Cell:
    """What a cell's verdict comes to."""
    broken = (ClauseVerdict.REFUTED, ClauseVerdict.POSSIBLE, ClauseVerdict.ALLOWED)
    deviations = []
    for judged in verdict.clauses:
        if judged.verdict in broken:
            claim = profile.claim(judged.id)
            allowed = judged.verdict is ClauseVerdict.ALLOWED
            deviations.append(
                Deviation(
                    judged.id,
                    judged.title,
                    judged.violations,
                    judged.opportunities,
                    judged.explanation,
                    claim.reason if allowed else "",
                    claim.source,
                )
            )
    return Cell(
        target=run.name,
        broker=_short(run.parties["broker"]),
        client=_short(run.parties["client"]),
        profile=profile.name,
        verdict=verdict.verdict,
        counts={each: len(verdict.of(each)) for each in ClauseVerdict},
        deviations=tuple(deviations),
        rounds=rounds,
        seed=seed,
        date=date,
        clauses={judged.id: judged.verdict for judged in verdict.clauses},
    )


def _short(name: str) -> str:
    return OURS if name.startswith("inorder") else name
