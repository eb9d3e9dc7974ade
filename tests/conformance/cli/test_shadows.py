"""A repository with a specs/ or a chaos/ of its own: one clear sentence instead of an ImportError.

The test installs nothing: it takes what a wheel would bring (the packages in one folder that comes last on the
path) and puts another repository's folders before it, as PYTHONPATH, `python -m` and pytest do.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from inorder import shadows

SHADOWED = 70


@pytest.fixture
def other_repository(tmp_path: Path) -> Path:
    """Somebody's project: specs/ and chaos/ with other things in them, and a test."""
    for name in ("specs", "chaos"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(
            'raise RuntimeError("imported")\n', encoding="utf-8"
        )
    (tmp_path / "test_theirs.py").write_text("def test_theirs(): pass\n", encoding="utf-8")
    return tmp_path


def python(
    *arguments: str, cwd: Path, path: Path | None = None
) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONUTF8": "1"}
    env.pop("PYTHONPATH", None)
    if path is not None:
        env["PYTHONPATH"] = str(path)
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def is_the_sentence(text: str, folder: Path) -> bool:
    lines = [line for line in text.splitlines() if "inorder can't start" in line]
    return (
        len(lines) == 1
        and f"specs is found in {folder / 'specs'}" in lines[0]
        and f"chaos is found in {folder / 'chaos'}" in lines[0]
        and "Traceback" not in text
    )


def test_nothing_shadows_a_sound_installation() -> None:
    """All five packages lie beside the door."""
    assert shadows.find_shadows() == ()


def test_the_command_line_says_it_when_pythonpath_shadows(other_repository: Path) -> None:
    """Exit 70, one sentence with both folders, and nobody's package was imported."""
    done = python(
        "-P", "-m", "inorder", "list", "clauses", cwd=other_repository, path=other_repository
    )
    assert (done.returncode, is_the_sentence(done.stderr, other_repository)) == (SHADOWED, True), (
        done.stderr
    )
    assert len(done.stderr.splitlines()) == 1


def test_the_command_line_says_it_when_the_working_folder_shadows(other_repository: Path) -> None:
    """`python -m` puts the working folder first."""
    done = python("-m", "inorder", "--version", cwd=other_repository)
    assert (done.returncode, is_the_sentence(done.stderr, other_repository)) == (SHADOWED, True), (
        done.stderr
    )


def test_the_command_line_says_it_when_conformance_itself_is_shadowed(tmp_path: Path) -> None:
    """The package of the command line may be the hidden one."""
    (tmp_path / "conformance").mkdir()
    (tmp_path / "conformance" / "__init__.py").write_text("", encoding="utf-8")
    done = python("-m", "inorder", "--version", cwd=tmp_path)
    assert done.returncode == SHADOWED
    assert f"conformance is found in {tmp_path / 'conformance'}" in done.stderr


def test_the_console_script_is_not_troubled_by_the_working_folder(other_repository: Path) -> None:
    """A script's own folder comes first on the path, not the working folder."""
    script = Path(sys.executable).with_name("inorder")
    done = subprocess.run(
        [script, "--version"], cwd=other_repository, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "inorder 0.1.0\n"), done.stderr


def test_a_folder_without_init_shadows_nothing(tmp_path: Path) -> None:
    """Python prefers our package to somebody's folder of documents."""
    (tmp_path / "specs").mkdir()
    done = python("-m", "inorder", "--version", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "inorder 0.1.0\n"), done.stderr


def test_pytest_says_it_when_the_suite_is_asked_for(other_repository: Path) -> None:
    """`python -m pytest` puts the working folder first."""
    suite = ["--pyargs", "conformance.suite", "--inorder-target", "reference"]
    done = python("-m", "pytest", *suite, cwd=other_repository)
    assert (done.returncode, is_the_sentence(done.stdout + done.stderr, other_repository)) == (
        SHADOWED,
        True,
    ), done.stdout + done.stderr


def test_pytest_leaves_their_own_tests_in_peace(other_repository: Path) -> None:
    """Nobody asked for us: their suite runs as if we were not installed."""
    done = python(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_theirs.py", cwd=other_repository
    )
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout + done.stderr


def test_a_package_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    """A broken installation gets the same sentence."""
    found = shadows.find_shadows(home=tmp_path)
    assert [shadow.name for shadow in found] == list(shadows.OURS)
    assert "chaos is not found at all" in shadows.sentence((shadows.Shadow("chaos", None),))
