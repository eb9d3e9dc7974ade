"""A run's folder gets its verdict: `verdict.json`, checked against its schema, and every report beside it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jsonschema
from pyarrow import dataset

from conformance.reports import allure, junit, markdown, text
from conformance.reports.schemas import schema
from conformance.reports.timeline import CONTEXT_KINDS
from conformance.reports.view import VERDICT_FILE, VerdictView, count_events, view
from specs.errors import HistoryError, InorderError
from specs.history.columns import NAMES
from specs.history.row import Row, make_row
from specs.history.store import open_history
from specs.verdicts.verdict import VERDICT_SCHEMA, Verdict
from specs.vocabulary import Kind

MOST_CONTEXT = 200


class WrongReport(InorderError):
    """We made a report that our own schema forbids."""


def check(data: Mapping[str, Any], schema_id: str) -> None:
    """Raises WrongReport when `data` breaks the schema of that id."""
    try:
        jsonschema.validate(data, schema(schema_id))
    except jsonschema.ValidationError as error:
        where = "/".join(str(part) for part in error.absolute_path) or "the top"
        raise WrongReport(f"{schema_id}: at {where}: {error.message}") from error


def save(verdict: Verdict, folder: Path, *, history: Path | None = None, events: int | None = None) -> VerdictView:
    """Write `verdict.json` and, beside it, report.txt, report.md, junit.xml and allure-results/.

    history: the folder that was judged, where it is not the run's own. events: how many rows were judged, where
    the folder holds only some of them. Returns the verdict as reports see it.
    """
    history = folder if history is None else history
    folder.mkdir(parents=True, exist_ok=True)
    data = verdict.to_json()
    check(data, VERDICT_SCHEMA)
    temporary = folder / f"{VERDICT_FILE}.part"
    temporary.write_text(json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
    temporary.replace(folder / VERDICT_FILE)
    seen = view(verdict, folder=folder, events=count_events(history) if events is None else events)
    write_reports(seen, folder, context=context_of(history))
    return seen


def write_reports(verdict: VerdictView, folder: Path, *, context: Sequence[Row] = ()) -> None:
    """All reports that are made from a verdict."""
    text.write(folder / "report.txt", verdict, context=context)
    (folder / "report.md").write_text(markdown.render([verdict], context=context), encoding="utf-8")
    (folder / "junit.xml").write_text(junit.render([verdict], context=context), encoding="utf-8")
    allure.write(verdict, folder / allure.FOLDER, context=context, fresh=True)


def context_of(folder: Path) -> tuple[Row, ...]:
    """Pauses, crashes and faults of a run's history: what a timeline shows around the evidence.

    At most MOST_CONTEXT of them; of Parquet files only the rows of those kinds are read.
    """
    try:
        history = open_history(folder)
        if not history.parquet:
            rows = [row for row in history.loaded if row.kind in CONTEXT_KINDS]
        else:
            rows = list(read_kinds(history.parquet, CONTEXT_KINDS, MOST_CONTEXT))
    except HistoryError:
        return ()
    return tuple(rows[:MOST_CONTEXT])


def read_kinds(paths: Sequence[Path], kinds: Iterable[Kind], most: int) -> Iterator[Row]:
    """The first `most` rows of those kinds, by place in the run."""
    wanted = [kind.value for kind in kinds]
    found = dataset.dataset([str(path) for path in paths], format="parquet").scanner(
        columns=list(NAMES), filter=dataset.field("kind").cast("string").isin(wanted)
    )
    rows = sorted((make_row(**values) for values in found.to_table().to_pylist()), key=lambda r: (r.run, r.seq_begin))
    yield from rows[:most]
