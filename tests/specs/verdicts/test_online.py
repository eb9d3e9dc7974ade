"""What was judged while a run went on: its file, its lines in a verdict, and the one catalogue of clauses and rules."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from specs.clauses.catalogue import catalogue, everything, facets_of, meant_by
from specs.errors import HistoryError
from specs.history.runinfo import RunInfo
from specs.model.rules import RULES
from specs.profiles import load
from specs.verdicts.online import (
    ONLINE_FILE,
    OnlineFindings,
    RuleTally,
    online_schema,
    read_online,
    together,
    write_online,
)
from specs.verdicts.tally import Examination
from specs.verdicts.verdict import ClauseVerdict, RunVerdict, conclude, including

REFERENCE = load("reference")
INFO = RunInfo(run="r", parties={"broker": "a broker"})
FOUND = OnlineFindings(
    (RuleTally("WIR-9", 4, 1, "it answered 0"), RuleTally("WIR-6", 3), RuleTally("WIR-8", 2)),
    dict(REFERENCE.wire),
)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    write_online(tmp_path, FOUND)
    assert read_online(tmp_path) == FOUND
    jsonschema.validate(FOUND.to_json(), online_schema())


def test_a_folder_without_findings_has_none(tmp_path: Path) -> None:
    assert read_online(tmp_path) is None


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ('{"schema": "inorder/online/v1", "rules": [{"id": "WIR-99"}]}', "did you mean 'WIR-9'?"),
        ('{"schema": "inorder/online/v9"}', "a newer inorder wrote it"),
        ('{"schema": "inorder/online/v1", "rulez": []}', "did you mean 'rules'?"),
        (
            '{"schema": "inorder/online/v1", "rules": [{"id": "WIR-9", "violations": -1}]}',
            "must not be negative",
        ),
        ("[]", "must be a JSON object"),
        ("{", "is not JSON"),
    ],
)
def test_a_wrong_file_is_told_in_a_sentence(tmp_path: Path, wrong: str, words: str) -> None:
    """With its place; nothing of it is passed over, for a verdict would rest on what is left."""
    (tmp_path / ONLINE_FILE).write_text(wrong, encoding="utf-8")
    with pytest.raises(HistoryError) as told:
        read_online(tmp_path)
    assert words in str(told.value)
    assert ONLINE_FILE in str(told.value)


def test_a_broken_rule_refutes_the_run_and_an_idle_one_is_not_exercised() -> None:
    alone = conclude(Examination(), INFO, REFERENCE, clauses=())
    verdict = including(alone, FOUND.judged(INFO, REFERENCE, floor=3))
    assert {each.id: each.verdict for each in verdict.clauses} == {
        "WIR-9": ClauseVerdict.REFUTED,
        "WIR-6": ClauseVerdict.UPHELD,
        "WIR-8": ClauseVerdict.NOT_EXERCISED,
    }
    assert verdict.verdict is RunVerdict.REFUTED
    (exercised,) = (check for check in verdict.met if check.id == "MET-6")
    assert (exercised.ok, exercised.detail) == (False, "WIR-8")
    assert verdict.clauses[0].implementations == ("a broker",)


def test_answers_of_another_dialect_say_nothing_under_a_profile() -> None:
    """The rule was asked under one version's code; under a profile that says another one nothing was tried."""
    other = replace(REFERENCE, wire={**REFERENCE.wire, "queue_out_of_range_code": 1})
    (line,) = FOUND.judged(INFO, other, 1, ("WIR-6",))
    assert line.verdict is ClauseVerdict.NOT_CLAIMED
    assert "held against queue_out_of_range_code = 29, and the profile says 1" in line.reason


def test_sessions_are_counted_together() -> None:
    later = OnlineFindings((RuleTally("WIR-9", 2, 2, "it answered 1"),), FOUND.answers)
    first = next(each for each in together([FOUND, later]).rules if each.id == "WIR-9")
    assert first == RuleTally("WIR-9", 6, 3, "it answered 0")


def test_the_one_catalogue_has_each_promise_once() -> None:
    """A facet's id is an alias of its clause's; a rule that is no facet stands for itself."""
    ids = [each.id for each in everything()]
    assert len(ids) == len(set(ids))
    assert {meant_by(rule) for rule in RULES} <= set(ids)
    facets = [rule for clause in catalogue() for rule in clause.rules]
    assert len(facets) == len(set(facets))
    assert set(facets) <= set(RULES)
    assert (meant_by("WIR-13"), meant_by("WIR-9"), meant_by("ORD-2")) == ("CMT-9", "WIR-9", "ORD-2")
    assert (facets_of("LSE-9"), facets_of("ORD-2")) == (("WIR-1", "WIR-23"), ())


def test_who_is_decided_by_nothing_else_has_a_facet_or_a_table() -> None:
    for clause in catalogue():
        assert clause.judged_by, clause.id


def test_the_schemas_file_is_the_model() -> None:
    import specs

    file = Path(specs.__file__).parent / "schemas" / "online.v1.json"
    assert json.loads(file.read_text(encoding="utf-8")) == online_schema()
