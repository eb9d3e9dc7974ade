"""Operators changed at random in judges and kernels: how they are changed, in which modules, and who notices."""

from __future__ import annotations

import ast
from itertools import islice

import pytest

from inorder.evidence.operators import report, trial
from inorder.evidence.operators.cells import cells_of, places_of, sample, text_of
from inorder.evidence.operators.edits import Change, Operator, again, changed, places
from inorder.evidence.operators.equivalent import reasons
from inorder.evidence.operators.histories import History, Prepared, long_histories
from inorder.evidence.operators.pools import Side, concerned, left_out, modules, source_of
from inorder.evidence.operators.questions import PLANTED_STEP, near, questions_of
from inorder.evidence.operators.report import Fate
from inorder.evidence.operators.similarity import shared, tokens_of
from inorder.evidence.operators.trial import COMPARISON, ENDLESS, TRANSCRIPTS, WAYS, noticed
from spark_checkers.generate import MANUAL_GROUP
from specs.clauses.catalogue import all_clauses
from specs.history.runinfo import RunInfo

OWNER = "specs.clauses.lease.one_owner_at_a_time"
TWIN = "spark_checkers.clauses.lease.one_owner_at_a_time"
SILENT = dict.fromkeys(WAYS, "")
NOTHING = Prepared((), (), ())
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


def tried(side: Side, module: str, tree: ast.Module) -> dict[str, str]:
    """Who notices, of those that read nothing but transcripts."""
    return noticed(module, tree, questions_of(side, concerned(module), NOTHING))


@pytest.mark.parametrize(
    ("side", "module", "function", "row"),
    [
        (Side.JUDGES, OWNER, "LaneJudge.ends", "row"),
        (Side.KERNELS, TWIN, "Lane.ends", "op"),
    ],
)
def test_a_change_is_noticed_and_no_file_is_changed(
    side: Side, module: str, function: str, row: str
) -> None:
    """By the transcripts: a grant that was refused counts, and one that was made does not."""
    before = source_of(module).read_bytes()
    was = f"if {row}.outcome is Outcome.OK:"
    change = change_of(module, function, was, was.replace(" is ", " is not "))
    found = tried(side, module, again(text_of(module), change))
    assert found[TRANSCRIPTS].startswith("LSE-1 ")
    assert source_of(module).read_bytes() == before


def test_what_changes_no_answer_is_not_noticed() -> None:
    """A short cut that is not taken leads to the same; and the text as it is says the same."""
    was = "if self.broker_died_since(lock) or self.is_of_an_old_life(code, running):"
    two = "spark_checkers.clauses.lease.one_processor_at_a_time"
    equal = change_of(two, "Lane.takes", was, was.replace(" or ", " and "))
    assert tried(Side.KERNELS, two, again(text_of(two), equal)) == SILENT
    assert tried(Side.KERNELS, TWIN, ast.parse(text_of(TWIN))) == SILENT


def test_what_does_not_end_or_does_not_load_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change that loops for ever costs its time and no more."""
    monkeypatch.setattr(trial, "CPU_S", 2)
    endless = text_of(OWNER).replace(
        "if row.kind is Kind.UNLOCK:", "while True: pass\n        if row:"
    )
    assert tried(Side.JUDGES, OWNER, ast.parse(endless))[TRANSCRIPTS] == ENDLESS
    torn = text_of(TWIN).replace("TWIN = Twin(", "TWIN = Twin(1 / 0, ")
    assert set(tried(Side.KERNELS, TWIN, ast.parse(torn)).values()) == {
        "error: ZeroDivisionError",
        "",
    }


def test_both_sides_have_places_for_every_operator() -> None:
    """Each change makes another statement of one, and what comes of it compiles."""
    for side in Side:
        found = sample(side, 300, 3)
        assert {each.operator for each in found} == {each.value for each in Operator}
        assert all(each.was != each.becomes for each in found)
        for each in found[:10]:
            compile(again(text_of(each.module), each), each.module, "exec")


def test_a_sample_and_its_cells_follow_from_the_seed() -> None:
    """The same for the same seed; no place twice."""
    one, other = sample(Side.KERNELS, 40, 5), sample(Side.KERNELS, 40, 6)
    assert sample(Side.KERNELS, 40, 5) == one != other
    assert len({(each.module, each.node) for each in one}) == 40
    cells = list(cells_of(Side.KERNELS, 40, 5))
    assert len({cell.id for cell in cells}) == 40


def test_every_clause_rests_on_its_judge_and_its_twin() -> None:
    """And all rest on what all share."""
    assert concerned(OWNER) == concerned(TWIN) == ("LSE-1",)
    assert set(concerned("specs.clauses.context")) == {clause.id for clause in all_clauses()}
    for clause in all_clauses():
        assert clause.module in modules(Side.JUDGES)
        assert clause.id in concerned(clause.module)


def test_what_judges_nothing_is_left_alone() -> None:
    """How a finding is explained, and what is planted; the words of errors, docstrings and types as well."""
    planted = {"DEFECTS", "LOOKALIKES"}
    assert left_out(OWNER) == {"explain"} | planted
    assert left_out(TWIN) == {"second_owner", "unanswered_lock"} | planted
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
    change = sample(Side.JUDGES, 1, 1)[0]
    seen = Fate(Side.JUDGES, change, {**SILENT, COMPARISON: "LSE-1 of drawn 1 (1)"})
    missed = Fate(Side.JUDGES, change, SILENT)
    assert (report.rate([seen, missed], *WAYS), report.rate([seen], COMPARISON)) == (0.5, 1.0)
    assert report.falls_short([seen, missed])
    assert not report.falls_short([seen])
    assert report.unnoticed([seen, missed]) == [f"survives: {change}"]
    assert report.summary([seen, missed])[0] == ["judges", "2", "0", "0 %", "50 %", "0 %", "50 %"]


def test_long_histories_follow_from_the_number_and_are_of_one_to_three_groups() -> None:
    """Beside the group in manual mode, which has one of their two queues."""
    few = list(islice(long_histories(5), 4))
    assert few == list(islice(long_histories(5), 4))
    groups = [{row.group for row in each.rows} - {None, MANUAL_GROUP} for each in few[:3]]
    assert [len(each) for each in groups] == [1, 2, 3]
    assert all(MANUAL_GROUP in {row.group for row in each.rows} for each in few)
    assert few[3].name == "near long 4"


def test_what_was_planted_for_others_is_asked_now_and_then_and_whole_histories_always() -> None:
    info = RunInfo(run="r")
    planted = [History(f"planted {number}", info, (), "LSE-2") for number in range(PLANTED_STEP)]
    known = Prepared((*planted, History("long 1", info, ())), (), ())
    asked = [each.history.name for each in questions_of(Side.JUDGES, ("LSE-1",), known).compared]
    assert asked[:-2] == [each.name for each in near("LSE-1")]
    assert asked[-2:] == ["long 1", "planted 0"]


def test_texts_are_alike_by_how_they_are_built() -> None:
    """Whatever the names; of two that are built alike all is in common."""
    assert shared(tokens_of(OWNER), tokens_of(OWNER)) == 1.0
    assert shared([*"abcde"], [*"vwxyz"]) == 0.0
    assert shared(tokens_of(OWNER), tokens_of(TWIN)) > 0.5
