"""Which code it was: a digest of files, so that a result can say what made it.

A version says what somebody released; between two releases only the files tell one judge from another.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The folder that holds this distribution's packages."""
PACKAGES = ("specs", "reference_impl", "conformance", "chaos", "spark_checkers", "inorder")
DIGITS = 16


@cache
def code_digest(*places: str) -> str:
    """Of all files in these packages, folders or files (from the root of the packages), by name and content.

    Raises ValueError for a place that is not there.
    """
    found = hashlib.sha256()
    for place in sorted(set(places)):
        start = ROOT / place
        if not start.exists():
            raise ValueError(f"there is no {place} in {ROOT}")
        files = [start] if start.is_file() else sorted(p for p in start.rglob("*") if p.is_file())
        for path in files:
            if "__pycache__" not in path.parts:
                content = hashlib.sha256(path.read_bytes()).hexdigest()
                found.update(f"{path.relative_to(ROOT)}\0{content}\n".encode())
    return found.hexdigest()[:DIGITS]


def of_this_tool() -> str:
    """Of all packages of this distribution that are installed here: the same files give the same digits anywhere."""
    return code_digest(*(name for name in PACKAGES if (ROOT / name).exists()))
