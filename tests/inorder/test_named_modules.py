"""Every `python -m MODULE` that a page, the Makefile or a docstring tells people to type is there."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import inorder

ROOT = Path(inorder.__file__).parents[1]
PACKAGES = ("specs", "reference_impl", "conformance", "chaos", "spark_checkers", "inorder")
_NAMED = re.compile(rf"-m ((?:{'|'.join(PACKAGES)})(?:\.[a-z_]+)*)(?![.\w])")


def pages() -> Iterator[Path]:
    yield from ROOT.glob("*.md")
    yield ROOT / "Makefile"
    for folder, pattern in (("docs", "*.md"), ("docs", "*.toml"), *((p, "*.py") for p in PACKAGES)):
        yield from (ROOT / folder).rglob(pattern)


def test_every_module_that_people_are_told_to_run_can_be_found() -> None:
    """After a move the words follow."""
    named = {
        (str(path.relative_to(ROOT)), name)
        for path in pages()
        for name in _NAMED.findall(path.read_text(encoding="utf-8"))
    }
    assert len({name for _, name in named}) > 10
    assert sorted(each for each in named if not is_there(each[1])) == []


def is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # nor is its package
        return False


@pytest.mark.parametrize(
    ("former", "now"),
    [
        ("conformance.crossing", "inorder.evidence.interop"),
        ("conformance.track_record", "inorder.evidence.track_record"),
    ],
)
def test_the_former_names_that_kept_runs_print_still_work(former: str, now: str) -> None:
    """They lead to what lies above `conformance` now, by its name and not by an import."""
    command = [sys.executable, "-P", "-m", former, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, f"python -m {now}" in done.stdout) == (0, True), done.stderr
