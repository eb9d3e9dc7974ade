"""Whose work a lane is where messages are leased one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from conformance.drivers.message_leases import with_letters, with_tenures
from specs.history.row import Row, make_row
from specs.history.telling import untold
from specs.vocabulary import SERVER_CONSUMER, Kind, Outcome, dead_letter_topic

LEASE_MS = 900
LANE = {"group": "billing", "topic": "orders", "broker": "b0", "queue_id": 3}
MS = 1000


def deliver(
    seq: int, member: str, offset: int, outcome: Outcome | None, *, times: int = 0, at_ms: int = 0
) -> Row:
    """A call of ten ms; without an outcome it never ended."""
    ended: dict[str, Any] = {"seq_end": None, "ended_us": None, "outcome": Outcome.UNKNOWN}
    if outcome is not None:
        ended = {"seq_end": seq + 1, "ended_us": (at_ms + 10) * MS, "outcome": outcome}
    return _row(
        seq, Kind.DELIVER, member, at_ms, queue_offset=offset, reconsume_times=times, **ended
    )


def acknowledge(seq: int, member: str, offset: int, *, at_ms: int = 20) -> Row:
    ended = {"seq_end": seq + 1, "ended_us": at_ms * MS, "outcome": Outcome.OK}
    return _row(seq, Kind.COMMIT, member, at_ms, value=offset + 1, **ended)


def _row(seq: int, kind: Kind, member: str, at_ms: int, **more: Any) -> Row:
    who = {"run": "r", "process": member, "client_id": member, "seq_begin": seq, "op_id": seq}
    return make_row(**who, kind=kind, started_us=at_ms * MS, **LANE, **more)


def instant(seq: int, kind: Kind, at_ms: int, **more: Any) -> Row:
    at = {"seq_begin": seq, "seq_end": seq, "op_id": seq, "started_us": at_ms * MS}
    return make_row(run="r", kind=kind, **at, **{"ended_us": at_ms * MS, **more})


def tenures(*rows: Row) -> list[str]:
    """Of each row of the lane: which tenure it belongs to, or that a further one begins."""
    return [_short(row) for row in with_tenures(rows, LEASE_MS) if row.queue_id is not None]


def _short(row: Row) -> str:
    begins = "new " if row.kind is Kind.ADD else ""
    return begins + (row.incarnation or "").removeprefix(f"{SERVER_CONSUMER}/orders/3")


def in_order(rows: Sequence[Row]) -> bool:
    return [row.seq_begin for row in rows] == sorted({row.seq_begin for row in rows})


def test_members_share_a_tenure_while_every_lease_ends_well() -> None:
    """One acknowledges, one puts back, and the other is given it again."""
    rows = (
        deliver(1, "alice", 5, Outcome.SUCCESS),
        acknowledge(3, "alice", 5),
        deliver(5, "bob", 7, Outcome.SUSPEND),
        deliver(7, "alice", 7, Outcome.SUCCESS, times=1),
    )
    assert tenures(*rows) == ["#1"] * 4
    assert {untold(row) for row in with_tenures(rows, LEASE_MS)} == {()}
    assert {row.client_id for row in with_tenures(rows, LEASE_MS)} == {SERVER_CONSUMER}


def test_what_was_acknowledged_and_comes_again_is_of_the_same_tenure() -> None:
    """So a clause sees it."""
    rows = (
        deliver(1, "alice", 5, Outcome.SUCCESS),
        acknowledge(3, "alice", 5),
        deliver(5, "bob", 5, Outcome.SUCCESS, times=1, at_ms=50),
    )
    assert tenures(*rows) == ["#1"] * 3


def test_a_lease_that_ran_out_begins_another() -> None:
    """Nobody acknowledged, or too late to say that it was in time."""
    again = deliver(9, "bob", 5, Outcome.SUCCESS, times=1, at_ms=1_000)
    first = deliver(1, "alice", 5, Outcome.SUCCESS)
    late = acknowledge(3, "alice", 5, at_ms=400)
    assert tenures(first, again) == ["#1", "new #2", "#2"]
    assert tenures(first, late, again) == ["#1", "#1", "new #2", "#2"]
    assert in_order(with_tenures((first, late, again), LEASE_MS))


def test_an_acknowledgement_beside_a_hold_up_is_not_known_to_be_in_time() -> None:
    """What the link held may have been handed out again before."""
    held = instant(1, Kind.FAULT, 0, detail="hold everybody b0", ended_us=300 * MS)
    rows = (
        held,
        deliver(2, "alice", 5, Outcome.SUCCESS, at_ms=310),
        acknowledge(4, "alice", 5, at_ms=330),
        deliver(6, "alice", 5, Outcome.SUCCESS, times=1, at_ms=340),
    )
    assert tenures(*rows) == ["#1", "#1", "new #2", "#2"]


def test_a_delivery_that_was_overtaken_by_its_own_successor_is_of_no_tenure() -> None:
    rows = (
        deliver(1, "bob", 5, Outcome.SUCCESS, times=1),
        deliver(3, "alice", 5, Outcome.SUCCESS),
        deliver(5, "bob", 7, Outcome.SUCCESS),
    )
    assert tenures(*rows) == ["#1", "#1/alice/5/0", "#1"]


def test_what_a_member_says_of_such_a_delivery_is_of_no_tenure_either() -> None:
    """He had the message before as well, and the server died since and forgot how often: he speaks of the last time."""
    rows = (
        deliver(1, "alice", 5, Outcome.SUSPEND),
        deliver(3, "alice", 5, Outcome.SUCCESS, times=1),
        acknowledge(5, "alice", 5),
        instant(7, Kind.CRASH, 100, broker="b0"),
        deliver(8, "alice", 4, Outcome.SUCCESS, at_ms=110),
        deliver(10, "alice", 5, Outcome.SUCCESS, at_ms=130),
        acknowledge(12, "alice", 5, at_ms=140),
    )
    assert tenures(*rows) == [*["#1"] * 3, "new #2", "#2", *["#2/alice/5/0"] * 2]


def test_a_killed_member_has_its_call_cut() -> None:
    """And whoever is given the message then begins another tenure."""
    rows = (
        deliver(1, "alice", 5, None),
        instant(3, Kind.CRASH, 100, client_id="alice"),
        deliver(5, "bob", 5, Outcome.SUCCESS, times=1, at_ms=1_000),
    )
    assert tenures(*rows) == ["#1", "new #2", "#2"]
    cut = with_tenures(rows, LEASE_MS)[0]
    assert (cut.outcome, cut.ended_us) == (Outcome.CUT, 100 * MS)


def test_a_server_that_died_begins_another_with_its_first_delivery() -> None:
    rows = (
        deliver(1, "alice", 5, Outcome.SUCCESS),
        acknowledge(3, "alice", 5),
        instant(5, Kind.CRASH, 100, broker="b0"),
        deliver(6, "bob", 5, Outcome.SUCCESS, times=1, at_ms=300),
    )
    assert tenures(*rows) == ["#1", "#1", "new #2", "#2"]


def test_where_clients_count_each_hand_out_begins_a_tenure() -> None:
    """What a member tries again stays in its tenure; what is there again with a count of 0 does not, done or not."""
    rows = (
        deliver(1, "a", 7, Outcome.SUSPEND),
        deliver(3, "a", 7, Outcome.SUCCESS, times=1),
        acknowledge(5, "a", 7),
        deliver(7, "a", 8, Outcome.SUSPEND),
        deliver(9, "b", 7, Outcome.SUCCESS),
        deliver(11, "b", 8, Outcome.SUCCESS),
    )
    told = [_short(row) for row in with_tenures(rows, LEASE_MS, counted=False)]
    assert told == ["#1", "#1", "#1", "#1", "new #2", "#2", "new #3", "#3"]


def test_what_is_given_up_belongs_to_its_delivery() -> None:
    """And is of the same client as the delivery."""
    rows = (
        deliver(1, "a", 7, Outcome.SUSPEND),
        _row(3, Kind.DEAD_LETTER, "a", 30, queue_offset=7, seq_end=3, outcome=Outcome.OK),
    )
    last = with_tenures(rows, LEASE_MS, counted=False)[-1]
    assert (_short(last), last.client_id) == ("#1", SERVER_CONSUMER)


def read(seq: int, message: str, place: int | None = None) -> Row:
    """Of the topic, at a place; without one, of the group's dead letters."""
    copy = {"topic": dead_letter_topic("billing"), "origin_id": message, "view": "orders"}
    more = {"group": None, "queue_offset": place} if place is not None else copy
    return instant(seq, Kind.READ, seq, message_id=message, **{**LANE, **more})


def letters(*rows: Row) -> list[tuple[str | None, int | None, Outcome]]:
    """(message, place, outcome) of each dead letter of a history that its server wrote."""
    made = with_letters(with_tenures(rows, LEASE_MS, counted=False))
    assert in_order(made)
    assert all(row.process == SERVER_CONSUMER for row in made if row.kind is Kind.DEAD_LETTER)
    return [
        (row.message_id, row.queue_offset, row.outcome)
        for row in made
        if row.kind is Kind.DEAD_LETTER
    ]


def test_what_was_given_up_and_nobody_told_is_shown_by_its_copy() -> None:
    """The member died before it told, or the server did it by itself."""
    call = deliver(1, "a", 7, Outcome.SUSPEND)._replace(message_id="m7")
    rows = (call, read(3, "m7", 7), read(4, "m7"))
    assert letters(*rows) == [("m7", 7, Outcome.OK)]
    assert with_letters(with_tenures(rows, LEASE_MS))[1].lane == call.lane
    assert letters(call, read(3, "m7", 7)) == []
    assert letters(call, read(3, "m7", 7), read(4, "m8")) == []


def test_what_nobody_was_called_for_stays_owed() -> None:
    """Dead letter or not."""
    sent = _row(1, Kind.SEND, "shop", 1, message_id="m7", queue_offset=7, seq_end=2)
    assert letters(sent, read(3, "m7", 7), read(4, "m7")) == []


def test_of_a_message_in_two_places_nobody_knows_where_it_was_given_up() -> None:
    """So neither is owed for certain."""
    call = deliver(1, "a", 7, None)._replace(message_id="m7")
    other = read(3, "m7", 9)._replace(queue_id=4)
    rows = (call, read(2, "m7", 7), other, read(4, "m7"))
    assert letters(*rows) == [("m7", 7, Outcome.UNKNOWN), ("m7", 9, Outcome.UNKNOWN)]


def test_what_a_member_gave_up_is_told_by_him_alone() -> None:
    """A second copy of it is for the clause that counts them."""
    call = deliver(1, "a", 7, Outcome.SUSPEND)._replace(message_id="m7")
    given_up = _row(
        3, Kind.DEAD_LETTER, SERVER_CONSUMER, 30, message_id="m7", seq_end=3, outcome=Outcome.OK
    )
    rows = (call, given_up, read(4, "m7", 7), read(5, "m7"), read(6, "m7"))
    assert len(letters(*rows)) == 1
