"""A Docker engine, the image of our own client, and containers that never outlive us.

    client = docker_engine.connect()
    image = docker_engine.ensure_image(client)
    with Container(client, image, ["python3", "-m", "..."], volumes={folder: "/run/out"}) as container:
        container.pause()

Rules:
- the engine is the one of DOCKER_HOST, else of the default socket, else of `.tools/docker`, which
  `tools/dockerd.sh start .tools/docker` starts; none is started here;
- no registry is needed: the base image is Debian with Python by `debootstrap`; only where that can't run, one is
  pulled;
- images are named by the hash of what they are made from, so that an unchanged one is not built again;
- containers use the host's network, because brokers and proxies under test listen on 127.0.0.1, and the
  host's monotonic clock, so their times compare with ours;
- a container is removed when its `with` ends, and by the reaper when this process dies, or can't.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import io
import itertools
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import docker
import psutil
import requests
from docker import DockerClient
from docker.errors import BuildError, DockerException, ImageNotFound, NotFound
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from conformance.parts.places import checkout, tools_dir
from conformance.parts.restoring import (
    ENGINE_ERRORS,
    PUT_BACK,
    REMOVE,
    RUN,
    SCRIPT,
    Debt,
    Owed,
    command,
    first_line,
    settle,
)
from specs.errors import PartFailed, TargetMisbehaved, Unavailable, UsageError

SUITE = "bookworm"
PULLED_BASE = "python:3.11-slim-bookworm"
PACKAGES = ("specs", "reference_impl", "conformance", "chaos")
BASE_NAME = "inorder-base"
CONSUMER_NAME = "inorder-consumer"
LABEL = "inorder"
"""On each container of ours: who made it."""
LABEL_OF_PROJECT = "inorder.project"
"""On each that was made for a compose project: the project's name."""
DEFAULT_SOCKET = "unix:///var/run/docker.sock"
REQUEST_DEADLINE_S = 120
QUICK_S = 20
PATIENCE_S = 30.0
CLOSE_PATIENCE_S = 5.0
REAPER_GRACE_S = 5.0
DEBOOTSTRAP_DEADLINE_S = 900.0
MEND = "start one, or as root: apt-get install docker.io debootstrap && tools/dockerd.sh start .tools/docker"


# ---------------------------------------------------------------------------------------------- engine


def connect() -> DockerClient:
    """A client of the running engine. Raises Unavailable, with the reason and the remedy, if there is none."""
    reason: Exception
    try:
        _check_socket()
        client = docker.from_env(timeout=REQUEST_DEADLINE_S, environment=_environment())
    except (DockerException, OSError) as error:
        reason = error
    else:
        try:
            client.ping()
            # What only looks is asked again, where its connection was lost.
            adapter = client.api.get_adapter(client.api.base_url)
            if isinstance(adapter, HTTPAdapter):
                adapter.max_retries = Retry(total=2, backoff_factor=0.2, allowed_methods=["GET"])
            return client
        except (DockerException, requests.RequestException) as error:
            client.close()
            reason = error
    raise Unavailable(
        f"No Docker engine answers at {where()} ({_short(reason)}); {MEND}."
    ) from reason


def where() -> str:
    """The address of the engine: DOCKER_HOST, else the default socket, else the one in `.tools/docker`."""
    named = os.environ.get("DOCKER_HOST")
    if named:
        return named
    ours = tools_dir() / "docker" / "docker.sock"
    default = Path(DEFAULT_SOCKET.removeprefix("unix://"))
    return f"unix://{ours}" if ours.exists() and not default.exists() else DEFAULT_SOCKET


def _environment() -> dict[str, str]:
    return {**os.environ, "DOCKER_HOST": where()}


def _check_socket() -> None:
    """Raises OSError if the engine's Unix socket refuses; the SDK would leak the socket that it tried with."""
    host = where()
    if host.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(host.removeprefix("unix://"))


def why_not() -> str | None:
    """Why there is no engine here, or None if there is one; quick."""
    try:
        connect().close()
    except UsageError as error:
        return str(error)
    return None


def _short(error: Exception) -> str:
    return str(error).split("\n", 1)[0][:160]


# ---------------------------------------------------------------------------------------------- images


def ensure_image(client: DockerClient) -> str:
    """The name of the image with Python and our packages, built now if it is not there.

    Needs a source checkout. Raises UsageError (no checkout), Unavailable (no way to a base image), TargetMisbehaved
    (the build failed). Takes half a minute the first time, two seconds after a change of our sources, nothing
    otherwise.
    """
    root = checkout()
    if root is None:
        raise UsageError(
            "The consumer image is built from a source checkout, and this is an installed package."
        )
    base = ensure_base(client)
    dockerfile = (root / "docker" / "consumer" / "Dockerfile").read_bytes()
    sources = {
        f"packages/{path.relative_to(root)}": path.read_bytes()
        for package in PACKAGES
        for path in sorted((root / package).rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    digest = hashlib.sha256(base.encode() + dockerfile)
    for name, content in sources.items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    image = f"{CONSUMER_NAME}:{digest.hexdigest()[:16]}"
    if _present(client, image):
        return image
    context = _tar({"Dockerfile": dockerfile, **sources})
    try:
        client.images.build(
            fileobj=context,
            custom_context=True,
            tag=image,
            buildargs={"BASE": base},
            labels={LABEL: CONSUMER_NAME},
            rm=True,
            forcerm=True,
        )
    except (BuildError, DockerException) as error:
        raise TargetMisbehaved(f"The consumer image could not be built: {_short(error)}") from error
    _remove_older(client, CONSUMER_NAME, keep=image)
    return image


def image_of_ours(client: DockerClient) -> str:
    """The image with our packages that INORDER_IMAGE names, else the one that `ensure_image` builds."""
    return os.environ.get("INORDER_IMAGE") or ensure_image(client)


def ensure_base(client: DockerClient) -> str:
    """The name of a base image with `python3`. Raises Unavailable if there is no way to one."""
    named = os.environ.get("INORDER_DOCKER_BASE")
    if named:
        return named
    image = f"{BASE_NAME}:{SUITE}-{_base_digest()}"
    if _present(client, image):
        return image
    if can_debootstrap() or _base_archive().exists():
        archive = ensure_base_archive()
        repository, tag = image.split(":")
        client.api.import_image_from_file(str(archive), repository=repository, tag=tag)
        if not _present(client, image):
            raise TargetMisbehaved(
                f"The Docker engine imported {archive} and does not have {image}."
            )
        return image
    if not _present(client, PULLED_BASE):
        try:
            client.images.pull(PULLED_BASE)
        except (DockerException, requests.RequestException) as error:
            raise Unavailable(
                f"There is no base image: debootstrap is missing or this is not root, and {PULLED_BASE} can't be "
                f"pulled ({_short(error)}); as root: apt-get install debootstrap."
            ) from error
    return PULLED_BASE


def _base_digest() -> str:
    return hashlib.sha256(repr(_debootstrap_command(Path("/"))).encode()).hexdigest()[:12]


def _base_archive() -> Path:
    return tools_dir() / "images" / f"{SUITE}-{_base_digest()}.tar"


def _debootstrap_command(target: Path) -> list[str]:
    # Debian splits `venv` off the standard library.
    python = "--include=python3,python3-venv"
    return ["debootstrap", "--variant=minbase", python, SUITE, str(target)]


def can_debootstrap() -> bool:
    """Whether a Debian can be made here: that needs root, and the tool."""
    return os.geteuid() == 0 and shutil.which("debootstrap") is not None


def ensure_base_archive() -> Path:
    """The files of a Debian with Python as a tar archive, made now if it is not there. Raises TargetMisbehaved."""
    archive = _base_archive()
    if archive.exists():
        return archive
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="base-", dir=archive.parent) as scratch:
        root = Path(scratch) / "root"
        done = subprocess.run(
            _debootstrap_command(root),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=DEBOOTSTRAP_DEADLINE_S,
            check=False,
        )
        if done.returncode != 0:
            said = "\n".join(done.stdout.strip().splitlines()[-8:])
            raise TargetMisbehaved(f"debootstrap could not make a Debian {SUITE}; it said:\n{said}")
        for heavy in (
            "var/cache/apt",
            "var/lib/apt/lists",
            "usr/share/doc",
            "usr/share/man",
            "usr/share/locale",
        ):
            shutil.rmtree(root / heavy, ignore_errors=True)
        new = Path(scratch) / "base.tar"
        # Not tarfile: device nodes and ownership as they are, and quicker.
        subprocess.run(
            ["tar", "-C", str(root), "-cf", str(new), "."], check=True, stdin=subprocess.DEVNULL
        )
        os.replace(new, archive)
    return archive


def _present(client: DockerClient, image: str) -> bool:
    try:
        client.images.get(image)
    except ImageNotFound:
        return False
    return True


def _remove_older(client: DockerClient, name: str, keep: str) -> None:
    for image in client.images.list(name=name):
        if keep not in image.tags and image.id is not None:
            # One that a container still uses stays.
            with contextlib.suppress(DockerException):
                client.images.remove(image.id)


def _tar(files: Mapping[str, bytes]) -> IO[bytes]:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            entry.mode = 0o644
            tar.addfile(entry, io.BytesIO(content))
    whole.seek(0)
    return whole


# ---------------------------------------------------------------------------------------------- reaper


class _Reaper:
    """The process that puts everything back if we die; see `reaper`."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.owed = Owed(where())
        # Not leashed: its whole purpose is to outlive us for a moment.
        self._popen = subprocess.Popen(
            [sys.executable, "-m", "conformance.parts.reaper"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=Path(__file__).resolve().parents[2],
            env=_environment(),
            start_new_session=True,
            text=True,
        )

    def tell(self, line: str) -> None:
        """What is owed, before it is; raises TargetMisbehaved where nobody would pay it if we die."""
        self.owed.take(line)
        if self._popen.poll() is not None:
            raise TargetMisbehaved(
                f"The container reaper died (exit code {self._popen.returncode})."
            )
        self._write(line)

    def paid(self, line: str) -> None:
        """Nothing is owed for it any more."""
        self.owed.take(line)
        with contextlib.suppress(OSError, ValueError):
            self._write(line)

    def _write(self, line: str) -> None:
        assert self._popen.stdin is not None
        self._popen.stdin.write(line + "\n")
        self._popen.stdin.flush()

    def close(self) -> None:
        """It pays the rest. What it has not paid soon is told, with the commands; it goes on trying without us."""
        if self.pid != os.getpid():
            return
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.communicate(timeout=REAPER_GRACE_S)
        finally:
            if self._popen.returncode != 0 and self.owed.debts:
                sys.stderr.write("\n".join([*_not_put_back(self), ""]))


def _not_put_back(reaper: _Reaper) -> Iterator[str]:
    yield f"inorder: not put back at the Docker engine {where()}; what mends it:"
    yield from (f"  {command(debt)}" for debt in reaper.owed.debts)
    if reaper.owed.script is not None:
        yield f"  (as a script: sh {shlex.quote(str(reaper.owed.script))})"


_lock = threading.Lock()
_reaper: _Reaper | None = None
_numbers = itertools.count(1)


def _reaper_of_ours() -> _Reaper:
    global _reaper
    with _lock:
        if _reaper is None or _reaper.pid != os.getpid():
            _reaper = _Reaper()
            atexit.register(_reaper.close)
        return _reaper


def removed_if_we_die(name: str) -> None:
    """That container is ours: it goes with us, however we end. Said before it is made."""
    _reaper_of_ours().tell(f"{REMOVE}{name}")


def runs_if_we_die(name: str) -> None:
    """That container is somebody's, and ran: it runs again after us, however we end. Said before it is touched."""
    _reaper_of_ours().tell(f"{RUN}{name}")


def owed_in(folder: Path) -> None:
    """What is owed from now on stands in a script in that folder, until it is paid."""
    _reaper_of_ours().tell(f"{SCRIPT}{folder.resolve() / PUT_BACK}")


def put_back() -> Mapping[Debt, str]:
    """Pay all that is owed, each by itself, for some time. What is left, each with the reason: the reaper goes on."""
    reaper = _reaper_of_ours()
    return settle(reaper.owed.debts, quick_client, PATIENCE_S, reaper.paid)


def quick_client() -> DockerClient:
    """One that does not wait for an engine that hangs. Raises what `restoring` knows as the engine's errors."""
    _check_socket()
    return docker.from_env(timeout=QUICK_S, environment=_environment())


# ---------------------------------------------------------------------------------------------- containers


class EngineFailed(PartFailed):
    """A container or the engine itself went away, or the engine could not do what it was asked to."""


@contextmanager
def asking(what: str) -> Iterator[None]:
    """An error of the engine's is one sentence, which says whose it is. what: it was asked to do, with a name."""
    try:
        yield
    except ENGINE_ERRORS as error:
        said = first_line(error)
        if isinstance(error, NotFound) and "container" in said.lower():
            raise EngineFailed(f"could not {what}: somebody removed the container") from error
        if isinstance(error, DockerException):
            raise EngineFailed(f"the Docker engine could not {what}: {said}") from error
        raise EngineFailed(
            f"the Docker engine at {where()} went away, or did not answer, when it was to {what}: {said}"
        ) from error


def own_name() -> str:
    """A name that no other container has."""
    return f"inorder-{os.getpid()}-{next(_numbers)}"


def own_labels() -> dict[str, str]:
    """By which a later run knows what is ours, and whether we still live."""
    born = int(psutil.Process().create_time())
    return {LABEL: f"{socket.gethostname()}/{os.getpid()}/{born}"}


def owner_lives(labels: Mapping[str, str]) -> bool:
    """Does the process still run that made a container with these labels? One of another machine may."""
    host, _, rest = labels.get(LABEL, "").partition("/")
    pid, _, born = rest.partition("/")
    if not (pid.isdecimal() and born.isdecimal()):
        return False
    if host != socket.gethostname():
        return True
    try:
        return abs(psutil.Process(int(pid)).create_time() - int(born)) < 2
    except psutil.Error:
        return False


class Container:
    """A running container; a context manager.

    command: what runs in it. volumes: host folder → folder in the container, writable. env: its environment.
    It runs as our own user. name: default one that is ours alone. network: the host's own if not given.
    labels: besides our own. Each method raises EngineFailed where the engine or the container is not there any more.
    """

    def __init__(
        self,
        client: DockerClient,
        image: str,
        command: Sequence[str],
        *,
        name: str | None = None,
        volumes: Mapping[Path, str] | None = None,
        env: Mapping[str, str] | None = None,
        network: str = "host",
        labels: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name or own_name()
        removed_if_we_die(self.name)
        try:
            self._container = client.containers.run(
                image,
                list(command),
                name=self.name,
                # An image of somebody else's may have a program of its own there.
                entrypoint=[],
                detach=True,
                init=True,
                network=network,
                user=f"{os.getuid()}:{os.getgid()}",
                volumes={
                    str(host.resolve()): {"bind": inside, "mode": "rw"}
                    for host, inside in (volumes or {}).items()
                },
                environment=dict(env or {}),
                labels={**(labels or {}), **own_labels()},
            )
        except ENGINE_ERRORS as error:
            self.close()
            raise EngineFailed(
                f"Container {self.name} could not be started: {_short(error)}"
            ) from error

    @property
    def status(self) -> str:
        """What the engine says now: "running", "paused", "exited", or "gone"."""
        with asking(f"look at {self.name}"):
            try:
                self._container.reload()
            except NotFound:
                return "gone"
            return str(self._container.status)

    def pause(self) -> None:
        """Freezes all of it: connections stay open, clocks go on, nothing runs. Verified."""
        with asking(f"pause {self.name}"):
            self._container.pause()
        self._expect("paused")

    def resume(self) -> None:
        """Thaws it. Verified."""
        with asking(f"let {self.name} go on"):
            self._container.unpause()
        self._expect("running")

    def kill(self) -> None:
        """SIGKILL; the container stays for its logs until `close`."""
        with asking(f"kill {self.name}"):
            self._container.kill("SIGKILL")
            self._container.wait(timeout=REQUEST_DEADLINE_S)

    def terminate(self) -> None:
        """SIGTERM; `wait` tells how it ended."""
        with asking(f"end {self.name}"):
            self._container.kill("SIGTERM")

    def wait(self, deadline_s: float) -> int | None:
        """Waits for its end; the exit code, or None if it still runs after `deadline_s` seconds."""
        with asking(f"wait for {self.name}"):
            try:
                return int(self._container.wait(timeout=deadline_s)["StatusCode"])
            except requests.RequestException:
                # Either the time is over, or the connection was lost.
                self._container.reload()
                if self._container.status == "running":
                    return None
                return int(self._container.attrs["State"]["ExitCode"])

    def logs(self) -> str:
        """All that it wrote to stdout and stderr."""
        with asking(f"read what {self.name} said"):
            return bytes(self._container.logs()).decode(errors="replace")

    def why_ended(self) -> str:
        """For a sentence that begins with its name: how it ended, and its last words."""
        try:
            if self.status == "gone":
                return "was removed by somebody"
            code, said = self._container.attrs["State"]["ExitCode"], self.logs().strip()[-500:]
        except EngineFailed as error:
            return f"ended, and {error}"
        return (
            f"ended with {code}, and said: {said}" if said else f"ended with {code}, without a word"
        )

    def lines(self) -> Iterator[str]:
        """What it writes to stdout, line by line, until it ends."""
        buffer = b""
        with asking(f"read what {self.name} says"):
            for chunk in self._container.logs(stream=True, follow=True, stderr=False):
                buffer += chunk
                *whole, buffer = buffer.split(b"\n")
                for line in whole:
                    yield line.decode(errors="replace")

    def close(self) -> None:
        """Removes it, running or not. Raises nothing: where the engine is away, the reaper goes on trying."""
        settle([(REMOVE, self.name)], quick_client, CLOSE_PATIENCE_S, _reaper_of_ours().paid)

    def _expect(self, status: str) -> None:
        found = self.status
        if found != status:
            raise EngineFailed(
                f"Container {self.name} should be {status} and is {found}: it {self.why_ended()}"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def remove_abandoned(client: DockerClient) -> None:
    """Remove our containers whose makers have died, but those on somebody's project, which is hers to clean up."""
    with asking("list the containers"):
        found = client.api.containers(all=True, filters={"label": LABEL})
    left = [
        (REMOVE, str(each["Names"][0]).removeprefix("/"))
        for each in found
        if LABEL_OF_PROJECT not in each["Labels"] and not owner_lives(each["Labels"])
    ]
    settle(left, quick_client, CLOSE_PATIENCE_S, lambda _line: None)


def engine_info(client: DockerClient) -> str:
    """For people: "Docker 20.10.24"."""
    version: dict[str, Any] = client.version()
    return f"Docker {version['Version']}"
