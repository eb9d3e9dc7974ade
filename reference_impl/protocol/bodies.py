"""The JSON bodies of the protocol, typed.

Apache writes them with a library that leaves integer keys unquoted (`{0:"127.0.0.1:10911"}`), which is no
standard JSON: we read both and write what the caller asks for. Unknown members are ignored, a missing member
takes its default, a member of the wrong type raises ProtocolError.

Names: the `*Body`, `*Data` and `*Wrapper` classes of apache/rocketmq.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from reference_impl.protocol.command import Command
from reference_impl.protocol.errors import ProtocolError
from specs.vocabulary import Queue

T = TypeVar("T")

CONSUME_ACTIVELY = "CONSUME_ACTIVELY"  # pull
CONSUME_PASSIVELY = "CONSUME_PASSIVELY"  # push
CLUSTERING = "CLUSTERING"
BROADCASTING = "BROADCASTING"
FROM_LAST = "CONSUME_FROM_LAST_OFFSET"
FROM_FIRST = "CONSUME_FROM_FIRST_OFFSET"
FROM_TIMESTAMP = "CONSUME_FROM_TIMESTAMP"
SUBSCRIBE_ALL = "*"
MASTER_ID = 0
QUEUES_MAX = 65_536
"""Of a topic on one broker."""
STANDARD_JSON_VERSION = 401
"""Clients from 4.9.4 on (this number in the header) get routes in standard JSON."""

_STRING_OR_INT_KEY = re.compile(
    r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|([{,]\s*+)(-?\d++)(\s*+:)', re.DOTALL
)
"""A string, also one without an end, or an integer key. Nothing is read twice: a body can't make this take long."""


# ---------------------------------------------------------------- JSON, both dialects


def loads(data: bytes) -> Any:
    """Read JSON, with or without quotes around integer keys. ProtocolError when it is neither."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ProtocolError("A body is not UTF-8.") from error
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        quoted = _STRING_OR_INT_KEY.sub(
            lambda m: m[0] if m[2] is None else f'{m[1]}"{m[2]}"{m[3]}', text
        )
        try:
            value = json.loads(quoted)
        except (ValueError, RecursionError) as error:
            raise ProtocolError(f"A body is not JSON: {str(error)[:100]}.") from error
    if b"\\u" in data:  # an escape may make half a surrogate pair: no text that could be sent on
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise ProtocolError("A body holds half a surrogate pair.") from error
    return value


def dumps(value: Any, *, quoted_keys: bool = True) -> bytes:
    """Write compact JSON. quoted_keys False: keys that are ints go without quotes, as Apache writes them."""
    if quoted_keys:
        return json.dumps(value, separators=(",", ":")).encode()
    return _dump_loose(value).encode()


def _dump_loose(value: Any) -> str:
    if isinstance(value, Mapping):
        members = (
            f"{key if isinstance(key, int) else json.dumps(key)}:{_dump_loose(member)}"
            for key, member in value.items()
        )
        return "{" + ",".join(members) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_dump_loose, value)) + "]"
    return json.dumps(value)


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ProtocolError(f"{what} must be a JSON object.")
    return value


def _member(source: Mapping[str, Any], name: str, kind: type[T], default: T | None = None) -> T:
    """A member of the given type; null and absence give the default; without one: ProtocolError."""
    value = source.get(name)
    if value is None:
        if default is None:
            raise ProtocolError(f"The body's member {name} is missing.")
        return default
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ProtocolError(f"The body's member {name} must be of type {kind.__name__}.")
    return value


def _objects(source: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    return [_object(item, f"Each of {name}") for item in _member(source, name, list, [])]


def _strings(source: Mapping[str, Any], name: str) -> list[str]:
    items = _member(source, name, list, [])
    if not all(isinstance(item, str) for item in items):
        raise ProtocolError(f"The body's member {name} must hold strings.")
    return items


def _queue_count(
    source: Mapping[str, Any], name: str, default: int | None = None, least: int = 0
) -> int:
    """A number of queues: of one that has no bound a list can be made that fills the memory."""
    count = _member(source, name, int, default)
    if not least <= count <= QUEUES_MAX:
        raise ProtocolError(f"The body's member {name} must be from {least} to {QUEUES_MAX}.")
    return count


# ---------------------------------------------------------------- locks


def _queue_json(queue: Queue) -> dict[str, Any]:
    return {"topic": queue.topic, "brokerName": queue.broker, "queueId": queue.queue_id}


def _queues(source: Mapping[str, Any], name: str) -> tuple[Queue, ...]:
    return tuple(
        Queue(
            _member(item, "topic", str),
            _member(item, "brokerName", str),
            _member(item, "queueId", int),
        )
        for item in _objects(source, name)
    )


@dataclass(frozen=True, slots=True)
class LockBatch:
    """The body of LOCK_BATCH_MQ and UNLOCK_BATCH_MQ. only_this_broker: no quorum (5.x, strict mode)."""

    consumer_group: str
    client_id: str
    queues: tuple[Queue, ...]
    only_this_broker: bool = False

    def encode(self) -> bytes:
        return dumps(
            {
                "consumerGroup": self.consumer_group,
                "clientId": self.client_id,
                "mqSet": [_queue_json(queue) for queue in self.queues],
                "onlyThisBroker": self.only_this_broker,
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> LockBatch:
        body = _object(loads(data), "A lock request")
        return cls(
            _member(body, "consumerGroup", str),
            _member(body, "clientId", str),
            _queues(body, "mqSet"),
            _member(body, "onlyThisBroker", bool, False),
        )


def encode_lock_answer(granted: Iterable[Queue]) -> bytes:
    """The answer to LOCK_BATCH_MQ: exactly the queues granted, maybe none."""
    return dumps({"lockOKMQSet": [_queue_json(queue) for queue in granted]})


def decode_lock_answer(data: bytes) -> frozenset[Queue]:
    return frozenset(_queues(_object(loads(data), "A lock answer"), "lockOKMQSet"))


# ---------------------------------------------------------------- tables by queue

_BY_QUEUE = re.compile(r"(\{[^{}]*\})\s*:\s*(-?\d+|\{[^{}]*\})")
"""An entry whose key is an object, which Apache's library writes and reads, though it is no JSON."""


def _dump_by_queue(values: Mapping[Queue, Any]) -> str:
    return (
        "{"
        + ",".join(
            f"{_dump_loose(_queue_json(queue))}:{_dump_loose(v)}" for queue, v in values.items()
        )
        + "}"
    )


def _load_by_queue(body: bytes) -> dict[Queue, Any]:
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise ProtocolError("A body is not UTF-8.") from error
    found: dict[Queue, Any] = {}
    for match in _BY_QUEUE.finditer(text):
        key = _object(loads(match[1].encode()), "Each queue of a table")
        queue = Queue(
            _member(key, "topic", str),
            _member(key, "brokerName", str),
            _member(key, "queueId", int),
        )
        found[queue] = loads(match[2].encode())
    return found


def encode_reset_offsets(offsets: Mapping[Queue, int]) -> bytes:
    """The answer to a reset: each queue's new offset."""
    return f'{{"offsetTable":{_dump_by_queue(offsets)}}}'.encode()


def decode_reset_offsets(body: bytes) -> dict[Queue, int]:
    """The same, read. Raises ProtocolError for what can't be read; an empty body says nothing."""
    found = _load_by_queue(body)
    if not all(isinstance(offset, int) for offset in found.values()):
        raise ProtocolError("Each offset of a reset must be of type int.")
    return found


@dataclass(frozen=True, slots=True)
class OffsetLag:
    """How far a group is in a queue.

    end: the broker's next offset. last_ms: when the last consumed message was stored. pulled: what the group asked for
    last, consumed or not; what lies between both is under way (5.x; 4.9 does not read it).
    """

    end: int
    consumed: int
    last_ms: int
    pulled: int = 0

    @property
    def lag(self) -> int:
        """So many messages are still to be consumed."""
        return max(0, self.end - self.consumed)


@dataclass(frozen=True, slots=True)
class ConsumeStats:
    """The body of the answer to GET_CONSUME_STATS (208)."""

    lags: Mapping[Queue, OffsetLag]

    def encode(self) -> bytes:
        table = {
            queue: {
                "brokerOffset": lag.end,
                "consumerOffset": lag.consumed,
                "lastTimestamp": lag.last_ms,
                "pullOffset": max(lag.consumed, lag.pulled),
            }
            for queue, lag in self.lags.items()
        }
        return f'{{"consumeTps":0.0,"offsetTable":{_dump_by_queue(table)}}}'.encode()

    @classmethod
    def decode(cls, body: bytes) -> ConsumeStats:
        lags: dict[Queue, OffsetLag] = {}
        for queue, value in _load_by_queue(body).items():
            source = _object(value, "Each lag")
            lags[queue] = OffsetLag(
                _member(source, "brokerOffset", int),
                _member(source, "consumerOffset", int),
                _member(source, "lastTimestamp", int, 0),
                _member(source, "pullOffset", int, 0),
            )
        return cls(lags)


@dataclass(frozen=True, slots=True)
class QueueSpan:
    """From where to where a queue goes, and when it got its last message."""

    start: int
    end: int
    updated_ms: int


def encode_topic_stats(spans: Mapping[Queue, QueueSpan]) -> bytes:
    """The body of the answer to GET_TOPIC_STATS_INFO (202)."""
    table = {
        queue: {
            "lastUpdateTimestamp": span.updated_ms,
            "maxOffset": span.end,
            "minOffset": span.start,
        }
        for queue, span in spans.items()
    }
    return f'{{"offsetTable":{_dump_by_queue(table)}}}'.encode()


def decode_topic_stats(body: bytes) -> dict[Queue, QueueSpan]:
    """The same, read. Raises ProtocolError for what can't be read."""
    spans: dict[Queue, QueueSpan] = {}
    for queue, value in _load_by_queue(body).items():
        source = _object(value, "Each queue's span")
        spans[queue] = QueueSpan(
            _member(source, "minOffset", int),
            _member(source, "maxOffset", int),
            _member(source, "lastUpdateTimestamp", int, 0),
        )
    return spans


# ---------------------------------------------------------------- membership


def java_hash(text: str) -> int:
    """Java's `String.hashCode`: over UTF-16 units, as a signed 32-bit number."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a group wants of a topic. sub_string: `*`, or tags split by `||`. sub_version: ms, wall clock."""

    topic: str
    sub_string: str = SUBSCRIBE_ALL
    tags: tuple[str, ...] = ()
    codes: tuple[int, ...] = ()
    sub_version: int = 0
    expression_type: str = "TAG"
    class_filter_mode: bool = False

    @classmethod
    def of(cls, topic: str, expression: str = SUBSCRIBE_ALL, sub_version: int = 0) -> Subscription:
        """A tag expression made into tags and their hash codes (by which the broker filters)."""
        if expression.strip() in ("", SUBSCRIBE_ALL):
            return cls(topic, SUBSCRIBE_ALL, sub_version=sub_version)
        tags = tuple(dict.fromkeys(tag.strip() for tag in expression.split("||") if tag.strip()))
        if not tags:
            raise ProtocolError(f"The subscription {expression!r} names no tag.")
        return cls(topic, expression, tags, tuple(java_hash(tag) for tag in tags), sub_version)

    def to_json(self) -> dict[str, Any]:
        return {
            "topic": self.topic,
            "subString": self.sub_string,
            "tagsSet": list(self.tags),
            "codeSet": list(self.codes),
            "subVersion": self.sub_version,
            "expressionType": self.expression_type,
            "classFilterMode": self.class_filter_mode,
        }

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> Subscription:
        codes = _member(source, "codeSet", list, [])
        if not all(isinstance(code, int) for code in codes):
            raise ProtocolError("The body's member codeSet must hold numbers.")
        return cls(
            _member(source, "topic", str),
            _member(source, "subString", str, SUBSCRIBE_ALL),
            tuple(_strings(source, "tagsSet")),
            tuple(codes),
            _member(source, "subVersion", int, 0),
            _member(source, "expressionType", str, "TAG"),
            _member(source, "classFilterMode", bool, False),
        )


@dataclass(frozen=True, slots=True)
class ConsumerData:
    """One consumer group of a client, as its heartbeat says it."""

    group: str
    consume_type: str = CONSUME_PASSIVELY
    message_model: str = CLUSTERING
    consume_from: str = FROM_LAST
    subscriptions: tuple[Subscription, ...] = ()
    unit_mode: bool = False


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The body of HEART_BEAT (34). producers: group names."""

    client_id: str
    producers: tuple[str, ...] = ()
    consumers: tuple[ConsumerData, ...] = ()

    def encode(self) -> bytes:
        return dumps(
            {
                "clientID": self.client_id,
                "producerDataSet": [{"groupName": group} for group in self.producers],
                "consumerDataSet": [
                    {
                        "groupName": consumer.group,
                        "consumeType": consumer.consume_type,
                        "messageModel": consumer.message_model,
                        "consumeFromWhere": consumer.consume_from,
                        "subscriptionDataSet": [item.to_json() for item in consumer.subscriptions],
                        "unitMode": consumer.unit_mode,
                    }
                    for consumer in self.consumers
                ],
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> Heartbeat:
        body = _object(loads(data), "A heartbeat")
        return cls(
            _member(body, "clientID", str),
            tuple(_member(item, "groupName", str) for item in _objects(body, "producerDataSet")),
            tuple(
                ConsumerData(
                    _member(item, "groupName", str),
                    _member(item, "consumeType", str, CONSUME_PASSIVELY),
                    _member(item, "messageModel", str, CLUSTERING),
                    _member(item, "consumeFromWhere", str, FROM_LAST),
                    tuple(Subscription.from_json(s) for s in _objects(item, "subscriptionDataSet")),
                    _member(item, "unitMode", bool, False),
                )
                for item in _objects(body, "consumerDataSet")
            ),
        )


def encode_consumer_ids(ids: Iterable[str]) -> bytes:
    """The answer to GET_CONSUMER_LIST_BY_GROUP: one entry per connection, so an id may come twice."""
    return dumps({"consumerIdList": list(ids)})


def encode_group_list(groups: Iterable[str]) -> bytes:
    """The answer to QUERY_TOPIC_CONSUME_BY_WHO."""
    return dumps({"groupList": list(groups)})


def encode_table(values: Mapping[str, str]) -> bytes:
    """The answer to GET_BROKER_RUNTIME_INFO: names and texts."""
    return dumps({"table": dict(values)})


def decode_table(data: bytes) -> dict[str, str]:
    """Its names and texts."""
    table = _object(_object(loads(data), "A table").get("table"), "A table's content")
    return {name: str(value) for name, value in table.items()}


def decode_consumer_ids(data: bytes) -> list[str]:
    return _strings(_object(loads(data), "A consumer id list"), "consumerIdList")


# ---------------------------------------------------------------- routes


@dataclass(frozen=True, slots=True)
class QueueData:
    """How many queues a topic has on one broker, and what may be done with them (PERM_READ, PERM_WRITE)."""

    broker: str
    read_queues: int
    write_queues: int
    perm: int = 6
    topic_sys_flag: int = 0


@dataclass(frozen=True, slots=True)
class BrokerData:
    """The addresses of one broker name. addresses: broker id → `host:port`; id 0 is the master."""

    cluster: str
    broker: str
    addresses: Mapping[int, str]

    @property
    def master(self) -> str | None:
        return self.addresses.get(MASTER_ID)

    def to_json(self) -> dict[str, Any]:
        return {
            "cluster": self.cluster,
            "brokerName": self.broker,
            "brokerAddrs": dict(self.addresses),
        }

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> BrokerData:
        addresses: dict[int, str] = {}
        for key, address in _object(source.get("brokerAddrs") or {}, "brokerAddrs").items():
            if not isinstance(address, str) or not re.fullmatch(r"-?[0-9]{1,19}", key):
                raise ProtocolError("brokerAddrs must give an address for each whole number.")
            addresses[int(key)] = address
        return cls(
            _member(source, "cluster", str, ""), _member(source, "brokerName", str), addresses
        )


@dataclass(frozen=True, slots=True)
class TopicRoute:
    """The answer to GET_ROUTEINFO_BY_TOPIC."""

    queues: tuple[QueueData, ...]
    brokers: tuple[BrokerData, ...]
    order_conf: str | None = None

    def encode(self, *, quoted_keys: bool = True) -> bytes:
        """quoted_keys False: Apache's way for clients before 4.9.4 (see `wants_standard_json`)."""
        body: dict[str, Any] = {
            "brokerDatas": [broker.to_json() for broker in self.brokers],
            "filterServerTable": {},
            "queueDatas": [
                {
                    "brokerName": item.broker,
                    "perm": item.perm,
                    "readQueueNums": item.read_queues,
                    "topicSysFlag": item.topic_sys_flag,
                    "writeQueueNums": item.write_queues,
                }
                for item in self.queues
            ],
        }
        if self.order_conf is not None:
            body["orderTopicConf"] = self.order_conf
        return dumps(body, quoted_keys=quoted_keys)

    @classmethod
    def decode(cls, data: bytes) -> TopicRoute:
        body = _object(loads(data), "A route")
        return cls(
            tuple(
                QueueData(
                    _member(item, "brokerName", str),
                    _queue_count(item, "readQueueNums"),
                    _queue_count(item, "writeQueueNums"),
                    _member(item, "perm", int),
                    _member(item, "topicSysFlag", int, 0),
                )
                for item in _objects(body, "queueDatas")
            ),
            tuple(BrokerData.from_json(item) for item in _objects(body, "brokerDatas")),
            body.get("orderTopicConf") if isinstance(body.get("orderTopicConf"), str) else None,
        )


def wants_standard_json(request: Command) -> bool:
    """Whether the asker of a route reads standard JSON only: says so, or is 4.9.4 or newer."""
    asked = request.ext.get("acceptStandardJsonOnly", "").lower() == "true"
    return asked or request.version >= STANDARD_JSON_VERSION


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """The answer to GET_BROKER_CLUSTER_INFO. clusters: cluster → broker names."""

    brokers: tuple[BrokerData, ...]
    clusters: Mapping[str, tuple[str, ...]]

    def encode(self, *, quoted_keys: bool = True) -> bytes:
        return dumps(
            {
                "brokerAddrTable": {broker.broker: broker.to_json() for broker in self.brokers},
                "clusterAddrTable": {
                    name: list(brokers) for name, brokers in self.clusters.items()
                },
            },
            quoted_keys=quoted_keys,
        )

    @classmethod
    def decode(cls, data: bytes) -> ClusterInfo:
        body = _object(loads(data), "A cluster description")
        brokers = _object(body.get("brokerAddrTable") or {}, "brokerAddrTable")
        clusters = _object(body.get("clusterAddrTable") or {}, "clusterAddrTable")
        return cls(
            tuple(BrokerData.from_json(_object(item, "A broker")) for item in brokers.values()),
            {name: tuple(_strings(clusters, name)) for name in clusters},
        )


# ---------------------------------------------------------------- registration


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """One topic as a broker keeps it and tells it to its name server."""

    topic: str
    read_queues: int = 4
    write_queues: int = 4
    perm: int = 6
    topic_sys_flag: int = 0
    order: bool = False

    def to_json(self) -> dict[str, Any]:
        return {
            "topicName": self.topic,
            "readQueueNums": self.read_queues,
            "writeQueueNums": self.write_queues,
            "perm": self.perm,
            "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": self.topic_sys_flag,
            "order": self.order,
        }

    def encode(self) -> bytes:
        """The answer to GET_TOPIC_CONFIG."""
        return dumps(self.to_json())

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> TopicConfig:
        return cls(
            _member(source, "topicName", str),
            _queue_count(source, "readQueueNums", 4),
            _queue_count(source, "writeQueueNums", 4),
            _member(source, "perm", int, 6),
            _member(source, "topicSysFlag", int, 0),
            _member(source, "order", bool, False),
        )


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """The body of REGISTER_BROKER: all topics of the broker, with the version of that table."""

    topics: tuple[TopicConfig, ...] = ()
    version_ms: int = 0
    version_counter: int = 0
    filter_servers: tuple[str, ...] = field(default=())

    def encode(self) -> bytes:
        return dumps(
            {
                "filterServerList": list(self.filter_servers),
                "topicConfigSerializeWrapper": {
                    "dataVersion": {
                        "counter": self.version_counter,
                        "stateVersion": 0,
                        "timestamp": self.version_ms,
                    },
                    "topicConfigTable": {item.topic: item.to_json() for item in self.topics},
                },
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> BrokerRegistration:
        body = _object(loads(data), "A registration")
        wrapper = _object(
            body.get("topicConfigSerializeWrapper") or {}, "topicConfigSerializeWrapper"
        )
        version = _object(wrapper.get("dataVersion") or {}, "dataVersion")
        table = _object(wrapper.get("topicConfigTable") or {}, "topicConfigTable")
        return cls(
            tuple(TopicConfig.from_json(_object(item, "A topic")) for item in table.values()),
            _member(version, "timestamp", int, 0),
            _member(version, "counter", int, 0),
            tuple(_strings(body, "filterServerList")),
        )


@dataclass(frozen=True, slots=True)
class SubscriptionGroup:
    """The body of UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (200): how a broker treats one consumer group."""

    group: str
    consume_enable: bool = True
    consume_orderly: bool = False
    retry_queues: int = 1
    retry_max_times: int = 16
    notify_ids_changed: bool = True

    def encode(self) -> bytes:
        return dumps(
            {
                "groupName": self.group,
                "consumeEnable": self.consume_enable,
                "consumeFromMinEnable": True,
                "consumeBroadcastEnable": True,
                "consumeMessageOrderly": self.consume_orderly,
                "retryQueueNums": self.retry_queues,
                "retryMaxTimes": self.retry_max_times,
                "brokerId": MASTER_ID,
                "whichBrokerWhenConsumeSlowly": 1,
                "notifyConsumerIdsChangedEnable": self.notify_ids_changed,
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> SubscriptionGroup:
        body = _object(loads(data), "A subscription group")
        return cls(
            _member(body, "groupName", str),
            _member(body, "consumeEnable", bool, True),
            _member(body, "consumeMessageOrderly", bool, False),
            _queue_count(body, "retryQueueNums", 1, least=-(2**31)),
            _member(body, "retryMaxTimes", int, 16),
            _member(body, "notifyConsumerIdsChangedEnable", bool, True),
        )
