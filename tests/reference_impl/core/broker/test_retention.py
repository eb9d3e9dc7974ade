"""The oldest messages go: by age, by the use of the disk, on demand; and everybody is told the new beginning."""

from __future__ import annotations

from typing import Any

import pytest

from reference_impl.core.broker import BrokerStore
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.protocol.headers import GetMinOffsetHeader, SendBackHeader
from reference_impl.protocol.message import parse_offset_message_id
from specs.vocabulary import Kind
from tests.reference_impl.core.broker.conftest import BORN_MS, MakeWire, Wire

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


class FillingStore(BrokerStore):
    """A store in memory that says how full its disk is."""

    use: float | None = 0.0

    def disk_use(self) -> float | None:
        return self.use


def trims(wire: Wire) -> list[tuple[Any, ...]]:
    """Queue id, new minimum of every note so far."""
    return [
        (note.fields["queue_id"], note.fields["value"])
        for note in wire.notes
        if note.kind is Kind.TRIM
    ]


def send_each_hour(wire: Wire, hours: int) -> None:
    for hour in range(hours):
        wire.send(b"%d" % hour, queue_id=hour % 2)
        wire.pass_ms(HOUR_MS)


def test_what_is_older_than_it_is_kept_goes_from_every_queue(make_wire: MakeWire) -> None:
    wire = make_wire(keep_ms=3 * HOUR_MS)
    send_each_hour(wire, 6)
    # The fourth is exactly three hours old, which is old enough.
    assert [wire.store.queue("orders", queue_id).min_offset for queue_id in (0, 1)] == [2, 2]
    assert trims(wire)[-2:] == [(0, 2), (1, 2)]


def test_the_last_segment_stays_whatever_its_age(make_wire: MakeWire) -> None:
    wire = make_wire(keep_ms=HOUR_MS, clean_ms=60_000)
    send_each_hour(wire, 3)
    wire.pass_ms(DAY_MS)
    assert [len(wire.store.queue("orders", queue_id).messages) for queue_id in (0, 1)] == [1, 0]


def test_nothing_goes_without_a_time_to_keep(make_wire: MakeWire) -> None:
    wire = make_wire()
    send_each_hour(wire, 3)
    wire.pass_ms(DAY_MS)
    assert trims(wire) == []


def test_what_is_too_old_goes_in_the_hours_that_are_set(make_wire: MakeWire) -> None:
    hour = BORN_MS // HOUR_MS % 24
    wire = make_wire(keep_ms=HOUR_MS, delete_hours=((hour + 6) % 24,))
    send_each_hour(wire, 3)
    assert trims(wire) == []
    wire.pass_ms(4 * HOUR_MS)
    assert trims(wire) == [(0, 1), (1, 1)]


@pytest.mark.parametrize(
    ("use", "min_offset", "code"),
    [(0.75, 0, 0), (0.76, 1, 0), (0.85, 1, 0), (0.86, 2, 0), (0.90, 2, 0), (0.91, 2, 14)],
)
def test_a_disk_that_fills_up(make_wire: MakeWire, use: float, min_offset: int, code: int) -> None:
    """Above 75 % at any hour, above 85 % whatever the age; above 90 % nothing is taken."""
    store = FillingStore()
    never = ((BORN_MS // HOUR_MS - 1) % 24,)
    wire = make_wire(store=store, keep_ms=150 * 60_000, delete_hours=never, clean_ms=60_000)
    for _ in range(3):
        wire.send()
        wire.pass_ms(HOUR_MS)
    assert store.queue("orders", 0).min_offset == 0
    store.use = use
    wire.pass_ms(60_000)
    assert store.queue("orders", 0).min_offset == min_offset
    answer = wire.send()
    assert answer.code == code
    assert code == 0 or "disk is full" in (answer.remark or "")


def test_sends_are_taken_again_when_the_disk_has_come_down_to_the_lower_mark(
    make_wire: MakeWire,
) -> None:
    store = FillingStore()
    wire = make_wire(store=store, keep_ms=DAY_MS)
    codes = []
    for use in (0.91, 0.88, 0.85):
        store.use = use
        wire.pass_ms(10_000)
        codes.append(wire.send().code)
    assert codes == [ResponseCode.SERVICE_NOT_AVAILABLE, ResponseCode.SERVICE_NOT_AVAILABLE, 0]


def test_the_new_beginning_is_what_clients_hear(make_wire: MakeWire) -> None:
    wire = make_wire(keep_ms=150 * 60_000, clean_ms=60_000)
    send_each_hour(wire, 4)
    where = GetMinOffsetHeader("orders", 0)
    first = wire.store.queue("orders", 0).min_offset
    assert first == 1
    assert wire.call(RequestCode.GET_MIN_OFFSET, where).ext["offset"] == "1"
    asked = wire.call(RequestCode.GET_EARLIEST_MSG_STORETIME, where).ext["timestamp"]
    assert asked == str(wire.store.queue("orders", 0).messages[0].store_ms)
    answer = wire.pull(0)
    assert (answer.code, answer.ext["nextBeginOffset"]) == (ResponseCode.PULL_OFFSET_MOVED, "1")
    assert wire.fetch() == (ResponseCode.QUERY_NOT_FOUND, None)


def test_an_empty_queue_has_no_earliest_time(wire: Wire) -> None:
    answer = wire.call(RequestCode.GET_EARLIEST_MSG_STORETIME, GetMinOffsetHeader("orders", 0))
    assert answer.ext["timestamp"] == "-1"


def test_an_operator_has_it_done_now(make_wire: MakeWire) -> None:
    never = ((BORN_MS // HOUR_MS - 1) % 24,)
    wire = make_wire(keep_ms=HOUR_MS, delete_hours=never, clean_ms=60_000)
    send_each_hour(wire, 4)
    assert trims(wire) == []
    assert wire.call(RequestCode.DELETE_EXPIRED_COMMITLOG).code == 0
    assert trims(wire) == [(0, 2), (1, 1)]


def test_a_start_says_again_where_queues_begin(make_wire: MakeWire) -> None:
    """The crash may have come between the removal and the note of it."""
    wire = make_wire(keep_ms=HOUR_MS, clean_ms=60_000)
    send_each_hour(wire, 4)
    wire.notes.clear()
    wire.boot()
    assert trims(wire) == [(0, 2), (1, 1)]


def test_a_delayed_message_that_went_holds_back_no_other(make_wire: MakeWire) -> None:
    """Nobody gets it, and the next one of its level comes in time."""
    wire = make_wire(keep_ms=HOUR_MS, delay_levels="3h", clean_ms=60_000)
    wire.send(b"gone", properties={"DELAY": "1"})
    wire.pass_ms(HOUR_MS - 60_000)
    wire.send(b"kept", properties={"DELAY": "1"})
    wire.pass_ms(60_000)
    assert wire.store.delayed_done == {1: 1}
    wire.pass_ms(3 * HOUR_MS)
    assert [message.body for message in wire.store.queue("orders", 0).messages] == [b"kept"]


def test_a_copy_tells_its_origin_though_that_is_gone(make_wire: MakeWire) -> None:
    """A message that was returned names its source by the place in the log; it has the same unique key."""
    wire = make_wire(delay_levels="5s", clean_ms=60_000)
    stored = wire.send(properties={"UNIQ_KEY": "m1"})
    wire.send()
    header = SendBackHeader(
        parse_offset_message_id(stored.ext["msgId"])[1], "billing", 1, origin_topic="orders"
    )
    assert wire.call(RequestCode.CONSUMER_SEND_MSG_BACK, header).code == 0
    wire.broker.retention.remove(wire.now_ms, [])
    wire.pass_ms(5_000)
    (copy,) = [
        note
        for note in wire.notes
        if note.fields.get("topic") == "%RETRY%billing" and note.kind is Kind.APPEND
    ]
    assert (copy.fields["message_id"], copy.fields["origin_id"]) == ("m1", "m1")
