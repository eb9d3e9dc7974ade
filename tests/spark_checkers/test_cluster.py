"""A standalone master and two workers, as processes of this machine: the same verdict as without Spark.

It runs in a process of its own, because a process has one Spark session and the other tests' is local.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from conftest import SPARK

from spark_checkers import engine
from spark_checkers.generate import generate, plan_defect
from spark_checkers.session import NO_JAVA, java
from specs import profiles
from specs.history.store import open_history

pytestmark = [*SPARK, pytest.mark.long, pytest.mark.timeout(1500)]
HOME = Path(pyspark.__file__).parent
EVENTS = 30_000
READY_S = 240
JUDGE = """
import json, sys
from pathlib import Path
from spark_checkers import engine
from specs import profiles
from specs.history.store import open_history

verdict = engine.judge(
    open_history(Path(sys.argv[1])), profiles.load("reference"), {"master": sys.argv[2], "memory": "1g"}
)
print(json.dumps(verdict.to_json()))
"""


def start(folder: Path, name: str, *arguments: str) -> tuple[subprocess.Popen[bytes], Path]:
    """A daemon of Spark's in a process group of its own, for `spark-class` leaves a shell beside it."""
    log = folder / f"{name}.log"
    environment = {
        **os.environ,
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_NO_DAEMONIZE": "1",
    }
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(HOME / "bin" / "spark-class"), *arguments],
            env=environment,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return process, log


def said(log: Path, pattern: str) -> str:
    """What a daemon's log says, once it says it."""
    until = time.monotonic() + READY_S
    while time.monotonic() < until:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found.group(1)
        time.sleep(0.5)
    raise AssertionError(f"{log.name}: {log.read_text(errors='replace')[-2000:]}")


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a master with two workers of one core each."""
    if java() is None:
        pytest.skip(NO_JAVA)
    folder = tmp_path_factory.mktemp("cluster")
    deploy = "org.apache.spark.deploy"
    host = ("--host", "127.0.0.1", "--webui-port", "0")
    started = [start(folder, "master", f"{deploy}.master.Master", *host, "--port", "0")]
    try:
        url = said(started[0][1], r"Starting Spark master at (spark://\S+)")
        for name in ("one", "two"):
            work = ("-c", "1", "-m", "1500m", "-d", str(folder / name))
            started.append(start(folder, name, f"{deploy}.worker.Worker", *host, *work, url))
        for _process, log in started[1:]:
            said(log, r"(Successfully registered with master)")
        yield url
    finally:
        for process, _log in started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.mark.parametrize("defect", [None, "commit-rewinds"])
def test_a_cluster_gives_the_verdict_of_one_process(
    tmp_path: Path, master: str, defect: str | None
) -> None:
    planting = None if defect is None else plan_defect(defect, EVENTS, 7, edge="file")
    generate(tmp_path / "h", EVENTS, 7, change=planting)
    done = subprocess.run(
        [sys.executable, "-c", JUDGE, str(tmp_path / "h"), master],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    expected = engine.judge_here(
        open_history(tmp_path / "h"), profiles.load("reference"), {}
    ).to_json()
    assert (found.pop("tool"), expected.pop("tool")) == ({"engine": "spark"}, {"engine": "arrow"})
    assert found == json.loads(json.dumps(expected))
    refuted = [each["id"] for each in found["clauses"] if each["verdict"] == "refuted"]
    assert refuted == ([] if defect is None else ["CMT-4"])
