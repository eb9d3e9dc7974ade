"""A program in a file can be run again from the command line, on the mutant that it names or on the reference."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

from conformance.cli.replay import command
from conformance.reports.schemas import PROGRAM_SCHEMA, schema
from inorder.evidence.machines.every import MACHINES, is_program, read_program, run_program
from inorder.evidence.machines.programs import search
from reference_impl.mutants import load
from specs.errors import UsageError


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """The program by which the lock table's machine found a mutant."""
    found = search(MACHINES["lock_table"], 3, 50, mutant=load("unlock-ignores-owner"))
    assert found.broken is not None
    path = tmp_path / "program.json"
    path.write_text(json.dumps(found.broken.to_json()), encoding="utf-8")
    return path


def test_a_program_shows_its_bug_again_and_the_reference_has_none(kept: Path) -> None:
    program = read_program(kept)
    assert is_program(kept)
    jsonschema.validate(program.to_json(), schema(PROGRAM_SCHEMA))
    assert run_program(program, program.mutant) is not None
    assert run_program(program, None) is None


def run(*args: str) -> tuple[int, str]:
    result = CliRunner().invoke(command, args, standalone_mode=False)
    assert result.exception is None
    return int(result.return_value), result.stdout


def test_the_command_line_runs_it(kept: Path) -> None:
    code, text = run(str(kept))
    assert code == 1
    assert "allowed code 0" in text
    code, text = run(str(kept), "--target", "reference", "--format", "json")
    assert code == 0
    assert json.loads(text)["disagreement"] is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": "inorder/program/v9"}, "this version reads"),
        ({"machine": "sewing"}, "known are lock_table"),
        ({"steps": [{"do": "explode", "args": {}}]}, "has no step 'explode'"),
        ({"steps": [{"do": "_feed", "args": {}}]}, "has no step '_feed'"),
        ({"steps": 3}, "can't be read as a program"),
    ],
)
def test_what_is_no_program_is_told(kept: Path, change: dict[str, Any], words: str) -> None:
    data = json.loads(kept.read_text(encoding="utf-8"))
    kept.write_text(json.dumps({**data, **change}), encoding="utf-8")
    with pytest.raises(UsageError, match=words):
        read_program(kept)


def test_a_verb_with_other_arguments_is_told(kept: Path) -> None:
    data = json.loads(kept.read_text(encoding="utf-8"))
    data["steps"][0]["args"] = {"colour": "red"}
    kept.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(UsageError, match="other arguments"):
        run_program(read_program(kept), None)
