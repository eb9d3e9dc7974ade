"""A Ctrl-C that comes while the command line is still being imported ends it in one line."""

from __future__ import annotations

import importlib

import pytest

from inorder.__main__ import main


def test_a_ctrl_c_during_the_import_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def is_stopped(_name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib, "import_module", is_stopped)
    assert main(["list", "targets"]) == 130
    assert capsys.readouterr().err == "inorder: stopped by Ctrl-C\n"
