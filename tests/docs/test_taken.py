"""Every command of README and the pages names a command that there is, with options and words that it takes."""

from __future__ import annotations

import re
import shlex
from importlib.util import find_spec

import click
import pytest

from conformance.cli.main import root
from tests.docs.commands import every_command
from tests.docs.reading import ROOT

PLACEHOLDER = re.compile(r"^[A-Z][A-Z|:.=-]*$|^\.\.\.$|[<>\[\]]")
"""A word that stands for another one."""


def wrong_with(words: list[str]) -> str | None:
    """Why the command would not be taken, None where it would."""
    name, *rest = words
    with click.Context(root) as above:
        found = root.get_command(above, name)
    if found is None:
        return f"there is no command {name}"
    known = {
        option: each
        for each in found.params
        if isinstance(each, click.Option)
        for option in (*each.opts, *each.secondary_opts)
    }
    known.setdefault("--help", click.Option(["--help"], is_flag=True))
    for place, word in enumerate(rest):
        option, equals, value = word.partition("=")
        if not option.startswith("--"):
            continue
        if option not in known:
            return f"{name} has no option {option}"
        kind = known[option]
        if kind.is_flag:
            continue
        value = value if equals else next(iter(rest[place + 1 :]), "")
        if not value:
            return f"{option} of {name} wants a value"
        choices = kind.type.choices if isinstance(kind.type, click.Choice) else None
        if choices is None or PLACEHOLDER.search(value):
            continue
        if not set(value.split("|")) <= set(choices):
            return f"{option} of {name} can't be {value!r}"
    return None


def test_each_command_is_taken() -> None:
    ours = [each for each in every_command() if each.text.startswith("inorder ")]
    told = [(each.told, wrong_with(shlex.split(each.text)[1:])) for each in ours]
    assert [each for each in told if each[1] is not None] == []


MODULE = re.compile(
    r"\bpython3? -m ((?:specs|reference_impl|conformance|chaos|spark_checkers|inorder)[\w.]*)"
)
TARGET = re.compile(r"make ([a-z-]+)")


def test_each_module_and_each_goal_of_make_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    texts = [each.text for each in every_command()]
    goals = {found[1] for found in map(TARGET.match, texts) if found}
    assert len(goals) > 5
    assert [goal for goal in goals if f"\n{goal}:" not in makefile] == []
    modules = {module for text in texts for module in MODULE.findall(text)}
    assert len(modules) > 10
    assert [module for module in modules if not can_be_run(module)] == []


def can_be_run(module: str) -> bool:
    """By `python -m`."""
    spec = find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        return spec is not None
    return find_spec(f"{module}.__main__") is not None


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("conform --traget x", "conform has no option --traget"),
        ("confrom --target x", "there is no command confrom"),
        ("report RUN --format pdf", "--format of report can't be 'pdf'"),
        ("conform --target", "--target of conform wants a value"),
        ("report RUN --format markdown", None),
        ("check HISTORY --engine=arrow", None),
    ],
)
def test_what_is_wrong_is_told(command: str, why: str | None) -> None:
    assert wrong_with(shlex.split(command)) == why
