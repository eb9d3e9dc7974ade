"""Small libraries that are loaded before a process's own (LD_PRELOAD) and told what to do while it runs.

    library = Library("wall-clock", Path("wall_clock.c"), "INORDER_WALL_CLOCK", works)
    told = Told(library, folder)
    process = Process("broker", ["java", ...], log=log, env=environment_of(told))
    told.put(0, 1_500)                        # the library reads it with its next call

A library takes the place of a few calls of the C library, and does what numbers say which lie in a file that it and we
have mapped. So neither the program nor its machine is changed, and no rights are needed.

A library is compiled once, by this machine's C compiler, and tried before it counts as there. A statically linked
program, as Go makes them, asks the kernel itself and can't be told anything in this way.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from conformance.parts.places import tools_dir

COMPILERS = ("cc", "gcc", "clang")
MEND = "apt-get install gcc libc6-dev"
_MADE_S = 60.0


@dataclass(frozen=True, slots=True)
class Library:
    """name: of its file. source: in C. variable: of the environment, names the file of its numbers.

    works: takes what a process is told that was given it, and says whether such a process does as told.
    """

    name: str
    source: Path
    variable: str
    works: Callable[[Told], bool]

    @property
    def path(self) -> Path:
        """Where it lies when it is made: by what it is made of."""
        digest = hashlib.sha256(self.source.read_bytes()).hexdigest()[:12]
        return tools_dir() / "bin" / f"{self.name}-{digest}.so"

    def why_not(self) -> str | None:
        """Why it can't be had on this machine, and what mends it; None where it can. Tried once."""
        if sys.platform != "linux":
            return "it takes Linux, with its way to load a library before others"
        if self.path.exists():
            return None
        return _tried(
            self, self.path, next((name for name in COMPILERS if shutil.which(name)), None)
        )


class Told:
    """What a process is told: numbers in a file of its own. path: of the library, where it is not yet in its place."""

    def __init__(self, library: Library, folder: Path, path: Path | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        file, name = tempfile.mkstemp(prefix=f"{library.name}-", dir=folder)
        os.truncate(file, mmap.PAGESIZE)
        self._page = mmap.mmap(file, mmap.PAGESIZE)
        os.close(file)
        self.library = path or library.path
        self.file = {library.variable: name}

    def put(self, place: int, number: int) -> None:
        """One aligned store: nobody reads half of it."""
        with memoryview(self._page) as page, page.cast("q") as numbers:
            numbers[place] = number

    def get(self, place: int) -> int:
        with memoryview(self._page) as page, page.cast("q") as numbers:
            return int(numbers[place])

    def close(self) -> None:
        """Nobody tells it anything any more. A second call does nothing."""
        self._page.close()


def environment_of(*told: Told) -> Mapping[str, str]:
    """Of a process, and its children, that are told all of this."""
    others = os.environ.get("LD_PRELOAD")
    libraries = [str(each.library) for each in told] + ([others] if others else [])
    found: dict[str, str] = {"LD_PRELOAD": ":".join(libraries)} if told else {}
    for each in told:
        found |= each.file
    return found


def said_by(program: str, *told: Told) -> list[str]:
    """The words that a Python program prints which is told this; none where it takes too long."""
    try:
        return subprocess.run(
            [sys.executable, "-I", "-S", "-c", program],
            env={**os.environ, **environment_of(*told)},
            capture_output=True,
            text=True,
            timeout=_MADE_S,
            check=False,
        ).stdout.split()
    except subprocess.TimeoutExpired:
        return []


@cache
def _tried(library: Library, path: Path, compiler: str | None) -> str | None:
    if compiler is None:
        return f"there is no C compiler ({MEND})"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return _made(library, path, compiler)
    except OSError as error:
        return f"it can't be kept in {path.parent}: {error.strerror}"


def _made(library: Library, path: Path, compiler: str) -> str | None:
    """Make it and try it; why that can't be done, if so."""
    with tempfile.TemporaryDirectory(prefix=f"{library.name}-", dir=path.parent) as folder:
        made = Path(folder) / path.name
        command = [
            compiler,
            "-shared",
            "-fPIC",
            "-O2",
            "-o",
            str(made),
            str(library.source),
            "-ldl",
        ]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_MADE_S, check=False
            )
        except subprocess.TimeoutExpired:
            return f"{compiler} did not compile it within {_MADE_S:g} s"
        if done.returncode != 0:
            return (
                f"{compiler} could not compile it ({MEND}): {' '.join(done.stderr.split())[:200]}"
            )
        told = Told(library, Path(folder), made)
        try:
            if not library.works(told):
                return "a process that was given one did not see it"
        finally:
            told.close()
        os.replace(made, path)
    return None
