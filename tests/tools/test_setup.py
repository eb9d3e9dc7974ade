"""The set-up says what is missing, goes on where it can, and does nothing twice."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def setup(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """tools/setup.py as a module, with its folders in a scratch place."""
    spec = importlib.util.spec_from_file_location("inorder_setup", ROOT / "tools" / "setup.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "inorder_setup", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "TOOLS", tmp_path)
    monkeypatch.setattr(module, "STAMPS", tmp_path / "setup.json")
    monkeypatch.setattr(module, "PARTS", tmp_path / "parts.json")
    return module


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine with nothing in PATH, on which no Debian package may be installed."""
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setenv("INORDER_NO_APT", "1")
    monkeypatch.delenv("JAVA_HOME", raising=False)


def test_a_step_is_done_again_only_if_its_inputs_change(setup: ModuleType, tmp_path: Path) -> None:
    """Stamps survive the program; a changed input or a lost output makes a step due."""
    output = tmp_path / "output"
    output.touch()
    setup.Stamps().set("step", "inputs")
    assert setup.Stamps().fresh("step", "inputs", output)
    assert not setup.Stamps().fresh("step", "other inputs", output)
    output.unlink()
    assert not setup.Stamps().fresh("step", "inputs", output)


def test_torn_stamps_count_as_none(setup: ModuleType, tmp_path: Path) -> None:
    """Everything is due again, and nothing is raised."""
    (tmp_path / "setup.json").write_text('{"step": ')
    assert not setup.Stamps().fresh("step", "inputs")


def test_a_digest_tells_contents_apart(setup: ModuleType, tmp_path: Path) -> None:
    """Files count by what is in them, and neighbours don't run together."""
    file = tmp_path / "file"
    file.write_text("ab")
    assert setup.digest(file, "c") == setup.digest("ab", "c")
    assert setup.digest("ab", "c") != setup.digest("a", "bc")


@pytest.mark.usefixtures("bare")
def test_missing_optional_parts_are_named_with_the_mend(setup: ModuleType) -> None:
    """Without Java, Maven and the permission to install them, the set-up says so and goes on."""
    java = setup.java_part()
    assert (java.state, java.mend) == ("missing", "apt-get install openjdk-17-jre-headless")
    assert "INORDER_NO_APT is set" in java.detail
    jars = setup.jars_part("5.4.0", setup.Stamps())
    assert (jars.state, jars.skipped) == ("missing", "everything against Apache RocketMQ 5.4.0")


@pytest.mark.usefixtures("bare")
def test_the_state_of_every_part_is_recorded(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 0, a file for programs, two lines for people for each missing part."""
    monkeypatch.setattr(setup, "ensure_uv", lambda _stamps: Path("uv"))
    monkeypatch.setattr(setup, "ensure_packages", lambda _uv, _stamps: None)
    for name in (
        "nats",
        "redis",
        "rocketmq_go",
        "toxiproxy",
    ):  # for which a Go or packages would be fetched
        there = setup.Part(name, "ok", "there")
        monkeypatch.setattr(setup, f"{name}_part", lambda _stamps, there=there: there)
    assert setup.set_up(setup.Stamps()) == 0
    written = json.loads(setup.PARTS.read_text())
    assert written["schema"] == "inorder/parts/v1"
    assert {part["name"]: part["state"] for part in written["parts"]} == {
        "java": "missing",
        "rocketmq-4.9.7": "missing",
        "rocketmq-5.4.0": "missing",
        "kafka": "missing",
        "c-compiler": "missing",
        "nats": "ok",
        "redis": "ok",
        "rocketmq_go": "ok",
        "toxiproxy": "ok",
    }
    assert "setup: missing: java." in capsys.readouterr().err


def test_without_the_python_packages_it_stops(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence and exit code 70."""

    def fail(_stamps: object) -> Path:
        raise setup.Failed("pip could not install uv")

    monkeypatch.setattr(setup, "ensure_uv", fail)
    assert setup.set_up(setup.Stamps()) == 70
    assert "stopped, because nothing runs without the Python packages" in capsys.readouterr().err


def test_a_failing_command_is_quoted(setup: ModuleType) -> None:
    """Its last lines and its exit code."""
    with pytest.raises(setup.Failed, match=r"It failed \(exit 3\):\n    why"):
        setup.run(["sh", "-c", "echo why >&2; exit 3"], "It failed")


def test_the_suite_and_the_setup_agree_on_versions(setup: ModuleType) -> None:
    """Both fetch the same releases."""
    from conformance.parts import jars

    assert setup.ROCKETMQ == jars.DEFAULT


def test_make_alone_explains_itself() -> None:
    """`make` lists what can be made, and installs nothing."""
    said = subprocess.run(
        ["make", "-C", str(ROOT)], capture_output=True, text=True, check=True
    ).stdout
    assert "make test " in said
    assert "make demo " in said
