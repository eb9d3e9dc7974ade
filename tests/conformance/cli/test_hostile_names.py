"""An id from somebody's log commands no terminal: in nothing that is printed or written for people."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.cli.main import root
from conformance.cli.people import put, tell
from conformance.reports.visible import visible, visible_json

HOSTILE = "m\x1b[2J\x1b]0;title\x07\x9b31m\x7f\u202egnp"
COMMANDS = frozenset("\x1b\x07\x9b\x7f\x90\u202e\r\x08")
LOCKS = [
    {"seq_begin": 1, "seq_end": 1, "op_id": 1, "kind": "lock", "outcome": "ok", "started_us": 0, "ended_us": 0},
    {"seq_begin": 2, "seq_end": 2, "op_id": 2, "kind": "lock", "outcome": "ok", "started_us": 9, "ended_us": 9},
]  # fmt: skip
WHERE = {
    "run": "r",
    "level": "client",
    "clock": "c",
    "group": HOSTILE,
    "topic": HOSTILE,
    "broker": "b",
    "queue_id": 0,
}


@pytest.fixture
def judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run in which two clients of hostile names hold one lane, judged; what was printed lies in `printed.txt`."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "run" / "history"
    folder.mkdir(parents=True)
    rows = [
        {
            **WHERE,
            **row,
            "client_id": f"{HOSTILE}{number}",
            "process": f"{HOSTILE}{number}",
            "detail": HOSTILE,
        }
        for number, row in enumerate(LOCKS)
    ]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    info = {
        "schema": "inorder/run/v2",
        "run": "r",
        "target": f"offline {HOSTILE}",
        "parties": {"broker": HOSTILE},
    }
    (tmp_path / "run" / "run.json").write_text(json.dumps(info))
    said = _said("check", "run", "--profile", "reference", "--out", "run")
    (tmp_path / "printed.txt").write_text(said, encoding="utf-8")
    return tmp_path / "run"


def _said(*words: str) -> str:
    done = CliRunner().invoke(root, list(words))
    assert done.exit_code in (0, 1, 2), done.stderr
    return done.stdout + done.stderr


def test_nothing_that_is_printed_commands_a_terminal(judged: Path) -> None:
    said = {"check": (judged.parent / "printed.txt").read_text(encoding="utf-8")}
    for form in ("human", "json", "markdown", "github", "junit", "html"):
        said[f"report {form}"] = _said("report", "run", "--format", form)
    for form in ("human", "json", "svg", "trace"):
        said[f"explain {form}"] = _said("explain", "run", "--format", form)
    said["events"] = _said("explain", "run", "--client", f"{HOSTILE}0")
    said["events as json"] = _said("explain", "run", "--client", f"{HOSTILE}0", "--format", "json")
    for form in ("md", "json", "html"):
        said[f"statement {form}"] = _said("statement", "run", "--format", form)
    said["diff"] = _said("diff", "run", "run")
    assert {
        name: sorted(COMMANDS & set(text)) for name, text in said.items() if COMMANDS & set(text)
    } == {}
    assert "REFUTED" in said["check"]
    assert "\\x1b[2J" in said["report markdown"]
    assert "\\x1b[2J" in said["report github"]


@pytest.mark.parametrize("name", ["report.txt", "report.md", "report.html", "junit.xml"])
def test_nothing_that_is_written_for_people_commands_a_terminal(judged: Path, name: str) -> None:
    text = (judged / name).read_text(encoding="utf-8")
    assert COMMANDS & set(text) == set()
    assert "gnp" in text, "the name is there"


def test_a_name_in_a_sentence_commands_no_terminal(tmp_path: Path) -> None:
    """Of a file that is not there, say."""
    done = CliRunner().invoke(root, ["report", str(tmp_path / HOSTILE.replace("/", ""))])
    assert (done.exit_code, COMMANDS & set(done.stderr)) == (64, set())


def test_what_is_shown_is_the_same_text(capsys: pytest.CaptureFixture[str]) -> None:
    """Line ends and tabs stay; JSON says what it said."""
    assert visible("a\tb\n\x1b\u202e") == "a\tb\n\\x1b\\u202e"
    document = json.dumps({"id": HOSTILE}, ensure_ascii=False)
    assert json.loads(visible_json(document)) == {"id": HOSTILE}
    put(HOSTILE)
    tell(HOSTILE)
    captured = capsys.readouterr()
    assert COMMANDS & set(captured.out + captured.err) == set()
