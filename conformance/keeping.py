"""A search that goes on after a refutation keeps a run for each clause that was refuted: `refuted/CLAUSE`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from conformance import again
from conformance.reports.saving import save
from specs.history.row import Row
from specs.history.store import write_history
from specs.verdicts.verdict import Verdict

FOLDER = "refuted"


def keep(out: Path, clause: str, verdict: Verdict, rows: Sequence[Row]) -> str:
    """Keep a run that breaks the clause, with its verdict; where, as seen from `out`."""
    folder = out / FOLDER / clause
    info = replace(verdict.info, replay=again.command("replay", folder))
    write_history(folder, info, list(rows), why_cut=verdict.cut)
    save(replace(verdict, info=info), folder)
    return folder.relative_to(out).as_posix()
