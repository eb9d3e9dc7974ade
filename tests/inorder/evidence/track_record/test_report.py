"""The program of the report on automatic commits shows what the report says."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from conformance.parts import kafka
from conformance.parts.doctor import why_not
from conformance.parts.java import java
from inorder.evidence.track_record.__main__ import PAGE

PROGRAM = PAGE.parent / "reports" / "AutoCommitPassesRecord.java"
RED, GREEN = "4.4.0", "4.1.0"
WORK_S = 8
DEADLINE_S = 120.0


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a server."""
    reason = why_not("java")
    wanted = (kafka.server_jars(kafka.DEFAULT), *map(kafka.client_jars, (RED, GREEN)))
    if reason is None and not all(jars.present for jars in wanted):
        reason = "needs the jars of Kafka; docs/systems/kafka.md says how to fetch them"
    if reason is not None:
        pytest.skip(reason)
    with kafka.KafkaServer(kafka.DEFAULT, workdir=tmp_path_factory.mktemp("kafka")) as server:
        yield server.address


def said(address: str, version: str, *words: str) -> tuple[int, list[str]]:
    """Its exit code and its lines, with the client of a version."""
    lib = kafka.client_jars(version).folder
    command = [str(java()), "-cp", f"{lib}/*", str(PROGRAM), address, "consumer", *words]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    return done.returncode, done.stdout.splitlines()


@pytest.mark.long
@pytest.mark.apache
def test_the_record_in_work_is_lost(address: str) -> None:
    """Whoever takes over begins behind it."""
    code, lines = said(address, RED, f"{WORK_S}")
    assert (code, lines[0]) == (1, f"kafka-clients {RED}, group.protocol=consumer")
    lost = int(lines[1].split()[1])
    _, _, topic, group = lines[-1].split()
    _, lines = said(address, RED, topic, group)
    assert int(lines[-1].split()[-1]) > lost


@pytest.mark.long
@pytest.mark.apache
def test_a_release_without_it_keeps_all(address: str) -> None:
    code, lines = said(address, GREEN, f"{WORK_S}")
    assert (code, "GREEN" in lines[-1]) == (0, True)
