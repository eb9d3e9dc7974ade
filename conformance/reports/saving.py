"""A run's folder gets its verdict: `verdict.json`, checked against its schema, and every report beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow as pa
from pyarrow import compute, parquet

from conformance.reports import allure, html, junit, markdown, svg, swimlanes, text
from conformance.reports.incident import CONTEXT_KINDS
from conformance.reports.lost import told_anyway
from conformance.reports.occasion import Occasion
from conformance.reports.schemas import schema
from conformance.reports.view import VERDICT_FILE, VerdictView, opened_in, rows_in, view
from specs.errors import HistoryError, InorderError
from specs.history.columns import NAMES
from specs.history.row import Row, make_row
from specs.history.store import History, open_history
from specs.verdicts.verdict import VERDICT_SCHEMA, Verdict

MOST_CONTEXT = 200
PICTURES = "pictures"


class WrongReport(InorderError):
    """We made a report that our own schema forbids."""


def check(data: Mapping[str, Any], schema_id: str) -> None:
    """Raises WrongReport when `data` breaks the schema of that id."""
    try:
        jsonschema.validate(data, schema(schema_id))
    except jsonschema.ValidationError as error:
        where = "/".join(str(part) for part in error.absolute_path) or "the top"
        raise WrongReport(f"{schema_id}: at {where}: {error.message}") from error


def save(
    verdict: Verdict,
    folder: Path,
    *,
    history: History | None = None,
    events: int | None = None,
    occasion: Occasion | None = None,
) -> VerdictView:
    """Write `verdict.json` and, beside it, report.html, report.txt, report.md, pictures/, junit.xml, allure-results/.

    history: what was judged, where it does not lie in the folder. events: how many rows were judged, where
    the folder holds only some of them. occasion: when and under which name, for reports that tell it; it is kept in
    `occasion.json`. Returns the verdict as reports see it. Raises OutputLost, with the verdict, on a disk that is full.
    """
    data = verdict.to_json()
    check(data, VERDICT_SCHEMA)
    with told_anyway(folder, view(verdict, folder=folder, events=events)):
        return _save(verdict, data, folder, history=history, events=events, occasion=occasion)


def _save(
    verdict: Verdict,
    data: Mapping[str, Any],
    folder: Path,
    *,
    history: History | None,
    events: int | None,
    occasion: Occasion | None,
) -> VerdictView:
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f"{VERDICT_FILE}.part"
    temporary.write_text(
        json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    temporary.replace(folder / VERDICT_FILE)
    opened = opened_in(folder) if history is None else history
    rows = None if opened is None else rows_in(opened)
    seen = view(verdict, folder=folder, events=rows if events is None else events)
    if occasion is not None:
        occasion.write(folder)
        seen = replace(seen, occasion=occasion)
    write_reports(seen, folder, context=context_of(opened, seen), history=opened)
    return seen


def write_reports(
    verdict: VerdictView,
    folder: Path,
    *,
    context: Sequence[Row] = (),
    history: History | None = None,
) -> None:
    """All reports that are made from a verdict; the page shows the history too."""
    text.write(folder / "report.txt", verdict, context=context)
    pictures = write_pictures(verdict, folder, context=context)
    described = markdown.render([verdict], context=context, pictures=pictures)
    (folder / "report.md").write_text(described, encoding="utf-8")
    html.write(folder / html.FILE, verdict, history, context=context)
    (folder / "junit.xml").write_text(junit.render([verdict], context=context), encoding="utf-8")
    allure.write(verdict, folder / allure.FOLDER, context=context, fresh=True)


def write_pictures(
    verdict: VerdictView, folder: Path, *, context: Sequence[Row] = ()
) -> dict[str, str]:
    """`pictures/CLAUSE.svg` for each failure, and where each lies from the folder; those of an earlier verdict go."""
    for old in (folder / PICTURES).glob("*.svg"):
        old.unlink()
    found: dict[str, str] = {}
    for clause in verdict.failures:
        if clause.witness:
            (folder / PICTURES).mkdir(exist_ok=True)
            found[clause.id] = f"{PICTURES}/{clause.id}.svg"
            drawn = svg.render(swimlanes.picture(clause, context))
            (folder / found[clause.id]).write_text(drawn, encoding="utf-8")
    return found


def context_of(where: History | Path | None, verdict: VerdictView) -> tuple[Row, ...]:
    """What a timeline shows around the evidence: pauses, crashes and faults in the time of the witnesses.

    At most MOST_CONTEXT of them, by place in the run. Of a big history only the kinds are read, and the rest of a
    row group where one of those kinds is in it; without a witness nothing is read.
    """
    witnesses = [clause.witness for clause in verdict.clauses if clause.witness]
    spans = [_span(witness) for witness in witnesses]
    runs = {row.run for witness in witnesses for row in witness}
    if where is None or not spans:
        return ()
    try:
        history = where if isinstance(where, History) else open_history(where)
        found = _from_parquet(history.parquet) if history.parquet else iter(history.loaded)
        rows = [
            row
            for row in found
            if row.kind in CONTEXT_KINDS
            and row.run
            in runs  # a search's evidence may be of several runs, and the history of one
            and any(_touches(row, span) for span in spans)
        ]
    except HistoryError:
        return ()
    return tuple(sorted(rows, key=lambda row: (row.run, row.seq_begin))[:MOST_CONTEXT])


def _span(witness: Sequence[Row]) -> tuple[int, int]:
    """From the first begin to the last end, in µs."""
    ends = [row.started_us if row.ended_us is None else row.ended_us for row in witness]
    return min(row.started_us for row in witness), max(ends)


def _touches(row: Row, span: tuple[int, int]) -> bool:
    return row.started_us <= span[1] and (row.ended_us is None or row.ended_us >= span[0])


def _from_parquet(paths: Sequence[Path]) -> Iterator[Row]:
    wanted = pa.array([kind.value for kind in CONTEXT_KINDS], pa.string())
    for path in paths:
        file = parquet.ParquetFile(path)
        for number in range(file.num_row_groups):
            kinds = file.read_row_group(number, columns=["kind"]).column("kind").cast(pa.string())
            mask = compute.is_in(kinds, value_set=wanted)
            if compute.any(mask).as_py():
                table = file.read_row_group(number, columns=list(NAMES)).filter(mask)
                yield from (make_row(**values) for values in table.to_pylist())
