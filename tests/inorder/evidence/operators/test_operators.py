"""Operators changed at random in facts and clauses: how they are changed, in which modules, and who notices."""

from __future__ import annotations

import ast

import pytest

from inorder.evidence.operators import report, trial
from inorder.evidence.operators.cells import cells_of, places_of, sample, text_of
from inorder.evidence.operators.edits import Change, Operator, again, changed, places
from inorder.evidence.operators.equivalent import reasons
from inorder.evidence.operators.histories import Prepared
from inorder.evidence.operators.pools import concerned, left_out, modules, source_of
from inorder.evidence.operators.questions import questions_of
from inorder.evidence.operators.report import Fate
from inorder.evidence.operators.trial import DEFINITIONS, ENDLESS, TRANSCRIPTS, WAYS, noticed
from specs.clauses.catalogue import all_clauses

OWNER = "specs.clauses.lease.one_owner_at_a_time"
TOLD = "told = rows.of_runs(lambda context: context.tells(Kind.FAULT, Kind.PAUSE), second) != 0"
SILENT = dict.fromkeys(WAYS, "")
NOTHING = Prepared((), ())
"""No history but those of the transcripts."""


def change_of(module: str, function: str, was: str, becomes: str) -> Change:
    """The change that makes one line of another."""
    found = [
        each
        for place in places_of(module)
        if function == (place.function or "(module)")
        for variant in range(place.variants)
        if (each := changed(text_of(module), module, place, variant)[0]).place
        == (module, function, was, becomes)
    ]
    return found[0]


def tried(module: str, tree: ast.Module) -> dict[str, str]:
    """Who notices, of those that read nothing but transcripts and definitions."""
    return noticed(module, tree, questions_of(concerned(module), NOTHING))


def test_a_change_is_noticed_and_no_file_is_changed() -> None:
    """What is certain where delays are told is so only where they are not."""
    before = source_of(OWNER).read_bytes()
    change = change_of(OWNER, "judge", TOLD, TOLD.replace("!=", "=="))
    found = tried(OWNER, again(text_of(OWNER), change))
    assert found[TRANSCRIPTS].startswith("LSE-1 ")
    assert found[DEFINITIONS].startswith("LSE-1: ")
    assert source_of(OWNER).read_bytes() == before


def test_what_changes_no_answer_is_not_noticed() -> None:
    """The text as it is says the same."""
    assert tried(OWNER, ast.parse(text_of(OWNER))) == SILENT


def test_what_does_not_end_or_does_not_load_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change that loops for ever costs its time and no more."""
    monkeypatch.setattr(trial, "CPU_S", 2)
    endless = text_of(OWNER).replace("findings.at_stake(contests.asked)", "while True: pass")
    assert tried(OWNER, ast.parse(endless))[TRANSCRIPTS] == ENDLESS
    torn = text_of(OWNER).replace("COLUMNS =", "COLUMNS = 1 / 0 or")
    assert set(tried(OWNER, ast.parse(torn)).values()) == {"error: ZeroDivisionError", ""}


def test_there_are_places_for_every_operator() -> None:
    """Each change makes another statement of one, and what comes of it compiles."""
    found = sample(300, 3)
    assert {each.operator for each in found} == {each.value for each in Operator}
    assert all(each.was != each.becomes for each in found)
    for each in found[:10]:
        compile(again(text_of(each.module), each), each.module, "exec")


def test_a_sample_and_its_cells_follow_from_the_seed() -> None:
    """The same for the same seed; no place twice."""
    one, other = sample(40, 5), sample(40, 6)
    assert sample(40, 5) == one != other
    assert len({(each.module, each.node) for each in one}) == 40
    cells = list(cells_of(40, 5))
    assert len({cell.id for cell in cells}) == 40


def test_every_clause_rests_on_its_module_and_all_on_what_all_share() -> None:
    assert concerned(OWNER) == ("LSE-1",)
    everybody = {clause.id for clause in all_clauses()}
    for shared in ("specs.facts.rows", "specs.facts.judged", "specs.verdicts.examine"):
        assert set(concerned(shared)) == everybody
    for clause in all_clauses():
        assert clause.module in modules()
        assert clause.id in concerned(clause.module)


def test_what_judges_nothing_is_left_alone() -> None:
    """How a finding is explained; the words of errors, docstrings and types as well."""
    assert left_out(OWNER) == {"explain", "STAKES"}
    source = '''
def judge(n: int = 3) -> int:
    """One of 1 and 2."""
    if n:
        raise ValueError(f"{n + 1} < {n}")
    return n
'''
    tree = list(ast.walk(ast.parse(source)))
    assert [type(tree[place.number]).__name__ for place in places(source)] == ["Constant", "If"]


def test_every_reason_is_of_a_change_that_exists() -> None:
    """When the code moves on, so does the list."""
    for module, function, was, becomes in reasons():
        assert change_of(module, function, was, becomes)


def test_a_change_that_nobody_could_notice_is_not_counted() -> None:
    """And one that somebody could, and did not, survives; too many of those are too little."""
    change = change_of(OWNER, "judge", TOLD, TOLD.replace("!=", "=="))
    seen = Fate(change, {**SILENT, DEFINITIONS: "LSE-1: missed"})
    missed = Fate(change, SILENT)
    assert (report.rate([seen, missed], *WAYS), report.rate([seen], DEFINITIONS)) == (0.5, 1.0)
    assert report.falls_short([seen, missed])
    assert not report.falls_short([seen])
    assert report.unnoticed([seen, missed]) == [f"survives: {change}"]
    assert report.summary([seen, missed])[0] == ["all", "2", "0", "0 %", "50 %", "0 %", "50 %"]
