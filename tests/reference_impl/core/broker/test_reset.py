"""An operator moves a group's offset: by offset, by time, of a whole topic; and when the group hears of it."""

from __future__ import annotations

from typing import Any

import pytest

from reference_impl.protocol.bodies import decode_reset_offsets, encode_reset_offsets
from reference_impl.protocol.codes import RequestCode
from reference_impl.protocol.command import FLAG_ONEWAY
from reference_impl.protocol.errors import ProtocolError
from specs.vocabulary import Queue


def test_a_reset_of_all_queues_to_a_time_or_to_the_end(wire: Any) -> None:
    wire.join("alice", "c1")
    wire.send()
    wire.pass_ms(1_000)
    wire.send()
    wire.send(queue_id=1)
    for timestamp, first, second in ((wire.now_ms, 1, 0), (-1, 2, 1)):
        moved = decode_reset_offsets(wire.reset(None, timestamp=timestamp).body)
        assert [moved[Queue("orders", "b0", number)] for number in range(4)] == [
            first,
            second,
            0,
            0,
        ]
        assert wire.fetch() == (0, first)
        assert wire.fetch(queue_id=1) == (0, second)


def test_a_parked_pull_hears_of_a_reset_when_its_time_is_up(wire: Any) -> None:
    wire.join("alice", "c1")
    wire.send()
    opaque = wire.park(1, wait_ms=1_000)
    assert wire.reset(0, queue_id=0).code == 0
    assert opaque not in wire.answers
    wire.pass_ms(1_000)
    assert (wire.answers[opaque].code, wire.answers[opaque].ext["nextBeginOffset"]) == (21, "0")
    assert wire.pull(0).code == 0  # it was told once


def test_a_parked_pull_hears_of_a_reset_when_a_message_comes(wire: Any) -> None:
    wire.join("alice", "c1")
    wire.send()
    opaque = wire.park(1, wait_ms=1_000)
    wire.reset(0, queue_id=0)
    wire.send()
    assert (wire.answers[opaque].code, wire.answers[opaque].ext["nextBeginOffset"]) == (21, "0")


def test_a_reset_does_not_outlive_the_broker(wire: Any) -> None:
    """Its value does once it was written."""
    wire.join("alice", "c1")
    wire.send()
    wire.commit(1)
    wire.pass_ms(10_000)
    wire.reset(0, queue_id=0)
    wire.pass_ms(5_000)
    wire.boot()
    wire.join("alice", "c1")
    assert wire.fetch() == (0, 0)
    assert wire.pull(1).code == 19
    wire.commit(1)
    assert wire.fetch() == (0, 1)


def told(wire: Any) -> list[tuple[Any, dict[Queue, int]]]:
    """Who was told since the last look, and what."""
    seen = [
        each for each in wire.pushed if each[1].code == RequestCode.RESET_CONSUMER_CLIENT_OFFSET
    ]
    assert all(command.flag & FLAG_ONEWAY for _, command in seen)
    assert all(
        (command.ext["topic"], command.ext["group"]) == ("orders", "billing") for _, command in seen
    )
    wire.pushed.clear()
    return [(conn, decode_reset_offsets(command.body)) for conn, command in seen]


@pytest.mark.parametrize(
    ("timestamp", "force", "first", "second"),
    [(0, False, 0, 0), (0, True, 0, 0), (-1, False, 1, 0), (-1, True, 2, 1)],
)
def test_4_9_leaves_resets_to_the_clients(
    make_wire: Any, timestamp: int, force: bool, first: int, second: int
) -> None:
    """Every member is told of all queues, ahead only by force; nothing is stored, and no commit is held off."""
    wire = make_wire(dialect="4.9")
    wire.join("alice", "c1")
    wire.join("bob", "c2")
    wire.send()
    wire.send()
    wire.send(queue_id=1)
    wire.commit(1)
    for queue_id in (1, 2, 3):
        wire.commit(0, queue_id=queue_id)
    wire.pushed.clear()
    answer = wire.reset(None, timestamp=timestamp, is_force=force)
    wanted = {Queue("orders", "b0", number): (first, second, 0, 0)[number] for number in range(4)}
    assert (answer.code, decode_reset_offsets(answer.body)) == (0, wanted)
    assert told(wire) == [("c1", wanted), ("c2", wanted)]
    assert wire.fetch() == (0, 1)
    assert wire.commit(2).code == 0
    assert wire.fetch() == (0, 2)
    assert wire.pull(2).code == 19


def test_4_9_needs_the_topic_an_offset_of_every_queue_and_a_member(make_wire: Any) -> None:
    wire = make_wire(dialect="4.9")
    wire.send()
    assert wire.reset(None, timestamp=0, topic="nowhere").code == 1
    for queue_id in range(4):
        assert wire.reset(None, timestamp=0).code == 1
        wire.commit(0, queue_id=queue_id)
    assert wire.reset(None, timestamp=0).code == 206
    wire.join("alice", "c1")
    assert wire.reset(None, timestamp=0).code == 0
    wire.close("c1")
    assert wire.reset(None, timestamp=0).code == 206


def test_4_9_tells_a_broadcasting_group_too(make_wire: Any) -> None:
    """Unlike a change of the group."""
    wire = make_wire(dialect="4.9")
    wire.join("alice", "c1", message_model="BROADCASTING")
    for queue_id in range(4):
        wire.commit(0, queue_id=queue_id)
    assert wire.reset(None, timestamp=0).code == 0
    assert [conn for conn, _ in told(wire)] == ["c1"]


def test_tables_by_queue_are_read_as_apache_writes_them() -> None:
    first, second = (
        b'{"brokerName":"b0","queueId":1,"topic":"orders"}',
        b'{"topic":"t","queueId":0,"brokerName":"b"}',
    )
    body = b'{"offsetTable":{%s:5,%s:0}}' % (first, second)
    found = decode_reset_offsets(body)
    assert found == {Queue("orders", "b0", 1): 5, Queue("t", "b", 0): 0}
    assert decode_reset_offsets(encode_reset_offsets(found)) == found
    assert decode_reset_offsets(b"") == {}


@pytest.mark.parametrize(
    "body", [b"\xff", b'{"offsetTable":{{"queueId":1}:5}}', b'{"offsetTable":{{"topic":1}:{}}}']
)
def test_tables_that_can_not_be_read(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_reset_offsets(body)
