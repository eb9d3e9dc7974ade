"""`inorder tap` as a user runs it, and what `inorder check` says to what it saw."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from conformance.cli.main import root
from specs.history.row import Row
from specs.history.store import open_history

TAP = (sys.executable, "-c", "from conformance.cli.tap import command; command()")
STOP_S = 60.0


@dataclass
class Seen:
    """A tap at work, and after its end what it saw."""

    namesrv: str
    folder: Path
    said: str = ""
    verdict: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""

    def rows(self) -> list[Row]:
        return list(open_history(self.folder).rows())

    def clauses(self, word: str) -> list[str]:
        return [each["id"] for each in self.verdict["clauses"] if each["verdict"] == word]

    def at_stake(self, clause: str) -> int:
        return next(
            int(each["opportunities"]) for each in self.verdict["clauses"] if each["id"] == clause
        )

    def why(self, clause: str) -> str:
        """For a failing test: everything that was said about a clause."""
        return json.dumps(
            next(each for each in self.verdict["clauses"] if each["id"] == clause), indent=1
        )


@contextmanager
def tap_before(
    namesrv: str, folder: Path, config: Mapping[str, Any], profile: str
) -> Iterator[Seen]:
    """A tap in a process of its own; at the end it is stopped, and what it saw is judged."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(dict(config)))
    out = folder / "seen"
    argv = [*TAP, "--upstream", namesrv, "--out", str(out), "--config", str(folder / "config.json")]
    argv += ["--profile", profile, "--format", "json"]
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ)
    ) as process:
        assert process.stdout is not None
        seen = Seen(json.loads(process.stdout.readline())["namesrv"], out)
        try:
            yield seen
        finally:
            process.send_signal(signal.SIGINT)
            try:
                seen.said = process.communicate(timeout=STOP_S)[1].decode()
            except subprocess.TimeoutExpired:
                process.kill()
                raise
    assert process.returncode == 0, seen.said
    judged = CliRunner().invoke(root, ["check", str(out), "--engine", "python", "--format", "json"])
    seen.verdict = json.loads(judged.stdout)
    seen.text = CliRunner().invoke(root, ["check", str(out), "--engine", "python"]).stdout
