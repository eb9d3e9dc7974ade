"""The Java driver: compiled, and proven by the smoke test on a real broker."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.cli.main import root
from conformance.drivers import java
from conformance.drivers.targets import find_driver
from conformance.parts.doctor import why_not
from specs.errors import UsageError


def test_a_missing_compiler_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("INORDER_TOOLS", str(tmp_path))
    monkeypatch.setattr(java, "java", lambda: tmp_path / "java")
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(UsageError, match="no Java compiler"):
        java.classes("5.4.0")


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("rocketmq-local:5.4.0", "names no driver"),
        ("rocketmq-local:5.4.0+java:1.0", "no Java client"),
        ("mutant:late_unlock+java:5.4.0", "no mutant"),
    ],
)
def test_targets_that_are_none(target: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        find_driver(target)


@pytest.mark.long
@pytest.mark.apache
def test_smoke() -> None:
    for part in ("java", "maven", "rocketmq-5.4.0"):
        if (reason := why_not(part)) is not None:
            pytest.skip(reason)
    try:
        java.classes("5.4.0")
    except UsageError as error:
        pytest.skip(str(error))
    done = CliRunner().invoke(
        root, ["smoke", "--target", "rocketmq-local:5.4.0+java:5.4.0", "--format", "json"]
    )
    items = json.loads(done.stdout)["items"]
    assert [item for item in items if not item["ok"]] == []
    assert done.exit_code == 0
