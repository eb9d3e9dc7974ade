"""Where a page is found: in a checkout, and where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from email.message import Message
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from specs import links

PAGE = "docs/clauses/LSE-1.md"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Message]:
    """As an installed package has it: without docs. What its metadata says may be added."""
    said = Message()
    monkeypatch.setattr(links, "_ROOT", tmp_path)
    monkeypatch.setattr(links, "metadata", lambda name: said)
    links.address.cache_clear()
    yield said
    links.address.cache_clear()


def test_in_a_checkout_a_page_is_a_path() -> None:
    """From its root."""
    assert links.link(f"{PAGE}#who-promises-it") == f"{PAGE}#who-promises-it"


def test_an_installed_package_names_the_project_s_address(installed: Message) -> None:
    """That of its documentation, whatever other addresses it has."""
    installed["Project-URL"] = "Changes, https://forge.example/changes"
    installed["Project-URL"] = "Documentation, https://forge.example/inorder/tree/v1/"
    assert links.link(PAGE) == f"https://forge.example/inorder/tree/v1/{PAGE}"
    assert links.web(PAGE) == links.link(PAGE)


def test_where_nobody_gave_an_address_the_path_stays(installed: Message) -> None:
    """For whoever has the repository; and a report has no link then."""
    assert (links.link(PAGE), links.web(PAGE)) == (PAGE, None)


def test_without_an_installation_there_is_no_address(
    installed: Message, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files alone, on a path."""

    def none(name: str) -> Message:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(links, "metadata", none)
    assert links.web(PAGE) is None


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("LSE-1", "docs/clauses/LSE-1.md"),
        ("WIR-13", "docs/clauses/CMT-9.md"),
        ("WIR-9", "docs/clauses/WIR-9.md"),
        ("MET-6", None),
    ],
)
def test_a_facet_has_the_page_of_its_clause(name: str, page: str | None) -> None:
    """A wire rule that stands for itself has its own; what is no clause has none."""
    assert links.clause_page(name) == page
