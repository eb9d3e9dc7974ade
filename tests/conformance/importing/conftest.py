"""Imports by the command line as a user starts it, whether or not the command is registered in this installation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from conformance.cli import main
from conformance.cli.importing import command

Run = Callable[..., Result]

KAFKA = """
profile = "kafka-java"
config.system = "kafka"
config.mode = "orderly"
config.message_model = "clustering"
config.subscription = "*"
config.max_reconsume_times = -1
order = "lines"
clock_bound_ms = 0
time = "ts"
records = ["deliver"]
did_not_happen = ["add", "reset"]

[[event]]
kind = "deliver"
at = "moment"
columns = { client_id = "who", queue_id = "part", queue_offset = "off" }
constants = { group = "billing", topic = "orders", broker = "kafka", outcome = "success", incarnation = "1" }
"""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run("import", "csv", ...)` → click's result."""
    usual = main.Root.get_command
    monkeypatch.setattr(
        main.Root,
        "get_command",
        lambda self, ctx, name: command if name == "import" else usual(self, ctx, name),
    )
    return lambda *arguments, **more: CliRunner(env={"COLUMNS": "100"}).invoke(
        main.root, [str(each) for each in arguments], **more
    )


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | Sequence[str]], Path]:
    """`write("log.csv", lines)` → the file's path."""

    def file(name: str, text: str | Sequence[str]) -> Path:
        path = tmp_path / name
        whole = text if isinstance(text, str) else "\n".join(text) + "\n"
        path.write_text(whole, encoding="utf-8")
        return path

    return file
