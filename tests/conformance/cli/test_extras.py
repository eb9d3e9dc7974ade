"""What runs where Spark and Docker are not installed, and what the rest says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("docker", "pandas", "pyspark"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from inorder.__main__ import main
sys.exit(main(sys.argv[1:]))
"""
DOCKER = "docker is not installed; it comes with `pip install 'inorder[docker]'`"
SPARK = "pyspark is not installed; it comes with `pip install 'inorder[spark]'`"
TOLD = "0ms..1ms  p1  sends  orders/b0/0  offset=0  id=m1  key=a  ok\n"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("chaos --help", 0, ""),
        ("list scenarios", 0, ""),
        ("check history.txt --clause SND-1 --engine python", 2, ""),
        ("check history.txt --clause SND-1 --engine arrow", 2, ""),
        ("check history.txt --clause SND-1 --engine spark", 69, SPARK),
        ("chaos consumer-killed --target containers:reference+tcp", 69, DOCKER),
        ("doctor --for chaos", 69, DOCKER),
    ],
)
def test_the_core_alone(words: str, code: int, said: str, tmp_path: Path) -> None:
    """One sentence with the install line, before anything was started."""
    (tmp_path / "history.txt").write_text(TOLD, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *words.split()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert said in " ".join((done.stdout + done.stderr).split())
