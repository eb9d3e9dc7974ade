"""The consumer image is built without a registry, and no container outlives us."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from docker import DockerClient
from docker.errors import NotFound

from conformance.parts import docker_engine
from conformance.parts.docker_engine import Container
from conformance.parts.processes import wait_until
from specs.errors import TargetMisbehaved, UsageError

REASON = docker_engine.why_not()
needs_engine = [pytest.mark.docker, pytest.mark.skipif(REASON is not None, reason=str(REASON))]
# One worker builds the image; the others would only wait for it.
pytestmark = pytest.mark.xdist_group("docker")


@pytest.fixture(scope="module")
def client() -> Iterator[DockerClient]:
    with contextlib.closing(docker_engine.connect()) as connected:
        yield connected


@pytest.fixture(scope="module")
def image(client: DockerClient) -> str:
    return docker_engine.ensure_image(client)


def there(client: DockerClient, name: str) -> bool:
    try:
        client.containers.get(name)
    except NotFound:
        return False
    return True


class TestWithAnEngine:
    """Needs a running engine."""

    pytestmark = needs_engine

    def test_our_packages_run_in_a_container(self, client: DockerClient, image: str) -> None:
        """The image has Python 3.11 or later, our packages and nothing else."""
        script = (
            "import sys, specs, reference_impl; print(specs.__file__, sys.version_info >= (3, 11))"
        )
        with Container(client, image, ["python3", "-c", script]) as container:
            assert container.wait(60) == 0
            assert container.logs() == "/inorder/specs/__init__.py True\n"
        assert not there(client, container.name)

    def test_an_unchanged_image_is_not_built_again(self, client: DockerClient, image: str) -> None:
        """The second time gives the same name, and the engine has one consumer image."""
        assert docker_engine.ensure_image(client) == image
        assert [
            tag
            for each in client.images.list(name=docker_engine.CONSUMER_NAME)
            for tag in each.tags
        ] == [image]

    def test_a_paused_container_does_nothing_until_it_is_resumed(
        self, client: DockerClient, image: str, tmp_path: Path
    ) -> None:
        """It writes its time on and on into a folder of ours; not while it is paused."""
        script = """
import time
while True:
    with open("/run/out/times", "a") as out:
        print(time.monotonic_ns(), file=out)
    time.sleep(0.01)
"""
        times = tmp_path / "times"

        def written() -> int:
            return len(times.read_text().splitlines()) if times.exists() else 0

        with Container(
            client, image, ["python3", "-c", script], volumes={tmp_path: "/run/out"}
        ) as container:
            assert wait_until(lambda: written() > 3, deadline_s=60)
            container.pause()
            assert container.status == "paused"
            before = written()
            with pytest.raises(subprocess.TimeoutExpired):
                subprocess.run(["sleep", "60"], timeout=0.5, check=False)
            assert written() == before
            container.resume()
            assert wait_until(lambda: written() > before, deadline_s=60)
            container.kill()
            assert container.status == "exited"

    def test_lines_arrive_one_by_one(self, client: DockerClient, image: str) -> None:
        """Whole lines of stdout, and the end of the stream at the container's end."""
        with Container(client, image, ["sh", "-c", "echo a; echo noise >&2; echo b"]) as container:
            assert list(container.lines()) == ["a", "b"]

    def test_a_container_that_can_not_start_is_an_error_and_leaves_none(
        self, client: DockerClient, image: str
    ) -> None:
        """Created, but its command does not exist."""
        with pytest.raises(TargetMisbehaved, match="could not be started"):
            Container(client, "no-such-image-here:1", ["true"], name="inorder-test-unstartable")
        assert not there(client, "inorder-test-unstartable")

    @pytest.mark.parametrize(
        "number", [signal.SIGKILL, signal.SIGINT], ids=lambda number: number.name
    )
    def test_no_container_outlives_a_killed_parent(
        self, client: DockerClient, image: str, number: signal.Signals
    ) -> None:
        """The program that runs a container, paused even, dies: the container is removed."""
        script = f"""
import contextlib, threading
from conformance.parts import docker_engine
with contextlib.closing(docker_engine.connect()) as client:
    container = docker_engine.Container(client, {image!r}, ["sleep", "600"])
    container.pause()
    print(container.name, flush=True)
    threading.Event().wait()
"""
        command = [sys.executable, "-c", script]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as parent:
            assert parent.stdout is not None
            name = parent.stdout.readline().strip()
            assert there(client, name)
            parent.send_signal(number)
        assert wait_until(lambda: not there(client, name), deadline_s=60)


def test_without_an_engine_the_reason_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No socket there: who wants the engine is told where it was looked for and how to get one."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    with pytest.raises(UsageError, match=r"No Docker engine answers at unix://.*dockerd\.sh start"):
        docker_engine.connect()
    assert docker_engine.why_not() is not None


def test_the_images_folder_is_no_package() -> None:
    """An `__init__.py` in docker/ would hide the Docker SDK."""
    folder = Path(docker_engine.__file__).resolve().parents[2] / "docker"
    assert list(folder.rglob("__init__.py")) == []
