"""Any piece of a correct system's life, told by a log as coarsely and partly as logs do, is never refuted."""

from __future__ import annotations

import csv
import importlib.util
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from conformance.importing.job import Job, Wanted
from conformance.importing.mapping import MAPPED, NEEDED, parse_map
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.history.store import open_history
from specs.history.telling import MUST_TELL
from specs.profiles import load
from specs.verdicts.engine import judge
from specs.verdicts.verdict import ClauseVerdict
from specs.vocabulary import OF_A_CLIENT, Kind, Level

from .test_as_recorded import LATER_US

RECORDED = Path(__file__).parents[2] / "spark_checkers" / "recorded.py"
WINDOW = 600
SETTINGS_OF_JUDGES = ("flush", "flush_ms", "keep_ms")
NEVER_LEFT_OUT = frozenset({"origin_id", "level", "outcome", "message_id"})
"""What a map is asked for, or what the guide says that it is taken for."""


@cache
def recorded() -> tuple[RunInfo, tuple[Row, ...]]:
    """Of the simulated reference: handovers, suspended messages, rollbacks, dead letters, a drain."""
    spec = importlib.util.spec_from_file_location("recorded_for_imports", RECORDED)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    info, rows = module.recorded()
    # What the harness asks besides (the drain's look-ups) is in nobody's log.
    return info, tuple(
        row
        for row in rows
        if row.level is not Level.STORE
        and all(getattr(row, name) is not None for name in NEEDED.get(row.kind, ()))
    )


def log_of(path: Path, rows: Sequence[Row], step_us: int, turn: int) -> None:
    """A line for each operation with both times, as coarse as `step_us`; with a `turn` in no order."""

    def at(us: int) -> int:
        return (us + LATER_US) // step_us * step_us

    lines = []
    for row in rows:
        line = {name: value for name, value in row._asdict().items() if name in MAPPED}
        line |= {
            "what": str(row.kind) + ("" if row.ended_us is not None else " open"),
            "b": at(row.started_us),
        }
        line["e"] = None if row.ended_us is None else at(row.ended_us)
        line["lease_until_us"] = None if row.lease_until_us is None else at(row.lease_until_us)
        if row.kind is Kind.READ and row.wall_us is not None:
            line["wall_us"] = at(row.wall_us)
        else:
            line["wall_us"] = None
        lines.append(line)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()

        # A database gives its rows in any order.
        def place(index: int) -> int:
            return (index * 2_654_435_761 * turn) % (1 << 32)

        writer.writerows(lines[index] for index in sorted(range(len(lines)), key=place))


def map_of(
    info: RunInfo, kinds: Sequence[Kind], left_out: frozenset[str], there: frozenset[str]
) -> str:
    """A map for `kinds`, without some columns."""
    config = {
        name: value
        for name, value in info.config.to_json().items()
        if name not in SETTINGS_OF_JUDGES
    }
    lines = [
        'profile = "reference"\nconfig.system = "rocketmq"',
        *(f"config.{name} = {json.dumps(value)}" for name, value in config.items()),
        'order = "times"\nclock_bound_ms = 0\ntime_format = "epoch_us"',
        f"records = {json.dumps(kinds)}",
    ]
    for kind in kinds:
        for ending in ("", " open"):
            if str(kind) + ending not in there:
                continue
            skipped = left_out - frozenset(NEEDED.get(kind, ()))
            used = [name for name in MAPPED if name not in skipped]
            if ending and kind is Kind.DELIVER:
                used.remove("outcome")
            times = 'at = "begin"\ntime = "b"' if ending else 'begin = "b"\nend = "e"'
            lines.append(f'[[event]]\nkind = "{kind}"\n{times}\nwhen.what = "{kind}{ending}"')
            lines += [f'columns.{name} = "{name}"' for name in used]
    return "\n".join(lines)


OPTIONAL = tuple(sorted(set(MAPPED) - NEVER_LEFT_OUT))


@settings(
    max_examples=8,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],  # an example takes a second, and shrinking minutes
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    start=st.integers(0, 2000),
    silent=st.sets(st.sampled_from(sorted(Kind)), max_size=6),
    left_out=st.frozensets(st.sampled_from(OPTIONAL), max_size=6),
    step_us=st.sampled_from([1, 1_000, 10_000, 1_000_000]),
    turn=st.integers(0, 300),
    hashed=st.booleans(),
)
def test_a_correct_systems_log_is_never_refuted(
    tmp_path_factory: pytest.TempPathFactory,
    start: int,
    silent: set[Kind],
    left_out: frozenset[str],
    step_us: int,
    turn: int,
    hashed: bool,
) -> None:
    """Whichever piece, kinds, columns and resolution, and whatever the order of the lines."""
    info, rows = recorded()
    piece = [row for row in rows[start : start + WINDOW] if row.kind not in silent]
    if not piece:
        return
    folder = tmp_path_factory.mktemp("life")
    log_of(folder / "log.csv", piece, step_us, turn)
    there = frozenset(
        str(row.kind) + ("" if row.ended_us is not None else " open") for row in piece
    )
    mapping = parse_map(map_of(info, sorted({row.kind for row in piece}), left_out, there), "csv")
    secret = b"sixteen bytes or more" if hashed else None
    Job(Wanted("csv", [str(folder / "log.csv")], mapping, folder / "h", 0, secret)).run()
    verdict = judge(open_history(folder / "h"), load("reference"))
    assert [check.detail for check in verdict.met if check.ok is False] == []
    assert _told(verdict.of(ClauseVerdict.REFUTED)) == {}


def _told(refuted: Sequence[object]) -> Mapping[str, str]:
    return {each.id: each.explanation for each in refuted}  # type: ignore[attr-defined]


def test_an_import_asks_for_whoever_a_history_must_name() -> None:
    asked = {kind for kind, columns in NEEDED.items() if "client_id" in columns}
    assert asked == OF_A_CLIENT | {Kind.ADD}


@pytest.mark.parametrize("name", MUST_TELL)
def test_an_import_asks_for_what_a_row_must_tell(name: str) -> None:
    assert {kind for kind, columns in NEEDED.items() if name in columns} >= MUST_TELL[name]
