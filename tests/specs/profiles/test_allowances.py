"""An allowance is about a finding that is known: what else breaks the clause stays red, and a bare one is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.cli.main import root
from specs.clauses.catalogue import get
from specs.profiles import bare_of_its_own, load, names


@pytest.mark.parametrize("name", names())
def test_an_allowance_of_the_project_names_its_finding(name: str) -> None:
    assert load(name).bare == ()


def own(path: Path, lines: str) -> str:
    path.write_text(lines, encoding="utf-8")
    return str(path)


BARE = 'LSE-1 = { status = "allowed", source = "x", reason = "y" }\n'
NAMED = 'LSE-1 = { status = "allowed", source = "x", reason = "y", findings = ["two-owners"] }\n'


def test_a_bare_allowance_of_a_users_own_is_told_apart(tmp_path: Path) -> None:
    """Not those that it has from a profile of the project."""
    extends = 'extends = "rocketmq-5-orderly"\n[clauses]\n'
    assert bare_of_its_own(load(own(tmp_path / "bare.toml", extends + BARE))) == ("LSE-1",)
    assert bare_of_its_own(load(own(tmp_path / "named.toml", extends + NAMED))) == ()
    assert bare_of_its_own(load("rocketmq-5-orderly")) == ()


@pytest.mark.parametrize(("line", "warned"), [(BARE, True), (NAMED, False)])
def test_it_goes_on_working_with_one_line_of_warning(
    tmp_path: Path, line: str, warned: bool
) -> None:
    history = tmp_path / "history.txt"
    history.write_text(get("LSE-1").shortest_violation, encoding="utf-8")
    profile = own(tmp_path / "ours.toml", f"[clauses]\n{line}")
    done = CliRunner().invoke(
        root, ["check", str(history), "--engine", "python", "--profile", profile]
    )
    assert "refuted" not in done.stdout.lower()
    told = [text for text in done.stderr.splitlines() if "LSE-1" in text]
    assert bool(told) is warned
    if warned:
        (sentence,) = told
        assert 'findings = ["NAME"]' in sentence
        assert "inorder list clauses" in sentence


def test_the_names_that_an_allowance_needs_are_listed() -> None:
    listed = CliRunner().invoke(root, ["list", "clauses"]).stdout
    (line,) = (line for line in listed.splitlines() if line.startswith("CMT-8 "))
    assert "start-moved" in line
