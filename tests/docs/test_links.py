"""No link of a page is dead, and no file of ours names a page that is not there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.reading import ROOT, anchors, links, named, pages

CODE = ("specs", "reference_impl", "conformance", "chaos", "spark_checkers", "inorder", "tools")
NAMED = re.compile(r"\bdocs/[\w/.-]+\.(?:md|toml|svg)(?:#[\w-]+)?")
ELSEWHERE = ("http://", "https://", "mailto:")


def dead(page: Path, target: str) -> str | None:
    """Why a link leads nowhere."""
    path, _, anchor = target.partition("#")
    other = (page.parent / path).resolve() if path else page
    if not other.exists():
        return f"{target}: there is no such file"
    if not other.is_relative_to(ROOT):
        return f"{target}: it is outside of the repository"
    if anchor and other.suffix == ".md" and anchor not in anchors(other):
        return f"{target}: there is no such heading"
    return None


@pytest.mark.parametrize("page", pages(), ids=named)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    """To a file or folder of the repository, and to a heading in it; addresses of others are not asked for."""
    told = [dead(page, target) for target in links(page) if not target.startswith(ELSEWHERE)]
    assert [each for each in told if each is not None] == []


def files() -> Iterator[Path]:
    yield from pages()
    yield from (ROOT / name for name in ("Makefile", "action.yml", "pyproject.toml"))
    for folder in CODE:
        for pattern in ("*.py", "*.toml", "*.j2"):
            yield from (ROOT / folder).rglob(pattern)


def test_every_page_that_is_named_is_there() -> None:
    """In a docstring, an error's sentence, a source of a clause or profile."""
    found = {
        (path.relative_to(ROOT).as_posix(), each)
        for path in files()
        for each in NAMED.findall(path.read_text(encoding="utf-8"))
    }
    assert len(found) > 200
    told = [f"{where}: {why}" for where, each in found if (why := dead(ROOT / "README.md", each))]
    assert sorted(told) == []


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("tour.md", None),
        ("tour.md#1-a-promise", None),
        ("tuor.md", "there is no such file"),
        ("tour.md#2-a-promise", "there is no such heading"),
        ("../../README.md", "there is no such file"),
        ("../../../", "it is outside of the repository"),
    ],
)
def test_a_dead_link_is_told(target: str, why: str | None) -> None:
    told = dead(ROOT / "docs" / "index.md", target)
    assert told == (None if why is None else f"{target}: {why}")


def test_every_page_of_the_documentation_is_reached() -> None:
    """From the index, by links alone: a page that nothing leads to is read by nobody."""
    seen: set[Path] = set()
    following = [ROOT / "README.md"]
    while following:
        page = following.pop()
        if page.is_dir():
            following += page.glob("*.md")
        if page in seen or page.suffix != ".md" or not page.is_file():
            continue
        seen.add(page)
        following += [
            (page.parent / target.partition("#")[0]).resolve()
            for target in links(page)
            if not target.startswith(("#", *ELSEWHERE))
        ]
    in_docs = {page for page in pages() if page.is_relative_to(ROOT / "docs")}
    assert sorted(map(named, in_docs - seen)) == []
