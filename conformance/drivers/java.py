"""The Java driver: compiled once for a client's version, started as a process.

The source is one file, `drivers/java/Driver.java`; its classes are kept beside the other downloaded parts, by
version and by the source's digest. Client leases are system properties of the Java client, set from the plan's
configuration.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from conformance.drivers.process import DriverProcess, Event
from conformance.parts import jars
from conformance.parts.java import java
from conformance.parts.places import beside, tools_dir
from specs.errors import TargetMisbehaved, UsageError
from specs.plan.config import Config

SOURCE = beside("drivers") / "java" / "Driver.java"
COMPILE_S = 120.0
JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xms32m", "-Xmx192m")


def classes(version: str) -> Path:
    """The folder of the driver's classes, compiled now if missing.

    Raises UsageError where the client's version is unknown, or Maven, a Java compiler or the source is missing.
    """
    jars.check_client_version(version)
    return compiled(SOURCE, lambda: jars.ensure_client(version), f"java/{version}", version)


def compiled(source: Path, lib: Callable[[], Path], place: str, version: str) -> Path:
    """The folder of a driver's classes, compiled now if missing, against the jars of a client's version.

    lib: the folder of the jars. place: below the folder of drivers. Raises UsageError where a Java compiler or the
    source is missing, TargetMisbehaved where the source does not compile.
    """
    if not source.is_file():
        raise UsageError("the Java driver is compiled from a source checkout, and this is none")
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    made = tools_dir() / "drivers" / place / digest
    if made.is_dir():
        return made
    compiler = shutil.which("javac", path=str(java().parent)) or shutil.which("javac")
    if compiler is None:
        raise UsageError(
            "there is no Java compiler (javac); install one (Debian: apt-get install openjdk-17-jdk-headless)"
        )
    jars_there = lib()
    made.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="compile-", dir=made.parent) as scratch:
        new = Path(scratch) / "classes"
        command = [compiler, "--release", "11", "-nowarn", "-encoding", "UTF-8"]
        done = subprocess.run(
            [*command, "-cp", f"{jars_there}/*", "-d", str(new), str(source)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMPILE_S,
            check=False,
        )
        if done.returncode != 0:
            raise TargetMisbehaved(
                f"the Java driver does not compile with client {version}:\n{done.stderr.strip()}"
            )
        if not made.is_dir():  # another process may have been quicker
            os.replace(new, made)
    return made


def start_java(
    version: str,
    name: str,
    config: Config,
    folder: Path,
    on_event: Callable[[Event], Any],
    more: Mapping[str, str | int] | None = None,
) -> DriverProcess:
    """A Java driver, running and not yet greeted; its logs go below `folder`. Raises as `classes` does.

    more: further system properties of the Java client.
    """
    lib = jars.ensure_client(version)
    home = folder / "java-home"
    home.mkdir(parents=True, exist_ok=True)
    properties = {
        "user.home": home,
        "rocketmq.client.rebalance.lockInterval": config.lock_interval_ms,
        "rocketmq.client.rebalance.lockMaxLiveTime": config.client_lease_ms,
        "rocketmq.client.rebalance.waitInterval": config.rebalance_ms,
        "rocketmq.client.rebalance.minInterval": min(config.rebalance_ms, 1_000),
        "rocketmq.client.logRoot": home / "logs",
        **(more or {}),
    }
    argv: list[str | Path] = [
        java(),
        *JVM,
        *(f"-D{key}={value}" for key, value in properties.items()),
        "-cp",
        f"{classes(version)}{os.pathsep}{lib}/*",
        "Driver",
    ]
    return DriverProcess(f"Java client {version} ({name})", argv, folder / f"{name}.log", on_event)
