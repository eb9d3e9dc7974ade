"""`pytest --rewrite` writes what happened, and nobody may use it where CI is set."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
USAGE_ERROR = 4


@pytest.mark.parametrize("value", ["true", "1"])
def test_ci_refuses_the_flag(value: str) -> None:
    """A usage error, and one sentence that says why."""
    arguments = [
        sys.executable,
        "-m",
        "pytest",
        "--rewrite",
        "--collect-only",
        "-q",
        "tests/conformance/cases",
    ]
    found = subprocess.run(
        arguments,
        cwd=ROOT,
        env={**os.environ, "CI": value},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (found.returncode, "nobody may use it where CI is set" in found.stderr) == (
        USAGE_ERROR,
        True,
    ), found.stderr
