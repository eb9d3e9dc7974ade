"""Options of the tests."""

from __future__ import annotations

import os

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="write what happened into the text cases, so that the difference can be read and reviewed",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--rewrite") and os.environ.get("CI", "").lower() not in ("", "0", "false"):
        raise pytest.UsageError("--rewrite changes the expected answers, so nobody may use it where CI is set")
