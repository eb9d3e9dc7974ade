"""The command line as a user starts it: in this process with click's runner, or as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from conformance.cli.main import root

Run = Callable[..., Result]
Start = Callable[..., "subprocess.CompletedProcess[str]"]

MUTANT = "mutant:expiry-ignored"
PROFILE = """
title = "A profile for tests"
[clauses]
LSE-1 = { status = "claimed", source = "a test" }
"""


@pytest.fixture(scope="session")
def run() -> Run:
    """`run("check", "x")` → click's result, with stdout and stderr apart."""

    def invoke(*arguments: str, env: dict[str, str] | None = None) -> Result:
        return CliRunner(env={"COLUMNS": "100", **(env or {})}).invoke(root, list(arguments))

    return invoke


@pytest.fixture(scope="session")
def start() -> Start:
    """`start("check", "x")` → the finished process of `python -m inorder`."""

    def process(
        *arguments: str, cwd: Path | None = None, **env: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", "-m", "inorder", *arguments],
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
            cwd=cwd,
            env={**os.environ, "COLUMNS": "100", "PYTHONUTF8": "1", **env},
        )

    return process


@pytest.fixture(scope="session")
def profile(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A profile that claims LSE-1 alone."""
    path = tmp_path_factory.mktemp("profile") / "one-clause.toml"
    path.write_text(PROFILE, encoding="utf-8")
    return str(path)


@pytest.fixture(scope="session")
def refuted_run(
    run: Run, profile: str, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Result, Path]:
    """A mutant, judged: the command's result and the run's folder."""
    out = tmp_path_factory.mktemp("runs") / "mutant"
    result = run(
        "conform", "--target", MUTANT, "--profile", profile, "--seed", "5", "--out", str(out)
    )
    return result, out
