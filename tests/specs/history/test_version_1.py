"""What version 1 wrote is read for ever: recorded histories, a plan and a driver's conversation lie in `v1`."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pyarrow.parquet as pq
import pytest

import specs
from specs.clauses.catalogue import all_clauses
from specs.history.arrow import VERSION_KEY
from specs.history.store import open_history, write_history
from specs.plan.plan import read_plan
from specs.plan.schema import plan_schema
from specs.verdicts.examine import Examiner

V1 = Path(__file__).parent / "v1"
RECORDED = json.loads((V1 / "expected.json").read_text(encoding="utf-8"))
"""Of each history, by clause: how often it was at stake, and its violations (evidence, certain, name)."""


@pytest.mark.parametrize("name", RECORDED)
def test_a_history_of_version_1_comes_to_what_it_came_to(name: str) -> None:
    """Parquet, JSON lines, and a journal that nobody has compacted."""
    history = open_history(V1 / name)
    examiner = Examiner(history.info, all_clauses())
    for bench in examiner.benches:
        bench.kept = []
    examiner.feed(history.rows())
    tallies = examiner.result().tallies
    found = {}
    for bench in examiner.benches:
        violations = sorted(
            [[row.seq_begin for row in each.rows], each.certain, each.name]
            for each in bench.kept or ()
        )
        found[bench.clause.id] = [tallies[bench.clause.id].opportunities, violations]
    assert {clause: each for clause, each in found.items() if each != [0, []]} == RECORDED[name]


SCHEMAS = Path(specs.__file__).parent / "schemas"


def test_the_schemas_of_version_1_are_kept() -> None:
    """What was recorded then is what they say; and a new row has columns that they did not know."""
    runs, rows = (
        json.loads((SCHEMAS / name).read_text(encoding="utf-8"))
        for name in ("run.v1.json", "history-row.v1.json")
    )
    for name in RECORDED:
        jsonschema.validate(json.loads((V1 / name / "run.json").read_text("utf-8")), runs)
    lines = (V1 / "lines" / "history" / "rows.jsonl").read_text(encoding="utf-8").splitlines()
    for line in lines:
        jsonschema.validate(json.loads(line), rows)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**json.loads(lines[0]), "generation": 1}, rows)


def test_a_plan_of_version_1_keeps_its_schema_and_is_written_as_version_2() -> None:
    """The newer schema has everything that the older one had."""
    old = json.loads((V1 / "plan.json").read_text(encoding="utf-8"))
    jsonschema.validate(old, json.loads((SCHEMAS / "plan.v1.json").read_text(encoding="utf-8")))
    new = read_plan(V1 / "plan.json").to_json()
    jsonschema.validate(new, plan_schema())
    assert {**new, "schema": old["schema"]} == old


def test_what_version_1_wrote_is_written_again_as_version_2(tmp_path: Path) -> None:
    """Rows and description are the same, and the file says which version it is."""
    old = open_history(V1 / "parquet")
    new = write_history(tmp_path, old.info, list(old.rows()))
    assert (list(new.rows()), new.info) == (list(old.rows()), old.info)
    assert [
        (pq.read_schema(history.parquet[0]).metadata or {})[VERSION_KEY] for history in (old, new)
    ] == [b"1", b"2"]


def test_a_plan_of_version_1_is_read() -> None:
    """As itself, and as part of a run's description."""
    plan = read_plan(V1 / "plan.json")
    assert [action.do for action in plan.actions[-3:]] == ["broker_crash", "broker_restart", "send"]
    assert plan.config.max_reconsume_times == 1
    assert open_history(V1 / "parquet").info.plan is not None
