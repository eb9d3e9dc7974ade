"""Where downloaded parts live on this machine, and where what is no package lies: drivers, the documentation.

Rules for downloaded parts, first match wins:
1. `INORDER_TOOLS`, if set;
2. `.tools` beside `pyproject.toml`, if this is a source checkout;
3. `$XDG_CACHE_HOME/inorder` (default `~/.cache/inorder`) for an installed wheel.
"""

from __future__ import annotations

import os
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


def checkout() -> Path | None:
    """The root of the source checkout that this package runs from, or None for an installed wheel."""
    here = CHECKOUT / "pyproject.toml"
    return CHECKOUT if here.is_file() and (CHECKOUT / "tools").is_dir() else None


def by_set_up(*words: str) -> str:
    """What brings a part: a checkout gets all by `make setup`, an installation has a program for each.

    words: of `python -m conformance.parts.WORDS`.
    """
    return "make setup" if checkout() else f"python -m conformance.parts.{' '.join(words)}"


def beside(name: str) -> Path:
    """A folder or file that lies beside the packages in a checkout, as `drivers` or `docs`; a wheel has it inside."""
    inside = Path(__file__).resolve().parents[1] / "beside"
    return (inside if inside.is_dir() else CHECKOUT) / name


def tools_dir() -> Path:
    """The folder of downloaded parts; created if missing."""
    named = os.environ.get("INORDER_TOOLS")
    root = checkout()
    if named:
        folder = Path(named).expanduser().resolve()
    elif root is not None:
        folder = root / ".tools"
    else:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "inorder"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
