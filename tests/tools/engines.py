"""A Docker engine in a network of its own, for tests whose services find each other by name."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import docker
import pytest

from conformance.parts.processes import wait_until
from tests.tools import releases


def why_no_engine() -> str | None:
    """Why there is no engine with networks of its own, none where one answers or can be started."""
    missing = [
        tool
        for tool in ("dockerd", "debootstrap", "iptables", "unshare")
        if shutil.which(tool) is None
    ]
    if missing:
        return f"{' and '.join(missing)} missing: apt-get install docker.io debootstrap iptables"
    if os.geteuid() != 0:
        return "starting a Docker engine needs root"
    return None


REASON = why_no_engine()
in_containers = [
    pytest.mark.long,
    pytest.mark.docker,
    pytest.mark.skipif(REASON is not None, reason=str(REASON)),
    # One worker makes the engine and the image.
    pytest.mark.xdist_group("docker"),
]


@contextmanager
def running(name: str, log: Path) -> Iterator[str]:
    """Its DOCKER_HOST. One that INORDER_TEST_ENGINE names is taken as it is: it should have no containers."""
    if lent := os.environ.get("INORDER_TEST_ENGINE"):
        yield lent
        return
    # A short path: that of a Unix socket may have 107 characters.
    folder = Path(f"/tmp/inorder-{name}-{os.getpid()}")
    program = releases.ROOT / "tools" / "dockerd.sh"
    host = f"unix://{folder}/docker.sock"
    with log.open("w") as out:
        started = subprocess.Popen([program, "run", folder, "apart"], stdout=out, stderr=out)
    try:
        assert wait_until(
            lambda: (
                ((folder / "docker.sock").exists() and answers(host)) or started.poll() is not None
            ),
            deadline_s=60,
        )
        assert started.poll() is None, log.read_text()[-3000:]
        yield host
    finally:
        started.send_signal(signal.SIGTERM)
        started.wait(60)
        subprocess.run([program, "stop", folder], check=False)
        shutil.rmtree(folder, ignore_errors=True)


def answers(host: str) -> bool:
    with contextlib.suppress(Exception), contextlib.closing(docker.DockerClient(host)) as client:
        return bool(client.ping())
    return False
