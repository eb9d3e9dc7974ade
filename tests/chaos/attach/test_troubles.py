"""Whatever goes wrong with the engine while somebody's shop is attached: hers run again, or are named with the command.

Each cell is one trouble at one stage of a run, on an engine of its own. INORDER_CELLS names a file to which each cell
adds a line: cell, exit code, seconds, what was said.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import docker
import pytest
from docker import DockerClient
from docker.errors import DockerException, NotFound

from conformance.parts import docker_engine
from conformance.parts.docker_engine import LABEL_OF_PROJECT
from conformance.parts.restoring import PUT_BACK
from conformance.waiting import pass_time, wait_until
from specs.errors import EXIT_INCONCLUSIVE, EXIT_REFUTED, EXIT_UNAVAILABLE, EXIT_UPHELD
from tests.tools import compose, engines, releases

pytestmark = [*engines.in_containers, pytest.mark.timeout(600)]

FILE = Path(__file__).parent / "shop" / "compose.yaml"
TIMES = FILE.parent / "times.json"
ENDS_S, AWAY_S = 60.0, 3.0
ALLOWED = (EXIT_UPHELD, EXIT_REFUTED, EXIT_INCONCLUSIVE, EXIT_UNAVAILABLE)
STAGES = {
    "start": "a copy stands in for",
    "work": "all copies are at work",
    "fault": "pause ",
    "restoring": "putting everything back",
}
"""By stage what a run says when it comes to it."""
PUTTING = STAGES["restoring"]


class Engine:
    """One in a folder of its own, which may be ended and started again, behind a proxy that can lose a request."""

    def __init__(self) -> None:
        # A short path: that of a Unix socket may have 107 characters.
        self.folder = Path(f"/tmp/inorder-troubles-{os.getpid()}")
        self.folder.mkdir()
        self.direct = f"unix://{self.folder}/docker.sock"
        self.host = f"unix://{self.folder}/proxy.sock"
        self.lose = ""
        """What the proxy does to the next request that changes something: "request", "answer" or nothing."""
        self._program = releases.ROOT / "tools" / "dockerd.sh"
        self._listens = socket.socket(socket.AF_UNIX)
        self._listens.bind(str(self.folder / "proxy.sock"))
        self._listens.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()
        self.start()

    def start(self) -> None:
        with (self.folder / "dockerd.log").open("a") as log:
            self._popen = subprocess.Popen(
                [self._program, "run", self.folder, "apart"], stdout=log, stderr=log
            )
        assert wait_until(self._is_up, ENDS_S), self._popen.poll()

    def _is_up(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:  # the SDK leaks one that is refused
            try:
                probe.connect(self.direct.removeprefix("unix://"))
            except OSError:
                return False
        return engines.answers(self.direct)

    def end(self, number: signal.Signals) -> None:
        self._popen.send_signal(number)
        self._popen.wait(ENDS_S)

    def close(self) -> None:
        self.end(signal.SIGTERM)
        self._listens.close()
        subprocess.run([self._program, "stop", self.folder], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listens.accept()
                far = socket.socket(socket.AF_UNIX)
                try:
                    far.connect(str(self.folder / "docker.sock"))
                except OSError:
                    near.close()
                    far.close()
                    continue
                pair = _Pair(self, near, far)
                for there in (True, False):
                    threading.Thread(target=pair.carry, args=(there,), daemon=True).start()


class _Pair:
    """One connection through the proxy."""

    def __init__(self, engine: Engine, near: socket.socket, far: socket.socket) -> None:
        self._engine, self._near, self._far = engine, near, far
        self._drops_answer = False
        self._ending, self._ended = threading.Lock(), False

    def carry(self, there: bool) -> None:
        source, sink = (self._near, self._far) if there else (self._far, self._near)
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                if there and data[:4] in (b"POST", b"DELE") and self._engine.lose:
                    what, self._engine.lose = self._engine.lose, ""
                    if what == "request":
                        break
                    self._drops_answer = True
                elif not there and self._drops_answer:
                    break
                sink.sendall(data)
        for each in (self._near, self._far):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        with self._ending:
            if self._ended:
                self._near.close()
                self._far.close()
            self._ended = True


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with contextlib.closing(Engine()) as made, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", made.direct)
        with contextlib.closing(client_of(made)) as client:
            patch.setenv("INORDER_IMAGE", docker_engine.ensure_image(client))
        yield made


def client_of(engine: Engine) -> DockerClient:
    return docker.DockerClient(engine.direct, timeout=docker_engine.REQUEST_DEADLINE_S)


class Scene:
    """A run at a stage, and what may befall it."""

    def __init__(self, engine: Engine, client: DockerClient, project: compose.Project) -> None:
        self.engine, self.client, self.project = engine, client, project

    def kill_engine(self) -> None:
        self.engine.end(signal.SIGKILL)
        pass_time(AWAY_S)
        self.engine.start()

    def restart_engine(self) -> None:
        self.engine.end(signal.SIGTERM)
        self.engine.start()

    def remove(self, chosen: Callable[[str, Mapping[str, str]], bool]) -> None:
        """The first such container, once there is one; nothing where it comes too late."""

        def removed() -> bool:
            for each in self.client.containers.list(all=True, ignore_removed=True):
                if chosen(str(each.name), each.labels):
                    with contextlib.suppress(NotFound, DockerException):
                        each.remove(force=True)
                    return True
            return False

        wait_until(removed, 5.0)

    def lose(self, what: str) -> None:
        self.engine.lose = what


def _original(service: str) -> Callable[[Scene], None]:
    return lambda scene: scene.remove(lambda name, _: name == f"{scene.project.name}-{service}")


def _copy(service: str) -> Callable[[Scene], None]:
    return lambda scene: scene.remove(
        lambda name, _: name.startswith(f"{scene.project.name}-{service}-inorder-")
    )


TROUBLES: Mapping[str, Callable[[Scene], None]] = {
    "engine-killed": Scene.kill_engine,
    "engine-restarted": Scene.restart_engine,
    "request-lost": lambda scene: scene.lose("request"),
    "answer-lost": lambda scene: scene.lose("answer"),
    "original-removed": _original("billing-1"),
    "copy-removed": _copy("billing-1"),
    "other-copy-removed": _copy("billing-2"),
    "producers-copy-removed": _copy("checkout"),
    "tap-removed": lambda scene: scene.remove(
        lambda name, labels: LABEL_OF_PROJECT in labels and name.startswith("inorder-")
    ),
    "broker-removed": _original("mq"),
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("trouble", TROUBLES)
def test_hers_run_again_or_are_named_and_no_verdict_is_lost(
    engine: Engine, tmp_path: Path, trouble: str, stage: str
) -> None:
    """Never 70, which says that the suite failed; what was recorded is judged."""
    out = tmp_path / "run"
    with contextlib.closing(client_of(engine)) as client, compose.Project(client, FILE) as project:
        words = ["chaos", "--attach", FILE, "--seed", 1, "--profile", "reference"]
        words += ["--config", TIMES, "--fault", "pause", "--out", out]
        env = {**os.environ, "DOCKER_HOST": engine.host, "COMPOSE_PROJECT_NAME": project.name}
        began_s, said = time.monotonic(), list[str]()
        with subprocess.Popen(
            [sys.executable, "-m", "inorder", *map(str, words)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=env,
        ) as program:
            assert program.stderr is not None
            for line in program.stderr:
                said.append(line.rstrip())
                if line.strip().startswith(STAGES[stage]):
                    break
            reader = threading.Thread(target=lambda: said.extend(program.stderr or ()))
            reader.start()
            if stage == "fault":
                wait_until(lambda: "paused" in states(client).values(), ENDS_S)
            TROUBLES[trouble](Scene(engine, client, project))
            reader.join()
        engine.lose = ""
        text = "".join(f"{line.rstrip()}\n" for line in said)
        note(f"{trouble} at {stage}", program.returncode, time.monotonic() - began_s, text)
        assert program.returncode in ALLOWED, text
        assert "Traceback" not in text
        assert "the suite itself failed" not in text
        assert (out / "verdict.json").exists(), text
        script = out / PUT_BACK
        told = text + (script.read_text() if script.exists() else "")
        assert wait_until(lambda: not missing(client, project, told), ENDS_S), (
            missing(client, project, told),
            told,
        )


def states(client: DockerClient) -> dict[str, str]:
    return {str(each["Names"][0])[1:]: each["State"] for each in client.api.containers(all=True)}


def missing(client: DockerClient, project: compose.Project, told: str) -> list[str]:
    """What is not as before the run, and was not named."""
    now = states(client)
    hers = [f"{project.name}-{service}" for service in project.services]
    left = [
        str(each["Names"][0])[1:]
        for each in client.api.containers(all=True, filters={"label": LABEL_OF_PROJECT})
    ]
    stopped = [name for name in hers if now.get(name) != "running"]
    return [name for name in (*stopped, *left) if name not in told.partition(PUTTING)[2]]


def note(cell: str, code: int, seconds: float, text: str) -> None:
    """For whoever wants a table."""
    if path := os.environ.get("INORDER_CELLS"):
        lines = text.splitlines()
        at = next((n for n, line in enumerate(lines) if PUTTING in line), 0)
        near = [
            line
            for line in lines[max(0, at - 1) :]
            if PUTTING not in line and "again:" not in line and "kept in" not in line
        ]
        row = {"cell": cell, "code": code, "s": round(seconds, 1), "said": near}
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
