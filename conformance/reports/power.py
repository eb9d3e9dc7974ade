"""How much an `upheld` is worth: how soon a search of the same kind finds a bug that was planted on purpose.

`power.json` beside this file says, for each mutant of the reference, in which run of a search its clause was first
refuted, for several seeds; `python -m inorder.evidence.kill_matrix.power` writes it.

The model:
- the runs of a search are drawn independently of each other (`conformance.machines.drawing`), but for the first, which
  is the simplest there is and the same for every seed; so each drawn run shows a bug with one and the same chance p;
- p is estimated by kills over runs, and its interval of 95 % is the exact one of the negative binomial distribution;
- a search of N runs shows it with 1 - (1 - p)^(N - 1); a bug that the simplest run shows is always shown;
- of several bugs of a clause it is the mean, and so are the ends of its interval.

What it does not say: the bugs are ours, each as small as one method, and in our reference; somebody's own bug may be
rarer. Searches on sockets, and on other systems, do other runs: of those only the number of times that a clause was at
stake is known, and `rate_seen` says what follows from it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from conformance.reports.view import ClauseView, VerdictView
from specs import profiles
from specs.errors import InorderError
from specs.verdicts.verdict import ClauseVerdict

POWER_SCHEMA = "inorder/power/v1"
FILE = "power.json"
HISTORY = "history"
"""The oracle of a bug that a history of the simulated cluster shows, as `reference_impl.mutants` names it."""
LEVEL = 0.95
_MODE: Mapping[str, str] = {"mode": "orderly", "message_model": "clustering"}
"""How groups consume if nobody says, and what a profile says of it."""


@dataclass(frozen=True, slots=True)
class Chance:
    """Of a search of so many runs: the estimate, and the ends of its interval."""

    runs: int
    estimate: float
    low: float
    high: float

    def to_json(self) -> dict[str, Any]:
        """In thousandths: more would claim what the model does not know."""
        names = ("estimate", "low", "high")
        return {"runs": self.runs, **{name: round(getattr(self, name), 3) for name in names}}


@dataclass(frozen=True, slots=True)
class Planted:
    """One bug, and the searches for it. runs: for each seed the run that showed it, None where none of `most` did.

    settings: what every plan had to say beside what a search draws, so that the bug has an occasion.
    """

    name: str
    oracle: str
    runs: tuple[int | None, ...]
    most: int
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_found(self) -> bool:
        """By each search."""
        return all(run is not None for run in self.runs)

    @property
    def slowest(self) -> int:
        """The latest run that showed it."""
        return max((run for run in self.runs if run is not None), default=0)

    def chance(self, runs: int) -> Chance:
        """That a search of so many runs shows it."""
        if self.is_found and self.slowest == 1:
            return Chance(runs, 1.0, 1.0, 1.0)
        kills = sum(run is not None for run in self.runs)
        trials = sum(max(1, (self.most if run is None else run) - 1) for run in self.runs)
        low, high = interval(kills, trials)
        drawn = max(0, runs - 1)
        return Chance(runs, *(1 - (1 - p) ** drawn for p in (kills / trials, low, high)))


@dataclass(frozen=True, slots=True)
class Power:
    """The bugs of one clause that a search of a kind can meet."""

    clause: str
    bugs: tuple[Planted, ...]

    @property
    def found(self) -> int:
        return sum(bug.is_found for bug in self.bugs)

    @property
    def slowest(self) -> int:
        return max(bug.slowest for bug in self.bugs)

    def chance(self, runs: int) -> Chance:
        """That a search of so many runs shows a bug of the clause, whichever of these it is."""
        each = [bug.chance(runs) for bug in self.bugs]
        return Chance(
            runs,
            math.fsum(one.estimate for one in each) / len(each),
            math.fsum(one.low for one in each) / len(each),
            math.fsum(one.high for one in each) / len(each),
        )

    def words(self, runs: int) -> str:
        """For a table's cell."""
        after = f"{self.slowest} run{'' if self.slowest == 1 else 's'}"
        if len(self.bugs) > 1:
            found = (
                f"found {self.found} of {len(self.bugs)} planted bugs, the slowest after {after}"
            )
        elif self.found:
            found = f"found the planted bug after {after} at most"
        else:
            found = f"of {self.bugs[0].most} runs did not all find the planted bug"
        return f"such searches {found}; {runs:,} runs find one with {percent(self.chance(runs))}"


def percent(chance: Chance) -> str:
    """`97 % (at least 53 %)`: rounded down, so that nothing is certain that is not; the JSON has the upper end too."""
    if chance.low >= 0.999:
        return "more than 99.9 %"
    return f"{_floor(chance.estimate)} % (at least {_floor(chance.low)} %)"


def _floor(share: float) -> str:
    tenths = min(999, math.floor(share * 1000))
    return f"{tenths / 10:g}" if tenths > 990 else f"{tenths // 10}"


# ------------------------------------------------------------------------------------- the arithmetic


def interval(kills: int, trials: int, level: float = LEVEL) -> tuple[float, float]:
    """The exact interval of a chance that showed `kills` times in `trials`, the last of which showed it.

    Without any kill its upper end is the chance that would have shown at least once with this level.
    """
    if not kills:
        return 0.0, rate_seen(trials, level)
    tail = (1 - level) / 2
    low = _solve(lambda p: _at_least(kills, trials, p), tail)
    high = 1.0 if trials == kills else _solve(lambda p: _at_least(kills, trials - 1, p), 1 - tail)
    return low, high


def rate_seen(times: int, level: float = LEVEL) -> float:
    """The smallest rate that would have been seen with this chance in so many tries; about 3/n (the rule of three)."""
    return 1.0 if times < 1 else -math.expm1(math.log1p(-level) / times)


def _at_least(kills: int, trials: int, p: float) -> float:
    """The chance of at least so many kills."""
    fewer = (math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(kills))
    return 1 - math.fsum(fewer)


def _solve(rising: Any, wanted: float) -> float:
    """Where a function that rises from 0 to 1 reaches a value."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < wanted else (low, middle)
    return (low + high) / 2


# ------------------------------------------------------------------------------------------- the file


@cache
def planted() -> Mapping[str, tuple[Planted, ...]]:
    """What the file holds, by clause or wire rule."""
    data = json.loads((resources.files("conformance.reports") / FILE).read_text(encoding="utf-8"))
    return read(data)


def read(data: Mapping[str, Any]) -> Mapping[str, tuple[Planted, ...]]:
    """`inorder/power/v1`."""
    return {
        clause: tuple(
            Planted(name, bug["oracle"], tuple(bug["runs"].values()), bug["most"], bug["settings"])
            for name, bug in bugs.items()
        )
        for clause, bugs in data["clauses"].items()
    }


def power_schema() -> dict[str, Any]:
    """JSON schema, draft 2020-12."""
    run = {"type": ["integer", "null"], "minimum": 1}
    bug = _object(
        {
            "oracle": {"enum": ["history", "model", "vectors", "leased"]},
            "settings": {
                "type": "object",
                "description": "What every plan had to say, so that the bug has an occasion.",
            },
            "most": {"type": "integer", "minimum": 1, "description": "Runs of a search, at most."},
            "runs": {
                "type": "object",
                "minProperties": 1,
                "propertyNames": {"pattern": "^[0-9]+$"},
                "additionalProperties": run,
                "description": "By seed, the run that showed it; null where none did.",
            },
        }
    )
    bugs = {"type": "object", "minProperties": 1, "additionalProperties": bug}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": POWER_SCHEMA,
        "title": "How soon searches find planted bugs, by the clause that finds them",
        **_object(
            {
                "schema": {"const": POWER_SCHEMA},
                "tool": {"type": "object", "additionalProperties": {"type": "string"}},
                "clauses": {"type": "object", "additionalProperties": bugs},
            }
        ),
    }


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": [*properties],
        "additionalProperties": False,
        "properties": properties,
    }


# -------------------------------------------------------------------------------- beside a verdict


def power_of(verdict: VerdictView, clause_id: str) -> Power | None:
    """What was planted for a clause and can show in such a search; None where nothing was, or it was no such search."""
    told = _told(verdict)
    if told is None:
        return None
    bugs = tuple(
        bug
        for bug in planted().get(clause_id, ())
        if bug.oracle == HISTORY and {**_MODE, **bug.settings}.items() <= told.items()
    )
    return Power(clause_id, bugs) if bugs else None


def _told(verdict: VerdictView) -> Mapping[str, str] | None:
    """What all plans of a search of the simulated cluster said; None for every other verdict."""
    if verdict.coverage is None:
        return None
    flush = verdict.target.partition(":")[2]
    try:
        mode = profiles.load(verdict.profile).config
    except InorderError:
        return None  # a file that is elsewhere by now
    return {**_MODE, **mode, **({"flush": flush} if flush in ("sync", "async") else {})}


def worth(verdict: VerdictView, clause: ClauseView) -> str:
    """Of an upheld clause: how good that is, in few words; empty where nothing is known."""
    if clause.verdict is not ClauseVerdict.UPHELD or verdict.coverage is None:
        return ""
    found = power_of(verdict, clause.id)
    return "" if found is None else found.words(verdict.coverage.runs)


def bugs_of(clause_id: str) -> Sequence[Planted]:
    """All that were planted for a clause, whatever finds them."""
    return planted().get(clause_id, ())
