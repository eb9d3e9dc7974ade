"""The store: dense offsets, and every result of a read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_impl.core.broker.log import BrokerStore, Draft, Read
from reference_impl.protocol.bodies import java_hash
from reference_impl.protocol.message import decode_all

HOST = "127.0.0.1:10911"


def store_with(count: int, *, trimmed: int = 0, tag: str | None = None) -> BrokerStore:
    store = BrokerStore()
    for number in range(count):
        properties = {} if tag is None else {"TAGS": tag}
        store.append(Draft("orders", 0, b"m%d" % number, properties), 1_000 + 10 * number, HOST)
    store.trim("orders", 0, trimmed)
    return store


@pytest.mark.parametrize(
    ("count", "trimmed", "offset", "status", "next_offset"),
    [
        (0, 0, 0, Read.EMPTY, 0),
        (0, 0, 3, Read.EMPTY_BEYOND, 0),
        (5, 0, 0, Read.FOUND, 5),
        (5, 0, 4, Read.FOUND, 5),
        (5, 0, 5, Read.AT_END, 5),
        (5, 0, 6, Read.BEYOND_END, 5),
        (5, 0, -1, Read.BELOW_START, 0),
        (5, 2, 1, Read.BELOW_START, 2),
        (5, 2, 2, Read.FOUND, 5),
        (5, 5, 5, Read.AT_END, 5),  # everything was forgotten, but the queue goes on
        (5, 5, 0, Read.BELOW_START, 5),
    ],
)
def test_what_a_read_meets(
    count: int, trimmed: int, offset: int, status: Read, next_offset: int
) -> None:
    result = store_with(count, trimmed=trimmed).read("orders", 0, offset, 32, 1 << 20)
    assert (result.status, result.next_offset) == (status, next_offset)
    assert [message.queue_offset for message in decode_all(result.body)] == list(
        range(offset, next_offset) if status is Read.FOUND else []
    )


def test_a_read_stops_at_its_limits() -> None:
    """By count, by bytes (but never below one message)."""
    store = store_with(5)
    assert store.read("orders", 0, 0, 2, 1 << 20).next_offset == 2
    assert store.read("orders", 0, 0, 32, 1).next_offset == 1


def test_a_filter_moves_the_offset_over_what_it_leaves_out() -> None:
    store = store_with(3, tag="other")
    store.append(Draft("orders", 0, b"m", {"TAGS": "mine"}), 2_000, HOST)
    wanted = frozenset({java_hash("mine")}).__contains__
    found = store.read("orders", 0, 0, 32, 1 << 20, wanted)
    assert (found.status, found.next_offset, found.count) == (Read.FOUND, 4, 1)
    none = store.read("orders", 0, 0, 32, 1 << 20, frozenset({1}).__contains__)
    assert (none.status, none.next_offset) == (Read.NO_MATCH, 4)


@pytest.mark.parametrize(
    ("store_ms", "first", "last"),
    [(0, 0, 0), (1_000, 0, 0), (1_001, 1, 0), (1_020, 2, 2), (9_999, 3, 2)],
)
def test_search_by_time(store_ms: int, first: int, last: int) -> None:
    """The first message not before the time, or the last one not after it."""
    store = store_with(3)
    assert store.search("orders", 0, store_ms) == first
    assert store.search("orders", 0, store_ms, upper=True) == last


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(0, 2), st.binary(max_size=20)), max_size=40
    )
)
def test_offsets_are_dense_and_every_message_is_found_again(
    appended: list[tuple[str, int, bytes]],
) -> None:
    """Per queue 0, 1, 2 … in the order of appending; in the log each message begins where the last one ends."""
    store = BrokerStore()
    kept = [
        store.append(Draft(topic, queue_id, body, {}), 5, HOST)
        for topic, queue_id, body in appended
    ]
    for (topic, queue_id), queue in store.queues().items():
        mine = [
            message for message in kept if (message.topic, message.queue_id) == (topic, queue_id)
        ]
        assert [message.queue_offset for message in mine] == list(range(len(mine)))
        assert decode_all(store.read(topic, queue_id, 0, 100, 1 << 20).body) == mine
        assert queue.max_offset == len(mine)
    places = [message.physical_offset for message in kept]
    assert places == sorted(set(places))
    assert [store.at(place) for place in places] == kept
