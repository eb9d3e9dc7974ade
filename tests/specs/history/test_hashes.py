"""The hash of the application's own properties: the same for whoever records it, in whatever order they come."""

from __future__ import annotations

import zlib

from reference_impl.protocol.message import own_properties
from specs.history.hashes import props_hash


def test_order_means_nothing_and_everything_else_does() -> None:
    """A lost one, another value, another name; and a value that moves to its neighbour."""
    assert props_hash({}) == 0
    assert props_hash({"b": "2", "a": "1"}) == zlib.crc32(b"a\x011\x02b\x012\x02")
    sent = {"shop": "7", "till": "12"}
    others = ({"shop": "7"}, {**sent, "till": "2"}, {"shop": "7", "tills": "12"})
    for other in (*others, {"shop": "71", "till": "2"}, {**sent, "more": ""}):
        assert props_hash(other) != props_hash(sent)


def test_what_the_protocol_adds_on_the_way_is_not_the_application_s() -> None:
    """Brokers and clients of all versions have names in capitals, or with a low line before them."""
    theirs = {
        "UNIQ_KEY": "m1",
        "__SHARDINGKEY": "k",
        "CLUSTER": "c",
        "1ST_RETRY": "x",
        "_CREATE": "y",
    }
    assert own_properties({**theirs, "shop": "7", "Shop": "8"}) == {"shop": "7", "Shop": "8"}
