"""What is wrong with a case is said in one sentence, with its file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.cases.folder import all_cases, find_case
from conformance.cases.play import play
from conformance.cases.text import Case, CaseError, parse_case, read_case
from specs.errors import EXIT_USAGE

PATH = Path("cases/lease/mine.txt")
HEAD = "# cases/lease/mine.txt\n# A sentence.\n\n"
LOCK = "lock billing orders/b0/0 by alice\n"


def case(body: str, *, unanswered: bool = False) -> Case:
    return parse_case(HEAD + body, PATH, unanswered=unanswered)


def test_a_case_is_read_and_written_back() -> None:
    """Header, remarks, commands and answers stay where they are."""
    body = f"# a remark\n{LOCK}{LOCK}----\ngranted 0\ngranted 0\n\ntime passes 5 ms\n----\n"
    found = case(body)
    assert found.text_with([block.expected or () for block in found.blocks]) == HEAD + body
    assert (found.name, found.why, found.mutants) == ("lease/mine", "A sentence.", ())


def test_every_file_is_written_as_it_would_be_rewritten() -> None:
    """No blank line too many, nothing at the end of a line: a rewrite changes answers only."""
    for found in all_cases():
        text = found.path.read_text(encoding="utf-8")
        assert found.text_with([block.expected or () for block in found.blocks]) == text


def test_an_unanswered_block_gets_its_answer() -> None:
    """A new case is written without answers, and `--rewrite` adds them."""
    played = play(case(LOCK, unanswered=True))
    assert played.text == f"{HEAD}{LOCK}----\ngranted 0\n"
    assert len(played.differences) == 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "",
            r"mine\.txt:1: the first line must be the file's own path: `# conformance/cases/lease/mine\.txt`",
        ),
        ("# other.txt\n# Why.\n", r"mine\.txt:1: the first line must be the file's own path"),
        ("# lease/mine.txt\n\n" + LOCK, r"mine\.txt:2: the second line must say why"),
        ("# lease/mine.txt\n# mutant: x\n\n" + LOCK, r"mine\.txt:2: the second line must say why"),
        ("# lease/mine.txt\n" + LOCK, r"mine\.txt:2: a blank line must end the first lines"),
        (HEAD, r"mine\.txt:2: the case says nothing after its first lines"),
        (HEAD + LOCK, r"mine\.txt:4: the block has no ---- between its commands and their answer"),
        (HEAD + "----\nok\n", r"mine\.txt:4: the block has no command"),
        (HEAD + "# why\n----\nok\n", r"mine\.txt:4: the block has no command"),
        (
            HEAD + LOCK + "# late\n----\nok\n",
            r"mine\.txt:4: remarks of a block stand above its commands",
        ),
    ],
)
def test_a_malformed_file(text: str, sentence: str) -> None:
    """The sentence says where, and what to write there."""
    with pytest.raises(CaseError, match=sentence):
        parse_case(text, PATH)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (
            "lok billing orders/b0/0 by alice",
            r"mine\.txt:4: 'lok .*' is no command; did you mean `lock GROUP QUEUES",
        ),
        (
            "lock billing orders/b0/0",
            r"is no command; did you mean `lock GROUP QUEUES\[ as OWNER\] by CLIENT`",
        ),
        ("time passes 5 s", r"is no command; did you mean `time passes MS ms`"),
        ("config nothing", r"mine\.txt:4: config words are name=value, not 'nothing'"),
        ("config leese=3", r"mine\.txt:4: unknown configuration: leese"),
        ("config dialect=6", r"mine\.txt:4: unknown dialect '6'"),
        ("watch everything", r"mine\.txt:4: 'everything' can't be watched; known are deliveries"),
        ("dora crashes", r"mine\.txt:4: there is no 'dora' in this case; it has b0, ns"),
        (
            "listener answers m1 with joy",
            r"mine\.txt:4: 'joy' is no listener's answer; it is one of success",
        ),
        ("next request LOOK from ns to b0 is lost", r"mine\.txt:4: there is no request 'LOOK'"),
        (
            "send back m1 of orders/b0/0 to billing at level 0 by alice",
            r"there is no m1 in orders/b0/0",
        ),
        ("allocate BEST 4 queues to alice", r"mine\.txt:4: unknown strategy 'BEST'"),
        ("lock billing orders/b0/0 by b0", r"mine\.txt:4: b0 is a broker"),
    ],
)
def test_a_line_that_makes_no_sense(line: str, sentence: str) -> None:
    """The sentence says where, and what is known."""
    with pytest.raises(CaseError, match=sentence) as raised:
        play(case(f"{line}\n----\n"))
    assert raised.value.exit_code == EXIT_USAGE


def test_settings_stand_first() -> None:
    """What a run is made with can't change while it runs."""
    with pytest.raises(
        CaseError, match=r"mine\.txt:8: `topic TOPIC with COUNT queues` must stand before line 4"
    ):
        play(case(f"{LOCK}----\ngranted 0\n\ntopic orders with 2 queues\n----\n"))


def test_one_name_is_one_client() -> None:
    """A consumer's name is no raw client's."""
    with pytest.raises(CaseError, match=r"mine\.txt:5: alice is two clients"):
        play(case(f"{LOCK}alice starts in billing on orders\n----\n"))


def test_a_broker_that_is_down_shows_nothing() -> None:
    """What lies in its queues is asked of a running broker."""
    with pytest.raises(CaseError, match=r"mine\.txt:5: b0 is down"):
        play(case("b0 crashes\nmessages in orders\n----\n"))


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    """Neither a missing file nor a picture is a case."""
    with pytest.raises(CaseError, match=r"none\.txt can't be read: No such file"):
        read_case(tmp_path / "none.txt")
    (tmp_path / "picture.txt").write_bytes(b"\xff\xd8\xff")
    with pytest.raises(CaseError, match=r"picture\.txt is not UTF-8 text"):
        read_case(tmp_path / "picture.txt")


def test_cases_are_found_by_name_and_by_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """From anywhere: by what `inorder list cases` shows, or by the path in the file's first line."""
    monkeypatch.chdir(tmp_path)
    for name in (
        "lease/owner_renews",
        "lease/owner_renews.txt",
        "conformance/cases/lease/owner_renews.txt",
    ):
        assert find_case(Path(name)).name == "lease/owner_renews"
    with pytest.raises(CaseError, match=r"there is no case lease/nothing; `inorder list cases`"):
        find_case(Path("lease/nothing"))
