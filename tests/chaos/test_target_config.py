"""`inorder chaos --target-config`: the target's file, as in `conform`, and what is known of its brokers."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from chaos.cli import command, find_target
from conformance.targets.options import with_config
from specs.errors import UsageError
from specs.plan.plan import Plan

CLUSTER = "rocketmq:127.0.0.1:1"


def _file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_file_is_read_for_the_target(tmp_path: Path) -> None:
    """A misspelt option in the file is refused in a sentence that names the file."""
    path = _file(tmp_path, "[options]\nbroker_leese_ms = 30000\n")
    asked = ["consumer-killed", "--target", CLUSTER, "--target-config", str(path)]
    refused = CliRunner().invoke(command, asked)
    assert isinstance(refused.exception, UsageError)
    assert str(path) in str(refused.exception)
    near = "broker_lease_ms or broker_persist_ms or broker_persist_first_ms"
    assert f"did you mean {near}?" in str(refused.exception)


def test_what_the_file_says_of_somebodys_brokers_is_known_and_nothing_else(tmp_path: Path) -> None:
    """Consumers that are hosted on a running cluster are judged by what was told, never by a guess."""
    path = _file(tmp_path, "[options]\nbroker_lease_ms = 30000\n")
    guessed = find_target(CLUSTER, "process").settings(Plan())
    told = find_target(with_config(CLUSTER, path), "process").settings(Plan())
    assert ("broker_lease_ms" in guessed.untold, "broker_lease_ms" in told.untold) == (True, False)
