"""Stretches: nothing is left out, nothing eventful is folded away, and much is folded."""

from __future__ import annotations

from pathlib import Path

from drawn import histories
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from judging import context_of, in_memory

from spark_checkers.catalogue import all_judges
from spark_checkers.generate import queue_tables
from specs.clauses.rows import REQUEST_LEVELS, changed_nothing
from specs.facts.lanes import BEGIN, END, LANE_KINDS, STRETCH, Digest, Stretch, ends_as
from specs.facts.rows import Rows, keep
from specs.facts.run_context import RunContext
from specs.facts.segments import NEVER
from specs.history.runinfo import RunInfo
from specs.history.store import rows_to_table
from specs.vocabulary import Kind, Outcome


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(histories())
def test_items_are_all_begins_and_ends_in_their_order(history: tuple) -> None:
    info, rows = history
    table = keep(rows_to_table(rows), "level", REQUEST_LEVELS)
    columns = Rows(table, {info.run: context_of(rows, info)})
    seen: list[tuple[int, int]] = []
    for lane in columns.shared(Digest).lanes(LANE_KINDS):
        events: list[tuple[int, int, int]] = []
        for what, when, item in lane.items:
            if what == STRETCH:
                assert when == item.first.begin
                events += [
                    (op.end if phase == END else op.begin, phase, op.begin)
                    for _at, phase, op in expanded(lane, item)
                ]
            else:
                assert when == (item.end if what == END else item.begin)
                events.append((when, what, item.begin))
        assert events == sorted(events, key=lambda event: event[:2])
        seen += [(begin, phase) for _time, phase, begin in events]
    wanted = [
        (row.seq_begin, phase)
        for row in rows
        if row.kind in LANE_KINDS
        and row.level in REQUEST_LEVELS
        and row.queue_id is not None
        and row.group
        and not changed_nothing(row)
        for phase in (BEGIN, END)
        if phase == BEGIN or row.seq_end is not None
    ]
    assert sorted(seen) == sorted(wanted)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(histories(), st.frozensets(st.sampled_from(Kind)), st.frozensets(st.sampled_from(Outcome)))
def test_a_lane_without_ends_that_nobody_looks_at(
    history: tuple, kinds: frozenset[Kind], outcomes: frozenset[Outcome]
) -> None:
    info, rows = history
    table = keep(rows_to_table(rows), "level", REQUEST_LEVELS)
    digest = Rows(table, {info.run: context_of(rows, info)}).shared(Digest)
    whole = digest.lanes(LANE_KINDS)
    some = {
        lane.place: lane.items for lane in digest.lanes(LANE_KINDS, ends=ends_as(kinds, outcomes))
    }
    for lane in whole:
        assert some.pop(lane.place, []) == [
            each
            for each in lane.items
            if each[0] != END or (each[2].kind in kinds and each[2].outcome in outcomes)
        ]
    assert not some


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(histories())
def test_nothing_is_at_stake_in_a_lane_that_is_left_out(history: tuple) -> None:
    info, rows = history
    left_out = [
        (judge.clause, machine.STAKE)
        for judge in all_judges()
        if (machine := getattr(judge.find, "keywords", {}).get("machine")) is not None
        and getattr(machine, "STAKE", None) is not None
    ]
    assert left_out
    for clause, kind in left_out:
        without = [row for row in rows if row.kind is not kind]
        assert in_memory(without, info, [clause])[clause.id] == (0, [])


def expanded(lane: object, stretch: Stretch) -> list:
    """The events of a stretch, which must be as uneventful as it says."""
    events = list(lane.digest.expand(stretch))
    begun = [op for _at, phase, op in events if phase == BEGIN]
    assert stretch.rows == len(begun)
    assert stretch.calls == len({op.op for op in begun})
    assert (stretch.first, stretch.last) == (begun[0], begun[-1])
    assert events[-1] == (stretch.last.end, END, stretch.last)
    assert [op.offset for op in begun] == list(range(stretch.first.offset, stretch.stop))
    assert {(op.incarnation, op.client, op.manual) for op in begun} == {
        (stretch.first.incarnation, stretch.first.client, stretch.first.manual)
    }
    assert {op.outcome for op in begun} <= {Outcome.SUCCESS, Outcome.COMMIT}
    assert all(op.kind is Kind.DELIVER and op.end < NEVER for op in begun)
    done = [op.offset + 1 for op in begun if not op.manual or op.outcome is Outcome.COMMIT]
    assert stretch.finished_to == max(done, default=stretch.first.offset)
    assert (stretch.earliest_us, stretch.latest_us) == (
        min(op.started for op in begun),
        max(op.started for op in begun),
    )
    parts = lane.digest.split(stretch)
    assert [event for part, _rest in parts for event in part] == events
    for number, (_part, rest) in enumerate(parts):
        left = [event for part, _rest in parts[number + 1 :] for event in part]
        assert left == ([] if rest is None else expanded(lane, rest))
    return events


def test_most_of_a_healthy_history_is_folded_away(tmp_path: Path) -> None:
    table = next(iter(queue_tables(40_000, 1))).table
    rows = Rows(table, {f"generated-{1}": RunContext(RunInfo("generated-1"))})
    items = sum(len(lane.items) for lane in rows.shared(Digest).lanes(LANE_KINDS))
    assert items * 8 < table.num_rows
