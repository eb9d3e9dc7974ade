"""HEART_BEAT, UNREGISTER_CLIENT, GET_CONSUMER_LIST_BY_GROUP and the change notices.

None of these touches the lock table: a client that leaves keeps its leases until they expire.
Source: docs/sources.md#membership (ClientManageProcessor, ConsumerManageProcessor, ConsumerIdsChangeListener).
"""

from __future__ import annotations

from reference_impl.core.broker.parts import Parts
from reference_impl.core.io import Close, ConnId, Effect, Send, SetTimer
from reference_impl.protocol.bodies import ConsumerData, Heartbeat, encode_consumer_ids
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.protocol.command import FLAG_ONEWAY, Command
from reference_impl.protocol.headers import ConsumerGroupHeader, UnregisterClientHeader
from specs.vocabulary import retry_topic

SCAN_TIMER = "channels"


class Clients:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._notices = 0

    def heartbeat(
        self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]
    ) -> Command | None:
        beat = Heartbeat.decode(request.body)
        for consumer in beat.consumers:
            self._consumer(now_ms, conn, beat.client_id, consumer, out)
        if beat.producers:
            self._parts.members.producer_heartbeat(now_ms, conn, beat.producers)
        return request.reply(ResponseCode.SUCCESS, dict(self._parts.config.rules.heartbeat_ext))

    def _consumer(
        self, now_ms: int, conn: ConnId, client_id: str, consumer: ConsumerData, out: list[Effect]
    ) -> None:
        group = self._parts.groups.find(consumer.group)
        if group is None:
            return  # RocketMQ skips an unknown group without a word
        if group.retry_queues > 0:
            self._parts.topics.make(retry_topic(group.group), group.retry_queues)
        changed = self._parts.members.heartbeat(
            now_ms,
            conn,
            client_id,
            consumer.group,
            # A heartbeat of the second kind (5.x) leaves the subscriptions out while nothing changes.
            consumer.subscriptions or None,
            consumer.message_model,
        )
        if changed:
            self.notify(consumer.group, out)

    def unregister(
        self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]
    ) -> Command | None:
        header = UnregisterClientHeader.from_ext(request.ext)
        if header.producer_group is not None:
            self._parts.members.producer_left(conn, header.producer_group)
        group = header.consumer_group
        if group is not None and self._parts.members.unregister(conn, header.client_id, group):
            self.notify(group, out)
        return request.reply(ResponseCode.SUCCESS)

    def consumer_list(
        self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]
    ) -> Command | None:
        group = ConsumerGroupHeader.from_ext(request.ext).consumer_group
        ids = self._parts.members.client_ids(group)
        if not ids:
            return request.reply(
                ResponseCode.SYSTEM_ERROR, remark=f"no consumer for this group, {group}"
            )
        return request.reply(ResponseCode.SUCCESS, body=encode_consumer_ids(ids))

    def notify(self, group: str, out: list[Effect]) -> None:
        """Tell every connection of the group that its members changed."""
        known = self._parts.groups.find(group)
        if known is not None and not known.notify_ids_changed:
            return
        for conn in self._parts.members.connections(group):
            self._notices += 1
            ext = ConsumerGroupHeader(group).to_ext()
            out.append(
                Send(
                    conn,
                    Command(
                        RequestCode.NOTIFY_CONSUMER_IDS_CHANGED,
                        ext,
                        opaque=self._notices,
                        flag=FLAG_ONEWAY,
                    ),
                )
            )

    def closed(self, conn: ConnId, out: list[Effect]) -> None:
        for group in self._parts.members.closed(conn):
            self.notify(group, out)

    # ------------------------------------------------------------ silence

    def start(self, out: list[Effect]) -> None:
        out.append(SetTimer(SCAN_TIMER, self._parts.config.channel_scan_ms))

    def scan(self, now_ms: int, out: list[Effect]) -> None:
        """Drop the connections that were not heard of for the expiry time."""
        for conn in self._parts.members.silent(now_ms):
            out.append(Close(conn))
            self.closed(conn, out)
        self.start(out)
