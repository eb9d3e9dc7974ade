"""The failure that README.md shows is the one that its command shows; `pytest --rewrite` writes it there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from inorder.evidence import demo
from specs.clauses.clause import Promise

Run = Callable[..., Result]
README = Path(__file__).parents[3] / "README.md"
BLOCK = re.compile(r"```\n(REFUTED .*?)\n```\n", re.DOTALL)
COMMAND = re.compile(r"`inorder (conform [^`]+)`")


def test_the_readme_shows_what_its_command_shows(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    """To the byte, at the width that a pipe has; the command is also the one of `make demo`."""
    page = README.read_text(encoding="utf-8")
    shown, told = BLOCK.search(page), COMMAND.search(page)
    assert shown is not None, "README.md begins with a failure"
    assert told is not None, "and says by which command it was made"
    of_the_demo = next(step for step in demo.STEPS if step.name == "mutant")
    assert [shlex.split(told[1])] == of_the_demo.lines(Path("runs/demo"))
    monkeypatch.chdir(tmp_path)
    result = run(*shlex.split(told[1]))
    assert result.exit_code == 1, result.stderr
    found = result.stdout[result.stdout.index("\nREFUTED ") + 1 :].split("\n\n", 1)[0]
    found = "\n".join(line.rstrip() for line in found.splitlines())
    if pytestconfig.getoption("--rewrite"):
        README.write_text(page.replace(shown[1], found), encoding="utf-8")
    else:
        assert shown[1] == found


def test_the_readme_names_every_family_of_clauses() -> None:
    """Its table of questions is the first list of what is judged; MET looks at the run itself."""
    page = README.read_text(encoding="utf-8")
    asked = re.findall(r"^\| `([A-Z]{3})` \|", page, re.MULTILINE)
    assert asked == [family for family in Promise.FAMILIES if family != "MET"]
