"""Every command of README and the pages is run, and prints what the page shows.

Those that take no time in every run of the tests, the others in the long ones; who holds the rest stands in
`tests/docs/how.py`. A page that is added is covered by being there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.docs import how
from tests.docs.commands import Command, every_command, read_pages, steps
from tests.docs.reader import Reader, Things, Unavailable, compare
from tests.docs.reading import ROOT, named

READ = [page for page in read_pages() if any(isinstance(each, Command) for each in steps(page))]
MOST_NOT_RUN = 0.05
PICTURE = "pictures/unlock-while-listener-runs.svg"


@pytest.fixture(scope="session")
def things(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Things]:
    found = Things(tmp_path_factory.mktemp("things"))
    with found.rest:
        yield found


def the_picture(folder: Path, rewrite: bool) -> None:
    """The picture of docs/reports.md is the one that its run left; `pytest --rewrite` writes it anew."""
    kept, drawn = ROOT / "docs" / PICTURE, folder / "runs/refuted/pictures/LSE-2.svg"
    if rewrite:
        kept.write_text(drawn.read_text(encoding="utf-8"), encoding="utf-8")
    assert kept.read_text(encoding="utf-8") == drawn.read_text(encoding="utf-8")


AFTERWARDS: Mapping[str, Callable[[Path, bool], None]] = {"docs/reports.md": the_picture}


def read(page: Path, reader: Reader, rewrite: bool) -> None:
    """From top to end; what another page or line has said already is typed again only in a console block."""
    reader.prepare(named(page))
    missing, wrong = [], []
    for step in steps(page):
        if isinstance(step, Command) and step.shown is None and said_before(step):
            continue
        try:
            reader.do(step)
        except Unavailable as error:
            missing.append(str(error))
        except AssertionError as error:
            wrong.append(str(error))
    assert wrong == [], "\n\n".join(wrong)
    if named(page) in AFTERWARDS:
        AFTERWARDS[named(page)](reader.folder, rewrite)
    if missing:
        pytest.skip("; ".join(missing))


def said_before(command: Command) -> bool:
    """Does a page before this one, or a line above, say the same?"""
    first = next(each for each in every_command() if each.text == command.text)
    return (first.page, first.line) != (command.page, command.line)


@pytest.mark.parametrize("page", READ, ids=named)
def test_the_quick_commands_of_a_page(
    page: Path,
    things: Things,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pytestconfig: pytest.Config,
) -> None:
    """In this process; what a slow command would have left is left alone."""
    monkeypatch.chdir(tmp_path)
    rewrite = bool(pytestconfig.getoption("--rewrite"))
    read(page, Reader(tmp_path, things, quick=True), rewrite)


@pytest.mark.long
@pytest.mark.parametrize("page", READ, ids=named)
def test_all_commands_of_a_page(page: Path, things: Things, tmp_path: Path) -> None:
    """As a reader types them, each as a process."""
    read(page, Reader(tmp_path, things, quick=False), rewrite=False)


def test_few_commands_are_run_by_nobody() -> None:
    """And every line of the tables is still about one."""
    commands = every_command()
    assert len(commands) > 150
    not_run = [each for each in commands if how.of(each, how.NOT_RUN) is not None]
    assert len(not_run) <= MOST_NOT_RUN * len(commands)
    for table in (how.NOT_RUN, how.HELD_ELSEWHERE):
        idle = [line for line in table if not any(how.of(each, {line: "it"}) for each in commands)]
        assert idle == []


def test_who_holds_a_command_is_there() -> None:
    assert [name for name in how.HELD_ELSEWHERE.values() if not (ROOT / name).is_file()] == []


def test_no_placeholder_is_left() -> None:
    """A word in capitals that stands for another one has to be told what it stands for."""
    left = [
        each.told
        for each in every_command()
        if how.of(each, how.HELD_ELSEWHERE) is None and how.of(each, how.NOT_RUN) is None
        for word in how.replaced(each.text, how.STANDS_FOR).split()
        if (word.isupper() and word.isalpha()) or word == "..."
    ]
    assert left == []


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("a\nb", "a\nc"),
        ("a", "a\nb"),
        ("a\nb", "a"),
        ("...\nb", "a\nc"),
        ("a ... c", "a b"),
    ],
)
def test_another_output_is_seen(shown: str, printed: str) -> None:
    with pytest.raises(AssertionError):
        compare(Command("page", 1, "do", shown=tuple(shown.split("\n"))), printed)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [("a\n...\nc", "a\nx\ny\nc\n"), ("a ... c", "a  b   c"), ("a\n...", "a\nb"), ("a", "a\n\n")],
)
def test_the_same_output_is_taken(shown: str, printed: str) -> None:
    compare(Command("page", 1, "do", shown=tuple(shown.split("\n"))), printed)
