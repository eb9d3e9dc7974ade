"""Where a page of the documentation is found: in a checkout by its path, else by the project's address.

An installed package has no docs. Its metadata may name the address at which the repository is browsed (the project URL
`Documentation`); where nobody gave one, a path stays a path, for whoever has the repository elsewhere.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

from specs.clauses.catalogue import everything, meant_by

CLAUSES = "docs/clauses"
_ROOT = Path(__file__).resolve().parents[1]
_LABEL = "documentation"


def clause_page(name: str) -> str | None:
    """The page of a clause or wire rule, from the repository's root; of a facet that of its clause."""
    meant = meant_by(name)
    known = any(each.id == meant for each in everything())
    return f"{CLAUSES}/{meant}.md" if known else None


def link(page: str) -> str:
    """Where a page (a path from the repository's root, perhaps with an anchor) is found from here."""
    if (_ROOT / page.partition("#")[0]).is_file():
        return page
    base = address()
    return page if base is None else f"{base}/{page}"


@cache
def address() -> str | None:
    """Where the repository is browsed, as the installed package says; None where it does not."""
    try:
        named: list[str] = metadata("inorder").get_all("Project-URL") or []
    except PackageNotFoundError:
        return None
    for entry in named:
        label, _, found = entry.partition(",")
        if label.strip().lower() == _LABEL:
            return found.strip().rstrip("/")
    return None


def web(page: str) -> str | None:
    """The page's address, for what is read on another machine; None where the project has none."""
    base = address()
    return None if base is None else f"{base}/{page}"
