"""The cases that come with the project, and how one is found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from conformance.cases.text import Case, CaseError, read_case

FOLDER = Path(__file__).resolve().parent
SUFFIX = ".txt"


def case_files() -> list[Path]:
    """All of them, by topic and name."""
    return sorted(FOLDER.glob(f"*/*{SUFFIX}"))


def all_cases() -> Iterator[Case]:
    """Raises CaseError for one that can't be read."""
    return (read_case(path) for path in case_files())


def is_case(path: Path) -> bool:
    """Whether the path is meant to be a case: a text file, or the name of one of ours."""
    return path.suffix == SUFFIX or (not path.suffix and _ours(path).is_file())


def _ours(path: Path) -> Path:
    """Where the case of that name would lie. A path without a name, as `.`, is none."""
    return FOLDER / (path.with_suffix(SUFFIX) if path.name else path)


def find_case(path: Path) -> Case:
    """The case in the file, or the one of ours by that name, as `lease/stranger_cannot_unlock`. Raises CaseError."""
    for place in (path, _ours(path), FOLDER.parents[1] / path):
        if place.is_file() and place.suffix == SUFFIX:
            return read_case(place)
    raise CaseError(f"there is no case {path}; `inorder list cases` shows what there is")
