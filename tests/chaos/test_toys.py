"""Chaos on strangers' targets: a toy in this process, and a driver with a process for each client."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.parts.places import CHECKOUT
from tests.conformance.targets.test_toys import clauses, inorder

TOYS = Path(__file__).parent / "toys"
OF_TARGETS = CHECKOUT / "drivers" / "examples"
REGISTERED = """[inorder.targets]
leased = leased:leased
keeps = leased:keeps
skips = leased:skips
"""
SCENARIOS = ("consumer-killed", "consumer-paused")


@pytest.fixture
def path(tmp_path: Path) -> dict[str, str]:
    """The environment of somebody who has installed a distribution with the toys."""
    info = tmp_path / "site" / "toys-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 1\n")
    (info / "entry_points.txt").write_text(REGISTERED)
    there = [str(info.parent), str(TOYS), str(OF_TARGETS), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, there))}


@pytest.fixture
def server() -> Iterator[int]:
    """The port of a queue server."""
    command = [sys.executable, str(OF_TARGETS / "queue_server.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.kill()


@pytest.mark.long
def test_two_faults_on_a_toy(path: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "runs"
    done = inorder(path, "chaos", *SCENARIOS, "--target", "leased", "--seed", "1", "--out", out)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in SCENARIOS:
        found = clauses(out / name)
        assert (found["ORD-4"], found["SND-1"]) == ("upheld", "upheld")


@pytest.mark.long
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_wrong_toy_is_refuted(path: dict[str, str], tmp_path: Path, scenario: str) -> None:
    """And its run can be done again, with its faults."""
    out, again = tmp_path / "runs", tmp_path / "again"
    done = inorder(path, "chaos", scenario, "--target", "skips", "--seed", "1", "--out", out)
    assert done.returncode == 1, done.stdout + done.stderr
    assert clauses(out / scenario)["ORD-4"] == "refuted"
    done = inorder(path, "replay", out / scenario, "--out", again)
    assert done.returncode == 1, done.stdout + done.stderr
    assert clauses(again)["ORD-4"] == "refuted"


def test_what_does_not_come_is_told_and_the_run_judged(
    path: dict[str, str], tmp_path: Path
) -> None:
    """The toy promises nothing about how soon: nothing is refuted, and the run is inconclusive."""
    out, mine = tmp_path / "runs", tmp_path / "mine.toml"
    mine.write_text(
        'why = "x"\nmust_reach = ["takeover"]\n[workload]\nmessages = 80\n[[fault]]\ndo = "crash"\n'
        'client = "c1"\ndeadline_s = 2'
    )
    done = inorder(path, "chaos", mine, "--target", "keeps", "--seed", "1", "--out", out)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "somebody to take over from c1 was waited for" in " ".join(done.stdout.split())
    assert clauses(out / "mine")["ORD-2"] == "upheld"


@pytest.mark.long
def test_two_faults_on_a_driver_for_each_client(
    path: dict[str, str], tmp_path: Path, server: int
) -> None:
    out = tmp_path / "runs"
    command = f"exec:{sys.executable} {OF_TARGETS / 'networked.py'} {server}"
    done = inorder(path, "chaos", *SCENARIOS, "--target", command, "--seed", "1", "--out", out)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_a_target_cannot_have_done_to_it_is_told_before_anything_starts(
    path: dict[str, str], tmp_path: Path
) -> None:
    out = tmp_path / "runs"
    done = inorder(path, "chaos", "link-down", "--target", "leased", "--out", out)
    assert done.returncode == 64
    assert "needs a target that can break, hold and delay a connection; leased can't" in done.stderr
    assert not out.exists()
