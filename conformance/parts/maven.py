"""Released jars, fetched by Maven into a folder of their own.

A folder appears complete or not at all, and is kept while the list of what was asked for stays the same.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from conformance.parts.places import tools_dir
from specs.errors import Unavailable

PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
STAMP = "complete"
FETCH_DEADLINE_S = 900.0

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>inorder</groupId><artifactId>{name}</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""
_DEPENDENCY = (
    "    <dependency><groupId>{group}</groupId>"
    "<artifactId>{artifact}</artifactId><version>{version}</version>{without}</dependency>"
)
_WITHOUT = "<exclusions><exclusion><groupId>{}</groupId><artifactId>{}</artifactId></exclusion></exclusions>"


@dataclass(frozen=True, slots=True)
class Artifact:
    """What Maven is asked for, with all that it needs itself; without: but for this, as `GROUP:NAME`."""

    group: str
    name: str
    version: str
    without: str = ""


@dataclass(frozen=True, slots=True)
class JarSet:
    """product: for messages, with its version. name: of the throw-away project that asks. place: below the folder of
    downloaded parts."""

    product: str
    name: str
    place: str
    artifacts: tuple[Artifact, ...]

    @property
    def folder(self) -> Path:
        """Where the jars lie, there or not."""
        return tools_dir() / self.place

    @property
    def present(self) -> bool:
        """Are they here, complete?"""
        stamp = self.folder / STAMP
        return stamp.is_file() and stamp.read_text() == self._digest()

    def ensure(self) -> Path:
        """The folder that holds the jars, fetched now if missing (run with `-cp 'FOLDER/*'`).

        Raises Unavailable if Maven is missing or fails.
        """
        lib = self.folder
        if self.present:
            return lib
        maven = shutil.which("mvn")
        if maven is None:
            raise Unavailable(
                f"The jars of {self.product} are not here and Maven, which fetches them, is missing; "
                "install it (Debian: apt-get install maven), and ask again."
            )
        lib.parent.mkdir(parents=True, exist_ok=True)
        with _alone(lib.parent / "lock"):
            if not self.present:  # another process may have fetched them while we waited
                self._fetch(maven, lib)
        return lib

    def _pom(self) -> str:
        lines = (
            _DEPENDENCY.format(
                group=each.group,
                artifact=each.name,
                version=each.version,
                without=_WITHOUT.format(*each.without.split(":")) if each.without else "",
            )
            for each in self.artifacts
        )
        return _POM.format(name=self.name, dependencies="\n".join(lines))

    def _digest(self) -> str:
        return hashlib.sha256((PLUGIN + self._pom()).encode()).hexdigest()

    def _fetch(self, maven: str, lib: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="fetch-", dir=lib.parent) as scratch:
            new = Path(scratch) / "lib"
            pom = Path(scratch) / "pom.xml"
            pom.write_text(self._pom())
            command = [
                maven,
                "-B",
                "-q",
                "-f",
                str(pom),
                PLUGIN,
                f"-DoutputDirectory={new}",
                "-DincludeScope=runtime",
            ]
            try:
                done = subprocess.run(
                    command,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    timeout=FETCH_DEADLINE_S,
                    check=False,
                )
            except subprocess.TimeoutExpired as error:
                raise Unavailable(
                    f"Maven did not fetch {self.product} in {FETCH_DEADLINE_S:g} s; a slow network?"
                ) from error
            if done.returncode != 0 or not all(
                list(new.glob(f"{each.name}-*.jar")) for each in self.artifacts
            ):
                said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
                raise Unavailable(
                    f"Maven could not fetch {self.product} (exit {done.returncode}); it said:\n{said}"
                )
            (new / STAMP).write_text(self._digest())
            shutil.rmtree(lib, ignore_errors=True)
            os.replace(new, lib)


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """One process at a time; the kernel lifts the lock when its holder dies."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
