"""Header fields by their wire names; a missing or malformed one is a ProtocolError."""

from __future__ import annotations

import contextlib
import inspect
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_impl.protocol import headers as h
from reference_impl.protocol.errors import ProtocolError

HEADERS = [
    item
    for _, item in inspect.getmembers(h, inspect.isclass)
    if issubclass(item, h.Header) and item is not h.Header
]
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "Int32": st.integers(-(2**31), 2**31 - 1),
    "Int64": st.integers(-(2**63), 2**63 - 1),
    "bool": st.booleans(),
    "str": st.text(max_size=10),
}


@st.composite
def filled_headers(draw: st.DrawFn) -> h.Header:
    kind = draw(st.sampled_from(HEADERS))
    values = {}
    for item in fields(kind):
        name = str(item.type)
        value = VALUES[name.removesuffix(" | None")]
        values[item.name] = draw(st.none() | value if name.endswith("None") else value)
    return kind(**values)


@given(filled_headers())
def test_headers_survive_the_round_trip(header: h.Header) -> None:
    ext = header.to_ext()
    assert all(isinstance(value, str) for value in ext.values())
    assert type(header).from_ext(ext) == header
    if isinstance(header, h.SendHeader):
        assert h.SendHeader.from_ext_v2(header.to_ext_v2()) == header


@given(st.sampled_from(HEADERS), st.data())
def test_hostile_fields_are_a_protocol_error(kind: type[h.Header], data: st.DataObject) -> None:
    names = [
        name for item in fields(kind) for name in (item.metadata.get("wire", h._camel(item.name)),)
    ]
    values = st.text(max_size=5) | st.sampled_from(
        ["1_0", "٣", " 1", "", "-", "9" * 30, "1e3", "0x1", "+5"]
    )
    ext = data.draw(st.dictionaries(st.sampled_from(names), values))
    with contextlib.suppress(ProtocolError):
        kind.from_ext(ext)


@pytest.mark.parametrize(
    "word", ["1_0", "٣", " 1", "", "-", "2147483648", "-2147483649", "9" * 5000, "1.0"]
)
def test_numbers_are_read_as_java_reads_them(word: str) -> None:
    with pytest.raises(ProtocolError, match="queueId"):
        h.parse_int(word, "queueId", 32)


@pytest.mark.parametrize(
    ("word", "number"), [("-2147483648", -(2**31)), ("+5", 5), ("007", 7), ("-0", 0)]
)
def test_numbers_that_java_takes(word: str, number: int) -> None:
    assert h.parse_int(word, "queueId", 32) == number


def test_the_letters_of_the_short_send_header() -> None:
    header = h.SendHeader(
        producer_group="P",
        topic="T",
        queue_id=2,
        born_timestamp=5,
        properties="i",
        reconsume_times=1,
        max_reconsume_times=3,
        broker_name="b0",
    )
    assert header.to_ext_v2() == {
        "a": "P", "b": "T", "c": "TBW102", "d": "4", "e": "2", "f": "0", "g": "5", "h": "0", "i": "i",
        "j": "1", "k": "false", "l": "3", "m": "false", "n": "b0",
    }  # fmt: skip
    assert h.SendHeader.from_ext(header.to_ext()) == header
    with pytest.raises(ProtocolError, match=r"b \(topic\) is missing"):
        h.SendHeader.from_ext_v2({"a": "P"})


def test_irregular_names() -> None:
    assert h.UnregisterClientHeader("c", consumer_group="G").to_ext() == {
        "clientID": "c",
        "consumerGroup": "G",
    }
    assert h.OffsetResponse(7).to_ext() == {"offset": "7"}
    assert "bodyCrc32" in h.RegisterBrokerHeader("b", "a", "c", 0, body_crc32=1).to_ext()
    with pytest.raises(ProtocolError, match="consumerGroup is missing"):
        h.PullHeader.from_ext({})
