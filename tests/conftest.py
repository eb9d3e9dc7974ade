"""Options of the tests, which of them lie on one worker, and which are made at all (`turns`)."""

from __future__ import annotations

import contextlib
import os
import signal
import threading

import pytest

from tests import turns

LONG_S = 4 * 3_600
"""How long a test marked `long` may take, unless it says so itself; the others have the limit of pyproject.toml."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="write what happened into the text cases, so that the difference can be read and reviewed",
    )
    turns.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    with contextlib.suppress(
        ValueError
    ):  # not the main thread: whoever runs us there looks after signals
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            # A shell lets its background jobs ignore Ctrl-C, and so would every process that a test interrupts.
            signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--rewrite") and os.environ.get("CI", "").lower() not in ("", "0", "false"):
        raise pytest.UsageError(
            "--rewrite changes the expected answers, so nobody may use it where CI is set"
        )
    turns.plug_in(config)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """A Spark session of an earlier test listens to Ctrl-C from then on, and would end the worker at a test's own."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if (
            item.get_closest_marker("long") is not None
            and item.get_closest_marker("timeout") is None
        ):
            item.add_marker(pytest.mark.timeout(LONG_S))
    if config.getoption("loadgroup", default=False):
        for item in items:
            _lay_with_its_group(item)


def _lay_with_its_group(item: pytest.Item) -> None:
    """Tests that share a fixture of their module, or a group by mark, run in one worker: it is made once.

    `--dist loadgroup` reads the group behind the last `@` of a test's id. pytest-xdist 3.8 writes it where pytest 9.2
    no longer looks, so that without this no group holds (https://github.com/pytest-dev/pytest-xdist/issues/1386);
    where it has been written already, it is left alone.
    """
    groups = {str(mark.args[0]) for mark in item.iter_markers("xdist_group")}
    if not groups and _shares_a_fixture_of_its_module(item):
        groups = {item.nodeid.partition("::")[0]}
    suffix = "@" + "_".join(sorted(groups))
    if groups and not item.nodeid.endswith(suffix):
        if hasattr(item, "_id"):
            item._id = type(item._id).parse(item.nodeid + suffix)
        else:
            item._nodeid = item.nodeid + suffix


def _shares_a_fixture_of_its_module(item: pytest.Item) -> bool:
    defined = getattr(item, "_fixtureinfo", None)
    return defined is not None and any(
        found and found[-1].scope == "module" for found in defined.name2fixturedefs.values()
    )
