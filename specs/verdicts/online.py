"""What was judged while a run went on: the wire rules, by `online.json` in the run's folder.

A raw client holds each answer of a broker against the abstract one (`specs.model.broker`) in the moment in which it
comes: what would have been right is known then, and no row of a history says so. So what was found is kept beside the
history, and whoever judges the folder, by whatever engine, finds it there.

A rule is a facet of a clause, or stands alone; both are in one catalogue (`specs.clauses.catalogue.everything`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from specs.documents import json_in
from specs.errors import HistoryError
from specs.history.runinfo import RunInfo
from specs.model.rules import RULES, WireRule
from specs.profiles import WIRE_ANSWERS, Profile
from specs.reading import an_object, document_schema, read, told, version_of
from specs.verdicts.verdict import ClauseVerdict, Judged, NotJudged

ONLINE_SCHEMA = "inorder/online/v1"
ONLINE_FILE = "online.json"


@dataclass(frozen=True, slots=True)
class RuleTally:
    """One rule: how often it was at stake, how often it was broken, and what broke it first."""

    id: str = field(metadata=told(choices=tuple(RULES)))
    opportunities: int = field(default=0, metadata=told(least=0))
    violations: int = field(default=0, metadata=told(least=0))
    explanation: str = field(default="", metadata=told("Of the first violation."))

    def and_then(self, other: RuleTally) -> RuleTally:
        """Of the same rule in this session and a later one."""
        return RuleTally(
            self.id,
            self.opportunities + other.opportunities,
            self.violations + other.violations,
            self.explanation or other.explanation,
        )


@dataclass(frozen=True, slots=True)
class OnlineFindings:
    """What the sessions of a run found."""

    rules: tuple[RuleTally, ...] = ()
    answers: Mapping[str, Any] = field(
        default_factory=dict,
        metadata=told(
            "The profile's [wire] answers that the broker's were held against.",
            keys=tuple(WIRE_ANSWERS),
        ),
    )

    def to_json(self) -> dict[str, Any]:
        rules = [asdict(each) for each in self.rules]
        return {"schema": ONLINE_SCHEMA, "answers": dict(self.answers), "rules": rules}

    @classmethod
    def from_json(cls, data: Any, where: str = ONLINE_FILE) -> OnlineFindings:
        """Raises HistoryError for a newer version, an unknown rule, or a field of the wrong shape."""
        version_of(an_object(data, where, HistoryError), ONLINE_SCHEMA, where, HistoryError)
        return read(cls, data, where, error=HistoryError, besides=["schema"])

    def broken(self) -> tuple[str, ...]:
        """The ids of the rules that were broken."""
        return tuple(each.id for each in self.rules if each.violations)

    def judged(
        self, info: RunInfo, profile: Profile, floor: int, rules: Iterable[str] | None = None
    ) -> tuple[Judged, ...]:
        """The rules as lines of a verdict under a profile. rules: the ids of those that were asked for."""
        asked = None if rules is None else set(rules)
        return tuple(
            self._line(each, info, profile, floor)
            for each in self.rules
            if asked is None or each.id in asked
        )

    def _line(self, tally: RuleTally, info: RunInfo, profile: Profile, floor: int) -> Judged:
        rule = RULES[tally.id]
        reason = self._not_asked(rule, profile)
        if reason:
            verdict = ClauseVerdict.NOT_CLAIMED
        elif tally.violations:
            claim = profile.rules.get(rule.id)
            is_allowed = claim is not None and claim.status == "allowed"
            verdict = ClauseVerdict.ALLOWED if is_allowed else ClauseVerdict.REFUTED
            reason = claim.reason if claim is not None else ""
        elif tally.opportunities < floor:
            verdict = ClauseVerdict.NOT_EXERCISED
            reason = f"at stake {tally.opportunities} times, the floor is {floor}"
        else:
            verdict = ClauseVerdict.UPHELD
        return Judged(
            id=rule.id,
            title=rule.title,
            statement=rule.statement,
            verdict=verdict,
            party="broker",
            implementations=(info.parties.get("broker", "unknown"),),
            opportunities=tally.opportunities,
            floor=floor,
            violations=tally.violations,
            explanation=tally.explanation,
            reason=reason,
            not_judged=NotJudged.NOT_PROMISED if verdict is ClauseVerdict.NOT_CLAIMED else None,
        )

    def _not_asked(self, rule: WireRule, profile: Profile) -> str:
        """Why the tally says nothing under the profile; empty where it does."""
        answer = rule.dialect
        if answer is None:
            return ""
        if answer not in profile.wire:
            return f"the profile's [wire] table does not name {answer}"
        if answer not in self.answers:
            return f"the broker's answers were not held against any {answer}"
        if profile.wire[answer] != self.answers[answer]:
            return (
                f"the broker's answers were held against {answer} = {self.answers[answer]}, "
                f"and the profile says {profile.wire[answer]}"
            )
        return ""


def together(found: Sequence[OnlineFindings]) -> OnlineFindings:
    """What several sessions found that asked in the same dialect, in their order."""
    tallies: dict[str, RuleTally] = {}
    for tally in (tally for each in found for tally in each.rules):
        before = tallies.get(tally.id)
        tallies[tally.id] = tally if before is None else before.and_then(tally)
    return replace(found[0], rules=tuple(tallies.values()))


def online_schema() -> dict[str, Any]:
    """The JSON schema of `online.json`."""
    return document_schema(OnlineFindings, ONLINE_SCHEMA, "What was judged while a run went on")


def write_online(folder: Path, found: OnlineFindings) -> None:
    """Keep it in a run's folder."""
    text = json.dumps(found.to_json(), indent=2, sort_keys=True, ensure_ascii=False)
    (folder / ONLINE_FILE).write_text(text + "\n", encoding="utf-8")


def read_online(folder: Path) -> OnlineFindings | None:
    """What the run's folder holds; None where nothing was judged online. Raises HistoryError for a torn file."""
    path = folder / ONLINE_FILE
    if not path.is_file():
        return None
    data = json_in(path, error=HistoryError, mend="; remove it to judge the rows alone")
    return OnlineFindings.from_json(data, str(path))
