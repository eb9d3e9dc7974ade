"""Programs out of Debian's packages, which are downloaded and unpacked into a folder of ours; nothing is installed.

Only the release of Debian that this machine runs can be asked, so a version is there or is not.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from specs.errors import Unavailable

FETCH_DEADLINE_S = 120.0


def libraries(root: Path) -> Path:
    """Where unpacked packages have their libraries."""
    return root / "usr" / "lib" / f"{platform.machine()}-linux-gnu"


def unpack(
    what: str, packages: Sequence[str], made: Path, why_not: Callable[[Path], str | None]
) -> None:
    """The packages, unpacked in the folder `made`, which appears complete or not at all.

    what: the program and its version, for messages. why_not: looks at what was unpacked; a sentence where it is not
    what was meant. Raises Unavailable.
    """
    for tool in ("apt-get", "dpkg"):
        if shutil.which(tool) is None:
            raise Unavailable(
                f"{what} is taken out of Debian's packages, and there is no {tool} here."
            )
    made.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=made.parent) as scratch:
        new = Path(scratch) / "root"
        run(what, ["apt-get", "download", *packages], Path(scratch))
        for package in sorted(Path(scratch).glob("*.deb")):
            run(what, ["dpkg", "-x", package, new], Path(scratch))
        reason = why_not(new)
        if reason is not None:
            raise Unavailable(reason)
        if not made.is_dir():  # another process may have been quicker
            os.replace(new, made)


def run(what: str, argv: Sequence[str | Path], folder: Path) -> str:
    """A step of fetching; what it printed. Raises Unavailable."""
    try:
        done = subprocess.run(
            [str(word) for word in argv],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=FETCH_DEADLINE_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise Unavailable(
            f"{what} was not fetched in {FETCH_DEADLINE_S:g} s; a slow network?"
        ) from error
    if done.returncode != 0:
        said = "\n".join(done.stderr.strip().splitlines()[-6:])
        raise Unavailable(f"{what} could not be fetched from Debian:\n{said}")
    return done.stdout
