"""What is generated is fresh, and what is linked exists."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
from jsonschema import Draft202012Validator

from specs.clauses.catalogue import all_clauses, catalogue
from specs.clauses.clause import Clause, Promise
from specs.docs import DOCUMENTS, write_all
from specs.docs.conventions import CONVENTIONS, LEVELS, OUTCOMES
from specs.docs.schemas import history_row_schema
from specs.history.row import make_row
from specs.history.runinfo import RunInfo, run_schema
from specs.history.text import parse_history
from specs.links import CLAUSES
from specs.profiles import load, names
from specs.verdicts.examine import examine
from specs.verdicts.schema import verdict_schema
from specs.verdicts.verdict import conclude
from specs.vocabulary import Kind, Level, Outcome
from tests.docs.reading import anchors

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("path", sorted(DOCUMENTS))
def test_a_generated_document_is_fresh(path: str) -> None:
    """`python -m specs.docs` has nothing to do."""
    assert (ROOT / path).read_text(encoding="utf-8") == DOCUMENTS[path](), (
        "run `python -m specs.docs`"
    )


def test_writing_everything_says_what_was_stale(tmp_path: Path) -> None:
    """The first time all of it, the second time nothing."""
    assert write_all(tmp_path) == list(DOCUMENTS)
    assert write_all(tmp_path) == []


def test_every_word_of_the_vocabulary_is_documented() -> None:
    """A kind, an outcome or a level without a sentence is not finished."""
    assert list(CONVENTIONS) == list(Kind)
    assert list(OUTCOMES) == list(Outcome)
    assert list(LEVELS) == list(Level)


def test_every_source_of_a_clause_and_of_a_profile_exists() -> None:
    """A source is a section of docs/sources.md."""
    known = anchors(ROOT / "docs" / "sources.md")
    sources = {source for clause in all_clauses() for source in clause.sources}
    sources |= {claim.source for name in names() for claim in load(name).claims.values()}
    assert {
        source for source in sources if source.removeprefix("docs/sources.md#") not in known
    } == set()


def test_no_page_is_left_of_a_clause_that_is_gone() -> None:
    """Whatever lies among the clauses' pages is generated."""
    lying = {path.relative_to(ROOT).as_posix() for path in (ROOT / CLAUSES).iterdir()}
    assert lying - set(DOCUMENTS) == set()


@pytest.mark.parametrize("clause", catalogue(), ids=lambda clause: clause.id)
def test_a_clause_s_page_says_what_a_reader_asks(clause: Promise) -> None:
    """What it promises, its other names, where it was said; and each profile once."""
    page = (ROOT / f"{CLAUSES}/{clause.id}.md").read_text(encoding="utf-8")
    told = [clause.statement, clause.doc, *clause.rules, *(p.text for p in clause.premise)]
    told += [f"../{source.removeprefix('docs/')}" for source in clause.sources]
    if isinstance(clause, Clause):
        told += [clause.shortest_violation.strip(), clause.lookalike.strip()]
    assert [each for each in told if each not in page] == []
    promised = page.partition("## Who promises it")[2]
    assert sorted(re.findall(r"`([\w.-]+)`", promised)) == sorted(names())


def test_every_schema_is_a_schema() -> None:
    """Draft 2020-12 accepts all of them."""
    for path in sorted((ROOT / "specs" / "schemas").glob("*.json")):
        jsonschema.Draft202012Validator.check_schema(json.loads(path.read_text(encoding="utf-8")))


def test_run_json_is_what_its_schema_says() -> None:
    """The default run, and one with everything in it."""
    full = RunInfo(
        run="r",
        seed=7,
        parties={"broker": "Apache RocketMQ 5.4.0"},
        profile="reference",
        clock_bounds_us={"other": 5},
        plan={},
        replay="inorder replay r",
        environment={"python": "3.11"},
    )
    for info in (RunInfo(run="r"), full):
        jsonschema.validate(info.to_json(), run_schema())
        assert RunInfo.from_json(info.to_json()) == info
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**full.to_json(), "config": {"batch": "two"}}, run_schema())


def test_rows_are_what_their_schema_says() -> None:
    """Every example row of every clause; and nothing else."""
    # `validate` would look each time whether the schema itself is one.
    said = Draft202012Validator(history_row_schema())
    for clause in all_clauses():
        _, rows = parse_history(clause.shortest_violation)
        for row in rows:
            said.validate(row.to_json())
            assert make_row(**row.to_json()) == row
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"run": "r", "kind": "dance"}, history_row_schema())


@pytest.mark.parametrize("clause", all_clauses(), ids=lambda clause: clause.id)
def test_a_refuting_verdict_is_what_its_schema_says(clause: Clause) -> None:
    """With a witness in it."""
    info, rows = parse_history(clause.shortest_violation)
    references = [load(name) for name in ("reference", "leased", "grouped")]
    claims_it = next(each for each in references if each.claim(clause.id).status == "claimed")
    verdict = conclude(examine(rows, info), info, claims_it)
    jsonschema.validate(verdict.to_json(), verdict_schema())
    assert verdict.exit_code == 1
