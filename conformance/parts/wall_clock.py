"""A wall clock of one process alone, which can be set while it runs.

    clock = WallClock(folder)
    process = Process("broker", ["java", ...], log=log, env=clock.environment)
    clock.step(1_500)                         # from now on it shows 1.5 s more, to this process and its children

A small library is loaded before the process's own (`wall_clock.c`) and adds a number to what the machine's wall clock
shows. The number lies in a file that both have mapped, so a step is there with the next look at the clock. Monotonic
clocks and timers are untouched, as when a time service sets a clock. Where a program waits until a time of day, the
kernel waits for its own.

It is compiled once, by this machine's C compiler, and tried before it counts as there. A statically linked program, as
Go makes them, asks the kernel itself and can't be given such a clock.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from conformance.parts.places import tools_dir
from specs.errors import Unavailable

SOURCE = Path(__file__).with_name("wall_clock.c")
COMPILERS = ("cc", "gcc", "clang")
MEND = "apt-get install gcc libc6-dev"
_FILE = "INORDER_WALL_CLOCK"
_MS = 1_000_000
_TRIED_MS = 3_600_000
_CLOCKS = "import time; print(time.time_ns(), time.monotonic_ns())"
_MADE_S = 60.0


class WallClock:
    """folder: for its file. Raises Unavailable where no such clock can be had (`why_not`)."""

    def __init__(self, folder: Path) -> None:
        if (why := why_not()) is not None:
            raise Unavailable(f"a wall clock can't be set here: {why}")
        self._told = _Told(folder, _library())

    @property
    def environment(self) -> Mapping[str, str]:
        """Of the processes that see it."""
        return self._told.environment

    def step(self, ms: int) -> None:
        """Set it by so much, forwards or (negative) backwards."""
        self._told.add(ms)

    def close(self) -> None:
        """Nobody sets it any more. A second call does nothing."""
        self._told.close()


class _Told:
    """The number that the library adds, in a file of its own."""

    def __init__(self, folder: Path, library: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        file, name = tempfile.mkstemp(prefix="wall-clock-", dir=folder)
        os.truncate(file, mmap.PAGESIZE)
        self._page = mmap.mmap(file, mmap.PAGESIZE)
        os.close(file)
        others = os.environ.get("LD_PRELOAD")
        preload = str(library) if not others else f"{library}:{others}"
        self.environment = {"LD_PRELOAD": preload, _FILE: name}

    def add(self, ms: int) -> None:
        with memoryview(self._page) as page, page.cast("q") as numbers:
            numbers[0] += ms * _MS  # one aligned store: nobody reads half of it

    def close(self) -> None:
        self._page.close()


def why_not() -> str | None:
    """Why no such clock can be had on this machine, and what mends it; None where it can. Tried once."""
    if sys.platform != "linux":
        return "it takes Linux, with its way to load a library before others"
    library = _library()
    if library.exists():
        return None
    return _tried(library, next((name for name in COMPILERS if shutil.which(name)), None))


@cache
def _tried(library: Path, compiler: str | None) -> str | None:
    if compiler is None:
        return f"there is no C compiler ({MEND})"
    try:
        library.parent.mkdir(parents=True, exist_ok=True)
        return _made(compiler, library)
    except OSError as error:
        return f"it can't be kept in {library.parent}: {error.strerror}"


def _made(compiler: str, library: Path) -> str | None:
    """Make it and try it; why that can't be done, if so."""
    with tempfile.TemporaryDirectory(prefix="wall-clock-", dir=library.parent) as folder:
        made = Path(folder) / library.name
        command = [compiler, "-shared", "-fPIC", "-O2", "-o", str(made), str(SOURCE), "-ldl"]
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
        if not _works(Path(folder), made):
            return "a process that was given one did not see it"
        os.replace(made, library)
    return None


def _library() -> Path:
    """Where it lies when it is made: by what it is made of."""
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]
    return tools_dir() / "bin" / f"wall-clock-{digest}.so"


def _works(folder: Path, library: Path) -> bool:
    """Does a process see a wall clock that was set, and a monotonic one that was not?"""
    told = _Told(folder, library)
    try:
        told.add(_TRIED_MS)
        shown = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _CLOCKS],
            env={**os.environ, **told.environment},
            capture_output=True,
            text=True,
            timeout=_MADE_S,
            check=False,
        ).stdout.split()
    except subprocess.TimeoutExpired:
        return False
    finally:
        told.close()
    here = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _CLOCKS], capture_output=True, text=True, check=True
    ).stdout.split()
    if len(shown) != len(here):
        return False
    wall, monotonic = (int(theirs) - int(ours) for theirs, ours in zip(shown, here, strict=True))
    half = _TRIED_MS * _MS // 2
    return wall > half > abs(monotonic)
