"""The pytest plugin's door: adds the options, and lets the rest in when a target is asked for.

pytest loads every installed plugin in every project. So this module imports nothing of ours, says nothing and does
nothing until `--inorder-target` is given: a project with a `specs/` of its own is left in peace.
"""

from __future__ import annotations

import importlib

import pytest

from inorder.shadows import EXIT_SHADOWED, find_shadows, sentence


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


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if not _wanted(config):
        return
    shadows = find_shadows()
    if shadows:
        pytest.exit(sentence(shadows), returncode=EXIT_SHADOWED)
    plugin = importlib.import_module("conformance.plugin")
    config.pluginmanager.register(plugin, "inorder-suite")
