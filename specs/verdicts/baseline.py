"""What is known to be broken, whose it is and until when: findings that a gate lets pass.

Rules:
- an entry is about one finding of one clause, or about one wire rule; whatever else breaks the clause stays red;
- it stands up to its last day and on it; from the next day on what it is about is red again;
- it allows nothing of a clause that the profile does not claim;
- what came of each entry is told: whether it was seen, was not although there was occasion, or could not be told.

The day is handed in (UTC). The file is TOML, one `[[known]]` for each entry.
"""

from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from specs.clauses.catalogue import by_id
from specs.documents import toml_in
from specs.errors import SpecError
from specs.model.rules import RULES
from specs.profiles import Claim, Profile
from specs.reading import near, read
from specs.reading import told as said
from specs.verdicts.verdict import ClauseVerdict, Judged, Verdict


def _day(value: Any, where: str) -> date:
    """A TOML date, or the same as text."""
    if isinstance(value, str):
        try:
            value = date.fromisoformat(value)
        except ValueError:
            value = None
    if not isinstance(value, date) or isinstance(value, datetime):
        raise SpecError(f"{where}: must be a day, as 2027-03-31")
    return value


@dataclass(frozen=True, slots=True)
class Known:
    """One entry. finding: its public name; "" for a wire rule, which has but one. expires: its last day."""

    clause: str
    reason: str
    owner: str
    expires: date = field(metadata=said(reads=_day))
    finding: str = ""
    issue: str = ""

    @property
    def names(self) -> tuple[str, str]:
        """What it is about."""
        return self.clause, self.finding

    def sentence(self) -> str:
        """For people: until when, whose, where, and why."""
        issue = f", {self.issue}" if self.issue else ""
        return f"known until {self.expires.isoformat()} ({self.owner}{issue}): {self.reason}"


@dataclass(frozen=True, slots=True)
class _Document:
    known: tuple[Known, ...] = ()


class State(StrEnum):
    """What a verdict says of an entry. NOT_SEEN: although the clause was at stake; the entry may go."""

    SEEN = "seen"
    NOT_SEEN = "not_seen"
    NOT_TOLD = "not_told"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Baseline:
    """The entries of a file, on a day."""

    name: str
    entries: tuple[Known, ...]
    today: date

    @property
    def standing(self) -> tuple[Known, ...]:
        """Those that have not expired."""
        return tuple(entry for entry in self.entries if self.today <= entry.expires)

    def under(self, profile: Profile) -> Profile:
        """The profile with what stands allowed, beside what it allows itself."""
        claims, rules = dict(profile.claims), dict(profile.rules)
        for entry in self.standing:
            source = f"baseline {self.name}"
            if entry.clause in RULES:
                rules[entry.clause] = Claim("allowed", source, entry.sentence())
                continue
            own = profile.claim(entry.clause)
            so_far = claims.get(entry.clause, own)
            if own.status == "claimed":
                more = (so_far.findings, so_far.reason) if so_far.status == "allowed" else ((), "")
            elif own.status == "allowed" and own.findings:
                more = (so_far.findings, so_far.reason)
            else:
                continue
            findings = tuple(sorted({*more[0], entry.finding}))
            reason = "; ".join(filter(None, (more[1], entry.sentence())))
            claims[entry.clause] = Claim("allowed", source, reason, findings)
        return replace(profile, claims=claims, rules=rules)

    def told(self, verdict: Verdict) -> dict[str, Any]:
        """For `verdict.json`: each entry, and what came of it."""
        judged = {each.id: each for each in verdict.clauses}
        entries = [
            {
                "clause": entry.clause,
                "finding": entry.finding,
                "reason": entry.reason,
                "owner": entry.owner,
                "issue": entry.issue,
                "expires": entry.expires.isoformat(),
                "state": self._state(entry, judged.get(entry.clause)).value,
            }
            for entry in self.entries
        ]
        return {"file": self.name, "today": self.today.isoformat(), "known": entries}

    def _state(self, entry: Known, judged: Judged | None) -> State:
        if entry.expires < self.today:
            return State.EXPIRED
        if judged is None:
            return State.NOT_TOLD
        if judged.verdict is ClauseVerdict.ALLOWED:
            seen = entry.finding in judged.findings or not entry.finding
            return State.SEEN if seen else State.NOT_SEEN
        # With a floor of 0 a clause is upheld that was never at stake.
        could = judged.verdict is ClauseVerdict.UPHELD and judged.opportunities > 0
        return State.NOT_SEEN if could else State.NOT_TOLD


def today() -> date:
    """By UTC: the day that a gate's baseline is held against."""
    return datetime.now(tz=UTC).date()


def read_baseline(path: Path, today: date) -> Baseline:
    """Raises SpecError (exit 64) for a file that is not there, no TOML, or names what does not exist."""
    if not path.exists():
        raise SpecError(f"there is no baseline {path}")
    data = toml_in(path, error=SpecError, name=f"baseline {path}")
    entries = read(_Document, data, f"baseline {path}", error=SpecError).known
    for number, entry in enumerate(entries):
        _exists(entry, f"baseline {path}, known[{number}]")
        if entry.names in {other.names for other in entries[:number]}:
            raise SpecError(
                f"baseline {path} has two entries for {' '.join(filter(None, entry.names))}"
            )
    return Baseline(str(path), entries, today)


def _exists(entry: Known, where: str) -> None:
    if entry.clause in RULES:
        if entry.finding:
            raise SpecError(
                f"{where}: {entry.clause} is a wire rule, which has no findings by name"
            )
        return
    clause = by_id().get(entry.clause)
    if clause is None:
        raise SpecError(f"{where}: there is no clause {entry.clause}{near(entry.clause, by_id())}")
    if not entry.finding:
        raise SpecError(
            f"{where}: the field 'finding' is missing; {entry.clause} has {', '.join(clause.findings)}"
        )
    if entry.finding not in clause.findings:
        raise SpecError(
            f"{where}: {entry.clause} has no finding {entry.finding}; it has {', '.join(clause.findings)}"
        )
    if not entry.owner.strip() or not entry.reason.strip():
        raise SpecError(f"{where}: say whose it is (owner), and why it may stay (reason)")
