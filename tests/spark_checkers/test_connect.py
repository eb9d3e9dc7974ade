"""A history judged through Spark Connect: a client without Java, a server that has none of our packages at first."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import HOME, READY_S
from conftest import SPARK

from conformance.parts.wheels import Wheel
from spark_checkers import engine
from spark_checkers.generate import generate, plan_defect
from spark_checkers.session import NO_JAVA, java
from specs import profiles
from specs.history.store import open_history

pytestmark = [*SPARK, pytest.mark.long, pytest.mark.timeout(1500)]
EVENTS = 100_000
GRPC = Wheel(
    "grpcio",
    "1.85.1",
    (
        "googleapis-common-protos==1.76.0",
        "grpcio-status==1.85.1",
        "protobuf==7.36.2",
        "zstandard==0.25.0",
    ),
)
"""What `pyspark[connect]` brings beside PySpark."""
JUDGE = """
import json, sys
from pyspark.sql import SparkSession
from spark_checkers import judge

session = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
judged = judge(sys.argv[2], profile="reference", session=session)
print(json.dumps(judged.verdict.to_json()))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server of two cores."""
    if java() is None:
        pytest.skip(NO_JAVA)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    given = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    folder = tmp_path_factory.mktemp("connect")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    named = {
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                str(HOME / "bin" / "spark-submit"),
                *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
                *("--master", "local[2]", "--driver-memory", "1g", *given, "spark-internal"),
            ],
            env={**environment, **named},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=folder,
        )
    try:
        until = time.monotonic() + READY_S
        while not _listens(port):
            assert process.poll() is None, (folder / "log").read_text()[-2000:]
            assert time.monotonic() < until, (folder / "log").read_text()[-2000:]
            time.sleep(0.5)
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_it_gives_the_verdict_of_one_process(tmp_path: Path, server: str) -> None:
    broken = plan_defect("commit-rewinds", EVENTS, 7, edge="file")
    generate(tmp_path / "h", EVENTS, 7, change=broken)
    packages = [str(GRPC.ensure()), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-c", JUDGE, server, str(tmp_path / "h")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, packages))},
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    expected = engine.judge_here(open_history(tmp_path / "h"), profiles.load("reference"), {})
    told = json.loads(json.dumps(expected.to_json()))
    assert (found.pop("tool"), told.pop("tool")) == ({"engine": "spark"}, {"engine": "arrow"})
    assert found == told
