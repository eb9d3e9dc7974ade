"""Whatever a history holds, the judges answer, and each witness stands alone.

The histories drawn here are small, dense and mostly nonsense: that is where a judge's bookkeeping breaks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specs.clauses.catalogue import all_clauses
from specs.clauses.judging import Finding
from specs.history.row import Row, make_row
from specs.history.runinfo import RunInfo
from specs.plan.config import Config
from specs.verdicts.examine import examine, find_violations, found_alone, witness
from specs.vocabulary import Kind, Level, Outcome, dead_letter_topic

GROUP_MOSTLY = ("billing", "billing", "billing", "billing", "billing", "audit")
CLIENTS = ("alice", "bob", "carol")
EVIDENCE_AT_MOST = 10

LANE_KINDS = (
    Kind.DELIVER,
    Kind.DELIVER,
    Kind.DELIVER,
    Kind.LOCK,
    Kind.LOCK,
    Kind.UNLOCK,
    Kind.COMMIT,
    Kind.COMMIT,
    Kind.ADD,
    Kind.DROP,
    Kind.FETCH_OFFSET,
    Kind.DEAD_LETTER,
    Kind.PULL,
    Kind.RESET,
)
OTHER_KINDS = (
    Kind.SEND,
    Kind.SEND,
    Kind.READ,
    Kind.READ,
    Kind.CRASH,
    Kind.PAUSE,
    Kind.JOIN,
    Kind.LEAVE,
)
LISTENER_ENDS = (
    Outcome.SUCCESS,
    Outcome.SUCCESS,
    Outcome.SUSPEND,
    Outcome.SUSPEND,
    Outcome.COMMIT,
    Outcome.ROLLBACK,
    Outcome.NULL,
    Outcome.THREW,
    Outcome.CUT,
)
THEMES: tuple[tuple[Kind, ...], ...] = (
    LANE_KINDS + OTHER_KINDS,
    (
        Kind.LOCK,
        Kind.LOCK,
        Kind.LOCK,
        Kind.UNLOCK,
        Kind.DELIVER,
        Kind.COMMIT,
        Kind.PAUSE,
        Kind.CRASH,
    ),
    (
        Kind.DELIVER,
        Kind.DELIVER,
        Kind.COMMIT,
        Kind.COMMIT,
        Kind.ADD,
        Kind.DROP,
        Kind.FETCH_OFFSET,
        Kind.SEND,
    ),
    (Kind.DELIVER, Kind.DELIVER, Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD),
    (Kind.DEAD_LETTER, Kind.READ, Kind.READ, Kind.SEND),
    (Kind.LOCK, Kind.DELIVER),
    (Kind.LOCK, Kind.UNLOCK, Kind.COMMIT),
)
"""A history has one theme, so that the rows which a clause compares lie close together."""

ENDS: dict[Kind, Sequence[Outcome]] = {
    Kind.DELIVER: LISTENER_ENDS,
    Kind.COMMIT: (Outcome.SENT, Outcome.OK, Outcome.UNKNOWN),
    Kind.UNLOCK: (Outcome.SENT, Outcome.OK),
}
ANSWERS = (Outcome.OK, Outcome.OK, Outcome.REFUSED, Outcome.UNKNOWN)

CONFIGS = st.builds(
    Config,
    broker_lease_ms=st.sampled_from((20, 100)),
    client_lease_ms=st.sampled_from((10, 50)),
    persist_ms=st.sampled_from((2, 10)),
    persist_first_ms=st.sampled_from((2, 10)),
    suspend_ms=st.sampled_from((10, 20)),
    max_reconsume_times=st.sampled_from((-1, 0, 1)),
    batch=st.sampled_from((1, 1, 2)),
    consume_from=st.sampled_from(("first", "last")),
    dead_letter_bound_ms=st.sampled_from((0, 5)),
    delay_bound_ms=st.sampled_from((1, 5)),
    schedule_slack_ms=st.sampled_from((0, 2)),
)

OFFSETS = st.integers(0, 3)
maybe = st.booleans

AT_THE_END = (
    "DLQ-1",
    "DLQ-2",
    "DLQ-4",
    "DLQ-5",
    "LSE-4",
    "LSE-15",
    "SND-2",
    "SND-3",
    "SND-6",
    "SND-12",
)
"""What these find they find when the history is over."""


@st.composite
def operations(draw: st.DrawFn, theme: tuple[Kind, ...]) -> list[dict[str, Any]]:
    """One operation: the rows that it becomes, without their places."""
    kind = draw(st.sampled_from(theme))
    client = draw(st.sampled_from(CLIENTS))
    outcome = draw(st.sampled_from(ENDS.get(kind, ANSWERS)))
    row: dict[str, Any] = {
        "kind": kind,
        "client_id": client,
        "process": client,
        "level": draw(st.sampled_from((Level.CLIENT, Level.CLIENT, Level.WIRE))),
        "outcome": outcome,
        "topic": "orders",
        "broker": "b0",
        "queue_id": draw(st.sampled_from((0, 0, 0, 0, 0, 1))),
    }
    offset = draw(OFFSETS)
    message = f"m{offset}"
    if kind in LANE_KINDS:
        row["group"] = draw(st.sampled_from(GROUP_MOSTLY))
        row["incarnation"] = f"{client}#{draw(st.sampled_from((1, 1, 1, 2)))}"
    match kind:
        case Kind.DELIVER:
            row.update(
                queue_offset=offset,
                message_id=message,
                sharding_key="k",
                key_seq=draw(OFFSETS) if draw(maybe()) else offset,
                reconsume_times=draw(st.integers(0, 2)),
                commit_mode=draw(st.sampled_from((None, "auto", "manual"))),
                suspend_ms=draw(st.sampled_from((None, -1, 5, 20))),
            )
            if draw(maybe()):
                return [
                    row,
                    {
                        **row,
                        "queue_offset": offset + 1,
                        "message_id": f"m{offset + 1}",
                        "key_seq": offset + 1,
                    },
                ]
        case Kind.DEAD_LETTER:
            row.update(
                queue_offset=offset,
                message_id=message,
                attempt=draw(st.sampled_from((None, 1, 2))),
                wall_us=0,
            )
        case Kind.COMMIT:
            row.update(
                value=draw(OFFSETS), detail=draw(st.sampled_from((None, None, None, "corrected")))
            )
        case Kind.ADD:
            row.update(value=draw(OFFSETS) if draw(maybe()) else 0, outcome=Outcome.OK)
        case Kind.FETCH_OFFSET:
            row.update(value=draw(OFFSETS) if outcome is Outcome.OK else -1)
            if draw(maybe()):
                del row["incarnation"]
        case Kind.SEND:
            row.update(queue_offset=offset if outcome is Outcome.OK else None, message_id=message)
        case Kind.READ if draw(maybe()):
            group = draw(st.sampled_from(GROUP_MOSTLY))
            row.update(group=group, topic=dead_letter_topic(group), outcome=Outcome.OK)
            if draw(maybe()):
                row.update(
                    queue_offset=offset,
                    message_id=f"c{offset}",
                    origin_id=message,
                    wall_us=draw(OFFSETS) * 9000,
                )
            else:
                row.update(value=draw(OFFSETS))
        case Kind.READ:
            row.update(
                {"queue_offset": offset, "message_id": message}
                if draw(maybe())
                else {"value": draw(OFFSETS)}
            )
        case Kind.CRASH if draw(maybe()):
            row.update(client_id=None)
        case Kind.CRASH | Kind.PAUSE | Kind.JOIN | Kind.LEAVE:
            row.update(broker=None, queue_id=None, topic=None)
        case _:
            pass
    return [row]


@st.composite
def histories(draw: st.DrawFn) -> tuple[RunInfo, list[Row]]:
    """A run and its rows, by seq_begin."""
    info = RunInfo(run="drawn", config=draw(CONFIGS), closed_world=draw(maybe()))
    now = 0
    marks: list[tuple[int, int, int, int]] = []  # time, operation, begin or end, row
    begun: list[tuple[int, int | None, int, dict[str, Any]]] = []
    theme = draw(st.sampled_from(THEMES))
    for op, rows in enumerate(draw(st.lists(operations(theme), min_size=1, max_size=30))):
        now += draw(st.sampled_from((0, 1, 1, 1, 3, 12))) * 1000
        length = draw(st.sampled_from((None, 0, 1, 1, 2, 15)))
        end = None if length is None else now + length * 1000
        for row in rows:
            marks.append((now, op, 0, len(begun)))
            if end is not None:
                marks.append((end, op, 1, len(begun)))
            begun.append((now, end, op, row))
    places: dict[tuple[int, int], int] = {}
    for seq, (_time, _op, phase, index) in enumerate(sorted(marks), start=1):
        places[phase, index] = seq
    return info, sorted(
        (
            make_row(
                **row,
                run="drawn",
                op_id=op,
                started_us=begin,
                ended_us=end,
                clock="virtual",
                seq_begin=places[0, index],
                seq_end=places.get((1, index)),
            )
            for index, (begin, end, op, row) in enumerate(begun)
        ),
        key=lambda row: row.seq_begin,
    )


DRAWN = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def findings(info: RunInfo, rows: list[Row]) -> list[tuple[Any, Finding]]:
    return [
        (clause, found) for clause in all_clauses() for found in find_violations(clause, rows, info)
    ]


@DRAWN
@given(histories())
def test_every_finding_stands_alone_and_its_witness_is_minimal(
    drawn: tuple[RunInfo, list[Row]],
) -> None:
    """Evidence is part of the history, is refuted by itself, and its witness not without any one of its events."""
    info, rows = drawn
    places = {row.seq_begin for row in rows}
    for clause, found in findings(info, rows):
        evidence = found.rows
        assert {row.seq_begin for row in evidence} <= places
        assert 1 <= len(evidence) <= EVIDENCE_AT_MOST
        if (
            info.records is None
            and found_alone(clause, evidence, info, found.name, certain=found.certain) is None
        ):
            # Nobody declares that give-ups are recorded: that some are in the history tells it, and is no evidence.
            # Nor is a shutdown, which only says which finding it is.
            told = [
                row
                for row in rows
                if row.kind in (Kind.DEAD_LETTER, Kind.SEND_BACK, Kind.LEAVE)
                and row not in evidence
            ]
            both = sorted([*evidence, *told], key=lambda row: row.seq_begin)
            assert found_alone(clause, both, info, found.name, certain=found.certain), (
                clause.id,
                evidence,
            )
            continue
        assert found_alone(clause, evidence, info, found.name, certain=found.certain), (
            clause.id,
            evidence,
        )
        shown, said = witness(clause, found, info)
        assert found_alone(clause, shown, info, found.name, certain=found.certain), (
            clause.id,
            shown,
        )
        assert said
        for index in range(len(shown)):
            less = shown[:index] + shown[index + 1 :]
            left = (
                found_alone(clause, less, info, found.name, certain=found.certain) if less else None
            )
            assert left is None, (clause.id, shown, index)


@DRAWN
@given(histories(), st.data())
def test_any_slice_is_judged_without_complaint(
    drawn: tuple[RunInfo, list[Row]], data: st.DataObject
) -> None:
    """A part of a history, with holes, is a history."""
    info, rows = drawn
    some = [row for row in rows if data.draw(st.booleans())]
    examination = examine(some, info)
    assert set(examination.tallies) == {clause.id for clause in all_clauses()}
    assert examination.facts.rows == len(some)


@DRAWN
@given(histories())
def test_clauses_judged_together_find_what_each_finds_alone(
    drawn: tuple[RunInfo, list[Row]],
) -> None:
    """Sharing a pass changes nothing."""
    info, rows = drawn
    together = examine(rows, info).tallies
    for clause in all_clauses():
        alone = examine(rows, info, (clause,)).tallies[clause.id]
        assert (alone.opportunities, alone.violations) == (
            together[clause.id].opportunities,
            together[clause.id].violations,
        )
        assert alone.witness == together[clause.id].witness


@DRAWN
@given(histories())
def test_a_prefix_finds_nothing_that_the_whole_does_not_root(
    drawn: tuple[RunInfo, list[Row]],
) -> None:
    """What was found by the time a row began stays found when the history goes on."""
    info, rows = drawn
    half = rows[: len(rows) // 2]
    if not half:
        return
    # Rows still open at the cut are seen as they were then: begun, not ended.
    cut = half[-1].seq_begin
    seen = [
        row
        if row.seq_end is None or row.seq_end <= cut
        else row._replace(seq_end=None, ended_us=None)
        for row in half
    ]
    for clause in all_clauses():
        if clause.id in AT_THE_END:
            continue  # decided when the history is over
        whole = {found.rows[-1].seq_begin for found in find_violations(clause, rows, info)}
        for found in find_violations(clause, seen, info):
            if any(row.seq_end is None for row in found.rows):
                continue
            assert found.rows[-1].seq_begin in whole, (clause.id, found.rows)
