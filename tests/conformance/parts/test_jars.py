"""Jars: known versions only, and one sentence for what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.parts import jars
from conformance.parts.maven import STAMP
from specs.errors import UsageError


def test_an_unknown_version_names_the_known_ones() -> None:
    """4.9.8 was released as a client only."""
    with pytest.raises(UsageError, match=r"'4\.9\.8'.*known: .*4\.9\.7, .*5\.4\.0"):
        jars.ensure("4.9.8")


def test_without_maven_the_error_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nothing is there, nothing can fetch it."""
    monkeypatch.setenv("INORDER_TOOLS", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="apt-get install maven"):
        jars.ensure("5.4.0")


def test_a_folder_without_its_stamp_is_not_present(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A torn fetch, or one of another list, does not count."""
    monkeypatch.setenv("INORDER_TOOLS", str(tmp_path))
    assert not jars.present("5.4.0")
    lib = jars.folder("5.4.0")
    lib.mkdir(parents=True)
    (lib / STAMP).write_text("something else")
    assert not jars.present("5.4.0")


def test_the_command_fails_with_64_for_an_unknown_version(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One sentence on stderr, no traceback."""
    assert jars.main(["1.0"]) == 64
    assert "no jars of Apache RocketMQ '1.0'" in capsys.readouterr().err
