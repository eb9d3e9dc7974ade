"""A conformance statement: what one system was found to keep, promise by promise, on how much evidence.

Made of the verdicts of one or several runs of one system under one profile; several, with different seeds, are summed.

Rules:
- a promise that one run refutes is refuted, however many others keep it; then comes possible, then allowed;
- what was at stake in several runs is added up, and held against the highest floor that one of them had; what never
  was is not upheld, whatever the floor;
- a run that can't be trusted makes the whole inadmissible, a check that failed in one of them the whole inconclusive;
- what is not said is said: not claimed, not recorded, not exercised, each with its reason;
- an allowance has its source, or its owner and its last day; after that day no statement is made of such a run;
- of what was upheld it says how good that is: which planted bugs such a search finds, and which rate of its own the
  system would have shown.

The day is handed in.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import version
from typing import Any

from conformance.reports import power
from conformance.reports.power import Power
from conformance.reports.text import WORDS, sources, times
from conformance.reports.view import CheckView, ClauseView, KnownView, VerdictView
from specs import profiles
from specs.clauses.catalogue import by_id
from specs.errors import EXIT_SUITE, InorderError, UsageError
from specs.fingerprint import of_this_tool
from specs.model.rules import RULES
from specs.profiles import Claim, Profile
from specs.verdicts.baseline import State
from specs.verdicts.verdict import EXIT_CODES, ClauseVerdict, Ended, RunVerdict

STATEMENT_SCHEMA = "inorder/statement/v1"
NOT_TOLD = "not told"
"""Of a tool that did not write down what it was."""
_TRUST, _EXERCISED = "MET-1", "MET-6"
_DECIDING = (ClauseVerdict.REFUTED, ClauseVerdict.POSSIBLE, ClauseVerdict.ALLOWED)
_COUNTED = (ClauseVerdict.UPHELD, ClauseVerdict.NOT_EXERCISED)
_SILENT = (ClauseVerdict.NOT_RECORDED, ClauseVerdict.NOT_CLAIMED)


@dataclass(frozen=True, slots=True)
class Allowance:
    """Why findings of a clause are let pass. by: `profile` or `baseline`; expires, owner, issue: of a baseline."""

    by: str
    findings: tuple[str, ...]
    reason: str
    source: str = ""
    owner: str = ""
    issue: str = ""
    expires: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "by": self.by,
            "findings": list(self.findings),
            "reason": self.reason,
            "source": self.source,
            "owner": self.owner,
            "issue": self.issue,
            "expires": self.expires,
        }

    @property
    def told(self) -> str:
        """In a sentence."""
        what = ", ".join(self.findings) or "whatever breaks it"
        if self.by == "profile":
            where = f" ({self.source})" if self.source else ""
            return f"{what}: allowed by the profile{where}: {self.reason}"
        whose = ", ".join(filter(None, (self.owner, self.issue)))
        return f"{what}: known until {self.expires} ({whose}): {self.reason}"


@dataclass(frozen=True, slots=True)
class Line:
    """A clause, summed over the runs.

    clause: as the run has it whose word and evidence count. replay: the command that shows that run again. power: which
    planted bugs such searches find; runs: how many runs they made.
    """

    clause: ClauseView
    verdict: ClauseVerdict
    opportunities: int
    floor: int
    violations: int
    findings: tuple[str, ...]
    reason: str
    replay: str
    allowed: tuple[Allowance, ...] = ()
    power: Power | None = None
    runs: int = 0

    @property
    def rate_seen(self) -> float | None:
        """Of an upheld clause: a bug that breaks it at this rate, or oftener, would have shown with 95 %."""
        if self.verdict is not ClauseVerdict.UPHELD or not self.opportunities:
            return None
        return power.rate_seen(self.opportunities)

    @property
    def is_broken(self) -> bool:
        return self.verdict in (ClauseVerdict.REFUTED, ClauseVerdict.POSSIBLE)

    @property
    def happened(self) -> str:
        return self.clause.explanation if self.verdict in _DECIDING else ""

    @property
    def why(self) -> str:
        """What stands beside the verdict, in a cell."""
        match self.verdict:
            case ClauseVerdict.UPHELD:
                return self.worth
            case ClauseVerdict.ALLOWED:
                return "; ".join(allowance.told for allowance in self.allowed) or self.reason
            case ClauseVerdict.REFUTED | ClauseVerdict.POSSIBLE:
                return "; ".join(filter(None, (self.happened.rstrip("."), self.reason)))
            case _:
                return self.reason

    @property
    def worth(self) -> str:
        """How good `upheld` is."""
        words = []
        if self.rate_seen is not None:
            words.append(f"a rate of {one_in(self.rate_seen)} would have shown")
        if self.power is not None:
            words.append(self.power.words(self.runs))
        return "; ".join(words)

    def to_json(self) -> dict[str, Any]:
        clause = self.clause
        return {
            "id": clause.id,
            "title": clause.title,
            "promise": clause.statement,
            "sources": list(sources(clause.id)),
            "party": clause.party,
            "implementations": list(dict.fromkeys(clause.implementations)),
            "verdict": self.verdict.value,
            "opportunities": self.opportunities,
            "floor": self.floor,
            "violations": self.violations,
            "findings": list(self.findings),
            "happened": self.happened,
            "reason": self.reason,
            "allowed": [allowance.to_json() for allowance in self.allowed],
            "rate_seen": None if self.rate_seen is None else float(f"{self.rate_seen:.3g}"),
            "planted": _planted(clause.id, self.power, self.runs),
            "replay": self.replay,
        }


def _planted(clause_id: str, such: Power | None, runs: int) -> dict[str, Any]:
    """What is known of bugs that were planted for a clause, and what such a search does with them."""
    bugs = power.bugs_of(clause_id)
    return {
        "bugs": len(bugs),
        "found": sum(bug.is_found for bug in bugs),
        "in_such_searches": None
        if such is None
        else {
            "bugs": len(such.bugs),
            "found": such.found,
            "slowest": such.slowest,
            "chance": such.chance(runs).to_json(),
        },
    }


def promises(count: int) -> str:
    """`1 promise`, `78 promises`."""
    return f"{count:,} promise{'' if count == 1 else 's'}"


def one_in(rate: float) -> str:
    """`one in 33`: rounded down, so that no more is claimed than was seen."""
    return f"one in {int(1 / rate):,}"


@dataclass(frozen=True, slots=True)
class Statement:
    """See the module. runs: the verdicts that it is made of, in the order in which they were named."""

    verdict: RunVerdict
    day: date
    runs: tuple[VerdictView, ...]
    lines: tuple[Line, ...]
    checks: tuple[CheckView, ...]
    tool: dict[str, str] = field(default_factory=dict)

    @property
    def first(self) -> VerdictView:
        """Whose system and profile it is about; all runs have the same."""
        return self.runs[0]

    @property
    def exit_code(self) -> int:
        return EXIT_CODES.get(self.verdict, EXIT_SUITE)

    def of(self, verdict: ClauseVerdict) -> tuple[Line, ...]:
        return tuple(line for line in self.lines if line.verdict is verdict)

    @property
    def broken(self) -> tuple[Line, ...]:
        """Refuted, then possible; what a more specific clause tells is left to that one."""
        return tuple(
            line
            for word in (ClauseVerdict.REFUTED, ClauseVerdict.POSSIBLE)
            for line in self.of(word)
            if not line.clause.hidden
        )

    @property
    def counts(self) -> dict[str, int]:
        return {word.value: len(self.of(word)) for word in ClauseVerdict}

    @property
    def judged_by(self) -> dict[str, str]:
        """The tool that judged; what the runs say differently is joined."""
        names = ("inorder", "code", "engine")
        return {
            name: ", ".join(dict.fromkeys(run.tool.get(name, NOT_TOLD) for run in self.runs))
            for name in names
        }

    @property
    def sentence(self) -> str:
        """What it comes to."""
        target, profile = self.first.target, self.first.profile
        kept = len(self.of(ClauseVerdict.UPHELD))
        match self.verdict:
            case RunVerdict.REFUTED:
                names = ", ".join(line.clause.id for line in self.broken)
                return f"{target} breaks promises of the profile {profile}: {names}"
            case RunVerdict.INADMISSIBLE:
                return f"of {target} under the profile {profile} nothing can be said: a run can't be trusted"
            case RunVerdict.INCONCLUSIVE:
                possible = ", ".join(line.clause.id for line in self.broken)
                failed = ", ".join(check.id for check in self.checks if check.ok is False)
                why = [f"{possible} may be broken"] if possible else []
                why += [f"checks of the run failed ({failed})"] if failed else []
                return (
                    f"{target} was not seen to break a promise of the profile {profile}, and not all could be told: "
                    f"{' and '.join(why) or 'nothing was at stake'}"
                )
            case _:
                allowed = len(self.of(ClauseVerdict.ALLOWED))
                but = f"; {allowed} more are broken in ways that are allowed" if allowed else ""
                return f"{target} kept what was at stake of the profile {profile}: {promises(kept)}{but}"

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": STATEMENT_SCHEMA,
            "verdict": self.verdict.value,
            "sentence": self.sentence,
            "date": self.day.isoformat(),
            "system": {"target": self.first.target, "parties": dict(self.first.parties)},
            "profile": self.first.profile,
            "tool": self.judged_by,
            "written_by": dict(self.tool),
            "runs": [run_json(run) for run in self.runs],
            "counts": self.counts,
            "clauses": [line.to_json() for line in self.lines],
            "checks": [
                {"id": check.id, "title": check.title, "detail": check.detail}
                for check in self.checks
                if check.ok is False
            ],
        }


def run_json(run: VerdictView) -> dict[str, Any]:
    """One of the runs. examples: how many runs a search made; None where that is not told."""
    return {
        "folder": str(run.folder or ""),
        "run": run.run,
        "seed": run.seed,
        "verdict": run.verdict.value,
        "examples": examples(run),
        "events": run.events,
        "levels": list(run.levels),
        "cut_short": _was_cut_short(run),
        "replay": run.replay or "",
    }


def examples(run: VerdictView) -> int | None:
    """How many generated runs a search made, where its verdict tells."""
    if run.coverage is not None:
        return run.coverage.runs
    return None if run.search is None else run.search.runs


def _was_cut_short(run: VerdictView) -> bool:
    return bool(run.cut) or (run.search is not None and run.search.ended is Ended.INTERRUPTED)


# ------------------------------------------------------------------------------------------- summing up


def state(runs: Sequence[VerdictView], day: date) -> Statement:
    """The statement on these runs. Raises UsageError where they are not of one system and profile, or one is named
    twice, or lets something pass whose day is over."""
    _are_of_one(runs)
    for run in runs:
        _stands(run, day)
    profile = _profile(runs[0].profile)
    found: dict[str, list[tuple[VerdictView, ClauseView]]] = {}
    for run in runs:
        for clause in run.clauses:
            found.setdefault(clause.id, []).append((run, clause))
    order = {name: place for place, name in enumerate((*by_id(), *RULES))}
    names = sorted(found, key=lambda name: order.get(name, len(order)))
    lines = tuple(_line(found[name], profile) for name in names)
    checks = tuple(_checks(runs, lines))
    tool = {"inorder": version("inorder"), "code": of_this_tool()}
    return Statement(_verdict(lines, checks), day, tuple(runs), lines, checks, tool)


def _are_of_one(runs: Sequence[VerdictView]) -> None:
    first = runs[0]
    for run in runs[1:]:
        for what, one, other in (
            ("targets", first.target, run.target),
            ("profiles", first.profile, run.profile),
            ("systems", _named(first), _named(run)),
        ):
            if one != other:
                raise UsageError(
                    f"{first.folder} and {run.folder} are of different {what} ({one}, {other}); "
                    "a statement is about one: make one of each"
                )
    for number, run in enumerate(runs):
        for other_run in runs[:number]:
            if _print(run) == _print(other_run):
                raise UsageError(
                    f"{other_run.folder} and {run.folder} hold the same run (seed {run.seed}); "
                    "what it put at stake counts once: name it once"
                )


def _named(run: VerdictView) -> str:
    return ", ".join(f"{role} {name}" for role, name in sorted(run.parties.items())) or "unnamed"


def _print(run: VerdictView) -> tuple[Any, ...]:
    """What two copies of a run have in common, wherever they lie."""
    counts = tuple((clause.id, clause.opportunities, clause.violations) for clause in run.clauses)
    return run.run, run.seed, examples(run), run.events, counts


def _stands(run: VerdictView, day: date) -> None:
    """What a baseline let pass is red again after its day; the verdict does not say how red."""
    for entry in run.known:
        if entry.state == State.SEEN and entry.expires < day.isoformat():
            name = " ".join(filter(None, (entry.clause, entry.finding)))
            raise UsageError(
                f"{run.folder} lets {name} pass until {entry.expires}, which is over on {day.isoformat()}; "
                "judge it again without that entry, or say --date of the day it is about"
            )


def _profile(name: str) -> Profile | None:
    try:
        return profiles.load(name)
    except InorderError:
        return None  # a file that is elsewhere by now: its sources can't be told


def _line(found: Sequence[tuple[VerdictView, ClauseView]], profile: Profile | None) -> Line:
    """A clause in all runs that judged it."""
    clauses = [clause for _, clause in found]
    run, shown = _shown(found)
    opportunities = sum(clause.opportunities for clause in clauses)
    floor = max(clause.floor for clause in clauses)
    verdict, reason = shown.verdict, shown.reason
    if verdict in _COUNTED:
        # A floor of 0 calls a clause upheld that was never at stake; to state that it is kept would be too much.
        enough = opportunities >= max(1, floor)
        verdict = ClauseVerdict.UPHELD if enough else ClauseVerdict.NOT_EXERCISED
        seldom = f"at stake {times(opportunities)}, the floor is {floor:,}"
        reason = "" if enough else seldom if opportunities else "never at stake"
    findings = tuple(dict.fromkeys(name for clause in clauses for name in clause.findings))
    such = [power.power_of(each, shown.id) for each, _ in found]
    return Line(
        clause=shown,
        verdict=verdict,
        opportunities=opportunities,
        floor=floor,
        violations=sum(clause.violations for clause in clauses),
        findings=findings,
        reason=reason,
        replay=_replay(run, shown),
        allowed=tuple(_allowances([each for each, _ in found], shown, findings, profile))
        if verdict is ClauseVerdict.ALLOWED
        else (),
        power=such[0] if all(such) and verdict is ClauseVerdict.UPHELD else None,
        runs=sum(examples(each) or 0 for each, _ in found),
    )


def _shown(found: Sequence[tuple[VerdictView, ClauseView]]) -> tuple[VerdictView, ClauseView]:
    """Whose word and evidence count: that of a run that shows it itself before one whose specific clause does."""
    for word in (*_DECIDING, *_COUNTED, *_SILENT):
        those = [each for each in found if each[1].verdict is word]
        if those:
            return next((each for each in those if not each[1].hidden), those[0])
    return found[0]


def _replay(run: VerdictView, clause: ClauseView) -> str:
    """The command that shows it again: the run that a search kept for the clause, where it did."""
    kept = {} if run.search is None else run.search.kept
    if clause.id in kept and run.folder is not None:
        return shlex.join(["inorder", "replay", str(run.folder / kept[clause.id])])
    return run.replay or ""


def _allowances(
    runs: Sequence[VerdictView],
    clause: ClauseView,
    findings: Sequence[str],
    profile: Profile | None,
) -> Iterator[Allowance]:
    """Who lets pass what was found: the baselines of the runs, and for the rest the profile."""
    entries: dict[tuple[str, str], KnownView] = {}
    for run in runs:
        for entry in run.known:
            if entry.clause == clause.id and entry.state == State.SEEN:
                entries.setdefault((entry.clause, entry.finding), entry)
    for entry in entries.values():
        yield Allowance(
            by="baseline",
            findings=(entry.finding,) if entry.finding else (),
            reason=entry.reason,
            owner=entry.owner,
            issue=entry.issue,
            expires=entry.expires,
        )
    named = {entry.finding for entry in entries.values()}
    rest = tuple(name for name in findings if name not in named)
    if rest or not entries:
        claim = _claim(profile, clause.id)
        reason = clause.reason if claim is None else claim.reason
        yield Allowance("profile", rest, reason, source="" if claim is None else claim.source)


def _claim(profile: Profile | None, clause_id: str) -> Claim | None:
    if profile is None:
        return None
    return profile.rules.get(clause_id) if clause_id in RULES else profile.claim(clause_id)


def _checks(runs: Sequence[VerdictView], lines: Sequence[Line]) -> Iterator[CheckView]:
    """Of each check: what failed of it, else that it was made, else that there was nothing to check."""
    found: dict[str, list[CheckView]] = {}
    for run in runs:
        for check in run.met:
            found.setdefault(check.id, []).append(check)
    for name, checks in found.items():
        made = [check for check in checks if check.ok is not None]
        if name == _EXERCISED and made:
            idle = [
                line.clause.id
                for line in lines
                if line.verdict is ClauseVerdict.NOT_EXERCISED and line.opportunities < line.floor
            ]
            yield CheckView(name, checks[0].title, not idle, ", ".join(idle))
            continue
        failed = [check for check in made if check.ok is False]
        if failed:
            detail = "; ".join(dict.fromkeys(check.detail for check in failed))
            yield CheckView(name, checks[0].title, False, detail)
        else:
            yield (made or checks)[0]


def _verdict(lines: Sequence[Line], checks: Sequence[CheckView]) -> RunVerdict:
    """As `specs.verdicts.verdict.run_verdict` says it of one run."""
    failed = {check.id for check in checks if check.ok is False}
    verdicts = {line.verdict for line in lines}
    if _TRUST in failed:
        return RunVerdict.INADMISSIBLE
    if ClauseVerdict.REFUTED in verdicts:
        return RunVerdict.REFUTED
    if failed or ClauseVerdict.POSSIBLE in verdicts or ClauseVerdict.UPHELD not in verdicts:
        return RunVerdict.INCONCLUSIVE
    return RunVerdict.UPHELD


def word(line: Line) -> str:
    """The verdict as people read it."""
    return WORDS[line.verdict].lower()
