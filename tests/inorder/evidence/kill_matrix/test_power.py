"""The file that says how soon planted bugs are found: made of searches, mutant by mutant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
from click.testing import CliRunner
from hypothesis.stateful import INITIALIZE_RULE_MARKER

from conformance.machines.cluster import ClusterMachine
from conformance.reports.power import POWER_SCHEMA
from conformance.reports.schemas import schema
from inorder.evidence.kill_matrix.document import PICTURE, found_after
from inorder.evidence.kill_matrix.power import DRAWN, FILE, main, settings
from reference_impl.mutants import every_mutant, load


def make(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, list(arguments))
    return result.exit_code, result.stderr


def test_searches_are_written_and_kept(tmp_path: Path) -> None:
    """By mutant and seed; a second call makes none of them again, and leaves what it was not asked for."""
    file, out = tmp_path / "power.json", str(tmp_path / "out")
    same = ["--workers", "1", "--seeds", "2", "--power", str(file), "--out", out]
    code, told = make("newest-first", *same)
    assert (code, told.count("newest-first seed")) == (0, 2)
    first = json.loads(file.read_text(encoding="utf-8"))
    jsonschema.validate(first, schema(POWER_SCHEMA))
    bug = first["clauses"]["ORD-2"]["newest-first"]
    assert (bug["oracle"], list(bug["runs"]), bug["settings"]) == ("history", ["1", "2"], {})
    text = file.read_text(encoding="utf-8")
    code, told = make("newest-first", *same)
    assert (code, "2 cells are" in told, file.read_text(encoding="utf-8")) == (0, True, text)
    code, told = make("ring-hashed-otherwise", *same)
    both = json.loads(file.read_text(encoding="utf-8"))["clauses"]
    assert (code, list(both), both["ORD-2"]) == (0, ["ASG-3", "ORD-2"], first["clauses"]["ORD-2"])


def test_a_mutant_that_is_gone_goes_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "power.json"
    old: dict[str, Any] = {"oracle": "history", "settings": {}, "most": 300, "runs": {"1": 4}}
    file.write_text(json.dumps({"clauses": {"LSE-1": {"no-such-mutant": old}}}))
    make(
        "ring-hashed-otherwise",
        "--workers",
        "1",
        "--power",
        str(file),
        "--out",
        str(tmp_path / "out"),
    )
    assert list(json.loads(file.read_text(encoding="utf-8"))["clauses"]) == ["ASG-3"]


def test_a_survivor_is_written_as_one(tmp_path: Path) -> None:
    """Not found in so few runs: what is not drawn in one run can't show."""
    file = tmp_path / "power.json"
    code, told = make(
        "refusal-ignored", "--examples", "1", "--seeds", "1", "--workers", "1",
        "--power", str(file), "--out", str(tmp_path / "out"),
    )  # fmt: skip
    assert (code, "NOT FOUND in 1 runs" in told) == (0, True)
    found = json.loads(file.read_text(encoding="utf-8"))["clauses"]["LSE-3"]["refusal-ignored"]
    assert found["runs"] == {"1": None}


def test_what_is_said_to_be_drawn_is_drawn() -> None:
    """A setting that no search draws must stay with its mutant, or the mutant has no occasion."""
    begin = getattr(ClusterMachine.begin, INITIALIZE_RULE_MARKER).arguments
    names = {"max_reconsume_times": "limit"}
    for name, values in DRAWN.items():
        strategy = begin[names.get(name, name)]
        strategy.validate()
        assert set(values) <= set(strategy.elements), name


def test_the_file_says_what_each_mutant_needs_now() -> None:
    """Otherwise run `python -m inorder.evidence.kill_matrix.power MUTANT`."""
    clauses = json.loads(FILE.read_text(encoding="utf-8"))["clauses"]
    kept = {name: bug["settings"] for bugs in clauses.values() for name, bug in bugs.items()}
    assert kept == {mutant.name: settings(mutant) for mutant in every_mutant()}
    assert settings(load("dead-letter-lost")) == {}
    assert settings(load("first-of-batch-committed")) == {"batch": 4}


def test_the_picture_of_the_page_is_fresh() -> None:
    """Otherwise run `python -m inorder.evidence.kill_matrix.document`."""
    assert PICTURE.read_text(encoding="utf-8") == found_after()
