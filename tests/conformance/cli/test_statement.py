"""`inorder statement`: its forms, its files, its exit codes, its refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from click.testing import Result

from conformance.reports.schemas import schema
from conformance.reports.statement import STATEMENT_SCHEMA
from specs.clauses.catalogue import get

Run = Callable[..., Result]
CLAUSE = get("LSE-1")
ONE_OWNER = """
0ms..10ms  alice  locks  billing/orders/b0/3   ok
5ms..15ms  bob    locks  billing/orders/b0/3   refused
"""
TODAY = datetime.now(tz=UTC).date()


@pytest.fixture(scope="module")
def judged(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """`judged(text)`: the folder of the text's verdict about LSE-1."""

    def check(text: str, *more: str) -> Path:
        folder = tmp_path_factory.mktemp("judged")
        (folder / "it.txt").write_text(text, encoding="utf-8")
        out = folder / "out"
        result = run("check", str(folder / "it.txt"), "--clause", "LSE-1", "--out", str(out), *more)
        assert result.exit_code in (0, 1, 2), result.output
        return out

    return check


@pytest.fixture(scope="module")
def green(judged: Callable[..., Path]) -> Path:
    return judged(ONE_OWNER)


@pytest.fixture(scope="module")
def red(judged: Callable[..., Path]) -> Path:
    return judged(CLAUSE.shortest_violation)


def data(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_json_is_of_its_schema_and_says_which_code_judged(run: Run, green: Path) -> None:
    before = datetime.now(tz=UTC).date().isoformat()
    found = data(run("statement", str(green), "--format", "json"))
    jsonschema.validate(found, schema(STATEMENT_SCHEMA))
    assert found["verdict"] == "upheld"
    assert before <= found["date"] <= datetime.now(tz=UTC).date().isoformat()
    assert found["tool"]["code"] == found["written_by"]["code"]
    assert len(found["tool"]["code"]) == 16


def test_the_form_is_that_of_the_file(run: Run, green: Path, tmp_path: Path) -> None:
    """And nothing is on stdout; the folder is made."""
    for name, begins in (
        ("a.md", "# UPHELD: "),
        ("b.json", "{"),
        ("c.html", "<!doctype html>"),
        ("d", "# UPHELD: "),
    ):
        out = tmp_path / "new" / name
        result = run("statement", str(green), "--out", str(out))
        assert (result.exit_code, result.stdout) == (0, "")
        assert out.read_text(encoding="utf-8").startswith(begins)
    out = tmp_path / "e.md"
    run("statement", str(green), "--format", "html", "--out", str(out))
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_it_is_written_whatever_it_says_and_exits_as_asked(
    run: Run, red: Path, green: Path
) -> None:
    """A step of a pipeline that publishes it is not to end red a second time, unless somebody wants that."""
    result = run("statement", str(red))
    assert result.exit_code == 0
    assert result.stdout.startswith("# REFUTED: ")
    assert run("statement", str(red), "--exit-code").exit_code == 1
    assert run("statement", str(green), "--exit-code").exit_code == 0


def test_a_badge_as_a_picture_and_as_an_endpoint(run: Run, red: Path, tmp_path: Path) -> None:
    for name in ("badge.svg", "badge.json"):
        assert run("statement", str(red), "--badge", str(tmp_path / name)).exit_code == 0
    drawn = ElementTree.parse(tmp_path / "badge.svg").getroot()
    assert drawn.get("aria-label") == "message order: refuted, 1 promise"
    told = json.loads((tmp_path / "badge.json").read_text(encoding="utf-8"))
    assert (told["schemaVersion"], told["color"]) == (1, "red")


def test_the_day_is_handed_in(run: Run, green: Path) -> None:
    found = data(run("statement", str(green), "--date", "2031-02-03", "--format", "json"))
    assert found["date"] == "2031-02-03"


def test_an_allowance_that_is_over_gets_no_statement(
    run: Run, judged: Callable[..., Path], tmp_path: Path
) -> None:
    baseline = tmp_path / "baseline.toml"
    baseline.write_text(
        f'[[known]]\nclause = "LSE-1"\nfinding = "{CLAUSE.findings[0]}"\nreason = "sharded"\n'
        f'owner = "payments"\nexpires = {TODAY.isoformat()}\n',
        encoding="utf-8",
    )
    folder = judged(CLAUSE.shortest_violation, "--baseline", str(baseline))
    found = data(run("statement", str(folder), "--date", TODAY.isoformat(), "--format", "json"))
    assert found["clauses"][0]["allowed"][0]["expires"] == TODAY.isoformat()
    tomorrow = (TODAY + timedelta(days=1)).isoformat()
    result = run("statement", str(folder), "--date", tomorrow)
    assert (result.exit_code, result.stdout) == (64, "")
    assert "judge it again without that entry" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["{green}", "{green}"], "hold the same run"),
        (["{green}", "{red}"], "different"),
        (["{green}", "--badge", "badge.png"], "ends in .svg or .json"),
        (["nowhere"], "no such folder"),
        (["{green}", "--out", "/proc/1/x.md"], "can't be written"),
    ],
)
def test_what_can_not_be_stated_is_one_sentence(
    run: Run, green: Path, judged: Callable[..., Path], arguments: list[str], words: str
) -> None:
    other = judged(
        f"config broker_lease_ms=5000\n{CLAUSE.shortest_violation}", "--profile", "minimal-fifo"
    )
    given = [each.format(green=green, red=other) for each in arguments]
    result = run("statement", *given)
    assert result.exit_code == 64, result.output
    assert words in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
