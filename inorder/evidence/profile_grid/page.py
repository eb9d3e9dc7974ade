"""The pages of the profile grid: `docs/everywhere.md`, which sums it up, and the run's own, which has every row.

In the first a run writes tables between marks; rows of what was not run again stay, and a target's row is written
when it was judged by every profile. The second is made of what the run found or kept, and of nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.etree.ElementTree import Element

from conformance.reports import plots
from inorder.evidence import tables
from inorder.evidence.profile_grid.cases import BODIES, CasesKept
from inorder.evidence.profile_grid.profiles import TARGETS, Kept
from specs import profiles
from specs.verdicts.verdict import ClauseVerdict, RunVerdict

SUMMARY = "summary"
PROFILES = "profiles"
REASONS = "reasons"
CASES = "cases"
WHY_NOT = "why not"
WHICH = "which"
HEADS: Mapping[str, tuple[str, ...]] = {
    SUMMARY: ("target", "profiles", "upheld", "inconclusive", "refuted", "clauses refuted", "run"),
    PROFILES: (
        "profile", "target", "consumers", "verdict", "upheld", "refuted", "allowed", "not exercised", "not recorded",
        "not claimed", "seconds", "run",
    ),
    REASONS: ("profile", "target", "not upheld", "clauses"),
    CASES: ("target", "cases", "held", "not held", "not applicable", "seconds", "run"),
    WHY_NOT: ("target", "why not applicable", "cases"),
    WHICH: ("target", "why not applicable", "cases by name"),
}  # fmt: skip
KEYS = {SUMMARY: 1, PROFILES: 2, REASONS: 2, CASES: 1, WHY_NOT: 1, WHICH: 1}
"""How many cells at the left say what a row is about."""
_SHOWN = (
    ClauseVerdict.REFUTED,
    ClauseVerdict.POSSIBLE,
    ClauseVerdict.ALLOWED,
    ClauseVerdict.NOT_EXERCISED,
    ClauseVerdict.NOT_RECORDED,
)


def marks(table: str) -> tuple[str, str]:
    """The lines between which a table stands."""
    return f"<!-- table {table}: written by `make everywhere` -->", f"<!-- end of table {table} -->"


def profile_row(kept: Kept) -> tuple[str, ...]:
    counts = kept.counts
    refuted = counts[ClauseVerdict.REFUTED] + counts[ClauseVerdict.POSSIBLE]
    numbers = (
        counts[ClauseVerdict.UPHELD], refuted, counts[ClauseVerdict.ALLOWED], counts[ClauseVerdict.NOT_EXERCISED],
        counts[ClauseVerdict.NOT_RECORDED], counts[ClauseVerdict.NOT_CLAIMED], kept.seconds,
    )  # fmt: skip
    return (
        kept.profile,
        f"`{kept.target}`",
        kept.way,
        kept.verdict.value,
        *map(str, numbers),
        kept.date,
    )


def reason_rows(kept: Kept) -> list[tuple[str, ...]]:
    """What is not upheld, with the reason; clauses with the same one share a row. Not what the profile itself says."""
    rows: list[tuple[str, ...]] = []
    own = {
        claim.reason
        for claim in profiles.load(kept.profile).claims.values()
        if claim.status == "not_applicable"
    }
    for verdict in (*_SHOWN, ClauseVerdict.NOT_CLAIMED):
        because: dict[str, list[str]] = {}
        for clause in kept.clauses[verdict]:
            if verdict is ClauseVerdict.NOT_CLAIMED and kept.reasons[clause] in own:
                continue
            because.setdefault(kept.reasons[clause], []).append(clause)
        what = verdict.value.replace("_", " ")
        rows += [
            (kept.profile, f"`{kept.target}`", f"{what}: {reason}", ", ".join(clauses))
            for reason, clauses in because.items()
        ]
    return rows


def order_of(table: str) -> list[str]:
    """What the rows of a table may be about, in their order."""
    if KEYS[table] == 1:
        return [f"`{target}`" for target in (TARGETS if table == SUMMARY else BODIES)]
    return [f"{profile} `{target}`" for profile in profiles.names() for target in TARGETS]


def refresh(page: str, table: str, run: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The page with one of its tables written anew. run: what was run again; its old rows go."""
    return tables.refresh(page, marks(table), HEADS[table], order_of(table), run, rows, KEYS[table])


def with_profile(page: str, kept: Kept) -> str:
    """The page with what one profile on one target came to."""
    name = f"{kept.profile} `{kept.target}`"
    page = refresh(page, PROFILES, [name], [profile_row(kept)])
    return refresh(page, REASONS, [name], reason_rows(kept))


def summary_row(target: str, found: Sequence[Kept]) -> tuple[str, ...]:
    """A target under all profiles. run: of when its oldest and its youngest verdict are."""
    by = {each: [kept for kept in found if kept.verdict is each] for each in RunVerdict}
    broken = by[RunVerdict.REFUTED] + by[RunVerdict.INADMISSIBLE]
    clauses = sorted({name for kept in broken for name in kept.clauses[ClauseVerdict.REFUTED]})
    numbers = (
        len(found),
        len(by[RunVerdict.UPHELD]),
        len(by[RunVerdict.INCONCLUSIVE]),
        len(broken),
    )
    dates = sorted({kept.date for kept in found})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    return (f"`{target}`", *map(str, numbers), ", ".join(clauses) or "none", when)


def with_summary(page: str, found: Sequence[Kept]) -> str:
    """The page with a row for each target that every profile of the project was judged on."""
    for target in TARGETS:
        here = [kept for kept in found if kept.target == target]
        if {kept.profile for kept in here} == set(profiles.names()):
            page = refresh(page, SUMMARY, [f"`{target}`"], [summary_row(target, here)])
    return page


def picture(found: Sequence[Kept]) -> Element:
    """Every profile on every target: the verdict, and how many clauses were upheld."""
    cells = {
        (kept.profile, kept.target): tables.run_cell(
            kept.verdict,
            str(kept.counts[ClauseVerdict.UPHELD]),
            f"{kept.counts[ClauseVerdict.UPHELD]} clauses upheld, "
            f"{kept.counts[ClauseVerdict.REFUTED]} refuted",
        )
        for kept in found
    }
    rows = list(dict.fromkeys(kept.profile for kept in found))
    columns = [target for target in TARGETS if any(kept.target == target for kept in found)]
    title = "Profiles on the bodies of the reference, with the clauses upheld"
    return plots.heat_map("everywhere", title, sorted(rows), columns, cells)


def whole(found: Sequence[Kept], played: Sequence[CasesKept]) -> str:
    """Every row, as a page of its own."""
    page = "# The profile grid\n"
    for table in (PROFILES, REASONS, CASES, WHY_NOT, WHICH):
        page += f"\n## {table.capitalize()}\n\n" + "\n".join(marks(table)) + "\n"
    for kept in found:
        page = with_profile(page, kept)
    for cases in played:
        page = _with_names(with_cases(page, cases), cases)
    return page


def _with_names(page: str, kept: CasesKept) -> str:
    name = f"`{kept.target}`"
    rows = [(name, why, ", ".join(cases)) for why, cases in kept.not_applicable.items()]
    return refresh(page, WHICH, [name], rows)


def with_cases(page: str, kept: CasesKept) -> str:
    """The page with what the cases on one body came to."""
    name = f"`{kept.target}`"
    missing = sum(map(len, kept.not_applicable.values()))
    numbers = (kept.count, len(kept.held), len(kept.differs), missing, kept.seconds)
    page = refresh(page, CASES, [name], [(name, *map(str, numbers), kept.date)])
    rows = [(name, why, str(len(cases))) for why, cases in kept.not_applicable.items()]
    return refresh(page, WHY_NOT, [name], rows)
