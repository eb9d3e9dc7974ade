"""The name server's core: which brokers live, and which queues a topic has on each.

A broker registers with all its topics and is forgotten when it takes its leave, when its connection closes, or
when it was silent for too long. A route lists brokers and queues sorted by broker name, so that two askers get
the same answer. Nothing is kept over a restart: brokers register again.
Source: docs/sources.md#name-server (RouteInfoManager, KVConfigManager).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from reference_impl.core.io import (
    Closed,
    ConnId,
    Effect,
    Input,
    Received,
    Send,
    SetTimer,
    Shutdown,
    Start,
    Stopped,
    TimerFired,
)
from reference_impl.protocol.bodies import (
    MASTER_ID,
    BrokerData,
    BrokerRegistration,
    ClusterInfo,
    QueueData,
    TopicConfig,
    TopicRoute,
    dumps,
    wants_standard_json,
)
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.errors import ProtocolError
from reference_impl.protocol.headers import (
    GetRouteHeader,
    KvConfigHeader,
    KvConfigResponse,
    RegisterBrokerHeader,
    RegisterBrokerResponse,
    TopicHeader,
    UnregisterBrokerHeader,
)

SCAN_TIMER = "brokers"
ORDER_NAMESPACE = "ORDER_TOPIC_CONFIG"

Handler: TypeAlias = Callable[[int, ConnId, Command], Command]


@dataclass(frozen=True, slots=True)
class NameServerConfig:
    """Times in ms. order_topics: tell the fixed queue list of a topic, where one was configured."""

    broker_expiry_ms: int = 120_000
    scan_ms: int = 5_000
    order_topics: bool = False


@dataclass(slots=True)
class Registered:
    """One living broker process."""

    cluster: str
    broker: str
    broker_id: int
    address: str
    conn: ConnId
    heard_ms: int
    topics: dict[str, TopicConfig]


class NameServer:
    """A name server. `requests` is its table."""

    def __init__(self, config: NameServerConfig | None = None) -> None:
        self.config = config or NameServerConfig()
        self._brokers: dict[tuple[str, int], Registered] = {}  # by broker name and id
        self._kv: dict[tuple[str, str], str] = {}
        self.handlers = self.requests()

    def requests(self) -> dict[int, Handler]:
        """Which request is answered by what."""
        return {
            RequestCode.REGISTER_BROKER: self._register,
            RequestCode.UNREGISTER_BROKER: self._unregister,
            RequestCode.GET_ROUTEINFO_BY_TOPIC: self._route,
            RequestCode.GET_BROKER_CLUSTER_INFO: self._cluster,
            RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: self._topic_list,
            RequestCode.DELETE_TOPIC_IN_NAMESRV: self._delete_topic,
            RequestCode.PUT_KV_CONFIG: self._put_kv,
            RequestCode.GET_KV_CONFIG: self._get_kv,
            RequestCode.DELETE_KV_CONFIG: self._delete_kv,
        }

    def handle(self, now_ms: int, event: Input) -> list[Effect]:
        """One input at one moment (ms since the epoch) → what to do, in order."""
        match event:
            case Received(conn, request) if not request.is_response:
                answer = self._answer(now_ms, conn, request)
                return [] if request.is_oneway else [Send(conn, answer)]
            case Closed(conn):
                self._forget(lambda broker: broker.conn == conn)
            case TimerFired(token) if token == SCAN_TIMER:
                self._forget(lambda broker: now_ms - broker.heard_ms > self.config.broker_expiry_ms)
                return [SetTimer(SCAN_TIMER, self.config.scan_ms)]
            case Start():
                return [SetTimer(SCAN_TIMER, self.config.scan_ms)]
            case Shutdown():
                return [Stopped()]
            case _:
                pass
        return []

    def _answer(self, now_ms: int, conn: ConnId, request: Command) -> Command:
        handler = self.handlers.get(request.code)
        if handler is None:
            remark = f"request type {request.code} not supported"
            return request.reply(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)
        try:
            return handler(now_ms, conn, request)
        except ProtocolError as error:
            return request.reply(ResponseCode.SYSTEM_ERROR, remark=str(error))

    # ------------------------------------------------------------ brokers

    def _register(self, now_ms: int, conn: ConnId, request: Command) -> Command:
        header = RegisterBrokerHeader.from_ext(request.ext)
        if header.compressed:
            raise ProtocolError(
                "This name server reads no compressed registration; set compressedRegister=false."
            )
        registration = BrokerRegistration.decode(request.body)
        self._brokers[header.broker_name, header.broker_id] = Registered(
            header.cluster_name,
            header.broker_name,
            header.broker_id,
            header.broker_addr,
            conn,
            now_ms,
            {topic.topic: topic for topic in registration.topics},
        )
        master = self._brokers.get((header.broker_name, MASTER_ID))
        answer = RegisterBrokerResponse(
            master_addr=master.address if master and header.broker_id else None
        )
        return request.reply(ResponseCode.SUCCESS, answer.to_ext())

    def _unregister(self, now_ms: int, conn: ConnId, request: Command) -> Command:
        header = UnregisterBrokerHeader.from_ext(request.ext)
        self._forget(
            lambda broker: (
                (broker.broker, broker.broker_id) == (header.broker_name, header.broker_id)
            )
        )
        return request.reply(ResponseCode.SUCCESS)

    def _forget(self, gone: Callable[[Registered], bool]) -> None:
        self._brokers = {key: broker for key, broker in self._brokers.items() if not gone(broker)}

    # ------------------------------------------------------------ routes

    def _route(self, now_ms: int, conn: ConnId, request: Command) -> Command:
        topic = GetRouteHeader.from_ext(request.ext).topic
        holders = [broker for _, broker in sorted(self._brokers.items()) if topic in broker.topics]
        if not holders:
            return request.reply(
                ResponseCode.TOPIC_NOT_EXIST, remark=f"No topic route info for the topic: {topic}"
            )
        queues = {
            broker.broker: _queue_data(broker.broker, broker.topics[topic])
            for broker in reversed(
                holders
            )  # the smallest id of a name decides: the master, if it lives
        }
        route = TopicRoute(
            tuple(queues[name] for name in sorted(queues)),
            tuple(self._broker_data(name) for name in sorted(queues)),
            self._kv.get((ORDER_NAMESPACE, topic)) if self.config.order_topics else None,
        )
        return request.reply(
            ResponseCode.SUCCESS, body=route.encode(quoted_keys=wants_standard_json(request))
        )

    def _broker_data(self, name: str) -> BrokerData:
        members = [broker for _, broker in sorted(self._brokers.items()) if broker.broker == name]
        return BrokerData(
            members[0].cluster, name, {broker.broker_id: broker.address for broker in members}
        )

    def _cluster(self, now_ms: int, conn: ConnId, request: Command) -> Command:
        names = sorted({broker.broker for broker in self._brokers.values()})
        clusters: dict[str, tuple[str, ...]] = {}
        for name in names:
            cluster = self._broker_data(name).cluster
            clusters[cluster] = (*clusters.get(cluster, ()), name)
        info = ClusterInfo(tuple(self._broker_data(name) for name in names), clusters)
        return request.reply(
            ResponseCode.SUCCESS, body=info.encode(quoted_keys=wants_standard_json(request))
        )

    def _topic_list(self, now_ms: int, conn: ConnId, request: Command) -> Command:
        topics = sorted({topic for broker in self._brokers.values() for topic in broker.topics})
        return request.reply(ResponseCode.SUCCESS, body=dumps({"topicList": topics}))

    def _delete_topic(self, now_ms: int, conn: ConnId, request: Command) -> Command:
        """Nobody is routed to it any more, until a broker that still has it registers again."""
        topic = TopicHeader.from_ext(request.ext).topic
        for broker in self._brokers.values():
            broker.topics.pop(topic, None)
        return request.reply(ResponseCode.SUCCESS)

    # ------------------------------------------------------------ key and value

    def _put_kv(self, now_ms: int, conn: ConnId, request: Command) -> Command:
        header = KvConfigHeader.from_ext(request.ext)
        if header.value is None:
            raise ProtocolError("The header field value is missing.")
        self._kv[header.namespace, header.key] = header.value
        return request.reply(ResponseCode.SUCCESS)

    def _get_kv(self, now_ms: int, conn: ConnId, request: Command) -> Command:
        header = KvConfigHeader.from_ext(request.ext)
        value = self._kv.get((header.namespace, header.key))
        if value is None:
            remark = f"No config item, Namespace: {header.namespace} Key: {header.key}"
            return request.reply(ResponseCode.QUERY_NOT_FOUND, remark=remark)
        return request.reply(ResponseCode.SUCCESS, KvConfigResponse(value).to_ext())

    def _delete_kv(self, now_ms: int, conn: ConnId, request: Command) -> Command:
        header = KvConfigHeader.from_ext(request.ext)
        self._kv.pop((header.namespace, header.key), None)
        return request.reply(ResponseCode.SUCCESS)


def _queue_data(broker: str, topic: TopicConfig) -> QueueData:
    return QueueData(
        broker, topic.read_queues, topic.write_queues, topic.perm, topic.topic_sys_flag
    )
