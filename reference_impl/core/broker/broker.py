"""The broker's core: one table of requests, and the parts that answer them.

`Broker(config, store).handle(now_ms, input)` returns the effects to be carried out, in order. What must survive
a crash lies in the store; leases, members and parked pulls die with the broker. A request that can't be read,
or that nobody knows, is answered with a code; no input makes the core raise.

Each part is a class attribute, so that a variant of the broker replaces one part, or one method of one part.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import ClassVar

from reference_impl.core.broker.admin import Admin
from reference_impl.core.broker.clients import SCAN_TIMER, Clients
from reference_impl.core.broker.config import BrokerConfig
from reference_impl.core.broker.consumer_offsets import PERSIST_TIMER, ConsumerOffsets
from reference_impl.core.broker.diversion import Diversion
from reference_impl.core.broker.flushing import FLUSH_TIMER, LATE_TIMER, Flushing
from reference_impl.core.broker.inquiry import Inquiry
from reference_impl.core.broker.leases import Leases
from reference_impl.core.broker.lock_table import LockTable
from reference_impl.core.broker.log import BrokerStore, StoreFull
from reference_impl.core.broker.membership import Membership
from reference_impl.core.broker.offset_table import OffsetTable
from reference_impl.core.broker.overview import Overview
from reference_impl.core.broker.parts import Handler, Parts, Refused
from reference_impl.core.broker.pull import HOLD_TIMER, Pulling
from reference_impl.core.broker.queue_info import QueueInfo
from reference_impl.core.broker.registration import REGISTER_TIMER, Registration
from reference_impl.core.broker.retention import CLEAN_TIMER, Retention
from reference_impl.core.broker.send import Sending
from reference_impl.core.broker.send_back import SendBack
from reference_impl.core.broker.storing import DELAY_TIMER, Storing
from reference_impl.core.broker.topics import GroupTable, TopicTable
from reference_impl.core.broker.transactions import CHECK_TIMER, Transactions
from reference_impl.core.io import (
    Answered,
    Closed,
    ConnId,
    Effect,
    Failed,
    Flushed,
    Input,
    Opened,
    Received,
    Send,
    Shutdown,
    Start,
    Stopped,
    TimerFired,
)
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.errors import ProtocolError

_NOT_AVAILABLE = frozenset(
    {RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE}
)
"""Requests that are answered SERVICE_NOT_AVAILABLE when there is no room on the disk; the others SYSTEM_ERROR."""


class Broker:
    """A broker on a store.

    choices: where a send leaves the queue to the broker, the queue is drawn from it; without it they take turns.
    """

    lock_table_class: ClassVar[type[LockTable]] = LockTable
    offset_table_class: ClassVar[type[OffsetTable]] = OffsetTable
    membership_class: ClassVar[type[Membership]] = Membership
    storing_class: ClassVar[type[Storing]] = Storing
    diversion_class: ClassVar[type[Diversion]] = Diversion
    transactions_class: ClassVar[type[Transactions]] = Transactions
    sending_class: ClassVar[type[Sending]] = Sending
    send_back_class: ClassVar[type[SendBack]] = SendBack
    pulling_class: ClassVar[type[Pulling]] = Pulling
    leases_class: ClassVar[type[Leases]] = Leases
    consumer_offsets_class: ClassVar[type[ConsumerOffsets]] = ConsumerOffsets
    clients_class: ClassVar[type[Clients]] = Clients
    queue_info_class: ClassVar[type[QueueInfo]] = QueueInfo
    inquiry_class: ClassVar[type[Inquiry]] = Inquiry
    admin_class: ClassVar[type[Admin]] = Admin
    registration_class: ClassVar[type[Registration]] = Registration
    flushing_class: ClassVar[type[Flushing]] = Flushing
    retention_class: ClassVar[type[Retention]] = Retention

    def __init__(
        self, config: BrokerConfig, store: BrokerStore, choices: Random | None = None
    ) -> None:
        store.epoch += 1
        self.config = config
        self.store = store
        self.parts = Parts(
            config=config,
            store=store,
            choices=choices,
            topics=TopicTable(config, store),
            groups=GroupTable(config, store),
            locks=self.lock_table_class(config.lease_ms),
            offsets=self.offset_table_class(store.offsets),
            members=self.membership_class(config.channel_expiry_ms),
        )
        self.storing = self.storing_class(self.parts)
        self.diversion = self.diversion_class(self.parts)
        self.sending = self.sending_class(self.parts, self.storing, self.diversion)
        self.transactions = self.sending.transactions = self.transactions_class(
            self.parts, self.storing
        )
        self.send_back = self.send_back_class(self.parts, self.storing)
        self.pulling = self.pulling_class(self.parts)
        self.leases = self.leases_class(self.parts)
        self.consumer_offsets = self.consumer_offsets_class(self.parts)
        self.clients = self.clients_class(self.parts)
        self.queue_info = self.queue_info_class(self.parts)
        self.inquiry = self.inquiry_class(self.parts)
        self.overview = Overview(self.parts)
        self.registration = self.registration_class(self.parts)
        self.flushing = self.flushing_class(self.parts)
        self.retention = self.retention_class(self.parts)
        self.admin = self.admin_class(self.parts, self.retention)
        self.handlers = self.requests()
        self.timers = self.timed_work()

    def requests(self) -> dict[int, Handler]:
        """Which request is answered by what."""
        return {
            RequestCode.SEND_MESSAGE: self.sending.send,
            RequestCode.SEND_MESSAGE_V2: self.sending.send_v2,
            RequestCode.SEND_BATCH_MESSAGE: self.sending.send_v2,
            RequestCode.CONSUMER_SEND_MSG_BACK: self.send_back.send_back,
            RequestCode.END_TRANSACTION: self.transactions.end,
            RequestCode.PULL_MESSAGE: self.pulling.pull,
            RequestCode.LOCK_BATCH_MQ: self.leases.lock,
            RequestCode.UNLOCK_BATCH_MQ: self.leases.unlock,
            RequestCode.QUERY_CONSUMER_OFFSET: self.consumer_offsets.query,
            RequestCode.UPDATE_CONSUMER_OFFSET: self.consumer_offsets.update,
            RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: self.consumer_offsets.reset,
            RequestCode.GET_MAX_OFFSET: self.queue_info.max_offset,
            RequestCode.GET_MIN_OFFSET: self.queue_info.min_offset,
            RequestCode.GET_EARLIEST_MSG_STORETIME: self.queue_info.earliest,
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: self.queue_info.search,
            RequestCode.VIEW_MESSAGE_BY_ID: self.queue_info.view,
            RequestCode.QUERY_MESSAGE: self.inquiry.query,
            RequestCode.GET_CONSUME_STATS: self.inquiry.consume_stats,
            RequestCode.GET_TOPIC_STATS_INFO: self.inquiry.topic_stats,
            RequestCode.DELETE_EXPIRED_COMMITLOG: self.retention.on_demand,
            RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: self.retention.clean_queues,
            RequestCode.GET_BROKER_RUNTIME_INFO: self.overview.runtime,
            RequestCode.GET_TOPIC_CONFIG: self.overview.topic_config,
            RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: self.overview.consumed_by,
            RequestCode.HEART_BEAT: self.clients.heartbeat,
            RequestCode.UNREGISTER_CLIENT: self.clients.unregister,
            RequestCode.GET_CONSUMER_LIST_BY_GROUP: self.clients.consumer_list,
            RequestCode.UPDATE_AND_CREATE_TOPIC: self.admin.put_topic,
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: self.admin.put_group,
            RequestCode.DELETE_TOPIC_IN_BROKER: self.admin.delete_topic,
            RequestCode.DELETE_SUBSCRIPTIONGROUP: self.admin.delete_group,
        }

    def timed_work(self) -> dict[str, Callable[[int, list[Effect]], None]]:
        """Which timer does what; the delay levels' timers are (DELAY_TIMER, level)."""
        return {
            HOLD_TIMER: self.pulling.expire,
            PERSIST_TIMER: lambda now_ms, out: self.consumer_offsets.persist_in_turn(out),
            SCAN_TIMER: self.clients.scan,
            REGISTER_TIMER: self.registration.in_turn,
            CHECK_TIMER: self.transactions.check,
            FLUSH_TIMER: lambda now_ms, out: self.flushing.in_turn(out),
            LATE_TIMER: self.flushing.let_go_of_late,
            CLEAN_TIMER: self.retention.in_turn,
        }

    def handle(self, now_ms: int, event: Input) -> list[Effect]:
        """One input at one moment (ms since the epoch) → what to do, in order."""
        out: list[Effect] = []
        match event:
            case Received(conn, command):
                self._received(now_ms, conn, command, out)
            case TimerFired(token):
                self._timer(now_ms, token, out)
            case Opened(conn, peer):
                self.parts.peers[conn] = peer
            case Closed(conn):
                self.parts.peers.pop(conn, None)
                self.pulling.closed(conn)
                self.clients.closed(conn, out)
            case Answered() | Failed():
                self.registration.ended(event, out)
            case Flushed():
                self.flushing.ended(event, out)
            case Start():
                self._start(now_ms, out)
            case Shutdown():
                self.consumer_offsets.persist(out)
                self.flushing.stop(out)
                self.registration.leave(out)
                out.append(Stopped())
            case _:
                pass  # an input for clients
        if self.parts.arrived:
            self._wake(now_ms, out)
        self.registration.if_changed(now_ms, out)
        return self.flushing.hold(now_ms, event, out)

    def _received(self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]) -> None:
        if request.is_response:
            return  # the broker's own notices are one way
        answer = self._answer(now_ms, conn, request, out)
        if answer is not None and not request.is_oneway:
            out.append(Send(conn, answer))

    def _answer(
        self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]
    ) -> Command | None:
        handler = self.handlers.get(request.code)
        if handler is None:
            remark = f"request type {request.code} not supported"
            return request.reply(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)
        before, done, woken = self.store.end, len(out), len(self.parts.arrived)
        try:
            if request.code in _NOT_AVAILABLE:
                self.flushing.check_backlog(now_ms)
            return handler(now_ms, conn, request, out)
        except StoreFull as full:  # all of the request is stored, or nothing
            del out[done:], self.parts.arrived[woken:]
            self.store.undo(before)
            self.store.turned_away += 1
            is_send = request.code in _NOT_AVAILABLE
            code = ResponseCode.SERVICE_NOT_AVAILABLE if is_send else ResponseCode.SYSTEM_ERROR
            return request.reply(code, remark=str(full))
        except Refused as refusal:
            return request.reply(refusal.code, remark=refusal.remark)
        except ProtocolError as error:
            return request.reply(ResponseCode.SYSTEM_ERROR, remark=str(error))

    def _timer(self, now_ms: int, token: object, out: list[Effect]) -> None:
        match token:
            case (first, int(level)) if first == DELAY_TIMER:
                self.storing.deliver_due(now_ms, level, out)
            case str() if token in self.timers:
                self.timers[token](now_ms, out)

    def _wake(self, now_ms: int, out: list[Effect]) -> None:
        arrived, self.parts.arrived = self.parts.arrived, []
        for queue in arrived:
            self.pulling.wake(now_ms, queue, out)

    def _start(self, now_ms: int, out: list[Effect]) -> None:
        self.overview.start(now_ms)
        self.registration.in_turn(now_ms, out)
        self.consumer_offsets.start(out)
        self.flushing.start(out)
        self.retention.start(out)
        self.clients.start(out)
        self.storing.start(now_ms, out)
        self.transactions.start(out)
