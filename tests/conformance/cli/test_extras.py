"""What runs where Spark and Docker are not installed, and what the rest says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from conformance.parts import extras, places

WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("docker", "pandas", "pyspark", "ruamel"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from inorder.__main__ import main
sys.exit(main(sys.argv[1:]))
"""
DOCKER = "docker is not installed; the extra `docker` brings it: `make setup`"
SPARK = "pyspark is not installed; the extra `spark` brings it: `make setup`"
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
        ("chaos --attach compose.yaml", 69, "the extra `docker` brings it: `make setup`"),
        ("doctor --for chaos", 69, "docker is not installed"),
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


@pytest.mark.parametrize(
    ("module", "extra"), [("ruamel", "docker"), ("docker", "docker"), ("pyspark", "spark")]
)
def test_an_installed_package_names_the_extra_by_the_wheel(
    module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never by its name alone; and where there is no checkout, nobody is told to `make` anything."""
    monkeypatch.setattr(extras, "checkout", lambda: None)
    monkeypatch.setattr(places, "checkout", lambda: None)
    said = extras.why(ModuleNotFoundError(f"No module named {module!r}", name=module))
    assert said.endswith(f'brings it: `pip install "$(echo ./inorder-*.whl)[{extra}]"`')
    assert places.by_set_up("jars", "5.4.0") == "python -m conformance.parts.jars 5.4.0"
