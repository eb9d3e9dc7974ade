"""The witness of a bug, kept: the few events that refute the clause, as a run that can be judged and explained again.

inorder explain docs/track-record/B-77c
inorder check docs/track-record/B-77c
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

from conformance.reports.view import VERDICT_FILE
from specs import profiles
from specs.clauses.catalogue import by_id
from specs.errors import SpecError
from specs.history.store import open_history, write_history
from specs.verdicts.examine import examine
from specs.verdicts.verdict import ClauseVerdict, Judged, conclude


def keep_witness(found: Judged, run: Path, folder: Path) -> None:
    """Write the witness of a refuted clause, from the run in which it was found, into `folder`, which is replaced.

    Times are counted from the first event. Raises SpecError if the events alone are not refuted again.
    """
    info = open_history(run).info
    begin = min(row.started_us for row in found.witness)
    rows = [
        row._replace(
            started_us=row.started_us - begin,
            ended_us=None if row.ended_us is None else row.ended_us - begin,
            wall_us=None if row.wall_us is None else row.wall_us - begin,
        )
        for row in found.witness
    ]
    if folder.exists():
        shutil.rmtree(folder)
    history = write_history(folder, replace(info, closed_world=False), rows, as_text=True)
    clause = by_id()[found.id]
    profile = profiles.load(info.profile or "")
    examination = examine(history.rows(), history.info, (clause,))
    verdict = conclude(examination, history.info, profile, require_exercised=False, clauses=(clause,))
    if verdict.clauses[0].verdict is not ClauseVerdict.REFUTED:
        raise SpecError(f"the witness of {found.id} alone is {verdict.clauses[0].verdict.value}")
    text = json.dumps(verdict.to_json(), indent=2, sort_keys=True, ensure_ascii=False)
    (folder / VERDICT_FILE).write_text(text + "\n", encoding="utf-8")
