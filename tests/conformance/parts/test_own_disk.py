"""A disk whose power can be cut: what was synced survives, what was not is gone, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.parts import own_disk
from conformance.parts.own_disk import WITNESS_BYTES, OwnDisk
from conformance.parts.processes import Process, wait_until

DEADLINE_S = 30.0
WHY_NOT = own_disk.why_not()
needs_a_disk = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
WRITES = """
cat {store}/*.txt > {said} 2>/dev/null
echo synced >> {store}/a.txt; sync -f {store}
echo unsynced >> {store}/b.txt
touch {ready}; exec sleep 60
"""
HARNESS = """
import sys
from pathlib import Path
from conformance.parts.own_disk import OwnDisk
from conformance.parts.processes import Process
folder = Path(sys.argv[1])
disk = OwnDisk(folder / "images", folder / "store")
process = Process("sleeper", disk.command(["sh", "-c", "touch %s/up; exec sleep 60" % folder]), log=folder / "log")
process.wait(60)
"""


@needs_a_disk
def test_a_cut_takes_what_was_not_synced_and_nothing_else(tmp_path: Path) -> None:
    store, said, ready = tmp_path / "store", tmp_path / "said", tmp_path / "ready"
    disk = OwnDisk(tmp_path / "images", store)
    script = WRITES.format(store=store, said=said, ready=ready)
    heard = []
    try:
        for synced in (False, True, False):
            process = Process("writer", disk.command(["sh", "-c", script]), log=tmp_path / "log")
            process.wait_until(ready.exists, what="write", deadline_s=DEADLINE_S)
            ready.unlink()
            lost = disk.cut(process, synced=synced)
            heard.append((said.read_text().split(), lost))
            assert process.returncode == -signal.SIGKILL
    finally:
        disk.close()
    assert heard == [
        ([], WITNESS_BYTES),
        (["synced"], 0),
        (["synced", "synced", "unsynced"], WITNESS_BYTES),
    ]
    assert not (tmp_path / "images").exists()
    assert list(store.iterdir()) == []


@needs_a_disk
def test_nothing_is_left_of_a_disk_whose_harness_was_killed(tmp_path: Path) -> None:
    words = [sys.executable, "-c", HARNESS, str(tmp_path)]
    with subprocess.Popen(words) as harness:
        assert wait_until((tmp_path / "up").exists, deadline_s=DEADLINE_S)
        assert _loops_of(tmp_path)
        harness.kill()
    gone = wait_until(
        lambda: not (_loops_of(tmp_path) or (tmp_path / "images").exists()), deadline_s=DEADLINE_S
    )
    assert gone


def _loops_of(folder: Path) -> list[str]:
    """The loop devices whose images lie in a folder."""
    files = Path("/sys/block").glob("loop*/loop/backing_file")
    return [found for path in files if str(folder) in (found := path.read_text())]


def test_where_it_can_not_be_done_it_is_said_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert own_disk.why_not.__wrapped__() == "only root may mount a disk image"
