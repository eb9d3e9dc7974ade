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


def test_an_entry_stands_on_its_last_day(run: Run, tmp_path: Path, judged: Judged) -> None:
    """Which may be today, by UTC."""
    out, today = tmp_path / "baseline.toml", datetime.now(tz=UTC).date().isoformat()
    assert add(run, judged("red", CLAUSE.shortest_violation), out, today).exit_code == 0
    result = run("check", str(tmp_path / "red.txt"), "--clause", "LSE-1", "--baseline", str(out))
    assert "REFUTED" not in result.stdout
    assert f"until {today}" in result.stdout


def test_an_entry_of_what_was_never_at_stake_is_not_called_mended(
    run: Run, tmp_path: Path, judged: Judged
) -> None:
    """With a floor of 0 a clause is upheld without having been tried: that says nothing of the entry."""
    out = tmp_path / "baseline.toml"
    add(run, judged("red", CLAUSE.shortest_violation), out)
    idle = tmp_path / "idle.txt"
    idle.write_text("0ms alice joins billing\n", encoding="utf-8")
    told = verdict(
        run(
            "check", str(idle), "--clause", "LSE-1", "--floor", "0", "--baseline", str(out),
            "--format", "json",
        )
    )  # fmt: skip
    assert told["clauses"][0]["opportunities"] == 0
    assert told["baseline"]["known"][0]["state"] == "not_told"


def test_a_baseline_of_another_system_says_nothing_where_its_clause_is_not_claimed(
    run: Run, tmp_path: Path, judged: Judged
) -> None:
    out = tmp_path / "baseline.toml"
    add(run, judged("red", CLAUSE.shortest_violation), out)
    result = run(
        "check", str(tmp_path / "red.txt"), "--profile", "redis-streams", "--baseline", str(out),
        "--format", "json",
    )  # fmt: skip
    told = verdict(result)
    lease = next(each for each in told["clauses"] if each["id"] == "LSE-1")
    assert lease["verdict"] == "not_claimed"
    assert told["baseline"]["known"][0]["state"] == "not_told"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"LSE-1"', '"LSE-17"', "there is no clause LSE-17"),
        (f'"{CLAUSE.findings[0]}"', '"two-owner"', "LSE-1 has no finding two-owner; it has "),
        (f"expires = {LATER}", f"expires = {LATER}T10:00:00", "must be a day"),
        (f"expires = {LATER}", 'expires = "soon"', "must be a day"),
        ("[[known]]", "[known]", "known"),
        ('owner = "payments"', 'owner = ""', "say whose it is"),
        ('owner = "payments"', 'own = "payments"', "own"),
    ],
)
def test_a_baseline_that_can_not_be_meant_is_one_sentence(
    run: Run, tmp_path: Path, judged: Judged, old: str, new: str, words: str
) -> None:
    """As one of a clause that has another name by now: it lets nothing pass, and says where it is wrong."""
    out = tmp_path / "baseline.toml"
    add(run, judged("red", CLAUSE.shortest_violation), out)
    text = out.read_text(encoding="utf-8")
    assert old in text
    out.write_text(text.replace(old, new), encoding="utf-8")
    result = run("check", str(tmp_path / "red.txt"), "--clause", "LSE-1", "--baseline", str(out))
    assert (result.exit_code, result.stdout) == (64, "")
    assert words in result.stderr
    assert str(out) in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def rewritten(folder: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """A run's verdict, otherwise."""
    file = folder / "verdict.json"
    data = json.loads(file.read_text(encoding="utf-8"))
    change(data)
    file.write_text(json.dumps(data), encoding="utf-8")
    return folder


def renamed(data: dict[str, Any]) -> None:
    data["clauses"][0]["id"] = "OLD-1"


def otherwise_found(data: dict[str, Any]) -> None:
    data["clauses"][0]["findings"] = ["an-old-name"]


@pytest.mark.parametrize("change", [renamed, otherwise_found])
def test_what_this_version_does_not_know_is_not_written_down(
    run: Run, tmp_path: Path, judged: Judged, change: Callable[[dict[str, Any]], None]
) -> None:
    """A file with a clause or a finding of another version could not be read again."""
    out = tmp_path / "baseline.toml"
    result = add(run, rewritten(judged("red", CLAUSE.shortest_violation), change), out)
    assert result.exit_code == 64
    assert "which this version does not know: judge it again" in result.stderr
    assert not out.exists()


def test_a_run_that_can_not_be_trusted_makes_no_baseline(
    run: Run, tmp_path: Path, judged: Judged
) -> None:
    folder = rewritten(judged("red", CLAUSE.shortest_violation), broken_run)
    result = add(run, folder, tmp_path / "baseline.toml")
    assert (result.exit_code, "can't be trusted" in result.stderr) == (64, True)


def broken_run(data: dict[str, Any]) -> None:
    data["verdict"] = "inadmissible"
    data["met"][0] |= {"id": "MET-1", "ok": False, "detail": "torn"}


@pytest.mark.parametrize(
    "words", ["a bug 🐛 of ours", 'quoted "so" \\ and so\n', "deleted \x7f", "tab\t \x01", "zürich"]
)
def test_what_people_say_can_be_read_again(
    run: Run, tmp_path: Path, judged: Judged, words: str
) -> None:
    out = tmp_path / "baseline.toml"
    folder = judged("red", CLAUSE.shortest_violation)
    given = ["--owner", words, "--reason", words, "--expires", LATER, "--out", str(out)]
    assert run("baseline", str(folder), *given).exit_code == 0
    told = verdict(
        run(
            "check", str(tmp_path / "red.txt"), "--clause", "LSE-1", "--baseline", str(out),
            "--format", "json",
        )
    )["baseline"]["known"][0]  # fmt: skip
    assert (told["owner"], told["reason"], told["state"]) == (words, words, "seen")


def test_an_entry_that_expired_is_not_taken_for_known(
    run: Run, tmp_path: Path, judged: Judged
) -> None:
    out, folder = tmp_path / "baseline.toml", judged("red", CLAUSE.shortest_violation)
    add(run, folder, out)
    out.write_text(out.read_text().replace(LATER, YESTERDAY))
    told = add(run, folder, out).stderr
    assert f"is there, but expired with {YESTERDAY}: its day is yours to change" in told


def test_of_a_green_run_no_file_is_written(run: Run, tmp_path: Path, judged: Judged) -> None:
    result = add(run, judged("green", ONE_OWNER), tmp_path / "baseline.toml")
    assert (result.exit_code, (tmp_path / "baseline.toml").exists()) == (0, False)
    assert "nothing is broken or possible there" in result.stderr


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


def cut_short(data: dict[str, Any]) -> None:
    data["verdict"] = "inconclusive"
    data["met"].append(
        {"id": "MET-9", "title": "the search was not cut short", "ok": False, "detail": "Ctrl-C"}
    )


@pytest.mark.parametrize("change", [cut_short, broken_run])
def test_a_run_that_was_cut_short_or_can_not_be_trusted_is_not_green(
    run: Run, judged: Judged, change: Callable[[dict[str, Any]], None]
) -> None:
    """Whichever of the two it is: what it upholds says too little."""
    green, other = judged("green", ONE_OWNER), rewritten(judged("other", ONE_OWNER), change)
    for before, after in ((green, other), (other, green), (other, other)):
        code, found = diff(run, before, after)
        assert (code, found["broke"], len(found["checks"]) >= 1) == (2, [], True)
    assert "left open       after: not so: " in run("diff", str(green), str(other)).stdout


def test_what_failed_before_as_well_is_no_news(run: Run, judged: Judged) -> None:
    """A fault without effect, say: unless only the later run has it."""

    def dead_fault(data: dict[str, Any]) -> None:
        data["met"].append(
            {"id": "MET-4", "title": "each fault had an effect", "ok": False, "detail": "x"}
        )

    green, other = judged("green", ONE_OWNER), rewritten(judged("other", ONE_OWNER), dead_fault)
    assert diff(run, other, other)[0] == 0
    assert diff(run, other, green)[0] == 0
    assert diff(run, green, other)[0] == 2


def test_what_was_never_at_stake_is_neither_upheld_nor_mended(run: Run, judged: Judged) -> None:
    """A floor of 0 calls it upheld all the same."""

    def never(data: dict[str, Any]) -> None:
        data["clauses"][0] |= {"opportunities": 0, "floor": 0}

    green, red = judged("green", ONE_OWNER), judged("red", CLAUSE.shortest_violation)
    idle = rewritten(judged("idle", ONE_OWNER), never)
    code, found = diff(run, green, idle)
    assert (code, [each["after"] for each in found["no_longer"]]) == (2, ["not_exercised"])
    code, found = diff(run, red, idle)
    assert (code, found["mended"], len(found["no_longer"])) == (2, [], 1)


def test_runs_of_different_profiles_are_compared_and_it_is_told(
    run: Run, tmp_path: Path, judged: Judged
) -> None:
    green = judged("green", ONE_OWNER)
    other = tmp_path / "other"
    run("check", str(tmp_path / "green.txt"), "--profile", "redis-streams", "--out", str(other))
    shown = run("diff", str(green), str(other))
    assert "the two were judged by different profiles" in shown.stdout
    assert (shown.exit_code, "no longer told  LSE-1" in shown.stdout) == (2, True)


def test_a_clause_that_has_another_name_by_now_is_compared_by_the_old_one(
    run: Run, judged: Judged
) -> None:
    """It is no longer judged, and the new one is newly told."""
    old = rewritten(judged("old", ONE_OWNER), renamed)
    code, found = diff(run, old, judged("green", ONE_OWNER))
    assert (code, [each["clause"] for each in found["no_longer"]]) == (2, ["OLD-1"])
    assert [each["clause"] for each in found["newly"]] == ["LSE-1"]
