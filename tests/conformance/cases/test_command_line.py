"""`inorder list cases` and `inorder replay CASE`."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result

from conformance.cases.folder import case_files
from conformance.cli.main import root
from conformance.reports.schemas import CASE_SCHEMA, LIST_SCHEMA, schema
from specs.errors import EXIT_REFUTED, EXIT_UPHELD, UsageError

NAME = "lease/stranger_cannot_unlock"


def run(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "120"}).invoke(root, list(arguments))


def test_the_list_has_every_case_with_its_why() -> None:
    """As JSON of the list's schema, and as a table."""
    data = json.loads(run("list", "cases", "--format", "json").stdout)
    jsonschema.validate(data, schema(LIST_SCHEMA))
    found = {item["name"]: item for item in data["items"]}
    assert len(found) == len(case_files())
    assert found[NAME]["why"].startswith("Only the owner's unlock frees a queue")
    assert found[NAME]["mutants"] == ["unlock-ignores-owner"]
    assert NAME in run("list", "cases").stdout


def test_a_case_is_played() -> None:
    """With what happened, and a last line that says that it was expected."""
    result = run("replay", NAME)
    assert result.exit_code == EXIT_UPHELD
    assert result.stdout.endswith("granted none\n\nall as expected\n")


def test_a_case_is_played_on_a_mutant() -> None:
    """What was expected and what happened stand below each other, and the exit code is 1."""
    result = run("replay", NAME, "--target", "mutant:unlock-ignores-owner")
    assert result.exit_code == EXIT_REFUTED
    assert "----\n- granted none\n+ granted 0\n" in result.stdout
    assert "one answer is not as expected, the first in the block at line 13 of " in result.stdout


def test_a_case_as_json() -> None:
    """An object of its own schema."""
    data = json.loads(
        run("replay", NAME, "--target", "mutant:unlock-ignores-owner", "--format", "json").stdout
    )
    jsonschema.validate(data, schema(CASE_SCHEMA))
    assert (data["case"], data["as_expected"]) == (NAME, False)
    assert [block["as_expected"] for block in data["blocks"]] == [True, True, False]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([NAME, "--out", "somewhere"], "leave --profile and --out out"),
        ([NAME, "--target", "rocketmq:here"], "can't be replayed, only simulated ones"),
        (["no/such/case.txt"], "there is no case no/such/case.txt"),
    ],
)
def test_what_can_not_be_played(arguments: list[str], sentence: str) -> None:
    """One sentence."""
    result = run("replay", *arguments)
    assert isinstance(result.exception, SystemExit | UsageError)
    assert sentence in result.stderr + str(result.exception)


def test_a_case_of_ones_own(tmp_path: Path) -> None:
    """Any file that begins with its own path."""
    folder = tmp_path / "mine"
    folder.mkdir()
    text = "# mine/first.txt\n# A lane is free at first.\n\nlock g t/b0/0 by me\n----\ngranted 0\n"
    (folder / "first.txt").write_text(text, encoding="utf-8")
    assert run("replay", str(folder / "first.txt")).exit_code == EXIT_UPHELD
