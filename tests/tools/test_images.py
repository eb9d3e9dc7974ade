"""The image of the command line and the compose files in docker/: by their schema, and at work in containers."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
from docker import DockerClient
from docker.models.containers import Container
from ruamel.yaml import YAML

from chaos.attach.hers import LABEL, Role
from conformance.parts import docker_engine
from tests.docs.test_taken import wrong_with
from tests.tools import compose, engines, releases

release: Any = releases.load()
ROOT = releases.ROOT
DEMO = ROOT / "docker" / "demo" / "compose.yaml"
STRANGER = ROOT / "docker" / "stranger" / "compose.yaml"
TAPPED = ROOT / "docker" / "stranger" / "tapped.yaml"
PROJECTS = {"demo": [DEMO], "stranger": [STRANGER], "tapped": [STRANGER, TAPPED]}
MAY_BE_BROKEN = (LABEL, Role.CONSUMER)
NOBODY = 12_345
"""A user of whom the image knows nothing."""

# ------------------------------------------------------------------------------------------------ as written


def test_the_compose_files_keep_the_specification() -> None:
    """By the schema of https://github.com/compose-spec, as check-jsonschema brings it."""
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run(
        [*check, *sorted((ROOT / "docker").glob("*/*.yaml"))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("project", PROJECTS)
def test_their_commands_are_ours_and_their_files_are_there(project: str) -> None:
    """Each service's command is taken by the command line, each mounted file lies in the folder."""
    services = compose.read(*PROJECTS[project])["services"]
    told = {
        name: wrong_with(service["command"])
        for name, service in services.items()
        if "entrypoint" not in service
    }
    assert told == dict.fromkeys(told)
    mounted = [source for each in services.values() for source, _, _ in each["volumes"]]
    assert [path for path in mounted if path.startswith("/") and not Path(path).is_file()] == []


def test_the_stranger_says_what_may_be_broken() -> None:
    """Her consumers, not her broker and not what sends her orders."""
    services = compose.read(STRANGER)["services"]
    label, value = MAY_BE_BROKEN
    allowed = {
        name for name, each in services.items() if each.get("labels", {}).get(label) == value
    }
    assert allowed == {"billing-1", "billing-2"}


def test_a_file_with_what_the_reader_does_not_know_is_refused(tmp_path: Path) -> None:
    """Else a test would start something else than the file says."""
    file = tmp_path / "compose.yaml"
    with file.open("w") as out:
        YAML().dump({"services": {"a": {"image": "x", "deploy": {"replicas": 2}}}}, out)
    with pytest.raises(AssertionError, match="deploy"):
        compose.read(file)


# ---------------------------------------------------------------------------------------------- in containers


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One in a network of its own; its DOCKER_HOST."""
    with engines.running("engine", tmp_path_factory.mktemp("engine") / "dockerd.log") as host:
        yield host


@pytest.fixture(scope="module")
def client(engine: str) -> Iterator[DockerClient]:
    made = docker.DockerClient(engine, timeout=docker_engine.REQUEST_DEADLINE_S)
    with contextlib.closing(made):
        yield made


@pytest.fixture(scope="module")
def image(client: DockerClient, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Built and tried as `make release` does it."""
    built = release.build(tmp_path_factory.mktemp("dist"))
    name: str = release.image(client, built.wheel, tmp_path_factory.mktemp("image"))
    return name


class TestInContainers:
    pytestmark = engines.in_containers

    def test_anybody_runs_it_where_she_is(
        self, client: DockerClient, image: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """As a user whom the image does not know, on a folder of her own; what it writes is hers."""
        with capsys.disabled():
            size = client.images.get(image).attrs["Size"]
            sys.stderr.write(f"\n{image}: {size / 1e6:.0f} MB\n")
        os.chown(tmp_path, NOBODY, NOBODY)
        said = client.containers.run(
            image,
            shlex.split("conform --target reference --examples 4 --profile minimal-fifo --out run"),
            user=f"{NOBODY}:{NOBODY}",
            volumes={str(tmp_path): {"bind": "/work", "mode": "rw"}},
            network_mode="none",
            detach=True,
        )
        ended = said.wait(timeout=300)["StatusCode"]
        assert ended in (0, 2), said.logs()
        said.remove()
        assert (tmp_path / "run" / "report.html").stat().st_uid == NOBODY

    def test_the_demo_is_upheld_and_the_bug_is_not(self, client: DockerClient, image: str) -> None:
        """Its gate is green, with a report to take out; the same gate before a known bug is red."""
        with compose.Project(client, DEMO, profiles=["bug"]) as demo:
            assert demo.ended("gate", 600) == 0, demo.logs("gate")
            assert "UPHELD  rocketmq:cluster:9876" in demo.logs("gate")
            assert "gate/report.html" in inside(demo["gate"], "/work/runs/gate")
            assert demo.ended("bug", 300) == 1, demo.logs("bug")
            assert "REFUTED  LSE-2" in demo.logs("bug")

    def test_a_stranger_s_shop_is_broken_healed_and_judged(
        self, client: DockerClient, image: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """One of her programs sleeps longer than its lease: the other takes over, and nobody broke a promise."""
        with compose.Project(client, STRANGER, TAPPED) as shop:
            first, second = shop["billing-1"], shop["billing-2"]
            assert MAY_BE_BROKEN in first.labels.items()
            shop.wait_for(lambda: billed(shop, "billing-1") > 10, "the first one bills")
            shop.wait_for(lambda: billed(shop, "billing-2") > 10, "the second one bills")
            before = billed(shop, "billing-2")
            first.pause()
            still = billed(shop, "billing-1")
            shop.wait_for(lambda: billed(shop, "billing-2") > before + 150, "it takes over")
            assert billed(shop, "billing-1") == still
            first.unpause()
            shop.wait_for(lambda: billed(shop, "billing-1") > still + 10, "the first one is back")
            for name in ("checkout", "billing-1", "billing-2", "tap"):
                shop[name].stop(timeout=20)
            assert shop.ended("tap", 60) in (0, 130), shop.logs("tap")
            inside(shop["tap"], "/work/seen", tmp_path)
            assert second.wait(timeout=10)["StatusCode"] == 0
        done = subprocess.run(
            [sys.executable, "-m", "inorder", "check", "seen", "--profile", "reference"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        with capsys.disabled():
            sys.stderr.write(f"\n{done.stdout.splitlines()[0]}\n")
        assert done.returncode in (0, 2), done.stdout + done.stderr
        assert "LSE-1 " in done.stdout

    @pytest.mark.parametrize("project", PROJECTS)
    def test_compose_itself_takes_them(self, engine: str, image: str, project: str) -> None:
        """Docker's own program, where there is one."""
        program = compose_program()
        if program is None:
            pytest.skip("there is no `docker compose` and no docker-compose here")
        files = [word for file in PROJECTS[project] for word in ("--file", str(file))]
        done = subprocess.run(
            [*program, *files, "config", "--quiet"],
            env={**os.environ, "DOCKER_HOST": engine},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def compose_program() -> list[str] | None:
    for program in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(program[0]) is not None:
            asked = subprocess.run([*program, "version"], capture_output=True, check=False)
            if asked.returncode == 0:
                return program
    return None


def billed(shop: compose.Project, name: str) -> int:
    return shop.logs(name).count("billed ")


def inside(container: Container, folder: str, out: Path | None = None) -> list[str]:
    """The names of what is in a container's folder, from its own on; it is taken to `out`, if that is given."""
    stream, _ = container.get_archive(folder)
    with tarfile.open(fileobj=io.BytesIO(b"".join(stream))) as tar:
        if out is not None:
            tar.extractall(out, filter="data")
        return tar.getnames()
