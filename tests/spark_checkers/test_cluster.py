"""A standalone master and two workers, as processes of this machine: the same verdict as without Spark.

Each check runs in a process of its own, because a process has one Spark session and the other tests' is local.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from cluster import Cluster, awaited, end, running
from conftest import SPARK
from object_store import ObjectStore

from spark_checkers.generate import generate, plan_defect
from spark_checkers.session import NO_JAVA, java

pytestmark = [*SPARK, pytest.mark.long, pytest.mark.timeout(1500)]
EVENTS = 30_000
CHECK_S = 1200
SOME = ("CMT-4", "LSE-1", "SND-2", "RTY-6")
"""By queue, by message and by client; one of them is refuted."""
MEMORY = "spark.executor.memory 1g\nspark.driver.memory 1g\n"
SPECULATION = """\
spark.speculation true
spark.speculation.interval 100ms
spark.speculation.quantile 0.1
spark.speculation.multiplier 1.1
spark.speculation.task.duration.threshold 3s
spark.network.timeout 1200s
"""
"""A task that takes a little longer than others is begun a second time elsewhere; who stands still is not given up."""


@pytest.fixture(scope="module", autouse=True)
def _needs_java() -> None:
    if java() is None:
        pytest.skip(NO_JAVA)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with ObjectStore(tmp_path_factory.mktemp("store")) as started:
        yield started


def generated(folder: Path, defect: str | None) -> Path:
    generate(
        folder,
        EVENTS,
        7,
        change=None if defect is None else plan_defect(defect, EVENTS, 7, edge="file"),
    )
    return folder


@contextmanager
def checking(
    source: str | Path, *options: str, environment: dict[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """`inorder check`, begun; it ends with the block, whatever becomes of the test."""
    command = [sys.executable, "-m", "conformance.cli.main", "check", str(source), *options]
    with subprocess.Popen(
        [*command, "--profile", "reference", "--format", "json"],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as begun:
        try:
            yield begun
        finally:
            begun.kill()


def verdict_of(begun: subprocess.Popen[str], engine: str = "spark") -> dict[str, Any]:
    """What a check says, but for the engine that found it and the command that asks again."""
    out, err = begun.communicate(timeout=CHECK_S)
    assert begun.returncode in (0, 1), err[-3000:]
    said: dict[str, Any] = json.loads(out)
    assert said.pop("tool")["engine"] == engine
    said.pop("replay")
    return said


def on_a_cluster(
    source: str | Path, cluster: Cluster, *options: str, environment: dict[str, str]
) -> dict[str, Any]:
    with checking(source, "--master", cluster.url, *options, environment=environment) as begun:
        return verdict_of(begun)


def expected(history: Path, *options: str) -> dict[str, Any]:
    """What one process of this machine says."""
    with checking(history, "--engine", "arrow", *options, environment={}) as begun:
        return verdict_of(begun, "arrow")


def asked() -> tuple[str, ...]:
    """The options that ask for `SOME`."""
    return tuple(word for clause in SOME for word in ("--clause", clause))


def settings(folder: Path, more: str = "") -> dict[str, str]:
    """Spark's own settings, as its users have them."""
    (folder / "spark-defaults.conf").write_text(MEMORY + more)
    return {"SPARK_CONF_DIR": str(folder)}


@pytest.mark.parametrize("defect", [None, "commit-rewinds"])
def test_a_cluster_gives_the_verdict_of_one_process(
    tmp_path: Path, cluster: Cluster, defect: str | None
) -> None:
    history = generated(tmp_path / "h", defect)
    found = on_a_cluster(history, cluster, environment=settings(tmp_path))
    assert found == expected(history)
    refuted = [each["id"] for each in found["clauses"] if each["verdict"] == "refuted"]
    assert refuted == ([] if defect is None else ["CMT-4"])


def test_a_history_in_an_object_store_is_judged_where_it_lies(
    tmp_path: Path, cluster: Cluster, store: ObjectStore
) -> None:
    history = generated(tmp_path / "h", "commit-rewinds")
    place = store.put(history, "judged")
    environment = store.environment_with(MEMORY)
    found = on_a_cluster(place, cluster, *asked(), environment=environment)
    assert found == expected(history, *asked())


@pytest.fixture
def own_cluster(tmp_path: Path) -> Iterator[Cluster]:
    """One that a test may break."""
    (tmp_path / "own").mkdir()
    with running(tmp_path / "own") as started:
        yield started


def test_a_worker_that_dies_in_the_middle_of_a_task_changes_nothing(
    tmp_path: Path, own_cluster: Cluster
) -> None:
    """Its executor has a task that is not over, and dies with it: another one does that task again."""
    history = generated(tmp_path / "h", "commit-rewinds")
    master = ("--master", own_cluster.url)
    with checking(history, *master, *asked(), environment=settings(tmp_path)) as begun:
        worker, executor = own_cluster.stopped_at_work(begun)
        end(worker.process)
        with suppress(ProcessLookupError):  # it has ended with its worker
            os.kill(executor.pid, signal.SIGKILL)
        assert verdict_of(begun) == expected(history, *asked())
    assert max(own_cluster.attempts()) >= 1


def test_a_task_that_runs_twice_at_once_changes_nothing(
    tmp_path: Path, own_cluster: Cluster
) -> None:
    """An executor stands still until its task has begun elsewhere as well; then both go on."""
    history = generated(tmp_path / "h", "commit-rewinds")
    master = ("--master", own_cluster.url)
    environment = settings(tmp_path, SPECULATION)
    with checking(history, *master, *asked(), environment=environment) as begun:
        _worker, executor = own_cluster.stopped_at_work(begun)
        awaited("a second attempt", lambda: max(own_cluster.attempts(), default=0) >= 1)
        assert begun.poll() is None
        os.kill(executor.pid, signal.SIGCONT)
        assert verdict_of(begun) == expected(history, *asked())
