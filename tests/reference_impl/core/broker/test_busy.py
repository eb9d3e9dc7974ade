"""Too much at once: what waits is bounded, and what would be more is refused with the protocol's own words."""

from __future__ import annotations

from typing import Any

from reference_impl.core.broker import BrokerStore
from reference_impl.core.broker.log import FlushMode
from reference_impl.core.io import Flushed
from reference_impl.protocol.codes import ResponseCode
from reference_impl.protocol.headers import SendHeader
from tests.reference_impl.core.broker.conftest import BORN_MS, MakeWire, Wire

OVERLOAD = "[OVERLOAD]system busy, start flow control for a while"
REJECTED = "[REJECTREQUEST]system busy, start flow control for a while"


class SlowStore(BrokerStore):
    """A store in memory whose sends wait for a sync that the test ends."""

    def __init__(self) -> None:
        super().__init__()
        self.flush = FlushMode.SYNC

    def synced_to(self, end: int) -> None:
        self.synced = max(self.synced, end)


def slow(make_wire: MakeWire, **config: Any) -> Wire:
    wire = make_wire(store=SlowStore(), **config)
    sync(wire)
    return wire


def sync(wire: Wire) -> None:
    wire.feed(Flushed(wire.store.end))


def send(wire: Wire) -> int:
    """The opaque of a send; its answer may wait."""
    return wire.ask(310, SendHeader("P", "orders", 0, BORN_MS).to_ext_v2(), b"m")


def test_no_more_sends_wait_for_their_sync_than_may(make_wire: MakeWire) -> None:
    wire = slow(make_wire, waiting_sends_max=2)
    waiting = [send(wire), send(wire)]
    refused = wire.answers[send(wire)]
    assert (refused.code, refused.remark) == (ResponseCode.SYSTEM_BUSY, OVERLOAD)
    # It is not among those that wait, and nothing of it is stored.
    assert wire.store.queue("orders", 0).max_offset == 2
    assert all(opaque not in wire.answers for opaque in waiting)
    sync(wire)
    assert [wire.answers[opaque].code for opaque in waiting] == [0, 0]
    last = send(wire)
    sync(wire)
    assert wire.answers[last].code == 0


def test_while_the_disk_stands_still_no_send_is_taken(make_wire: MakeWire) -> None:
    wire = slow(make_wire, stalled_ms=1_000)
    first = send(wire)
    wire.now_ms += 1_000
    second = send(wire)
    wire.now_ms += 1
    refused = wire.answers[send(wire)]
    assert (refused.code, refused.remark) == (ResponseCode.SYSTEM_BUSY, REJECTED)
    sync(wire)
    assert [wire.answers[opaque].code for opaque in (first, second)] == [0, 0]
    assert wire.store.queue("orders", 0).max_offset == 2


def test_no_more_pulls_wait_for_a_message_than_may(make_wire: MakeWire) -> None:
    """A refused one changes nothing; and room is made by an answer, by time, and by who goes."""
    wire = make_wire(parked_pulls_max=2)
    first, second = wire.park(0), wire.park(0, conn="c2")
    refused = wire.answers[wire.park(0)]
    assert (refused.code, refused.remark) == (ResponseCode.SYSTEM_BUSY, OVERLOAD)
    wire.send()
    assert [wire.answers[opaque].code for opaque in (first, second)] == [0, 0]
    wire.park(1, wait_ms=500)
    wire.park(1, conn="c2")
    assert wire.park(1) in wire.answers
    wire.pass_ms(500)
    third = wire.park(1)
    assert third not in wire.answers
    wire.close("c2")
    assert wire.park(1, conn="c3") not in wire.answers


def test_a_pull_that_would_not_wait_is_answered_all_the_same(make_wire: MakeWire) -> None:
    wire = make_wire(parked_pulls_max=0)
    assert wire.pull(0).code == ResponseCode.PULL_NOT_FOUND


def test_what_a_refused_pull_carries_is_refused_too(make_wire: MakeWire) -> None:
    wire = make_wire(parked_pulls_max=0)
    wire.send()
    answer = wire.pull(0, sys_flag=7, commit_offset=1, suspend_timeout_millis=1_000)
    assert (answer.code, wire.fetch()) == (ResponseCode.SYSTEM_BUSY, (0, 0))
