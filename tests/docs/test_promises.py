"""The gate holds each target that README names, and is red where a promise is not kept."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from inorder.evidence.grid import Cell, Done
from tests.docs import promises
from tests.docs.promises import (
    BROKEN,
    KEPT,
    NOT_HERE,
    PROMISED,
    UNSTEADY,
    Promise,
    all_cells,
    chosen,
    keep,
    page_names,
    readme_targets,
)
from tests.docs.reading import ROOT
from tests.turns import TURNS

FOUND = "inorder conform --target mutant:unlock-while-listener-runs"
CELL = Cell("promises", FOUND, {"words": f"{FOUND} --seed 1 --examples 2 --floor 0 --out run",
            "target": "mutant:unlock-while-listener-runs", "limit_s": 200})  # fmt: skip


def test_readme_names_the_gates_targets_and_no_other() -> None:
    """A target is in README when a gate holds it, and goes out of the gate with it."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"--(?:inorder-)?target (\S+?)[`\s]", text)
    assert sorted(set(named)) == sorted(PROMISED)


def test_each_target_has_a_cell_at_every_turn() -> None:
    """Or types the same as one that has. Each is the first one in its time, if there is none for all."""
    wanted = {promises.words_of(command) for command in readme_targets()}
    turns = [[cell.key.get("words") for cell in chosen((), turn)] for turn in range(len(wanted))]
    assert all(wanted <= set(made) for made in turns)
    assert {made[0] for made in turns} == wanted


def test_all_pages_have_their_turn() -> None:
    """Once in as many commits as there are turns."""
    pages = [
        cell.key["page"] for turn in range(TURNS) for cell in chosen((), turn) if "page" in cell.key
    ]
    assert sorted(pages) == sorted(page_names())
    assert len(list(all_cells())) == len({cell.id for cell in all_cells()})


@pytest.mark.parametrize(
    ("attempts", "expected"),
    [
        ([KEPT], KEPT),
        ([BROKEN, KEPT], UNSTEADY),
        ([BROKEN, BROKEN], BROKEN),
        ([NOT_HERE], NOT_HERE),
    ],
)
def test_what_is_red_is_tried_once_more(
    attempts: list[str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red twice is broken, red once unsteady, and each attempt has its log."""
    left = iter(attempts)
    monkeypatch.setattr(promises, "tried", lambda cell, folder: (next(left), "why", "printed"))
    made = keep(CELL, tmp_path)
    assert made["verdict"] == expected
    assert [Path(log).read_text() for log in made["logs"]] == ["printed"] * len(attempts)


@pytest.mark.parametrize(
    ("promise", "why"),
    [
        (Promise(1, refuted="LSE-2"), ""),
        (Promise(1, refuted="ORD-1"), "ORD-1 is not refuted"),
        (Promise(0), "it ended with 1, not with 0"),
        (Promise(1, at_stake=("ORD", "PML")), "no clause of PML was at stake"),
    ],
)
def test_a_promise_is_red_where_it_is_not_kept(
    promise: Promise, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its code, by the clause that is to be refuted, and by what was at stake."""
    monkeypatch.setitem(PROMISED, str(CELL.key["target"]), promise)
    verdict, told, printed = promises.tried(CELL, tmp_path)
    assert (verdict, bool(told)) == ((BROKEN, True) if why else (KEPT, False)), printed
    assert why in told


def test_a_run_that_fails_itself_is_red(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite's own failure (70) keeps no promise, and a part that is not there none in CI."""
    monkeypatch.setenv("CI", "true")
    for code in (2, 64, 69, 70):
        monkeypatch.setattr(promises, "typed", lambda *_, code=code, **__: (code, ""))
        verdict, why, _ = promises.tried(CELL, tmp_path)
        assert (verdict, f"it ended with {code}" in why) == (BROKEN, True)
    monkeypatch.delenv("CI")
    monkeypatch.setattr(promises, "typed", lambda *_, **__: (69, ""))
    assert promises.tried(CELL, tmp_path)[0] == NOT_HERE


def test_the_table_has_all_its_columns(tmp_path: Path) -> None:
    """Also where there is no terminal; both logs of what is not steady are printed."""
    logs = [str(tmp_path / f"{n}.log") for n in (1, 2)]
    for log in logs:
        Path(log).write_text(f"end of {log}")
    value = {"verdict": UNSTEADY, "why": "it ended with 70, not with 0", "logs": logs}
    printed = io.StringIO()
    console = Console(file=printed, width=promises.WIDTH)
    promises.show([Done(CELL, value, seconds=12.3)], console)
    assert re.search(rf"{FOUND} +12 +{UNSTEADY} +it ended with 70, not with 0", printed.getvalue())
    assert all(f"end of {log}" in printed.getvalue() for log in logs)


def test_a_page_that_is_not_read_to_its_end_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It promises no time; a target at its limit is red."""
    monkeypatch.setattr(promises, "typed", lambda *_, **__: (promises.ENDED, ""))
    page = next(cell for cell in all_cells() if "page" in cell.key)
    assert promises.tried(page, tmp_path)[0] == promises.NOT_ENDED
    assert promises.tried(CELL, tmp_path)[0] == BROKEN


def test_a_command_is_ended_at_its_limit_with_what_it_started(tmp_path: Path) -> None:
    """It is red, and what it had printed is kept."""
    code, printed = promises.typed("echo begun; sleep 600 | cat", tmp_path, patience_s=1)
    assert (code, printed) == (promises.ENDED, "begun\n")
