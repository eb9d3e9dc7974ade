"""The header fields of each request and answer, typed.

A header is a frozen dataclass; `to_ext()` gives the strings of the wire and `from_ext()` reads them. The wire
name is the field's name in camel case unless its metadata say otherwise; a field that is None is not sent; a
field with a default may be missing. Fields of newer or older releases that we don't know are ignored.

A missing or malformed field raises ProtocolError. Names and types: the `*RequestHeader` and `*ResponseHeader`
classes of apache/rocketmq.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, Self, TypeAlias

from reference_impl.protocol.errors import ProtocolError
from reference_impl.protocol.message import unpack_properties

Int32: TypeAlias = int
Int64: TypeAlias = int

PERM_READ = 4
PERM_WRITE = 2
PERM_INHERIT = 1
PERM_READ_WRITE = PERM_READ | PERM_WRITE

PULL_COMMIT = 1
PULL_SUSPEND = 2
PULL_SUBSCRIPTION = 4
PULL_CLASS_FILTER = 8
PULL_LITE = 16

DEFAULT_TOPIC = "TBW102"
"""The topic whose queue number a new topic inherits."""


def parse_int(text: str, name: str, bits: int) -> int:
    """A decimal number of at most `bits` bits, as Java's parser would take it; else ProtocolError."""
    digits = text[1:] if text[:1] in ("-", "+") else text
    if digits.isascii() and digits.isdigit() and len(digits) <= 19:
        number = int(text)
        if -(1 << (bits - 1)) <= number < 1 << (bits - 1):
            return number
    raise ProtocolError(
        f"The header field {name} is {text[:40]!r}, not a whole number of {bits} bits."
    )


def _int32(text: str, name: str) -> int:
    if (
        len(text) <= 9 and text.isascii() and text.isdigit()
    ):  # as most are, and so few digits always fit
        return int(text)
    return parse_int(text, name, 32)


def _int64(text: str, name: str) -> int:
    if len(text) <= 18 and text.isascii() and text.isdigit():
        return int(text)
    return parse_int(text, name, 64)


def _bool(text: str, name: str) -> bool:
    return text.lower() == "true"  # Java's Boolean.parseBoolean: everything else is false


def _str(text: str, name: str) -> str:
    return text


_READERS: dict[str, Callable[[str, str], Any]] = {
    "Int32": _int32,
    "Int64": _int64,
    "bool": _bool,
    "str": _str,
}


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    wire: str
    short: str
    read: Callable[[str, str], Any]
    is_bool: bool
    required: bool


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


_PLANS: dict[type[Header], tuple[_Column, ...]] = {}


def _columns(header: type[Header]) -> tuple[_Column, ...]:
    plan = _PLANS.get(header)
    return plan if plan is not None else _make_plan(header)


def _make_plan(header: type[Header]) -> tuple[_Column, ...]:
    columns = []
    for item in fields(header):
        kind = str(item.type).removesuffix(" | None")
        wire = item.metadata.get("wire", _camel(item.name))
        columns.append(
            _Column(
                item.name,
                wire,
                item.metadata.get("short", wire),
                _READERS[kind],
                kind == "bool",
                item.default is MISSING and item.default_factory is MISSING,
            )
        )
    _PLANS[header] = tuple(columns)
    return _PLANS[header]


def _wire(name: str) -> dict[str, str]:
    return {"wire": name}


def _short(letter: str) -> dict[str, str]:
    return {"short": letter}


@dataclass(frozen=True, slots=True)
class Header:
    """Base of all headers: the two directions of the table above."""

    def to_ext(self) -> dict[str, str]:
        ext: dict[str, str] = {}
        for column in _columns(type(self)):
            value = getattr(self, column.name)
            if value is not None:
                ext[column.wire] = ("true" if value else "false") if column.is_bool else str(value)
        return ext

    @classmethod
    def from_ext(cls, ext: Mapping[str, str]) -> Self:
        values: dict[str, Any] = {}
        for column in _columns(cls):
            text = ext.get(column.wire)
            if text is not None:
                values[column.name] = column.read(text, column.wire)
            elif column.required:
                raise ProtocolError(f"The header field {column.wire} is missing.")
        return cls(**values)


# ---------------------------------------------------------------- send


@dataclass(frozen=True, slots=True)
class SendHeader(Header):
    """SEND_MESSAGE (10) by full names, SEND_MESSAGE_V2 (310) and SEND_BATCH_MESSAGE (320) by letters.

    properties: the packed string. queue_id: below 0 lets the broker choose. reconsume_times and
    max_reconsume_times matter when the topic is a retry topic.
    """

    producer_group: str = field(metadata=_short("a"))
    topic: str = field(metadata=_short("b"))
    queue_id: Int32 = field(metadata=_short("e"))
    born_timestamp: Int64 = field(metadata=_short("g"))
    default_topic: str = field(default=DEFAULT_TOPIC, metadata=_short("c"))
    default_topic_queue_nums: Int32 = field(default=4, metadata=_short("d"))
    sys_flag: Int32 = field(default=0, metadata=_short("f"))
    flag: Int32 = field(default=0, metadata=_short("h"))
    properties: str | None = field(default=None, metadata=_short("i"))
    reconsume_times: Int32 | None = field(default=None, metadata=_short("j"))
    unit_mode: bool = field(default=False, metadata=_short("k"))
    max_reconsume_times: Int32 | None = field(default=None, metadata=_short("l"))
    batch: bool = field(default=False, metadata=_short("m"))
    broker_name: str | None = field(default=None, metadata={"wire": "bname", "short": "n"})

    @property
    def property_map(self) -> dict[str, str]:
        return unpack_properties(self.properties or "")

    def to_ext_v2(self) -> dict[str, str]:
        """As `to_ext`, by letters."""
        ext: dict[str, str] = {}
        for column in _columns(SendHeader):
            value = getattr(self, column.name)
            if value is not None:
                ext[column.short] = ("true" if value else "false") if column.is_bool else str(value)
        return ext

    @classmethod
    def from_ext_v2(cls, ext: Mapping[str, str]) -> Self:
        """As `from_ext`, by letters."""
        values: dict[str, Any] = {}
        for column in _columns(cls):
            text = ext.get(column.short)
            if text is not None:
                values[column.name] = column.read(text, column.short)
            elif column.required:
                raise ProtocolError(f"The header field {column.short} ({column.wire}) is missing.")
        return cls(**values)


@dataclass(frozen=True, slots=True)
class SendResponse(Header):
    """msg_id: the broker's offset message id."""

    msg_id: str
    queue_id: Int32
    queue_offset: Int64
    transaction_id: str | None = None
    batch_uniq_id: str | None = None


@dataclass(frozen=True, slots=True)
class SendBackHeader(Header):
    """CONSUMER_SEND_MSG_BACK (36). offset: the message's place in the commit log. delay_level: below 0 means
    the dead letters at once, 0 lets the broker choose."""

    offset: Int64
    group: str
    delay_level: Int32
    origin_msg_id: str | None = None
    origin_topic: str | None = None
    unit_mode: bool = False
    max_reconsume_times: Int32 | None = None


# ---------------------------------------------------------------- pull and offsets


@dataclass(frozen=True, slots=True)
class PullHeader(Header):
    """PULL_MESSAGE (11). sys_flag: PULL_COMMIT, PULL_SUSPEND, PULL_SUBSCRIPTION, ... or-ed."""

    consumer_group: str
    topic: str
    queue_id: Int32
    queue_offset: Int64
    max_msg_nums: Int32 = 32
    sys_flag: Int32 = 0
    commit_offset: Int64 = 0
    suspend_timeout_millis: Int64 = 0
    subscription: str | None = None
    sub_version: Int64 = 0
    expression_type: str | None = None
    max_msg_bytes: Int32 | None = None
    broker_name: str | None = field(default=None, metadata=_wire("bname"))


@dataclass(frozen=True, slots=True)
class PullResponse(Header):
    suggest_which_broker_id: Int64
    next_begin_offset: Int64
    min_offset: Int64
    max_offset: Int64
    offset_delta: Int64 | None = None
    topic_sys_flag: Int32 | None = None
    group_sys_flag: Int32 | None = None
    forbidden_type: Int32 | None = None


@dataclass(frozen=True, slots=True)
class QueryConsumerOffsetHeader(Header):
    """QUERY_CONSUMER_OFFSET (14). set_zero_if_not_found: None is as true, false asks for the plain truth."""

    consumer_group: str
    topic: str
    queue_id: Int32
    set_zero_if_not_found: bool | None = None
    broker_name: str | None = field(default=None, metadata=_wire("bname"))


@dataclass(frozen=True, slots=True)
class UpdateConsumerOffsetHeader(Header):
    """UPDATE_CONSUMER_OFFSET (15). queue_id, commit_offset: when missing, 5.x answers INVALID_PARAMETER."""

    consumer_group: str
    topic: str
    queue_id: Int32 | None = None
    commit_offset: Int64 | None = None
    broker_name: str | None = field(default=None, metadata=_wire("bname"))


@dataclass(frozen=True, slots=True)
class GetMaxOffsetHeader(Header):
    """GET_MAX_OFFSET (30): the offset that the next message gets."""

    topic: str
    queue_id: Int32
    committed: bool | None = None
    broker_name: str | None = field(default=None, metadata=_wire("bname"))


@dataclass(frozen=True, slots=True)
class GetMinOffsetHeader(Header):
    """GET_MIN_OFFSET (31)."""

    topic: str
    queue_id: Int32
    broker_name: str | None = field(default=None, metadata=_wire("bname"))


@dataclass(frozen=True, slots=True)
class SearchOffsetHeader(Header):
    """SEARCH_OFFSET_BY_TIMESTAMP (29). timestamp: ms since the epoch. boundary_type: LOWER or UPPER."""

    topic: str
    queue_id: Int32
    timestamp: Int64
    boundary_type: str | None = None
    broker_name: str | None = field(default=None, metadata=_wire("bname"))


@dataclass(frozen=True, slots=True)
class OffsetResponse(Header):
    """The answer to 14, 29, 30 and 31."""

    offset: Int64


@dataclass(frozen=True, slots=True)
class ViewMessageHeader(Header):
    """VIEW_MESSAGE_BY_ID (33). offset: the place in the commit log."""

    offset: Int64


@dataclass(frozen=True, slots=True)
class QueryMessageHeader(Header):
    """QUERY_MESSAGE (12). The times, in ms, are both included."""

    topic: str
    key: str
    max_num: Int32
    begin_timestamp: Int64
    end_timestamp: Int64


@dataclass(frozen=True, slots=True)
class ConsumeStatsHeader(Header):
    """GET_CONSUME_STATS (208). Without a topic: every topic of which the group has stored an offset."""

    consumer_group: str
    topic: str | None = None


@dataclass(frozen=True, slots=True)
class TopicStatsHeader(Header):
    """GET_TOPIC_STATS_INFO (202), QUERY_TOPIC_CONSUME_BY_WHO (300) and GET_TOPIC_CONFIG (351)."""

    topic: str


@dataclass(frozen=True, slots=True)
class ResetOffsetHeader(Header):
    """INVOKE_BROKER_TO_RESET_OFFSET (222). timestamp: -1 is the end. offset, queue_id: one place (5.x)."""

    topic: str
    group: str
    timestamp: Int64
    is_force: bool = field(default=False, metadata=_wire("isForce"))
    queue_id: Int32 | None = None
    offset: Int64 | None = None


# ---------------------------------------------------------------- membership


@dataclass(frozen=True, slots=True)
class ConsumerGroupHeader(Header):
    """GET_CONSUMER_LIST_BY_GROUP (38) and NOTIFY_CONSUMER_IDS_CHANGED (40)."""

    consumer_group: str


@dataclass(frozen=True, slots=True)
class UnregisterClientHeader(Header):
    """UNREGISTER_CLIENT (35)."""

    client_id: str = field(metadata=_wire("clientID"))
    producer_group: str | None = None
    consumer_group: str | None = None


# ---------------------------------------------------------------- transactions


@dataclass(frozen=True, slots=True)
class EndTransactionHeader(Header):
    """END_TRANSACTION (37). commit_or_rollback: 0 unknown, 8 commit, 12 rollback."""

    UNKNOWN: ClassVar[int] = 0
    COMMIT: ClassVar[int] = 8
    ROLLBACK: ClassVar[int] = 12

    producer_group: str
    tran_state_table_offset: Int64
    commit_log_offset: Int64
    commit_or_rollback: Int32
    topic: str | None = None
    from_transaction_check: bool = False
    msg_id: str | None = None
    transaction_id: str | None = None


@dataclass(frozen=True, slots=True)
class CheckTransactionHeader(Header):
    """CHECK_TRANSACTION_STATE (39), broker to producer; the body is the half message."""

    tran_state_table_offset: Int64
    commit_log_offset: Int64
    topic: str | None = None
    msg_id: str | None = None
    transaction_id: str | None = None
    offset_msg_id: str | None = None


# ---------------------------------------------------------------- topics, routes, registration


@dataclass(frozen=True, slots=True)
class CreateTopicHeader(Header):
    """UPDATE_AND_CREATE_TOPIC (17)."""

    topic: str
    read_queue_nums: Int32
    write_queue_nums: Int32
    perm: Int32 = PERM_READ_WRITE
    default_topic: str = DEFAULT_TOPIC
    topic_filter_type: str = "SINGLE_TAG"
    topic_sys_flag: Int32 = 0
    order: bool = False
    attributes: str | None = None
    force: bool | None = None


@dataclass(frozen=True, slots=True)
class DeleteGroupHeader(Header):
    """DELETE_SUBSCRIPTIONGROUP (207)."""

    group_name: str
    clean_offset: bool = False


@dataclass(frozen=True, slots=True)
class TopicHeader(Header):
    """DELETE_TOPIC_IN_BROKER (215) and DELETE_TOPIC_IN_NAMESRV (216)."""

    topic: str


@dataclass(frozen=True, slots=True)
class GetRouteHeader(Header):
    """GET_ROUTEINFO_BY_TOPIC (105)."""

    topic: str
    accept_standard_json_only: bool | None = None


@dataclass(frozen=True, slots=True)
class RegisterBrokerHeader(Header):
    """REGISTER_BROKER (103), broker to name server; the body is `bodies.BrokerRegistration`."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Int64
    ha_server_addr: str | None = None
    compressed: bool = False
    body_crc32: Int64 | None = field(default=None, metadata=_wire("bodyCrc32"))
    heartbeat_timeout_millis: Int64 | None = None
    enable_acting_master: bool | None = None


@dataclass(frozen=True, slots=True)
class RegisterBrokerResponse(Header):
    ha_server_addr: str | None = None
    master_addr: str | None = None


@dataclass(frozen=True, slots=True)
class UnregisterBrokerHeader(Header):
    """UNREGISTER_BROKER (104)."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Int64


@dataclass(frozen=True, slots=True)
class KvConfigHeader(Header):
    """PUT_KV_CONFIG (100), GET_KV_CONFIG (101), DELETE_KV_CONFIG (102)."""

    namespace: str
    key: str
    value: str | None = None


@dataclass(frozen=True, slots=True)
class KvConfigResponse(Header):
    value: str | None = None
