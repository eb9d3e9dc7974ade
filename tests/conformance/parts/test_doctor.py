"""The doctor names every part, and for a missing one what is skipped and what mends it."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import NoReturn

import pytest

from conformance.parts import doctor, jars
from conformance.parts.doctor import State
from specs.errors import UsageError


def test_it_looks_at_every_part(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Names are unique, in a stable order, and each says what is skipped without it and what mends it."""
    monkeypatch.setenv("INORDER_TOOLS", str(tmp_path))
    parts = doctor.checks()
    assert [part.name for part in parts] == [
        "java",
        "spark",
        "maven",
        *(f"rocketmq-{version}" for version in jars.DEFAULT),
        "kafka",
        "kafka-go",
        "nats",
        "redis",
        "rabbitmq",
        "elasticmq",
        "rocketmq-go",
        "rocketmq-grpc",
        "toxiproxy",
        "wall-clock",
        "troubled-disk",
        "go",
        "docker",
        "chromium",
    ]
    assert all(part.detail and part.skipped and part.mend for part in parts)


def not_installed(name: str) -> NoReturn:
    """For `importlib.metadata.version`."""
    raise metadata.PackageNotFoundError(name)


def test_on_a_bare_machine_everything_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An empty PATH, no downloaded parts, no engine: no exception, and every part is said to be missing."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("INORDER_TOOLS", str(tmp_path / "tools"))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(metadata, "version", not_installed)
    parts = doctor.checks()
    assert [part.name for part in parts if part.state is not State.MISSING] == []
    assert doctor.why_not("java") == (
        "java is missing: there is no java in JAVA_HOME or PATH; to mend it: apt-get install openjdk-17-jre-headless"
    )


def test_an_old_java_is_a_missing_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its version is read from what it says."""
    fake = tmp_path / "bin" / "java"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    fake.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "is Java 11, and 17 is needed" in str(doctor.why_not("java"))


def test_an_unknown_part_is_the_users_error() -> None:
    """The known ones are named."""
    with pytest.raises(UsageError, match="There is no part 'nothing'; known: java, spark, maven"):
        doctor.why_not("nothing")
