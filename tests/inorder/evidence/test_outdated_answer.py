"""The program of the report on librdkafka's outdated answers shows what the report says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.parts import kafka
from conformance.parts.doctor import why_not
from tests.tools.releases import ROOT

PROGRAM = ROOT / "docs" / "reports" / "outdated_answer.py"
DEADLINE_S = 120.0


@pytest.mark.long
@pytest.mark.apache
def test_a_consumer_is_given_what_lies_below_its_assignment(tmp_path: Path) -> None:
    wheel = kafka.librdkafka(kafka.DEFAULT_LIBRDKAFKA)
    reason = why_not("java")
    if reason is None and not (kafka.server_jars(kafka.DEFAULT).present and wheel.present):
        reason = "needs Kafka and librdkafka; docs/systems/kafka.md says how to fetch them"
    if reason is not None:
        pytest.skip(reason)
    with kafka.KafkaServer(kafka.DEFAULT, workdir=tmp_path / "kafka") as server:
        done = subprocess.run(
            [sys.executable, str(PROGRAM), server.address],
            env={**os.environ, "PYTHONPATH": str(wheel.folder)},
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
    assert done.returncode == 1, done.stderr
    assert f"librdkafka {kafka.DEFAULT_LIBRDKAFKA}: assigned at 3" in done.stdout
