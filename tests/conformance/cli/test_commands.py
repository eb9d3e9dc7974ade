"""What the commands print and keep: data on stdout, people on stderr, the verdict in the exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
from click.testing import Result

from conformance.reports.schemas import LIST_SCHEMA, schema
from reference_impl.mutants import HISTORY, MODEL, ORACLES, VECTORS
from specs.clauses.catalogue import all_clauses, catalogue, meant_by
from specs.history.store import write_history
from specs.history.text import parse_history
from specs.model.rules import RULES
from specs.verdicts.verdict import VERDICT_SCHEMA

Run = Callable[..., Result]
MUTANT = "mutant:expiry-ignored"


# --------------------------------------------------------------------------------------------- conform


def test_a_mutant_is_refuted_and_the_exit_code_is_1(refuted_run: tuple[Result, Path]) -> None:
    """The table, the story, the counts."""
    result, _out = refuted_run
    assert result.exit_code == 1, result.stderr
    assert "REFUTED  LSE-1 one owner at a time" in result.stdout
    assert (
        "promised:   No two clients hold the lease of one lane at the same time." in result.stdout
    )


def test_the_seed_comes_first_and_the_replay_command_last(refuted_run: tuple[Result, Path]) -> None:
    """The seed is an integer on the first line, so that a run that dies can be repeated."""
    result, out = refuted_run
    lines = result.stderr.splitlines()
    assert lines[0].startswith(f"judging {MUTANT} under ")
    assert lines[0].endswith("seed 5")
    assert lines[-1] == f"replay: inorder replay {out}"


def test_a_replay_finds_the_same_bytes_and_the_same_violation(
    run: Run, refuted_run: tuple[Result, Path]
) -> None:
    """What was red is red again."""
    _result, out = refuted_run
    result = run("replay", str(out))
    assert (result.exit_code, "the same bytes" in result.stderr) == (1, True), result.stderr
    assert "REFUTED  LSE-1" in result.stdout


def test_json_is_the_saved_verdict(run: Run, profile: str, tmp_path: Path) -> None:
    """stdout holds one object, the one in verdict.json, with the schema that it names."""
    arguments = [
        "--seed",
        "5",
        "--examples",
        "40",
        "--out",
        str(tmp_path / "run"),
        "--format",
        "json",
    ]
    result = run("conform", "--target", MUTANT, "--profile", profile, *arguments)
    printed = json.loads(result.stdout)
    jsonschema.validate(printed, schema(VERDICT_SCHEMA))
    assert printed == json.loads((tmp_path / "run" / "verdict.json").read_text(encoding="utf-8"))
    assert (printed["verdict"], printed["seed"], printed["target"]) == ("refuted", 5, MUTANT)


def test_a_run_replaces_an_earlier_run_of_ours(run: Run, profile: str, tmp_path: Path) -> None:
    """--out may be used again."""
    arguments = [
        "--target",
        "reference",
        "--profile",
        profile,
        "--examples",
        "1",
        "--out",
        str(tmp_path / "run"),
    ]
    first, second = run("conform", *arguments), run("conform", *arguments)
    assert {first.exit_code, second.exit_code} <= {0, 2}, second.stderr


def test_a_clause_below_its_floor_makes_the_run_inconclusive(
    run: Run, profile: str, tmp_path: Path
) -> None:
    """Exit 2, and the closing sentence says what was not exercised."""
    arguments = ["--examples", "2", "--floor", "1000000", "--out", str(tmp_path / "run")]
    result = run("conform", "--target", "reference", "--profile", profile, *arguments)
    assert result.exit_code == 2, result.stderr
    assert "INCONCLUSIVE" in result.stdout
    assert "1 not exercised" in " ".join(result.stdout.split())


# ------------------------------------------------------------------------------ explain, report, check


def test_explain_tells_the_failure(run: Run, refuted_run: tuple[Result, Path]) -> None:
    """Only the story, and exit 0: it was told."""
    result = run("explain", str(refuted_run[1]))
    assert (result.exit_code, result.stdout.startswith("REFUTED  LSE-1")) == (0, True)
    for word in ("promised:", "owed by:", "happened:", "timeline:", "events:", "replay:"):
        assert f"  {word}" in result.stdout


def test_explain_tells_of_any_clause_when_asked(run: Run, refuted_run: tuple[Result, Path]) -> None:
    """Also of one that was not claimed, in its own words."""
    result = run("explain", str(refuted_run[1]), "--clause", "ord-2")
    assert result.exit_code == 0
    assert "NOT CLAIMED  ORD-2" in result.stdout
    unknown = run("explain", str(refuted_run[1]), "--clause", "ORD-99")
    assert (unknown.exit_code, "the run has no clause ORD-99" in unknown.stderr) == (64, True)


def test_explain_draws_the_failure(run: Run, refuted_run: tuple[Result, Path]) -> None:
    """As SVG, and as a trace for Perfetto."""
    folder = str(refuted_run[1])
    drawn = ElementTree.fromstring(run("explain", folder, "--format", "svg").stdout)
    assert "LSE-1 one owner at a time" in [each.text for each in drawn.iter()]
    traced = json.loads(run("explain", folder, "--format", "trace").stdout)
    assert "✗ LSE-1" in [event["name"] for event in traced["traceEvents"]]
    nothing = run("explain", folder, "--clause", "ORD-2", "--format", "svg")
    assert (nothing.exit_code, "there is nothing to draw" in nothing.stderr) == (0, True)
    assert len(ElementTree.fromstring(nothing.stdout)) == 0


def test_explain_shows_the_events_of_a_lane_a_key_or_a_client(run: Run, tmp_path: Path) -> None:
    """Of any history, judged or not; of too many the first, and of none it says what there is."""
    info, rows = parse_history(
        """
        1s  shop   sends  orders/b0/3          offset=0 id=m0 key=k1 ok
        2s  alice  locks  billing/orders/b0/3  ok
        3s  bob    locks  billing/orders/b0/4  ok
        """
    )
    write_history(tmp_path / "run", info, rows)

    def shown(*asked: str) -> list[str]:
        done = run("explain", str(tmp_path / "run"), *asked)
        assert done.exit_code == 0, done.stderr
        return [line.split()[1] for line in done.stdout.splitlines() if not line.startswith("#")]

    assert shown("--lane", "orders/b0/3") == ["shop", "alice"]
    assert shown("--lane", "billing/orders/b0/3") == ["alice"]
    assert shown("--key", "k1") == ["shop"]
    assert shown("--client", "bob") == ["bob"]
    cut = run("explain", str(tmp_path / "run"), "--lane", "orders/b0/3", "--most", "1")
    assert "the first 1 of 2 events" in cut.stderr
    printed = run("explain", str(tmp_path / "run"), "--client", "bob", "--format", "json").stdout
    jsonschema.validate(json.loads(printed), schema(LIST_SCHEMA))
    none = run("explain", str(tmp_path / "run"), "--lane", "orders/b0/8")
    assert none.exit_code == 64
    assert "holds no event of the lane orders/b0/8; there is orders/b0/4" in none.stderr


def test_a_page_is_printed_as_it_was_written(run: Run, refuted_run: tuple[Result, Path]) -> None:
    """`report --format html` is the report.html of one run."""
    folder = refuted_run[1]
    printed = run("report", str(folder), "--format", "html")
    assert printed.stdout == (folder / "report.html").read_text(encoding="utf-8")
    two = run("report", str(folder), str(folder), "--format", "html")
    assert (two.exit_code, "a page is about one run" in two.stderr) == (64, True)


@pytest.mark.parametrize(
    ("form", "start"),
    [
        ("html", "<!doctype html>"),
        ("markdown", f"# {MUTANT}: refuted"),
        ("junit", "<?xml "),
        ("json", "{"),
    ],
)
def test_report_prints_each_format(
    run: Run, refuted_run: tuple[Result, Path], form: str, start: str
) -> None:
    """Exit 0, whatever the verdict: a report is a view."""
    result = run("report", str(refuted_run[1]), "--format", form)
    assert (result.exit_code, result.stdout.startswith(start)) == (0, True), result.stderr


def test_report_of_several_runs_is_a_list(run: Run, refuted_run: tuple[Result, Path]) -> None:
    """JSON: inorder/list/v1 of verdicts; people get a closing table."""
    folder = str(refuted_run[1])
    printed = json.loads(run("report", folder, folder, "--format", "json").stdout)
    jsonschema.validate(printed, schema(LIST_SCHEMA))
    for item in printed["items"]:
        jsonschema.validate(item, schema(VERDICT_SCHEMA))
    assert len(printed["items"]) == 2
    assert "refuted in" in run("report", folder, folder).stdout


def test_check_judges_a_recorded_run_as_the_run_was_judged(
    run: Run, refuted_run: tuple[Result, Path], profile: str, tmp_path: Path
) -> None:
    """Same history, same clause; --out keeps verdict and reports."""
    out = tmp_path / "checked"
    result = run("check", str(refuted_run[1]), "--profile", profile, "--out", str(out))
    assert result.exit_code == 1, result.stderr
    assert "REFUTED  LSE-1" in result.stdout
    assert run("explain", str(out)).stdout.startswith("REFUTED  LSE-1")


def test_check_of_a_good_history_is_upheld(run: Run, profile: str, tmp_path: Path) -> None:
    """Exit 0, and nothing is written without --out."""
    info, rows = parse_history(
        "0ms alice locks billing/orders/b0/3 ok\n1ms bob locks billing/orders/b0/3 refused"
    )
    write_history(tmp_path / "history", info, rows)
    before = sorted(tmp_path.rglob("*"))
    result = run("check", str(tmp_path / "history"), "--profile", profile)
    assert (result.exit_code, "UPHELD  offline" in result.stdout) == (0, True), result.stderr
    assert sorted(tmp_path.rglob("*")) == before


# --------------------------------------------------------------------------------------- list, doctor


@pytest.mark.parametrize(
    "what", ["clauses", "profiles", "targets", "scenarios", "faults", "mutants"]
)
def test_lists_keep_their_schema(run: Run, what: str) -> None:
    """Each is a list of objects with a name, and a pipe gets a line for each, however narrow the terminal is."""
    result = run("list", what, "--format", "json")
    assert result.exit_code == 0, result.stderr
    printed = json.loads(result.stdout)
    jsonschema.validate(printed, schema(LIST_SCHEMA))
    lines = run("list", what, env={"COLUMNS": "60"}).stdout.splitlines()
    assert len(lines) == len(printed["items"])
    for item, line in zip(printed["items"], lines, strict=True):
        assert line.startswith(item["id"] if what == "clauses" else item["name"])


def test_a_line_of_a_list_holds_the_whole_sentence(run: Run) -> None:
    """So that `inorder list mutants | grep NAME` shows what the mutant is."""
    items = json.loads(run("list", "mutants", "--format", "json").stdout)["items"]
    for item, line in zip(items, run("list", "mutants").stdout.splitlines(), strict=True):
        assert " ".join(item["bug"].split()) in line


def test_the_list_of_clauses_holds_every_clause(run: Run) -> None:
    """In catalogue order, and behind them the wire rules that are no clause's facet; the others stand with theirs."""
    items = json.loads(run("list", "clauses", "--format", "json").stdout)["items"]
    alone = [rule for rule in RULES if meant_by(rule) == rule]
    assert [item["id"] for item in items] == [*(clause.id for clause in catalogue()), *alone]
    assert {rule for item in items for rule in item["rules"]} == set(RULES)


def test_every_mutant_names_its_clause(run: Run) -> None:
    """`inorder list mutants` says what must catch each: a clause, or a wire rule where histories show nothing."""
    items = json.loads(run("list", "mutants", "--format", "json").stdout)["items"]
    named = {
        oracle: {item["killed_by"] for item in items if item["oracle"] == oracle}
        for oracle in ORACLES
    }
    assert len(items) >= 50
    assert named[HISTORY] <= {clause.id for clause in all_clauses()}
    assert named[MODEL] <= set(RULES)
    assert named[VECTORS] <= {clause.id for clause in catalogue() if clause.vectors}


def test_doctor_says_how_to_mend_what_is_missing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 69 where a part that was asked for is missing; what nobody asked for is told, with what mends it."""
    from conformance.cli import doctor
    from conformance.parts.doctor import CHAOS, CHECK, Part, State

    here = Part("java", State.OK, "/usr/bin/java", "everything", "apt-get install java", CHECK)
    optional = Part("go", State.MISSING, "no go", "nothing", "install Go", CHAOS, optional=True)
    mend = "tools/dockerd.sh start"
    missing = Part("docker", State.MISSING, "no engine", "containers", mend, CHAOS)
    monkeypatch.setattr(doctor, "checks", lambda: [here, optional])
    assert run("doctor").exit_code == 0
    monkeypatch.setattr(doctor, "checks", lambda: [here, optional, missing])
    result = run("doctor")
    assert (result.exit_code, "missing: docker" in result.stderr) == (0, True)
    assert run("doctor", "--for", "check").exit_code == 0
    assert run("doctor", "--for", "chaos").exit_code == 69
    assert "to mend: tools/dockerd.sh start" in " ".join(result.stdout.split())
    printed = json.loads(run("doctor", "--format", "json").stdout)
    jsonschema.validate(printed, schema(LIST_SCHEMA))
    assert [item["state"] for item in printed["items"]] == ["ok", "missing", "missing"]
