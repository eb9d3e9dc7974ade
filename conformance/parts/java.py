"""The Java runtime of this machine: where it is, or one sentence that says how to get one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from specs.errors import Unavailable

REMEDY = "apt-get install openjdk-17-jre-headless"
VERSION_AT_LEAST = 17


def find_java() -> Path | None:
    """`$JAVA_HOME/bin/java`, else `java` in PATH, else None."""
    home = os.environ.get("JAVA_HOME")
    if home and os.access(Path(home) / "bin" / "java", os.X_OK):
        return Path(home) / "bin" / "java"
    found = shutil.which("java")
    return Path(found) if found else None


def java() -> Path:
    """The `java` command. Raises Unavailable if there is none."""
    found = find_java()
    if found is None:
        raise Unavailable(
            f"There is no Java runtime on this machine; install one (Debian: {REMEDY})."
        )
    return found
