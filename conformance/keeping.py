"""A search that goes on after a refutation keeps a run for each clause that was refuted: `refuted/CLAUSE`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from conformance import again
from conformance.reports.saving import save
from specs.history.row import Row
from specs.history.store import History, write_history
from specs.profiles import Profile
from specs.verdicts.engine import of_one_run
from specs.verdicts.tally import Examination
from specs.verdicts.verdict import ClauseVerdict, Verdict

FOLDER = "refuted"


def keep(out: Path, clause: str, verdict: Verdict, rows: Sequence[Row]) -> str:
    """Keep a run that breaks the clause, with its verdict; where, as seen from `out`."""
    folder = out / FOLDER / clause
    info = replace(verdict.info, replay=again.command("replay", folder))
    write_history(folder, info, list(rows), why_cut=verdict.cut)
    save(replace(verdict, info=info), folder)
    return folder.relative_to(out).as_posix()


def keep_first(
    out: Path,
    profile: Profile,
    done: Iterable[tuple[History, Examination]],
    *,
    ours_too: bool = False,
) -> dict[str, str]:
    """For each refuted clause the first run that refutes it, judged by itself: where it is, as seen from `out`.

    done: the runs, each with what was found in it. ours_too: as `of_one_run` has it.
    """
    kept: dict[str, str] = {}
    for history, examination in done:
        alone = of_one_run(examination, history.info, profile, ours_too=ours_too)
        for clause in (judged.id for judged in alone.of(ClauseVerdict.REFUTED)):
            if clause not in kept:
                kept[clause] = keep(out, clause, alone, list(history.rows()))
    return kept
