"""The steps of the action and of the template on a machine that has Python and nothing else, before served clusters.

The machine is a Debian in a folder (`chroot`), made once by debootstrap: what a runner's image has, and no more.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from conformance.parts import docker_engine
from tests.conformance.cli.test_ci_page import COMPONENT_INPUT, ROOT, TEMPLATE, read, steps
from tests.tools import releases

release: Any = releases.load()
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
DEADLINE_S = 900
MUTANT, ITS_CLAUSE = "acknowledged-send-dropped", "SND-1"
LEASE_MS, PERSIST_MS = 1_000, 200
"""Short, as a test's cluster has them: a gate waits for leases that run out."""
SERVE = [
    *shlex.split("inorder serve --namesrv-port 0 --broker-port 0 --format json"),
    *("--broker-lease-ms", str(LEASE_MS), "--persist-ms", str(PERSIST_MS)),
]
SERVE_A_MUTANT = f"""
import asyncio, json, sys
from reference_impl.core.broker import BrokerConfig
from reference_impl.mutants import load
from reference_impl.shell.cluster import LocalCluster

CONFIG = BrokerConfig(lease_ms={LEASE_MS}, persist_first_ms={2 * PERSIST_MS}, persist_ms={PERSIST_MS})

async def serve():
    async with LocalCluster(CONFIG, make_broker=load(sys.argv[1]).broker) as cluster:
        print(json.dumps({{"namesrv": cluster.namesrv}}), flush=True)
        await asyncio.Event().wait()

asyncio.run(serve())
"""


def why_not() -> str | None:
    """Why there can be no such machine here."""
    if os.geteuid() != 0:
        return "chroot needs root"
    missing = [tool for tool in ("debootstrap", "unshare", "chroot") if shutil.which(tool) is None]
    return f"{' and '.join(missing)} missing: apt-get install debootstrap" if missing else None


REASON = why_not()
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(REASON is not None, reason=str(REASON)),
    # The one that makes the base of the images makes this one's, too.
    pytest.mark.xdist_group("docker"),
]


@dataclass(frozen=True)
class Debian:
    """A machine in a folder. What runs there sees its own files and processes, and the network of this one."""

    root: Path

    def command(self, *words: str) -> list[str]:
        """All of it ends with the first process, and what was mounted is gone with it."""
        chroot = shutil.which("chroot")  # of this machine, whose PATH is not the other one's
        inside = f'mount -t proc proc "$0/proc" && exec {chroot} "$0" /usr/bin/env -C "$@"'
        alone = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
        return [*alone, "sh", "-c", inside, str(self.root), *words]

    def environment(self, told: Mapping[str, str]) -> dict[str, str]:
        certificates = {"PIP_CERT": str(CERTIFICATES)} if CERTIFICATES.exists() else {}
        path = "/opt/python/bin:/usr/local/bin:/usr/bin:/bin"
        return {"PATH": path, "HOME": "/root", "CI": "true", **certificates, **told}

    def bash(
        self, script: str, folder: str = "/job", **told: str
    ) -> subprocess.CompletedProcess[str]:
        """As GitHub's and GitLab's runners start it."""
        shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        return subprocess.run(
            self.command(folder, *shell),
            env=self.environment(told),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )

    @contextlib.contextmanager
    def serving(self, *words: str) -> Iterator[str]:
        """A cluster that runs there; the address of its name server."""
        running = subprocess.Popen(
            self.command("/", *words),
            env=self.environment({}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert running.stdout is not None
        try:
            yield json.loads(running.stdout.readline())["namesrv"]
        finally:
            running.kill()
            running.communicate()

    def file(self, name: str) -> Path:
        return self.root / name.lstrip("/")


@pytest.fixture(scope="module")
def debian(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Debian]:
    """With a `python` that may be installed into, as a runner's."""
    root = tmp_path_factory.mktemp("debian")
    subprocess.run(
        ["tar", "-xf", docker_engine.ensure_base_archive(), "-C", root],
        check=True,
        timeout=DEADLINE_S,
    )
    machine = Debian(root)
    for found in (Path("/etc/resolv.conf"), CERTIFICATES):
        if found.exists():
            there = machine.file(str(found))
            there.parent.mkdir(parents=True, exist_ok=True)
            there.unlink(missing_ok=True)
            shutil.copyfile(found, there)
    machine.file("/job").mkdir()
    made = machine.bash("python3 -m venv /opt/python", "/")
    assert made.returncode == 0, made.stderr
    yield machine
    shutil.rmtree(root)


@pytest.fixture(scope="module")
def checkout(debian: Debian) -> str:
    """What a runner fetches for `uses: OWNER/inorder@...`."""
    place = debian.file("/action")
    for name in release.tracked():
        there = place / name
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, there)
    return "/action"


@pytest.fixture(scope="module")
def action(debian: Debian, checkout: str) -> Debian:
    """The machine after the action's first step."""
    script, environment = steps({"target": "x"})["Install"]
    began = time.monotonic()
    done = debian.bash(script, **{**environment, "FROM": checkout})
    assert done.returncode == 0, done.stdout + done.stderr
    sys.stderr.write(f"\nthe action's install: {time.monotonic() - began:.0f} s\n")
    return debian


SHORT = "--profile minimal-fifo --examples 8"


def target(address: str) -> str:
    return f"rocketmq:{address},broker_lease_ms={LEASE_MS}"


def judge(machine: Debian, address: str, folder: str) -> tuple[int, str, dict[str, str]]:
    """The action's second step in an empty folder: its code, what it said, and what it wrote of the job."""
    machine.file(folder).mkdir()
    outputs, summary = f"{folder}/outputs", f"{folder}/summary.md"
    for name in (outputs, summary):
        machine.file(name).touch()
    script, environment = steps({"target": target(address), "seed": "1", "arguments": SHORT})[
        "Judge"
    ]
    environment |= {"GITHUB_OUTPUT": outputs, "GITHUB_STEP_SUMMARY": summary}
    done = machine.bash(script, folder, **environment)
    told = {"outputs": outputs, "summary": summary}
    return (
        done.returncode,
        done.stdout + done.stderr,
        {name: machine.file(path).read_text() for name, path in told.items()},
    )


def artefacts(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


KEPT = {
    "allure-results",
    "history",
    "junit.xml",
    "report.html",
    "report.md",
    "report.txt",
    "verdict.json",
}
"""Of a run's folder, what docs/ci.md tells of."""


@pytest.mark.parametrize(
    ("serve", "code", "verdict"),
    [
        (SERVE, 0, "UPHELD"),
        (["python", "-c", SERVE_A_MUTANT, MUTANT], 1, "REFUTED"),
    ],
    ids=["reference", "mutant"],
)
def test_the_action_gates_a_served_cluster(
    serve: Sequence[str],
    code: int,
    verdict: str,
    action: Debian,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Green before the reference and red before a bug, with an annotation, a summary and the artefacts."""
    folder = f"/job/{verdict.lower()}"
    began = time.monotonic()
    with action.serving(*serve) as address:
        ended, said, told = judge(action, address, folder)
    with capsys.disabled():
        sys.stderr.write(f"\nthe action, {verdict}: {time.monotonic() - began:.0f} s\n")
    assert (ended, told["outputs"]) == (code, f"exit-code={code}\n"), said
    assert told["summary"].startswith(f"# {target(address)}: {verdict.lower()}\n")
    assert (f"::error title={ITS_CLAUSE}" in said) == (code == 1)
    found = artefacts(action.file(f"{folder}/inorder-run"))
    assert KEPT - found == set()


def test_the_template_gates_a_served_bug(
    debian: Debian, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The wheel is installed by its file, in a Python of its own; the job is red, and keeps what it says."""
    wheel = release.build(tmp_path).wheel
    debian.file("/gitlab").mkdir()
    shutil.copy(wheel, debian.file("/gitlab"))
    made = debian.bash("python3 -m venv /opt/gitlab", "/")
    assert made.returncode == 0, made.stderr
    head, body = read(TEMPLATE)
    job = body["inorder"]
    values = {name: told.get("default", "") for name, told in head["spec"]["inputs"].items()}
    values["package"] = f"/gitlab/{wheel.name}"
    path = "/opt/gitlab/bin:/usr/bin:/bin"
    serve = ["env", f"PATH={path}", "python", "-c", SERVE_A_MUTANT, MUTANT]

    def filled(text: str) -> str:
        return COMPONENT_INPUT.sub(lambda found: values[found[1]], text)

    install, judged = job["script"]
    done = debian.bash(filled(install), "/gitlab", PATH=path, PIP_CACHE_DIR="/gitlab/.cache/pip")
    assert done.returncode == 0, done.stderr
    with debian.serving(*serve) as address:
        values |= {"target": target(address), "arguments": f"--seed 1 {SHORT}"}
        done = debian.bash(filled(judged), "/gitlab", PATH=path)
    assert done.returncode == 1, done.stdout + done.stderr
    artifacts = job["artifacts"]
    kept = [filled(each) for each in (*artifacts["paths"], artifacts["reports"]["junit"])]
    assert [each for each in kept if not debian.file(f"/gitlab/{each}").exists()] == []
    assert KEPT - artefacts(debian.file(f"/gitlab/{kept[0]}")) == set()
