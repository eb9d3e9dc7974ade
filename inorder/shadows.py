"""Finds another package that hides one of ours, without importing either.

`import specs` takes the first `specs` on `sys.path`. A repository with a folder of that name, on `PYTHONPATH` or as
the folder that pytest or `python -m` puts first, gets its own. A folder without `__init__.py` hides nothing: Python
prefers a regular package that comes later.
"""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path

OURS = ("specs", "reference_impl", "conformance", "chaos", "spark_checkers")
HOME = Path(__file__).resolve().parent.parent
"""The folder that holds this distribution's packages."""

EXIT_SHADOWED = 70


@dataclass(frozen=True, slots=True)
class Shadow:
    """`name` is found in `found` instead of in this distribution; None: it is not found at all."""

    name: str
    found: Path | None


def _place(name: str) -> Path | None:
    """The folder (or file) that `import name` would take, or has taken."""
    loaded = sys.modules.get(name)
    spec = (
        getattr(loaded, "__spec__", None) if loaded is not None else importlib.util.find_spec(name)
    )
    if spec is None:
        file = getattr(loaded, "__file__", None)
        return Path(file).resolve() if file else None
    if spec.origin is not None and spec.origin not in ("built-in", "frozen", "namespace"):
        origin = Path(spec.origin).resolve()
        return origin.parent if origin.name == "__init__.py" else origin
    for folder in spec.submodule_search_locations or ():
        return Path(folder).resolve()
    return None


def find_shadows(home: Path = HOME) -> tuple[Shadow, ...]:
    """Those of our packages that an `import` would not find in `home`, in the order of OURS."""
    shadows: list[Shadow] = []
    for name in OURS:
        place = _place(name)
        if place != home / name:
            shadows.append(Shadow(name, place))
    return tuple(shadows)


def sentence(shadows: tuple[Shadow, ...]) -> str:
    """What is wrong and how to mend it, in one sentence."""
    parts = [
        f"{shadow.name} is found in {shadow.found}"
        if shadow.found
        else f"{shadow.name} is not found at all"
        for shadow in shadows
    ]
    return (
        f"inorder can't start: its packages lie in {HOME}, but {', '.join(parts)}; take the folder that comes first "
        f"off sys.path (PYTHONPATH, `python -m` and pytest's rootdir put one there) or run inorder from another folder"
    )
