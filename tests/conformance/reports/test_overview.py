"""A whole run in bins of time, and the events around what was found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from conformance.reports import overview as module
from conformance.reports.charts import chart
from conformance.reports.overview import Overview, overview
from conformance.reports.view import VerdictView, view
from specs.history.columns import LARGEST, SMALLEST
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.history.store import History, open_history, write_history
from specs.history.text import parse_history
from specs.verdicts.verdict import Verdict

Make = Callable[..., Verdict]
BUSY = """
    0ms       shop   sends     orders/b0/0          offset=0 id=m0 key=k1 ok
    0ms       alice  locks     billing/orders/b0/0  ok
    1ms..2ms  alice  delivers  billing/orders/b0/0  offset=0 id=m0 key=k1 success
    40ms      alice  commits   billing/orders/b0/0  value=1 ok
    50ms      bob    locks     billing/orders/b0/0  refused
    60ms..90ms  alice  pauses  -
    95ms      bob    locks     billing/orders/b0/0  ok
    99ms..100ms  bob  delivers  billing/orders/b0/0  offset=1 id=m1 key=k1 suspend
    99ms      bob    dead-letters  billing/orders/b0/0  offset=1 id=m1 ok
    239ms     bob    locks     billing/orders/b0/1  ok
"""


@pytest.fixture
def rows() -> list[Row]:
    return parse_history(BUSY)[1]


def of(found: list[Row], folder: Path, verdict: VerdictView, *, as_text: bool = False) -> Overview:
    history = write_history(folder, RunInfo(found[0].run), found, as_text=as_text)
    made = overview(history, verdict)
    assert made is not None
    return made


@pytest.mark.parametrize("as_text", [False, True])
def test_a_run_is_counted_into_bins(
    rows: list[Row], tmp_path: Path, upheld: VerdictView, as_text: bool
) -> None:
    """A bin is a millisecond here; the same comes of Parquet and of lines."""
    run = of(rows, tmp_path, upheld, as_text=as_text)
    assert (run.bin_us, run.bins, run.events) == (996, 240, 10)
    seen = {name: {n: c for n, c in enumerate(line) if c} for name, line in run.rates.items()}
    assert seen == {
        "messages sent": {0: 1},
        "messages delivered": {1: 1, 99: 1},
        "calls that suspend or fail": {99: 1},
        "commits": {40: 1},
        "dead letters": {99: 1},
        "refused or unanswered": {50: 1},
        "faults, crashes, departures": {60: 1},
    }
    assert [name for name, _line in run.clients] == ["alice", "bob", "shop"]
    assert [row.kind.value for row in run.befell] == ["pause"]


def test_who_owns_a_lane_is_who_has_its_lease_or_its_messages(
    rows: list[Row], tmp_path: Path, upheld: VerdictView
) -> None:
    """A quiet lane stays its owner's; who was refused does not own it."""
    run = of(rows, tmp_path, upheld)
    assert [
        (lane.name, [(first, last, run.owners[who]) for first, last, who in lane.owners])
        for lane in run.lanes
    ] == [
        ("billing/orders/b0/0", [(0, 1, "alice"), (95, 99, "bob")]),
        ("billing/orders/b0/1", [(239, 239, "bob")]),
    ]


def test_two_owners_in_one_bin_are_several(tmp_path: Path, upheld: VerdictView) -> None:
    """Who came first in so short a time is not drawn."""
    found = parse_history(
        """
        0ms  alice  locks  billing/orders/b0/0  ok
        0ms  bob    locks  billing/orders/b0/0  ok
        9s   bob    locks  billing/orders/b0/0  ok
        """
    )[1]
    assert of(found, tmp_path, upheld).lanes[0].owners == ((0, 0, -2), (239, 239, 0))


def test_the_events_around_a_violation_are_those_of_its_lane(
    make_verdict: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nearest on both sides, of its queue, its parties and faults; the lane comes first."""
    monkeypatch.setattr(module, "MOST_EVENTS", 4)
    text = "\n".join(
        [
            *(f"{n}ms  carol  locks  billing/orders/b0/7  ok" for n in range(90)),
            "90ms  alice  locks  billing/orders/b0/3  ok",
            "91ms  carol  locks  billing/orders/b0/7  ok",
            "92ms  alice  commits  billing/orders/b0/3  value=1 ok",
            "93ms  alice  commits  billing/orders/b0/3  value=1 ok",
            "94ms  bob  locks  billing/orders/b0/3  ok",
            "95ms  carol  locks  billing/orders/b0/7  ok",
            "96ms  bob  commits  billing/orders/b0/3  value=1 ok",
            "97ms  bob  commits  billing/orders/b0/3  value=1 ok",
        ]
    )
    found = parse_history(text)[1]
    verdict = view(make_verdict(text))
    run = of(found, tmp_path, verdict)
    assert [(row.started_us, row.client_id) for row in run.around["LSE-1"]] == [
        (92_000, "alice"),
        (93_000, "alice"),
        (94_000, "bob"),
        (96_000, "bob"),
    ]
    assert [lane.name for lane in run.lanes if lane.found] == ["billing/orders/b0/3"]
    assert run.lanes[0].found, "before the lane with most events"
    assert run.at_us == {"LSE-1": 94_000}


def test_of_many_lanes_clients_and_faults_it_keeps_a_number(
    tmp_path: Path, upheld: VerdictView, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And says how many there were."""
    for name in ("MOST_LANES", "MOST_CLIENTS", "MOST_BEFELL"):
        monkeypatch.setattr(module, name, 3)
    lines = [
        line
        for n in range(9)
        for line in (f"{n}ms  c{n}  locks  billing/orders/b0/{n}  ok", f"{n}ms  c{n}  pauses  -")
    ]
    run = of(parse_history("\n".join(lines))[1], tmp_path, upheld)
    assert (len(run.lanes), run.all_lanes) == (3, 9)
    assert (len(run.clients), run.all_clients) == (3, 9)
    assert ([row.client_id for row in run.befell], run.all_befell) == (["c0", "c1", "c2"], 9)


def test_of_several_runs_it_shows_that_of_the_finding(make_verdict: Make, tmp_path: Path) -> None:
    """Their times have nothing to do with each other."""
    text = "0ms  alice  locks  billing/orders/b0/3  ok\n5ms  bob  locks  billing/orders/b0/3  ok"
    found = parse_history(text)[1]
    verdict = view(make_verdict(text))
    other = [row._replace(run="another", client_id="zoe") for row in found]
    run = of([*other, *found], tmp_path, verdict)
    assert (run.run, run.runs, run.events) == (found[0].run, 2, 2)
    assert [name for name, _line in run.clients] == ["alice", "bob"]


def test_parquet_of_others_is_read_as_a_history_is(
    rows: list[Row], tmp_path: Path, upheld: VerdictView
) -> None:
    """Plain strings instead of dictionaries, columns that nobody has anything for left out, several files."""
    table = write_history(tmp_path / "own", RunInfo("r"), rows).parquet[0]
    plain = pq.read_table(table)
    kept = [name for name in plain.column_names if plain.column(name).null_count < len(plain)]
    texts = plain.select(kept).to_pylist()
    folder = tmp_path / "spark"
    folder.mkdir()
    import pyarrow as pa

    for number in (0, 1):
        pq.write_table(pa.Table.from_pylist(texts[number::2]), folder / f"part-{number}.parquet")
    ours = overview(open_history(tmp_path / "own"), upheld)
    theirs = overview(open_history(folder), upheld)
    assert ours == theirs


@pytest.mark.parametrize("ended", [SMALLEST, 0, LARGEST])
def test_any_times_can_be_drawn(
    rows: list[Row], tmp_path: Path, upheld: VerdictView, ended: int
) -> None:
    """A history may be from the beginning of time to its end, or end before it began: that is for judges to say."""
    odd = [
        rows[0]._replace(started_us=SMALLEST),
        rows[1]._replace(ended_us=ended),
        rows[5]._replace(started_us=LARGEST, ended_us=ended),
    ]
    run = of(odd, tmp_path, upheld)
    assert (run.start_us, run.end_us) == (SMALLEST, LARGEST)
    assert run.bins <= module.BINS
    assert sum(run.rates["messages sent"]) == 1
    assert "".join(chart(run).itertext())


def test_nothing_comes_of_nothing(tmp_path: Path, upheld: VerdictView) -> None:
    """A history without events has no overview."""
    assert overview(History(tmp_path, RunInfo("r")), upheld) is None
    empty = write_history(tmp_path, RunInfo("r"), [])
    assert overview(empty, upheld) is None


def test_what_took_no_time_at_all_has_one_bin(tmp_path: Path, upheld: VerdictView) -> None:
    """And what never ended ends with its begin."""
    found = parse_history("5ms..  alice  locks  billing/orders/b0/0")[1]
    run = of([replace_end(row) for row in found], tmp_path, upheld)
    assert (run.bins, run.start_us, run.end_us) == (1, 5_000, 5_000)


def replace_end(row: Row) -> Row:
    return row._replace(ended_us=None, seq_end=None)


def test_the_verdict_alone_says_what_was_found(rows: list[Row], tmp_path: Path) -> None:
    """A finding of a run that is not in the history has no events here."""
    found = parse_history("0ms  a  locks  g/t/b0/0  ok\n1ms  b  locks  g/t/b0/0  ok")[1]
    history = write_history(tmp_path, RunInfo("r"), rows)
    clause = replace(
        _failure(), witness=tuple(row._replace(run="elsewhere") for row in found), id="LSE-1"
    )
    verdict = replace(_verdict(), clauses=(clause,))
    run = overview(history, verdict)
    assert run is not None
    assert run.around == {}


def _verdict() -> VerdictView:
    from specs.verdicts.verdict import RunVerdict

    return VerdictView(RunVerdict.REFUTED, "t", "p", 1, "r", None, {}, (), (), ())


def _failure():  # type: ignore[no-untyped-def]
    from conformance.reports.view import ClauseView
    from specs.verdicts.verdict import ClauseVerdict

    return ClauseView(
        "LSE-1", "one", "One.", ClauseVerdict.REFUTED, "broker", (), 1, 1, 1, (), "why", ""
    )
