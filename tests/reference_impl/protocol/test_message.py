"""Stored messages survive the round trip; hostile bytes end in one clear error."""

from __future__ import annotations

import contextlib
import struct
import zlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_impl.protocol import message as m
from reference_impl.protocol.errors import ProtocolError
from reference_impl.protocol.message import StoredMessage, decode_all, encode

int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
text = st.text(st.characters(codec="utf-8", exclude_characters="\x01\x02"), max_size=20)
hosts = st.builds(
    lambda ip, port: f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}",
    st.ip_addresses().map(str),
    st.integers(0, 65535),
)
messages = st.builds(
    StoredMessage,
    topic=text | st.text("t", min_size=120, max_size=140),
    queue_id=int32,
    queue_offset=int64,
    physical_offset=int64,
    body=st.binary(max_size=100),
    properties=st.dictionaries(text, text, max_size=4),
    flag=int32,
    sys_flag=st.sampled_from([0, m.SYS_MULTI_TAGS, m.SYS_PREPARED, m.SYS_COMMIT]),
    born_ms=int64,
    born_host=hosts,
    store_ms=int64,
    store_host=hosts,
    reconsume_times=int32,
    prepared_transaction_offset=int64,
)
AN_ORDER = StoredMessage(
    topic="orders",
    queue_id=3,
    queue_offset=17,
    physical_offset=4242,
    body=b"pay 5",
    properties={
        "UNIQ_KEY": "7F01",
        "__SHARDINGKEY": "k1",
        "TAGS": "paid",
        "ORIGIN_MESSAGE_ID": "7F00",
    },
    born_ms=1_700_000_000_000,
    born_host="127.0.0.1:40000",
    store_ms=1_700_000_000_001,
    store_host="127.0.0.1:10911",
)


@given(st.lists(messages, max_size=4))
def test_messages_survive_the_round_trip(stored: list[StoredMessage]) -> None:
    assert decode_all(b"".join(map(encode, stored))) == stored


def test_the_named_properties() -> None:
    assert AN_ORDER.message_id == "7F01"
    assert AN_ORDER.origin_id == "7F00"
    assert AN_ORDER.sharding_key == "k1"
    assert AN_ORDER.tags == "paid"
    assert replace(AN_ORDER, properties={}).message_id is None


def test_the_first_fields_and_the_fixed_size() -> None:
    """The layout's head, written out by hand: 91 bytes besides topic, body and properties."""
    assert encode(AN_ORDER)[:20] == struct.pack(
        ">iiiii", len(encode(AN_ORDER)), -626843481, zlib.crc32(b"pay 5") & 0x7FFFFFFF, 3, 0
    )
    assert len(encode(replace(AN_ORDER, properties={}))) == 91 + len("orders") + len(b"pay 5")


@given(st.binary(max_size=300))
def test_random_bytes_never_crash(data: bytes) -> None:
    try:
        decode_all(data)
    except ProtocolError:
        return
    assert data == b""


@given(messages, st.data())
def test_a_changed_byte_or_a_cut_never_crashes(message: StoredMessage, data: st.DataObject) -> None:
    record = bytearray(encode(message))
    record[data.draw(st.integers(0, len(record) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(1, len(record)))
    with contextlib.suppress(ProtocolError):
        decode_all(bytes(record[:cut]))


@pytest.mark.parametrize(
    ("at", "form", "value", "why"),
    [
        (0, ">i", 2**31 - 1, "has length"),
        (0, ">i", -5, "has length"),
        (0, ">i", 0, "has length"),
        (4, ">i", 1234, "unknown magic"),
        (8, ">i", 1, "does not match its CRC"),
        (84, ">i", 2**31 - 1, "body length"),
        (84, ">i", -1, "body length"),
        (93, ">B", 255, "topic length"),
        (100, ">h", -1, "properties length"),
        (100, ">h", 32767, "properties length"),
    ],
)
def test_absurd_fields_are_named(at: int, form: str, value: int, why: str) -> None:
    record = bytearray(encode(AN_ORDER))
    struct.pack_into(form, record, at, value)
    with pytest.raises(ProtocolError, match=why):
        decode_all(bytes(record))


def test_compressed_bodies_are_inflated_unless_asked_not_to() -> None:
    packed = replace(AN_ORDER, body=zlib.compress(AN_ORDER.body), sys_flag=m.SYS_COMPRESSED)
    assert decode_all(encode(packed)) == [AN_ORDER]
    assert decode_all(encode(packed), inflate=False) == [packed]


@pytest.mark.parametrize(
    ("body", "sys_flag", "why"),
    [
        (b"no zlib", m.SYS_COMPRESSED, "can't be read"),
        (zlib.compress(b"abc")[:-2], m.SYS_COMPRESSED, "is cut"),
        (zlib.compress(bytes(m.MAX_INFLATED_BYTES + 1)), m.SYS_COMPRESSED, "larger than 64 MiB"),
        (b"x", m.SYS_COMPRESSED | 0x200, "compressed by type 2"),
    ],
)
def test_bad_compression_is_refused(body: bytes, sys_flag: int, why: str) -> None:
    with pytest.raises(ProtocolError, match=why):
        decode_all(encode(replace(AN_ORDER, body=body, sys_flag=sys_flag)))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"queue_id": 2**31}, "does not fit"),
        ({"properties": {"a": "x" * 32767}}, "properties take"),
        ({"properties": {"a\x01": "x"}}, "separators"),
        ({"born_host": "alice"}, "not an address"),
        ({"born_host": "127.0.0.1:99999"}, "port outside"),
        ({"topic": "\ud800"}, "surrogate"),
    ],
)
def test_what_can_not_be_written_is_refused(change: dict[str, object], why: str) -> None:
    with pytest.raises(ProtocolError, match=why):
        encode(replace(AN_ORDER, **change))  # type: ignore[arg-type]


def test_names_of_simulated_nodes_become_the_empty_address() -> None:
    assert m.ip_port("alice") == "0.0.0.0:0"
    assert m.ip_port("10.0.0.1:9") == "10.0.0.1:9"


@given(hosts, st.integers(0, 2**63 - 1))
def test_offset_message_ids_survive_the_round_trip(host: str, offset: int) -> None:
    message_id = m.offset_message_id(host, offset)
    assert m.parse_offset_message_id(message_id) == (m.host_text(m.host_bytes(host)), offset)
    assert len(message_id) in (32, 56)


def test_an_offset_message_id_written_out() -> None:
    assert m.offset_message_id("127.0.0.1:10911", 4242) == "7F00000100002A9F0000000000001092"
    with pytest.raises(ProtocolError, match="not hexadecimal"):
        m.parse_offset_message_id("hello")
    with pytest.raises(ProtocolError, match="wrong length"):
        m.parse_offset_message_id("00")


@given(
    st.lists(
        st.builds(
            m.BatchPart, st.binary(max_size=50), st.dictionaries(text, text, max_size=3), int32
        )
    )
)
def test_batches_survive_the_round_trip(parts: list[m.BatchPart]) -> None:
    assert m.decode_batch(m.encode_batch(parts)) == parts


@given(st.binary(max_size=200))
def test_random_batches_never_crash(data: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        m.decode_batch(data)


def test_property_pieces_without_a_separator_are_skipped() -> None:
    assert m.unpack_properties("a\x01b\x02junk\x02c\x01\x02") == {"a": "b", "c": ""}
