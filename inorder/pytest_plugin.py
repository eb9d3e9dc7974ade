"""The pytest plugin's door: adds the options, and lets the rest in when a target is asked for.

pytest loads every installed plugin in every project. So this module imports nothing of ours, says nothing and does
nothing until `--inorder-target` is given: a project with a `specs/` of its own is left in peace. Its fixtures skip
until then; the suite's own, of the same names, take their place.
"""

from __future__ import annotations

import importlib

import pytest

from inorder.shadows import EXIT_SHADOWED, find_shadows, sentence

_NO_TARGET = "no --inorder-target says what to judge"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup(
        "inorder", "inorder: does it keep the order it promises? (with --pyargs conformance.suite)"
    )
    group.addoption(
        "--inorder-target",
        metavar="NAME[:ARG]",
        help="the system to judge, as `inorder list targets`",
    )
    group.addoption(
        "--inorder-profile", metavar="NAME", help="what it promises, as `inorder list profiles`"
    )
    group.addoption(
        "--inorder-name",
        metavar="NAME",
        help="of the series of runs that this one is of, for the history that Allure and CI servers keep",
    )
    group.addoption(
        "--inorder-seed", metavar="N", type=int, help="an integer; drawn and printed when left out"
    )
    group.addoption(
        "--inorder-examples",
        metavar="N",
        type=int,
        help="how many generated runs; more take longer",
    )
    group.addoption(
        "--inorder-baseline",
        metavar="FILE",
        help="what is known to be broken, as `inorder baseline` writes it: told, and let pass",
    )
    group.addoption(
        "--inorder-out", metavar="DIR", help="where the run is kept (default: runs/TARGET-SEED)"
    )


def _wanted(config: pytest.Config) -> bool:
    return bool(config.getoption("--inorder-target")) or any(
        "conformance.suite" in arg for arg in config.args
    )


@pytest.fixture(scope="session")
def inorder_verdict() -> object:
    """The verdict of the session's run; a test that asks for it is skipped where no target is named."""
    pytest.skip(_NO_TARGET)


@pytest.fixture(scope="session")
def inorder_folder() -> object:
    """Where the session's run is kept; as above."""
    pytest.skip(_NO_TARGET)


@pytest.fixture(scope="session")
def inorder_history() -> object:
    """What the session's run recorded; as above."""
    pytest.skip(_NO_TARGET)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if not _wanted(config):
        return
    shadows = find_shadows()
    if shadows:
        pytest.exit(sentence(shadows), returncode=EXIT_SHADOWED)
    plugin = importlib.import_module("conformance.plugin")
    config.pluginmanager.register(plugin, "inorder-suite")
