"""`inorder baseline`, `--baseline` and `inorder diff`: red on news alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import Result

from conformance.reports.schemas import DIFF_SCHEMA, schema
from specs.clauses.catalogue import get

Run = Callable[..., Result]
CLAUSE = get("LSE-1")
ONE_OWNER = """
0ms..10ms  alice  locks  billing/orders/b0/3   ok
5ms..15ms  bob    locks  billing/orders/b0/3   refused
"""
LATER = (datetime.now(tz=UTC) + timedelta(days=30)).date().isoformat()
YESTERDAY = (datetime.now(tz=UTC) - timedelta(days=1)).date().isoformat()


@pytest.fixture
def judged(run: Run, tmp_path: Path) -> Callable[[str, str], Path]:
    """`judged(name, text)`: the folder of the text's verdict about LSE-1."""

    def check(name: str, text: str) -> Path:
        source = tmp_path / f"{name}.txt"
        source.write_text(text, encoding="utf-8")
        result = run("check", str(source), "--clause", "LSE-1", "--out", str(tmp_path / name))
        assert result.exit_code in (0, 1, 2), result.output
        return tmp_path / name

    return check


Judged = Callable[[str, str], Path]


def add(run: Run, folder: Path, out: Path, day: str = LATER) -> Result:
    return run(
        "baseline", str(folder), "--owner", "payments", "--reason", 'sharded "lock" table',
        "--expires", day, "--issue", "https://tracker.example/7", "--out", str(out),
    )  # fmt: skip


def verdict(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_what_is_written_lets_the_same_run_pass(run: Run, tmp_path: Path, judged: Judged) -> None:
    out = tmp_path / "baseline.toml"
    result = add(run, judged("red", CLAUSE.shortest_violation), out)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "1 added, 0 known before" in result.stderr
    again = ["check", str(tmp_path / "red.txt"), "--clause", "LSE-1", "--baseline", str(out)]
    told = verdict(run(*again, "--format", "json"))
    assert told["clauses"][0]["verdict"] == "allowed"
    assert told["baseline"]["known"][0]["state"] == "seen"
    shown = run(*again)
    assert shown.exit_code != 1
    assert f"known         LSE-1 {CLAUSE.findings[0]}: until {LATER} (payments, " in shown.stdout


def test_an_entry_that_expired_is_red_and_told(run: Run, tmp_path: Path, judged: Judged) -> None:
    out = tmp_path / "baseline.toml"
    add(run, judged("red", CLAUSE.shortest_violation), out)
    out.write_text(out.read_text().replace(LATER, YESTERDAY))
    result = run("check", str(tmp_path / "red.txt"), "--clause", "LSE-1", "--baseline", str(out))
    assert result.exit_code == 1
    assert "REFUTED  LSE-1" in result.stdout
    assert f"expired       LSE-1 {CLAUSE.findings[0]}: expired with {YESTERDAY}" in result.stdout


def test_an_entry_that_is_no_longer_seen_is_told(run: Run, tmp_path: Path, judged: Judged) -> None:
    out = tmp_path / "baseline.toml"
    add(run, judged("red", CLAUSE.shortest_violation), out)
    judged("green", ONE_OWNER)
    result = run(
        "check", str(tmp_path / "green.txt"), "--clause", "LSE-1", "--baseline", str(out),
        "--out", str(tmp_path / "kept"),
    )  # fmt: skip
    assert result.exit_code == 0
    assert "no longer     LSE-1" in result.stdout
    assert "its entry may go (payments" in " ".join(result.stdout.split())
    assert "no longer: LSE-1" in (tmp_path / "kept" / "report.md").read_text(encoding="utf-8")


def test_what_the_file_holds_already_stays_to_the_byte(
    run: Run, tmp_path: Path, judged: Judged
) -> None:
    out, folder = tmp_path / "baseline.toml", judged("red", CLAUSE.shortest_violation)
    add(run, folder, out)
    before = out.read_text(encoding="utf-8") + "# a word of the team\n"
    out.write_text(before, encoding="utf-8")
    assert "0 added, 1 known before" in add(run, folder, out).stderr
    assert out.read_text(encoding="utf-8") == before


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [("--expires", YESTERDAY, "is over"), ("--owner", " ", "say something")],
)
def test_a_baseline_that_would_say_nothing_is_refused(
    run: Run, tmp_path: Path, judged: Judged, option: str, value: str, sentence: str
) -> None:
    given = {"--owner": "me", "--reason": "why", "--expires": LATER, option: value}
    folder = judged("red", CLAUSE.shortest_violation)
    words = [word for pair in given.items() for word in pair]
    result = run("baseline", str(folder), *words, "--out", str(tmp_path / "b.toml"))
    assert result.exit_code == 64
    assert sentence in result.stderr
    assert not (tmp_path / "b.toml").exists()


# ------------------------------------------------------------------------------------------ diff


def diff(run: Run, before: Path, after: Path) -> tuple[int, dict[str, Any]]:
    result = run("diff", str(before), str(after), "--format", "json")
    data = json.loads(result.stdout)
    jsonschema.validate(data, schema(DIFF_SCHEMA))
    return result.exit_code, data


def test_news_is_red(run: Run, judged: Judged) -> None:
    green, red = judged("green", ONE_OWNER), judged("red", CLAUSE.shortest_violation)
    code, found = diff(run, green, red)
    assert code == 1
    assert [(each["clause"], each["finding"]) for each in found["broke"]] == [
        ("LSE-1", CLAUSE.findings[0])
    ]
    shown = run("diff", str(green), str(red))
    assert shown.exit_code == 1
    assert "BROKE           LSE-1" in shown.stdout
    assert "upheld before, refuted now" in shown.stdout


def test_what_was_broken_before_is_no_news_and_what_is_mended_is_told(
    run: Run, judged: Judged
) -> None:
    green, red = judged("green", ONE_OWNER), judged("red", CLAUSE.shortest_violation)
    code, found = diff(run, red, red)
    assert (code, found["broke"], found["mended"]) == (0, [], [])
    code, found = diff(run, red, green)
    assert (code, len(found["mended"]), found["broke"]) == (0, 1, [])


def test_what_can_no_longer_be_told_is_neither_red_nor_green(run: Run, judged: Judged) -> None:
    green, idle = judged("green", ONE_OWNER), judged("idle", "0ms alice joins billing\n")
    code, found = diff(run, green, idle)
    assert (code, [each["clause"] for each in found["no_longer"]]) == (2, ["LSE-1"])
    code, found = diff(run, idle, green)
    assert (code, [each["clause"] for each in found["newly"]]) == (0, ["LSE-1"])


def test_a_folder_without_a_verdict_gets_one_sentence(run: Run, tmp_path: Path) -> None:
    result = run("diff", str(tmp_path), str(tmp_path))
    assert result.exit_code == 64
    assert "is no judged run" in result.stderr
