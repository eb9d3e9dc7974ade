"""Options of the tests."""

from __future__ import annotations

import contextlib
import os
import signal

import pytest

LONG_S = 4 * 3_600
"""How long a test marked `long` may take, unless it says so itself; the others have the limit of pyproject.toml."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="write what happened into the text cases, so that the difference can be read and reviewed",
    )


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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if (
            item.get_closest_marker("long") is not None
            and item.get_closest_marker("timeout") is None
        ):
            item.add_marker(pytest.mark.timeout(LONG_S))
