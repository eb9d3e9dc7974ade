"""Somebody's shop in containers: attached, broken, healed, judged; and left as it was, however it ends."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import docker
import pytest
from docker import DockerClient

from chaos.attach import hers
from chaos.attach.compose import read as read_compose
from chaos.attach.standing import StandIn
from conformance.cli.main import EXIT_INTERRUPTED
from conformance.parts import docker_engine
from conformance.parts.docker_engine import Container
from conformance.waiting import wait_until
from specs.errors import EXIT_INCONCLUSIVE, EXIT_UPHELD, EXIT_USAGE
from specs.history.store import open_history
from specs.vocabulary import Kind, Outcome
from tests.tools import compose, engines

pytestmark = [*engines.in_containers, pytest.mark.timeout(1_200)]

HERE = Path(__file__).parent / "shop"
FILE = HERE / "compose.yaml"
TIMES = HERE / "times.json"
BUG = "stale-commit-after-release"
"""Who is given a lane back goes on reporting its old offset: seen by a tap, and a clause's of hers."""
ENDS_S = 120.0


@pytest.fixture(scope="module", autouse=True)
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DockerClient]:
    """Of an engine of ours, which everything here finds by its environment."""
    log = tmp_path_factory.mktemp("engine") / "dockerd.log"
    with engines.running("attach", log) as host, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", host)
        made = docker.DockerClient(host, timeout=docker_engine.REQUEST_DEADLINE_S)
        with contextlib.closing(made):
            patch.setenv("INORDER_IMAGE", docker_engine.ensure_image(made))
            yield made


@pytest.fixture
def shop(client: DockerClient, monkeypatch: pytest.MonkeyPatch) -> Iterator[compose.Project]:
    with compose.Project(client, FILE) as project:
        monkeypatch.setenv("COMPOSE_PROJECT_NAME", project.name)
        yield project


def words(*more: object) -> list[str]:
    first = [sys.executable, "-m", "inorder", "chaos", "--attach", FILE, "--seed", 1]
    return [str(word) for word in (*first, "--profile", "reference", "--config", TIMES, *more)]


def attached(*more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words(*more), capture_output=True, text=True, check=False)


def state(client: DockerClient, project: compose.Project) -> dict[str, tuple[str, str]]:
    """Every container of the engine but those that somebody else's left over: its state, and since when it runs."""
    found = client.containers.list(all=True, ignore_removed=True)
    return {
        str(each.name).removeprefix(f"{project.name}-"): (
            str(each.status),
            str(each.attrs["State"]["StartedAt"]),
        )
        for each in found
    }


def verdict(folder: Path) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads((folder / "verdict.json").read_text())
    return found


def test_a_dry_run_touches_nothing(client: DockerClient, shop: compose.Project) -> None:
    """It says what it would do, and every container runs since the same moment as before."""
    before = state(client, shop)
    done = attached("--dry-run")
    assert done.returncode == EXIT_UPHELD, done.stderr
    assert f"never touched: {shop.name}-audit, {shop.name}-mq" in done.stdout
    assert state(client, shop) == before
    assert set(before) == {"mq", "checkout", "billing-1", "billing-2", "audit"}


def test_a_correct_shop_is_upheld_and_as_before(
    client: DockerClient, shop: compose.Project, tmp_path: Path
) -> None:
    """Each fault has an effect; hers run again, nothing of ours is left, what has no label ran all the time."""
    before = state(client, shop)
    done = attached("--out", tmp_path / "run")
    assert done.returncode == EXIT_UPHELD, done.stdout + done.stderr
    after = state(client, shop)
    assert {name: status for name, (status, _) in after.items()} == dict.fromkeys(before, "running")
    assert [after[name] for name in ("mq", "audit")] == [before[name] for name in ("mq", "audit")]
    assert all(after[name] != before[name] for name in ("checkout", "billing-1", "billing-2"))
    rows = list(open_history(tmp_path / "run").rows())
    faults = [row for row in rows if row.kind is Kind.FAULT]
    assert [str(row.detail).split()[0] for row in faults] == ["crash", "pause", "stop", "cut"]
    assert {row.outcome for row in faults} == {Outcome.OK}
    # A cut link goes by who sends over it, else nothing is excused by it; by nobody where that is not certain.
    assert set(str(faults[-1].detail).split()[1:]) <= {row.client_id for row in rows}
    upheld = {
        each["id"] for each in verdict(tmp_path / "run")["clauses"] if each["verdict"] == "upheld"
    }
    assert {"LSE-1", "CMT-4", "CMT-5", "CMT-9"} <= upheld


def test_a_bug_of_hers_is_refuted(
    client: DockerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same shop with billing that goes on reporting what it has given away."""
    monkeypatch.setenv("SHOP_BUG", BUG)
    with compose.Project(client, FILE) as project:
        monkeypatch.setenv("COMPOSE_PROJECT_NAME", project.name)
        done = attached("--fault", "pause", "--fault", "stop", "--out", tmp_path / "run")
    assert done.returncode == 1, done.stdout + done.stderr
    refuted = [
        each["id"] for each in verdict(tmp_path / "run")["clauses"] if each["verdict"] == "refuted"
    ]
    assert "CMT-5" in refuted


def test_who_goes_around_the_tap_is_told_and_nothing_is_upheld(
    client: DockerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the two consumers has no label: it stays where it is, and the history is not whole."""
    hers = "  billing-2:\n    <<: *billing\n"
    text = FILE.read_text().replace(hers, f"{hers}    labels: {{}}\n")
    assert text != FILE.read_text()
    file = tmp_path / "compose.yaml"
    file.write_text(text.replace("./programs", str(HERE / "programs")))
    with compose.Project(client, file) as project:
        monkeypatch.setenv("COMPOSE_PROJECT_NAME", project.name)
        since = state(client, project)["billing-2"]
        done = attached("--attach", file, "--fault", "pause", "--out", tmp_path / "run")
        assert state(client, project)["billing-2"] == since
    assert done.returncode == EXIT_INCONCLUSIVE, done.stdout + done.stderr
    assert "every member passed the tap" in " ".join(done.stdout.split())


def test_who_was_off_the_network_finds_the_tap_again(
    client: DockerClient, shop: compose.Project
) -> None:
    """The engine writes its /etc/hosts anew when it is connected again, and a client may ask again any time."""
    look = hers.look(client, read_compose(FILE), None)
    billing = next(each for each in look.clients if each.name.endswith("billing-1"))
    ask = ["python3", "-c", f"import socket; print(socket.gethostbyname('{look.host}'))"]
    command = ["python3", "-c", "import time; time.sleep(600)"]
    image = os.environ["INORDER_IMAGE"]
    with contextlib.closing(Container(client, image, command, network=look.network)) as tap:
        there = client.containers.get(tap.name).attrs["NetworkSettings"]["Networks"][look.network]
        stand_in = StandIn(billing, client, look.network, look.project.name)
        try:
            stand_in.begin(look.host, tap.name, there["IPAddress"])
            copy = client.containers.get(stand_in.copy)
            for _ in range(2):
                assert copy.exec_run(ask).output.decode().strip() == there["IPAddress"]
                stand_in.leave()
                stand_in.heal()
            assert copy.exec_run(ask).output.decode().strip() == there["IPAddress"]
        finally:
            assert docker_engine.put_back() == {}


def test_clients_that_ask_for_another_name_server_are_refused_and_put_back(
    client: DockerClient, shop: compose.Project
) -> None:
    """The tap stands before a name by which nobody asks: one sentence, and hers run again."""
    before = state(client, shop)
    done = attached("--namesrv", "nobody:9876")
    assert done.returncode == EXIT_USAGE, done.stderr
    assert "the name server nobody:9876 is not reached" in done.stderr
    assert state(client, shop) == before


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, EXIT_INTERRUPTED), (signal.SIGKILL, -signal.SIGKILL)],
    ids=lambda each: str(each),
)
def test_whoever_ends_it_leaves_hers_as_they_were(
    client: DockerClient,
    shop: compose.Project,
    tmp_path: Path,
    number: signal.Signals,
    code: int,
) -> None:
    """In the middle of a fault, while a copy is frozen."""
    before = state(client, shop)

    def is_as_before() -> bool:
        return {name: status for name, (status, _) in state(client, shop).items()} == dict.fromkeys(
            before, "running"
        )

    with subprocess.Popen(
        words("--fault", "pause", "--out", tmp_path / "run"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as program:
        assert program.stderr is not None
        for line in program.stderr:
            if line.strip().startswith("pause "):
                break
        assert wait_until(lambda: "paused" in {s for s, _ in state(client, shop).values()}, ENDS_S)
        assert not is_as_before()
        program.send_signal(number)
        program.stderr.read()
    assert program.returncode == code
    assert wait_until(is_as_before, ENDS_S), state(client, shop)
