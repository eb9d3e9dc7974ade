"""A driver that fails in the midst of a run: what it told until then is judged and kept, and nothing later is held
against anybody."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.cli.main import root
from conformance.parts.places import CHECKOUT
from specs.history.store import open_history
from specs.vocabulary import Kind

HOSTED = CHECKOUT / "drivers" / "examples" / "hosted.py"
CALLS = 60
DIES = "next(calls) < CALLS or sys.exit(print('out of luck', file=sys.stderr) or os._exit(3))"
"""At the call of that number, whoever's it is."""


def dying(folder: Path, bug: str, how: str = DIES) -> str:
    """A target: the hosted toy, that dies. bug: what is wrong with its queue besides."""
    text = HOSTED.read_text(encoding="utf-8")
    told = '    tell(client, "delivered"'
    assert told in text
    text = text.replace(told, f"    {how}\n{told}").replace("import sys\n", "import os, sys\n")
    text = text.replace(
        "numbers = iter(", f"CALLS, calls = {CALLS}, iter(range(1 << 60))\nnumbers = iter("
    )
    (folder / "dying.py").write_text(text, encoding="utf-8")
    return f"exec:{sys.executable} {folder / 'dying.py'} {bug}".strip()


def conform(folder: Path, target: str) -> tuple[int, str, dict[str, object]]:
    out = folder / "run"
    words = ["conform", "--seed", "1", "--examples", "1", "--target", target, "--out", str(out)]
    done = CliRunner().invoke(root, words)
    verdict = json.loads((out / "verdict.json").read_text(encoding="utf-8"))
    return done.exit_code, " ".join(done.output.split()), verdict


@pytest.mark.timeout(120)
def test_a_driver_that_dies_is_judged_until_then_and_is_no_verdict(tmp_path: Path) -> None:
    code, said, verdict = conform(tmp_path, dying(tmp_path, ""))
    assert (code, verdict["verdict"]) == (69, "inconclusive")
    assert re.search(r"driver \S+ died \(exit code 3\) after \S+, and was not told to", said)
    assert "out of luck" in said
    rows = list(open_history(tmp_path / "run").rows())
    calls = [row for row in rows if row.kind is Kind.DELIVER]
    assert len(calls) == CALLS
    # Nobody knows what it did after its last word: each client counts as dead from then on.
    dead = {row.client_id: row for row in rows if row.kind is Kind.CRASH}
    assert {row.client_id for row in calls} <= set(dead)
    for row in calls:
        assert row.started_us <= dead[row.client_id].started_us


@pytest.mark.timeout(120)
def test_what_is_refuted_before_its_driver_dies_is_refuted(tmp_path: Path) -> None:
    code, said, verdict = conform(tmp_path, dying(tmp_path, "twice"))
    assert (code, verdict["verdict"]) == (1, "refuted")
    assert "ORD-3" in said
    assert "driver admin died (exit code 3)" in said


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("command", "code"), [("conform", 69), ("chaos", 69)])
def test_a_driver_that_hangs_ends_by_its_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, code: int
) -> None:
    monkeypatch.setenv("INORDER_DRIVER_ANSWER_S", "5")
    hangs = "next(calls) < CALLS or __import__('time').sleep(1000)"
    target = dying(tmp_path, "", hangs)
    scenario = ["consumer-killed"] if command == "chaos" else ["--examples", "1"]
    out = ["--seed", "1", "--target", target, "--out", str(tmp_path / "run")]
    done = CliRunner().invoke(root, [command, *scenario, *out])
    assert done.exit_code == code, done.output
    assert "driver admin" in done.output
