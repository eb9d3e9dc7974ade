"""Two verdicts, clause by clause: what broke, what was mended, what is no longer exercised.

Rules:
- a finding is known by its clause and its public name, so a clause that breaks in another way than before is news;
- a general clause that a specific one stands for is neither news nor mended;
- *broke*: a finding that the later run refutes and the earlier one did not;
- *perhaps*: one that is possible now, and was neither possible nor refuted before;
- *mended*: a finding of the earlier run of a clause that the later one upholds;
- *no longer*: what was at stake often enough before, and is not now (not exercised, not recorded, not claimed; also
  where a floor of 0 calls a clause upheld that was never at stake);
- *newly*: the other way round;
- *checks*: what leaves a run open as a whole: that it can't be trusted or was cut short, whichever of the two it is,
  and what else of the later run failed that had not in the earlier one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

from conformance.reports.view import ClauseView, VerdictView
from specs.errors import EXIT_INCONCLUSIVE, EXIT_REFUTED, EXIT_UPHELD
from specs.verdicts.verdict import ClauseVerdict

TOLD = (
    ClauseVerdict.UPHELD,
    ClauseVerdict.REFUTED,
    ClauseVerdict.POSSIBLE,
    ClauseVerdict.ALLOWED,
)
"""Words that say something of what the target did."""


@dataclass(frozen=True, slots=True)
class Change:
    """One clause that two runs tell apart. finding: its public name, where the change is about one."""

    clause: str
    title: str
    finding: str
    before: str
    after: str

    @property
    def name(self) -> str:
        return " ".join(filter(None, (self.clause, self.finding)))


@dataclass(frozen=True, slots=True)
class Difference:
    """What changed from one run to another; clauses in catalogue order. checks: a sentence for each."""

    broke: tuple[Change, ...]
    perhaps: tuple[Change, ...]
    mended: tuple[Change, ...]
    no_longer: tuple[Change, ...]
    newly: tuple[Change, ...]
    checks: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """1 where something broke, 2 where that can't be told any more of something, else 0."""
        if self.broke:
            return EXIT_REFUTED
        left_open = self.perhaps or self.no_longer or self.checks
        return EXIT_INCONCLUSIVE if left_open else EXIT_UPHELD


KINDS = tuple(field.name for field in fields(Difference) if field.name != "checks")
_ALWAYS = ("MET-1", "MET-9")
"""A run that can't be trusted, or was cut short, says too little, whatever the other one was."""
_TOLD_BY_CLAUSES = "MET-6"


def compare(before: VerdictView, after: VerdictView) -> Difference:
    """What the later run says otherwise than the earlier one."""
    old = {clause.id: clause for clause in before.clauses}
    new = {clause.id: clause for clause in after.clauses}
    found: dict[str, list[Change]] = {name: [] for name in KINDS}
    for name in dict.fromkeys([*new, *old]):
        was, now = old.get(name), new.get(name)
        for kind, finding in _changes(was, now):
            found[kind].append(_change(was, now, finding))
    told = {kind: tuple(changes) for kind, changes in found.items()}
    return Difference(**told, checks=tuple(_checks(before, after)))


def _checks(before: VerdictView, after: VerdictView) -> Iterator[str]:
    failed_before = {check.id for check in before.met if check.ok is False}
    for side, run in (("before", before), ("after", after)):
        for check in run.met:
            news = side == "after" and check.id not in failed_before
            if check.ok is False and check.id != _TOLD_BY_CLAUSES and (check.id in _ALWAYS or news):
                detail = f": {check.detail}" if check.detail else ""
                yield f"{side}: not so: {check.title}{detail} ({check.id})"


def _changes(was: ClauseView | None, now: ClauseView | None) -> Iterator[tuple[str, str]]:
    """What kind of change it is of one clause, and of which finding."""
    if now is not None and now.verdict in RED and not now.hidden:
        worse = now.verdict is ClauseVerdict.REFUTED
        same = was is not None and (
            was.verdict is now.verdict or was.verdict is ClauseVerdict.REFUTED
        )
        known = names(was) if was is not None and same else ()
        kind = "broke" if worse else "perhaps"
        yield from ((kind, finding) for finding in names(now) if finding not in known)
    if was is not None and was.verdict in RED and not was.hidden and _is_upheld(now):
        yield from (("mended", finding) for finding in names(was))
    if _tells(was) and not _tells(now):
        yield "no_longer", ""
    elif not _tells(was) and _tells(now) and now is not None and now.verdict not in RED:
        yield "newly", ""


RED = (ClauseVerdict.REFUTED, ClauseVerdict.POSSIBLE)


def _is_upheld(clause: ClauseView | None) -> bool:
    return clause is not None and clause.verdict is ClauseVerdict.UPHELD and _tells(clause)


def names(clause: ClauseView) -> tuple[str, ...]:
    """Its findings; a wire rule, and a verdict of an older version, name none, which is one too."""
    return clause.findings or ("",)


def _tells(clause: ClauseView | None) -> bool:
    if clause is None or clause.verdict not in TOLD:
        return False
    return clause.verdict is not ClauseVerdict.UPHELD or clause.opportunities > 0


def _change(was: ClauseView | None, now: ClauseView | None, finding: str) -> Change:
    either = now or was
    assert either is not None, "a clause of one of the two"
    return Change(either.id, either.title, finding, _word(was), _word(now))


def _word(clause: ClauseView | None) -> str:
    if clause is None:
        return "not judged"
    idle = clause.verdict is ClauseVerdict.UPHELD and not _tells(clause)
    return (ClauseVerdict.NOT_EXERCISED if idle else clause.verdict).value
