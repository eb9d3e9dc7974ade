"""A temporary folder goes with its owner, at the latest when `inorder` is started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from specs.scratch import Scratch, remove_abandoned

KILLED = """
import os, signal
from pathlib import Path
from specs.scratch import Scratch
scratch = Scratch("test")
(Path(scratch.name) / "store").mkdir()
print(scratch.name, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """The folder of a process that was killed."""
    killed = subprocess.run(
        [sys.executable, "-c", KILLED],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    folder = Path(killed.stdout.strip())
    assert (killed.returncode, (folder / "store").is_dir()) == (-signal.SIGKILL, True)
    return folder


def test_a_killed_owners_folder_is_removed_at_the_next_start_and_a_living_ones_stays(
    left: Path, tmp_path: Path
) -> None:
    with Scratch("test", tmp_path) as living:
        subprocess.run(
            [sys.executable, "-m", "inorder", "list", "words"],
            env={**os.environ, "TMPDIR": str(tmp_path)},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        assert (left.exists(), Path(living).is_dir()) == (False, True)
    assert not Path(living).exists()


def test_what_nobody_held_what_is_a_link_and_what_is_anothers_is_left_alone(
    left: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strange, link = tmp_path / "inorder-of-somebody", tmp_path / "inorder-link"
    strange.mkdir()
    kept = left.rename(tmp_path / "kept")
    link.symlink_to(kept)
    remove_abandoned(tmp_path)
    assert (strange.is_dir(), kept.is_dir()) == (True, True)
    anothers = kept.rename(left)
    monkeypatch.setattr(os, "getuid", lambda: anothers.stat().st_uid + 1)
    remove_abandoned(tmp_path)
    assert anothers.is_dir()
