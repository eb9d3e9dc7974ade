"""A broker is killed on a file system that is full, and started again: nothing acknowledged is lost."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ALONE = ["unshare", "--mount", "--map-root-user"]


def may_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    mount = [*ALONE, "mount", "-t", "tmpfs", "none", "/mnt"]
    return subprocess.run(mount, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(
    not may_mount(), reason="needs the right to mount a tmpfs in a namespace of its own"
)
@pytest.mark.parametrize("flush", ["sync", pytest.param("async", marks=pytest.mark.long)])
def test_a_kill_on_a_full_file_system(flush: str, tmp_path: Path) -> None:
    """It refuses what has no room; a start without any room is one sentence; with room all is there, and it goes on."""
    command = [
        *ALONE,
        sys.executable,
        "-m",
        "tests.reference_impl.storage.full_tmpfs",
        str(tmp_path),
        flush,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    code, said = seen.pop("still_full")
    assert (code, said.count("\n")) == (70, 1)
    assert "No space left on device" in said
    assert seen.pop("taken") > 10
    assert seen == {
        "refused": 10,
        "all_taken_are_there": True,
        "none_refused_is_there": True,
        "committed": 1,
        "room_again": 0,
        "at": 1,
    }
