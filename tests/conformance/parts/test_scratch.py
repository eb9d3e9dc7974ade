"""A temporary folder goes with its owner, at the latest when the next one of its kind is made."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from conformance.parts.scratch import Scratch

PREFIX = "inorder-test-scratch-"
KILLED = """
import os, signal
from pathlib import Path
from conformance.parts.scratch import Scratch
scratch = Scratch("inorder-test-scratch-")
(Path(scratch.name) / "store").mkdir()
print(scratch.name, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_a_killed_owners_folder_is_removed_by_the_next_and_a_living_ones_stays() -> None:
    with Scratch(PREFIX) as living:
        killed = subprocess.run(
            [sys.executable, "-c", KILLED], capture_output=True, text=True, check=False
        )
        assert killed.returncode == -signal.SIGKILL
        left = Path(killed.stdout.strip())
        assert (left / "store").is_dir()
        with Scratch(PREFIX) as other:
            assert not left.exists()
            assert Path(other).is_dir()
        assert Path(living).is_dir()
    assert not Path(living).exists()


def test_a_folder_that_nobody_ever_held_is_left_alone(tmp_path: Path) -> None:
    strange = tmp_path / f"{PREFIX}of-somebody"
    strange.mkdir()
    with Scratch(PREFIX):
        assert strange.is_dir()
