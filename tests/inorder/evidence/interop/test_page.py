"""The tables of the matrix: what a cell comes to, and how the page is refreshed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import inorder.evidence.interop.__main__ as command
from conformance.reports import svg
from conformance.reports.saving import check
from conformance.reports.schemas import CROSSING_SCHEMA
from conformance.targets.driven import pair
from inorder.evidence.interop.__main__ import PAGE, with_feature, written
from inorder.evidence.interop.cells import BROKERS, CLIENTS, Cell, all_runs, chosen_runs, summed_up
from inorder.evidence.interop.features import Checked, direction_of, directions
from inorder.evidence.interop.page import CELLS, DEVIATIONS, FEATURES, marks, picture, refresh
from specs import profiles
from specs.errors import TargetMisbehaved, UsageError
from specs.history.runinfo import RunInfo
from specs.verdicts.verdict import ClauseVerdict, Judged, RunVerdict, Verdict

RUN = pair(None, "4.9.8")


def judged(clause: str, verdict: ClauseVerdict) -> Judged:
    broken = verdict in (ClauseVerdict.REFUTED, ClauseVerdict.ALLOWED)
    seen = "bob | alice" if broken else ""
    return Judged(clause, "a title", "", verdict, "client", (), 9, 1, int(broken), explanation=seen)


def cell(*clauses: Judged):  # type: ignore[no-untyped-def]
    info = RunInfo(run="r", parties=RUN.parties)
    verdict = Verdict(RunVerdict.REFUTED, info, RUN.profile, clauses, ())
    return summed_up(RUN, profiles.load(RUN.profile), verdict, rounds=2, seed=7, date="2026-11-21")


def test_what_is_allowed_is_known_and_what_is_refuted_is_news() -> None:
    found = cell(
        judged("LSE-16", ClauseVerdict.ALLOWED), judged("ORD-2", ClauseVerdict.REFUTED),
        judged("ORD-3", ClauseVerdict.UPHELD), judged("ORD-6", ClauseVerdict.NOT_EXERCISED),
    )  # fmt: skip
    assert [(each.clause, bool(each.known), each.source) for each in found.deviations] == [
        ("LSE-16", True, "docs/sources.md#client-leases"),
        ("ORD-2", False, "docs/sources.md#orderly-loop"),
    ]
    assert [each.clause for each in found.news] == ["ORD-2"]
    assert found.counts[ClauseVerdict.UPHELD] == found.counts[ClauseVerdict.NOT_EXERCISED] == 1
    tried = Checked("batch", direction_of(RUN), True, "seen", "2026-11-21")
    data = {"schema": CROSSING_SCHEMA, "cells": [found.to_json()], "features": [tried.to_json()]}
    check(data, CROSSING_SCHEMA)


def test_the_page_holds_what_was_run_last() -> None:
    page = "\n".join(line for table in (CELLS, DEVIATIONS) for line in marks(table))
    first = cell(judged("ORD-2", ClauseVerdict.REFUTED))
    other = replace(first, target="reference+tcp", deviations=())
    page = written(written(page, first), other)
    assert page.index("`reference+tcp`") < page.index("`reference+java:4.9.8`")
    assert "| ORD-2 a title | 1 of 9 | bob / alice | **not known** |" in page
    page = written(page, cell(judged("ORD-2", ClauseVerdict.UPHELD)))
    assert "ORD-2" not in page
    assert page.count("`reference+java:4.9.8`") == 1
    assert written(page, other) == page


def test_a_feature_has_a_row_in_each_direction() -> None:
    page = "\n".join(marks(FEATURES))
    first, second, *_ = [direction_of(run) for run in directions()]
    page = with_feature(page, Checked("batch", second, True, "all of them", "2026-11-20"))
    page = with_feature(page, Checked("batch", first, False, "none", "2026-11-20"))
    page = with_feature(page, Checked("batch", first, True, "all of them", "2026-11-21"))
    rows = [line for line in page.splitlines() if line.startswith("| batch")]
    assert rows == [
        f"| batch | {first} | yes | all of them | 2026-11-21 |",
        f"| batch | {second} | yes | all of them | 2026-11-20 |",
    ]


def test_a_page_without_the_marks_is_refused() -> None:
    with pytest.raises(UsageError, match="no table"):
        refresh("nothing here", CELLS, [], [], [])


def test_the_projects_page_has_every_table() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for table in (CELLS, DEVIATIONS, FEATURES):
        assert text.count(marks(table)[0]) == text.count(marks(table)[1]) == 1


def test_the_cells() -> None:
    names = [run.name for run in all_runs()]
    assert len(names) == len(set(names)) == len(BROKERS) * len(CLIENTS)
    assert [run.name for run in chosen_runs(("rocketmq-local:4.9.7", "reference+tcp"))] == [
        "reference+tcp", "rocketmq-local:4.9.7",
    ]  # fmt: skip
    with pytest.raises(UsageError, match="known are"):
        chosen_runs(("nonsense",))


def test_a_cell_comes_back_from_json() -> None:
    found = cell(
        judged("LSE-16", ClauseVerdict.ALLOWED), judged("ORD-2", ClauseVerdict.REFUTED)
    )  # fmt: skip
    assert Cell.from_json(found.to_json()) == found
    old = {name: value for name, value in found.to_json().items() if name != "clauses"}
    assert Cell.from_json(old) == replace(found, clauses={})


def test_the_picture_shows_every_cell_by_every_clause() -> None:
    found = cell(judged("LSE-16", ClauseVerdict.ALLOWED), judged("ORD-2", ClauseVerdict.REFUTED))
    told = svg.render(picture([found]))
    assert f"{found.target}: refuted: ORD-2; allowed: LSE-16" in told


def test_a_matrix_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell that is missing or fails costs no other and is tried again; what is done is only told again."""
    page, out = tmp_path / "page.md", tmp_path / "out"
    empty = (
        "\n".join(line for table in (CELLS, DEVIATIONS, FEATURES) for line in marks(table)) + "\n"
    )
    page.write_text(empty, encoding="utf-8")
    asked: list[str] = []
    errors: dict[str, Exception] = {
        "reference+tcp": TargetMisbehaved("it did not start"),
        RUN.name: UsageError("there is no Java"),
    }

    def run_cell(run: Any, *, folder: Path, **_: Any) -> Cell:
        asked.append(run.name)
        folder.mkdir(parents=True)
        if run.name in errors:
            raise errors[run.name]
        return replace(cell(), target=run.name)

    def check_direction(run: Any, folder: Path, date: str, *_: Any) -> Any:
        asked.append(direction_of(run))
        folder.mkdir(parents=True)
        yield Checked("batch", direction_of(run), True, "seen", date)

    monkeypatch.setattr(command, "run_cell", run_cell)
    monkeypatch.setattr(command, "check_direction", check_direction)
    words = ["--page", str(page), "--out", str(out)]
    first = CliRunner().invoke(command.main, words)
    assert "reference+tcp could not be judged: it did not start" in first.stderr
    assert f"{RUN.name} is skipped: there is no Java" in first.stderr
    everything = [run.name for run in all_runs()] + [direction_of(run) for run in directions()]
    assert (first.exit_code, asked) == (70, everything)
    tried = sorted(errors)
    errors.clear()
    asked.clear()
    page.write_text(empty, encoding="utf-8")
    again = CliRunner().invoke(command.main, words)
    assert (again.exit_code, sorted(asked)) == (0, tried)
    assert all(f"| `{run.name}` |" in page.read_text(encoding="utf-8") for run in all_runs())
    assert page.read_text(encoding="utf-8").count("| batch |") == len(directions())
    assert all(run.name in (out / "crossing.svg").read_text() for run in all_runs())
    cut = CliRunner().invoke(command.main, [*words, "--fresh", "--budget", "0s"])
    assert (cut.exit_code, f"of {len(everything)} cells are not made yet" in cut.stderr) == (
        2,
        True,
    )
