"""The frozen corpus: two versions of the judges are compared, and no loss goes without its reason."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from inorder.evidence import freezing
from inorder.evidence.corpus import ADMISSIBLE, judge, main, read_reasons
from specs.clauses.catalogue import all_clauses
from specs.errors import UsageError
from specs.history.store import open_history

LESS = {
    "examples/CMT-4.violation": {"CMT-4": [2, 1, 0], ADMISSIBLE: [1, 0, 0]},
    "cases/one": {"CMT-4": [3, 0, 0], "LSE-1": [9, 0, 0], ADMISSIBLE: [1, 0, 0]},
    "cases/two": {"CMT-4": [5, 0, 0], ADMISSIBLE: [1, 0, 0]},
}


@dataclass(frozen=True, slots=True)
class Desk:
    """Compares the totals above with changed ones, in a folder of its own."""

    folder: Path

    def compare(self, changed: Mapping[str, Any], reasons: str = "", *more: str) -> Result:
        """changed: by history, instead of what is above. more: other options."""
        (self.folder / "before.json").write_text(json.dumps(LESS), encoding="utf-8")
        (self.folder / "after.json").write_text(json.dumps({**LESS, **changed}), encoding="utf-8")
        (self.folder / "reasons.toml").write_text(reasons, encoding="utf-8")
        names = [
            str(self.folder / name)
            for name in ("before.json", "after.json", "reasons.toml", "lines.tsv")
        ]
        return CliRunner().invoke(
            main, ["compare", *names[:2], "--reasons", names[2], "--lines", names[3], *more]
        )

    @property
    def lines(self) -> list[list[str]]:
        return [
            line.split("\t")
            for line in (self.folder / "lines.tsv").read_text(encoding="utf-8").splitlines()
        ]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def rows_of(table: str, first: str) -> list[list[str]]:
    """The table's lines that begin with this cell."""
    cells = [[cell.strip() for cell in line.strip("| ").split("|")] for line in table.splitlines()]
    return [line for line in cells if line[0] == first]


def test_what_was_frozen_is_judged_and_says_about_itself_what_it_said(tmp_path: Path) -> None:
    """The clauses' examples: every violation is found again, and every run.json says whether its world is closed."""
    assert freezing.freeze(tmp_path / "corpus", ["examples"]) == {
        "examples": 2 * len(all_clauses())
    }
    found = judge(tmp_path / "corpus")
    assert [
        clause.id
        for clause in all_clauses()
        if not found[f"examples/{clause.id}.violation"][clause.id][1]
    ] == []
    assert (
        open_history(tmp_path / "corpus" / "examples" / "CMT-4.violation").info.closed_world is True
    )
    with pytest.raises(UsageError, match="holds no frozen histories"):
        judge(tmp_path / "corpus", ["cases"])
    with pytest.raises(UsageError, match="is not empty"):
        freezing.freeze(tmp_path / "corpus", ["examples"])


def test_every_source_has_histories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one of each, by a name of the form KIND/NAME."""
    monkeypatch.setattr(freezing, "DRAWN", {"reference": 1})
    kinds = {name: next(iter(source()))[0].split("/") for name, source in freezing.SOURCES.items()}
    assert {name: kind for name, (kind, _) in kinds.items()} == {
        "killed": "mutants",
        "played": "cases",
        "drawn": "drawn",
        "recorded": "recorded",
        "planted": "planted-recorded",
        "generated": "planted-generated",
        "examples": "examples",
    }


def test_the_same_totals_lose_nothing(desk: Desk) -> None:
    """And a count that did not change is shown once."""
    result = desk.compare({})
    assert (result.exit_code, desk.lines) == (0, [])
    assert rows_of(result.stdout, "CMT-4") == [["CMT-4", "10", "1", "0", "1"]]


def test_a_loss_without_a_reason_is_named_and_fails(desk: Desk) -> None:
    """Histories of one kind share a line of the table; the file has a line for each."""
    result = desk.compare(
        {"cases/one": {"CMT-4": [1, 0, 0], ADMISSIBLE: [1, 0, 0]}, "cases/two": {}}
    )
    assert result.exit_code == 1
    assert desk.lines == [
        ["CMT-4", "cases/one", "opportunities", "3", "1", "NO REASON"],
        ["LSE-1", "cases/one", "opportunities", "9", "0", "NO REASON"],
        ["CMT-4", "cases/two", "opportunities", "5", "0", "NO REASON"],
        [ADMISSIBLE, "cases/two", "opportunities", "1", "0", "NO REASON"],
    ]
    totals, loss = rows_of(result.stdout, "CMT-4")
    assert totals == ["CMT-4", "10 → 3", "1", "0", "1"]
    assert loss == ["CMT-4", "cases", "opportunities", "2", "8 → 1", "1", "one, two", "NO REASON"]


def test_some_kinds_can_be_compared_alone(desk: Desk) -> None:
    """As when only those were judged again."""
    lost: dict[str, Any] = {"cases/one": {}, "cases/three": {}}
    assert desk.compare(lost, "", "--kind", "examples").exit_code == 0
    assert desk.compare({"cases/one": {}}, "", "--kind", "cases").exit_code == 1


def test_a_reason_excuses_what_it_names_and_nothing_else(desk: Desk) -> None:
    """One for lost opportunities does not excuse a certain finding that is lost, nor another kind of history."""
    reason = '[[CMT-4]]\nloses = "opportunities"\nwhy = "counted twice"\n'
    only_cases = f'{reason}histories = "cases/*"\n'
    fewer = {"cases/one": {**LESS["cases/one"], "CMT-4": [1, 0, 0]}}
    result = desk.compare(fewer, only_cases)
    assert (result.exit_code, [line[-1] for line in desk.lines]) == (0, ["counted twice"])
    blind = {"examples/CMT-4.violation": {"CMT-4": [1, 0, 1], ADMISSIBLE: [1, 0, 0]}}
    assert desk.compare({**fewer, **blind}, reason).exit_code == 1
    assert [line[2::3] for line in desk.lines] == [
        ["opportunities", "counted twice"],
        ["certain", "NO REASON"],
        ["opportunities", "counted twice"],
    ]
    assert desk.compare({**fewer, **blind}, only_cases).exit_code == 1
    assert [line[-1] for line in desk.lines] == ["NO REASON", "NO REASON", "counted twice"]


def test_what_is_newly_refuted_is_shown_and_a_reason_that_explains_nothing_is_named(
    desk: Desk,
) -> None:
    """Neither fails."""
    reason = '[[LSE-1]]\nloses = "certain"\nwhy = "old"\n'
    result = desk.compare({"cases/two": {"CMT-4": [5, 2, 0], ADMISSIBLE: [1, 0, 0]}}, reason)
    assert result.exit_code == 0
    assert rows_of(result.stdout, "CMT-4")[1] == [
        "CMT-4",
        "cases",
        "certain",
        "1",
        "0 → 2",
        "0",
        "two",
    ]
    assert "a reason explains nothing: LSE-1" in result.stderr


def test_totals_of_another_corpus_are_refused(desk: Desk) -> None:
    """A history that only one side judged could hide a loss."""
    result = desk.compare({"cases/three": {}})
    assert isinstance(result.exception, UsageError)
    assert "only one of them knows cases/three" in str(result.exception)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[[CMT-4]]\nwhy = 'x'\n", "loses"),
        ("[[CMT-4]]\nloses = 'possible'\nwhy = 'x'\n", "needs a why"),
        ("[[CMT-4]]\nloses = 'certain'\nwhy = ' '\n", "needs a why"),
        ("CMT-4 = 3\n", "gives no reasons"),
        ("[[CMT-4\n", "is no TOML"),
    ],
)
def test_a_reasons_file_that_is_none_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    """Each reason says what it excuses, and why."""
    (tmp_path / "reasons.toml").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=complaint):
        read_reasons(tmp_path / "reasons.toml")
