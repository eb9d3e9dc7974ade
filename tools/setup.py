#!/usr/bin/env python3
"""Gets everything that the suite needs onto this machine, or says what it could not get. Standard library only.

    python3 tools/setup.py

Rules:
- before anything is installed one line says what and why;
- all of it goes into `.venv` and `.tools` of this checkout, save Debian packages (Java, Maven, a C compiler), which are
  installed only as root (or by `sudo -n`), and never when INORDER_NO_APT is set;
- needed are uv and the Python packages: without them it ends with one sentence and exit code 70;
- the rest is optional: what can't be had is named, with the reason, what is skipped without it and the
  command that mends it, and the setup goes on; `.tools/parts.json` records the state of every part;
- a step that is done is not done again until one of the files that it depends on changes.

pip, uv, Maven and Go use their own ordinary configuration (index, proxy, certificates).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ROOT / ".tools"
VENV = ROOT / ".venv"
STAMPS = TOOLS / "setup.json"
PARTS = TOOLS / "parts.json"

UV = "uv==0.13.9"
PYTHON_AT_LEAST = (3, 11)
ROCKETMQ = ("4.9.7", "5.4.0")
DEADLINE_S = 1800
EXIT_FAILED = 70


class Failed(Exception):
    """A step could not be done; the message says why in one sentence, and may quote a command's last lines."""


@dataclass(frozen=True)
class Part:
    """The state of one part, as `.tools/parts.json` records it. skipped, mend: only if it is missing."""

    name: str
    state: str  # "ok" or "missing"
    detail: str
    skipped: str = ""
    mend: str = ""


def say(line: str) -> None:
    """To people: stderr."""
    print(f"setup: {line}", file=sys.stderr, flush=True)  # noqa: T201 - this is a program, and it has no package to import


def run(command: Sequence[str | Path], failure: str, **environment: str) -> str:
    """Runs a command to its end and returns its output. Raises Failed, quoting it, if it does not succeed."""
    try:
        done = subprocess.run(
            [str(word) for word in command],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=DEADLINE_S,
            check=False,
        )
    except OSError as error:
        raise Failed(f"{failure}: {error}") from error
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{failure}: it took longer than {DEADLINE_S} s") from error
    if done.returncode != 0:
        said = "\n".join("    " + line for line in done.stdout.strip().splitlines()[-15:])
        raise Failed(f"{failure} (exit {done.returncode}):\n{said}")
    return done.stdout


# ---------------------------------------------------------------------------------------------- stamps


def digest(*inputs: str | Path) -> str:
    """Of the contents of files and of the strings themselves."""
    whole = hashlib.sha256()
    for item in inputs:
        whole.update(item.read_bytes() if isinstance(item, Path) else item.encode())
        whole.update(b"\0")
    return whole.hexdigest()


class Stamps:
    """What was done, and with which inputs; written after each step, so that an interrupted setup goes on."""

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()
        try:
            self._done: dict[str, str] = json.loads(STAMPS.read_text())
        except (OSError, ValueError):
            self._done = {}

    def fresh(self, step: str, inputs: str, *outputs: Path) -> bool:
        """Whether the step was done with these inputs and its outputs are still there."""
        return self._done.get(step) == inputs and all(output.exists() for output in outputs)

    def set(self, step: str, inputs: str) -> None:
        """Records that the step is done."""
        with self._one_at_a_time:
            self._done[step] = inputs
            write(STAMPS, self._done)


def write(path: Path, content: object) -> None:
    """Replaces a JSON file as a whole."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(content, indent=2) + "\n")
    os.replace(new, path)


# ---------------------------------------------------------------------------------------------- Debian
# packages


def privilege() -> list[str] | None:
    """What to write before `apt-get`: nothing as root, `sudo -n` where that works, None where nothing does."""
    if os.environ.get("INORDER_NO_APT") or shutil.which("apt-get") is None:
        return None
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo"):
        asked = subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False)
        if asked.returncode == 0:
            return ["sudo", "-n"]
    return None


_lists_fresh = False


def apt_install(packages: Sequence[str], why: str) -> None:
    """Installs Debian packages. Raises Failed if that is not allowed here or does not work."""
    global _lists_fresh
    before = privilege()
    if before is None:
        reason = (
            "INORDER_NO_APT is set"
            if os.environ.get("INORDER_NO_APT")
            else "this is not root, or no Debian"
        )
        names = " ".join(packages)
        raise Failed(
            f"{names} is missing and was not installed ({reason}); as root: apt-get install {names}"
        )
    say(f"installing Debian package {' '.join(packages)}: {why}")
    apt = [
        *before,
        "env",
        "DEBIAN_FRONTEND=noninteractive",
        "apt-get",
        "-q",
        "-o",
        "Dpkg::Use-Pty=0",
    ]
    if not _lists_fresh:
        run([*apt, "update"], "apt-get could not fetch its package lists")
        _lists_fresh = True
    run(
        [*apt, "install", "-y", "--no-install-recommends", *packages],
        f"apt-get could not install {packages[0]}",
    )


# ---------------------------------------------------------------------------------------------- needed


def ensure_uv(stamps: Stamps) -> Path:
    """uv in a virtual environment of its own. Raises Failed."""
    folder = TOOLS / "uv"
    uv = folder / "bin" / "uv"
    inputs = digest(UV, sys.version)
    if stamps.fresh("uv", inputs, uv):
        return uv
    if not can_make_environments():
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        apt_install(
            ["python3-venv"],
            f"python {version} of this machine can't make virtual environments without it",
        )
    say(
        f"installing {UV} into .tools/uv: it installs exactly the Python packages that uv.lock names"
    )
    run(
        [sys.executable, "-m", "venv", "--clear", folder],
        "python could not make a virtual environment",
    )
    run(
        [folder / "bin" / "python", "-m", "pip", "install", "--quiet", UV],
        f"pip could not install {UV}",
    )
    stamps.set("uv", inputs)
    return uv


def can_make_environments() -> bool:
    """Debian's python3 lacks ensurepip unless python3-venv is installed."""
    return Path(sysconfig.get_path("stdlib"), "ensurepip").is_dir()


def ensure_packages(uv: Path, stamps: Stamps) -> None:
    """`.venv` with what uv.lock names, and the project itself. Raises Failed."""
    python = VENV / "bin" / "python"
    inputs = digest(UV, sys.version, ROOT / "uv.lock", ROOT / "pyproject.toml", "with bytecode")
    if stamps.fresh("packages", inputs, python):
        return
    say(
        "installing the Python packages of uv.lock into .venv (Spark alone is 500 MB; a minute or two)"
    )
    sync: list[str | Path] = [uv, "sync", "--frozen", "--quiet", "--extra", "all"]
    if not python.exists():
        sync += ["--python", sys.executable]
    environment = {
        "UV_PROJECT_ENVIRONMENT": str(VENV),
        "UV_PYTHON_DOWNLOADS": "never",
        # As pip does. Else each of the many processes of a run compiles what it imports, where bytecode is not written.
        "UV_COMPILE_BYTECODE": "1",
        # The machine's certificates, as pip and git use them, not those that come with uv.
        "UV_SYSTEM_CERTS": os.environ.get("UV_SYSTEM_CERTS", "1"),
    }
    try:
        run(sync, "uv could not install the packages", **environment)
    except Failed as first:
        sync_by_pip(uv, environment, first)
    stamps.set("packages", inputs)


def sync_by_pip(uv: Path, environment: Mapping[str, str], first: Failed) -> None:
    """The same packages, by pip: a machine may reach its package index only as pip is configured."""
    say("uv could not fetch them; trying pip with the same locked versions and hashes")
    python = VENV / "bin" / "python"
    wanted = TOOLS / "requirements.txt"
    try:
        export: list[str | Path] = [
            uv,
            "export",
            "--frozen",
            "--quiet",
            "--no-emit-project",
            "--extra",
            "all",
            "-o",
            wanted,
        ]
        run(export, "uv could not list the packages", **environment)
        run(
            [sys.executable, "-m", "venv", "--clear", VENV],
            "python could not make a virtual environment",
        )
        pip: list[str | Path] = [python, "-m", "pip", "install", "--quiet"]
        run([*pip, "--require-hashes", "-r", wanted], "pip could not install the packages either")
        run([*pip, "--no-deps", "--editable", ROOT], "pip could not install the project itself")
    except Failed as second:
        raise Failed(f"{first}\n{second}") from second


# ---------------------------------------------------------------------------------------------- optional


def find_java() -> str | None:
    """The same rule as the suite's own: `$JAVA_HOME`, else PATH."""
    home = os.environ.get("JAVA_HOME")
    if home and os.access(Path(home) / "bin" / "java", os.X_OK):
        return str(Path(home) / "bin" / "java")
    return shutil.which("java")


def java_part() -> Part:
    """A Java 17 runtime, by apt where there is no Java at all."""
    package = "openjdk-17-jre-headless"
    try:
        if find_java() is None:
            apt_install([package], "RocketMQ and Spark run on Java")
        return Part("java", "ok", find_java() or "installed")
    except Failed as error:
        return Part(
            "java",
            "missing",
            str(error),
            skipped="Apache RocketMQ targets and every Spark check",
            mend=f"apt-get install {package}",
        )


def compiler_part() -> Part:
    """A C compiler, by apt where there is none."""
    packages = ["gcc", "libc6-dev"]
    try:
        if not any(shutil.which(name) for name in ("cc", "gcc", "clang")):
            apt_install(packages, "it makes the library that gives a process a clock of its own")
        return Part("c-compiler", "ok", "installed")
    except Failed as error:
        return Part(
            "c-compiler",
            "missing",
            str(error),
            skipped="chaos scenarios that step the wall clock of a process",
            mend=f"apt-get install {' '.join(packages)}",
        )


def jars_part(version: str, stamps: Stamps) -> Part:
    """The jars of one RocketMQ version, by Maven; Maven by apt where there is none."""
    name = f"rocketmq-{version}"
    parts = ROOT / "conformance" / "parts"
    lib = TOOLS / "rocketmq" / version / "lib"
    inputs = digest(version, parts / "jars.py", parts / "maven.py")
    if stamps.fresh(name, inputs, lib / "complete"):
        return Part(name, "ok", str(lib.relative_to(ROOT)))
    try:
        if shutil.which("mvn") is None and not (lib / "complete").exists():
            apt_install(["maven"], "it fetches the released jars of Apache RocketMQ")
        say(
            f"fetching the jars of Apache RocketMQ {version} into .tools by Maven: the conformance target"
        )
        python = VENV / "bin" / "python"
        run(
            [python, "-m", "conformance.parts.jars", version],
            f"Maven could not fetch RocketMQ {version}",
        )
    except Failed as error:
        return Part(
            name,
            "missing",
            str(error),
            skipped=f"everything against Apache RocketMQ {version}",
            mend="apt-get install maven && make setup",
        )
    stamps.set(name, inputs)
    return Part(name, "ok", str(lib.relative_to(ROOT)))


def server_part(
    stamps: Stamps, name: str, needed: Sequence[str], saying: str, mend: str, debian: str = ""
) -> Part:
    """A server and the wheel of its client, as `python -m conformance.parts.NAME` has them.

    needed: the modules besides on which that depends. saying: what is told first. debian: a package that has to
    be installed before; none if empty.
    """
    folder = ROOT / "conformance" / "parts"
    inputs = digest(*(folder / f"{module}.py" for module in (name, *needed, "wheels")))
    place = TOOLS / name
    if not stamps.fresh(name, inputs, place, TOOLS / "wheels"):
        try:
            if debian and not place.exists():
                apt_install([debian], f"it is needed for {name}")
            say(saying)
            run(
                [VENV / "bin" / "python", "-m", f"conformance.parts.{name}"],
                f"{name} could not be had",
            )
        except Failed as error:
            skipped = f"the target {name}-local, and its tests"
            return Part(name, "missing", str(error), skipped=skipped, mend=mend)
        stamps.set(name, inputs)
    return Part(name, "ok", str(place.relative_to(ROOT)))


def kafka_part(stamps: Stamps) -> Part:
    """A Kafka server's jars, by Maven, and the wheel of its usual client."""
    saying = "fetching a Kafka server into .tools by Maven, and the wheel of its client: a target"
    debian = "" if shutil.which("mvn") else "maven"
    return server_part(
        stamps, "kafka", ["maven"], saying, "apt-get install maven && make setup", debian
    )


def nats_part(stamps: Stamps) -> Part:
    """A NATS server, built by Go, and the wheel of its client."""
    how = "the machine's Go" if shutil.which("go") else "a Go that is removed afterwards"
    saying = f"building a NATS server into .tools/nats by {how}, and fetching its client's wheel: a target (a minute)"
    mend = "install Go 1.22 or later, then: make setup"
    return server_part(stamps, "nats", ["golang"], saying, mend)


def redis_part(stamps: Stamps) -> Part:
    """A Redis server, out of Debian's packages, and the wheel of its client."""
    saying = "fetching a Redis server into .tools/redis, and its client's wheel: a target (2 MB)"
    mend = "on Debian 12 with its packages in reach: make setup"
    return server_part(stamps, "redis", [], saying, mend)


def rocketmq_go_part(stamps: Stamps) -> Part:
    """The driver of RocketMQ's Go client, built by Go."""
    parts = ROOT / "conformance" / "parts"
    inputs = digest(
        *(parts / f"{name}.py" for name in ("rocketmq_go", "golang")),
        ROOT / "drivers" / "go" / "main.go",
    )
    place = TOOLS / "go-driver"
    if not stamps.fresh("rocketmq-go", inputs, place):
        how = "the machine's Go" if shutil.which("go") else "a Go that is removed afterwards"
        say(f"building a driver of RocketMQ's Go client into .tools/go-driver by {how}: a client")
        try:
            python = VENV / "bin" / "python"
            run([python, "-m", "conformance.parts.rocketmq_go"], "the Go driver could not be built")
        except Failed as error:
            skipped = "RocketMQ's Go client (+go:VERSION), and its tests"
            mend = "install Go 1.22 or later, then: make setup"
            return Part("rocketmq-go", "missing", str(error), skipped=skipped, mend=mend)
        stamps.set("rocketmq-go", inputs)
    return Part("rocketmq-go", "ok", str(place.relative_to(ROOT)))


def toxiproxy_part(stamps: Stamps) -> Part:
    """The toxiproxy server, built by Go."""
    parts = ROOT / "conformance" / "parts"
    inputs = digest(*(parts / f"{name}.py" for name in ("toxiproxy_binary", "golang")))
    built = sorted((TOOLS / "bin").glob("toxiproxy-server-*"))
    if built and stamps.fresh("toxiproxy", inputs, built[-1]):
        return Part("toxiproxy", "ok", str(built[-1].relative_to(ROOT)))
    try:
        how = "the machine's Go" if shutil.which("go") else "a Go that is removed afterwards"
        say(
            f"building the toxiproxy server into .tools/bin by {how}: network faults (half a minute)"
        )
        python = VENV / "bin" / "python"
        said = run(
            [python, "-m", "conformance.parts.toxiproxy_binary"],
            "the toxiproxy server could not be built",
        )
    except Failed as error:
        return Part(
            "toxiproxy",
            "missing",
            str(error),
            skipped="chaos scenarios with network faults",
            mend="install Go 1.22 or later, then: make setup",
        )
    stamps.set("toxiproxy", inputs)
    return Part("toxiproxy", "ok", said.strip().splitlines()[-1].rsplit(": ", 1)[-1])


# ---------------------------------------------------------------------------------------------- all


def fetched(stamps: Stamps) -> list[Part]:
    """Java, a C compiler, and what comes from a registry as it is."""
    java = java_part()
    jars = [jars_part(version, stamps) for version in ROCKETMQ]
    return [java, *jars, kafka_part(stamps), redis_part(stamps), compiler_part()]


def built(stamps: Stamps) -> list[Part]:
    """What Go builds."""
    return [nats_part(stamps), rocketmq_go_part(stamps), toxiproxy_part(stamps)]


def main() -> int:
    """Does what is not done; an exit code."""
    if sys.version_info < PYTHON_AT_LEAST:
        say(
            f"Python {sys.version.split()[0]} is too old; run `make PYTHON=...` with 3.11 or later."
        )
        return EXIT_FAILED
    TOOLS.mkdir(exist_ok=True)
    with (TOOLS / "setup.lock").open("w") as lock:
        fcntl.flock(
            lock, fcntl.LOCK_EX
        )  # two makes at once: the second waits and finds everything done
        return set_up(Stamps())


def set_up(stamps: Stamps) -> int:
    """What everything needs, and then the parts: what is fetched beside what is built."""
    try:
        uv = ensure_uv(stamps)
        ensure_packages(uv, stamps)
    except Failed as error:
        say(f"{error}\nsetup: stopped, because nothing runs without the Python packages")
        return EXIT_FAILED
    with ThreadPoolExecutor() as pool:
        both = [pool.submit(chain, stamps) for chain in (fetched, built)]
        parts = [part for each in both for part in each.result()]
    write(PARTS, {"schema": "inorder/parts/v1", "parts": [asdict(part) for part in parts]})
    for part in parts:
        if part.state != "ok":
            say(f"missing: {part.name}. {part.detail}")
            say(f"  skipped without it: {part.skipped}; to mend it: {part.mend}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
