"""What an operator does: look messages up, and reset a group's offsets.

    async with Admin("127.0.0.1:9876") as admin:
        for message in await admin.by_key("bills", "bill-12"):
            print(message.text)
        await admin.reset("billing", "orders", to="first")

A look-up asks every broker of the topic. A broker files a message for its look-ups a moment after it has stored it.

How a reset is done depends on the broker:

| the broker | a time | an offset by name |
|---|---|---|
| from 5.2 on | it keeps the reset until the group pulls: a commit in flight can't undo it | the same |
| before, with members online | it tells them, and each moves what it has, after 10 s | refused: stop them first |
| before, without | the offsets are set as a member's commit would set them | the same |

Source: docs/sources.md#offsets and #inquiry (`DefaultMQAdminExtImpl`, `MQAdminImpl` of apache/rocketmq).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Literal, Self, TypeAlias

from reference_impl.client.errors import Refused, Unanswered
from reference_impl.client.identity import new_client_id
from reference_impl.client.message import Message
from reference_impl.client.names import group_name, name_server_list, topic_name
from reference_impl.protocol.bodies import TopicRoute, decode_reset_offsets
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.errors import ProtocolError
from reference_impl.protocol.headers import (
    PERM_READ,
    ConsumerGroupHeader,
    GetMaxOffsetHeader,
    GetMinOffsetHeader,
    GetRouteHeader,
    Header,
    OffsetResponse,
    QueryMessageHeader,
    ResetOffsetHeader,
    SearchOffsetHeader,
    UpdateConsumerOffsetHeader,
    ViewMessageHeader,
)
from reference_impl.protocol.message import StoredMessage, decode_all, parse_offset_message_id
from reference_impl.shell.client import RemotingClient
from reference_impl.shell.errors import UNREACHABLE, RequestFailed
from reference_impl.shell.recording import NoRecorder, Recorder
from specs.errors import UsageError
from specs.vocabulary import Kind, Level, Outcome, Queue

To: TypeAlias = Literal["first", "last"] | datetime | Mapping[Queue, int]
"""Where a group is to go on: the oldest message, the end, the first message stored at that time or later, or offsets
by queue; queues that are not named stay as they are."""

FIRST_MS, END_MS = 0, -1
AT_MOST_MAX = 64
"""What a broker answers to one look-up at most."""
UNIQUE_KEY_QUERY = {"_UNIQUE_KEY_QUERY": "true"}
_FOR_EVER_MS = 2**63 - 1
_NO_SUCH_MESSAGE = frozenset({ResponseCode.QUERY_NOT_FOUND, ResponseCode.SYSTEM_ERROR})


class Admin:
    """Asks brokers on an operator's behalf. timeout_s: for each request. recorder: is told each reset, for a history.

    Raises Refused when a broker says no, Unanswered when nobody answers, UsageError for a wrong argument.
    """

    def __init__(
        self,
        name_servers: str | Sequence[str],
        *,
        timeout_s: float = 5.0,
        client_id: str | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        self.client_id = client_id or new_client_id()
        self._name_servers = name_server_list(name_servers)
        self._timeout_ms = round(timeout_s * 1000)
        self._recorder = recorder or NoRecorder()
        self._remoting: RemotingClient | None = None
        self._resets = 0

    async def __aenter__(self) -> Self:
        self._remoting = RemotingClient()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._remoting is not None:
            await self._remoting.close()
            self._remoting = None

    # ------------------------------------------------------------ looking up

    async def by_key(
        self,
        topic: str,
        key: str,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        at_most: int = 32,
    ) -> list[Message]:
        """The topic's messages with that key among their `keys`, those stored last, in the order of storing.

        since, until: when they were stored, both included. at_most: of each broker, 1 to 64.
        """
        if not 1 <= at_most <= AT_MOST_MAX:
            raise UsageError(
                f"at_most is {at_most}; a broker answers 1 to {AT_MOST_MAX} messages at a time."
            )
        if not key or " " in key:
            raise UsageError(
                f"{key!r} is no key: the keys of a message are words, parted by blanks."
            )
        window = (0 if since is None else _ms(since), _FOR_EVER_MS if until is None else _ms(until))
        header = QueryMessageHeader(topic_name(topic), key, at_most, *window)
        found = await self._query(topic, header, {})
        # A broker may file messages by a hash of the key alone.
        return [message for message in found if key in message.keys]

    async def by_id(self, topic: str, message_id: str) -> Message | None:
        """The message with that id: its producer's (`Message.id`), or a broker's (`Message.offset_id`).

        None where there is none, or no more. Of several copies of a message the one stored first.
        """
        if not message_id:
            raise UsageError("An empty text is no id of a message.")
        brokers = await self._brokers(topic)
        try:
            address, place = parse_offset_message_id(message_id)
        except ProtocolError:
            address, place = "", -1
        for name, known in brokers.items():
            if known == address:
                answer = await self._ask(
                    known, RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageHeader(place)
                )
                if answer.code == ResponseCode.SUCCESS:
                    for message in _messages(answer, name):
                        if message.offset_id == message_id.upper():
                            return message
                    continue
                if answer.code not in _NO_SUCH_MESSAGE:
                    raise Refused(f"look up {message_id}", answer.code, answer.remark)
        header = QueryMessageHeader(topic, message_id, 32, 0, _FOR_EVER_MS)
        for message in await self._query(topic, header, UNIQUE_KEY_QUERY):
            if message_id in (message.id, message.properties.get("UNIQ_KEY")):
                return message
        return None

    async def _query(
        self, topic: str, header: QueryMessageHeader, more: Mapping[str, str]
    ) -> list[Message]:
        found: list[Message] = []
        for name, address in (await self._brokers(topic)).items():
            answer = await self._ask(address, RequestCode.QUERY_MESSAGE, header, more)
            if answer.code == ResponseCode.SUCCESS:
                found += _messages(answer, name)
            elif answer.code != ResponseCode.QUERY_NOT_FOUND:
                raise Refused(f"look up messages of {topic}", answer.code, answer.remark)
        return sorted(
            found, key=lambda message: (message.stored_ms, message.queue.broker, message.offset_id)
        )

    # ------------------------------------------------------------ resetting

    async def reset(self, group: str, topic: str, *, to: To) -> dict[Queue, int]:
        """The group goes on at another place. Where each queue of the topic (or each that is named) was reset to.

        Members that are at work hear of it when they pull next: within their long poll (15 s is RocketMQ's), and five
        seconds more with Apache's broker; before 5.2 they wait 10 s for running listeners. Until then messages may
        still be consumed. The group must exist, or be online.
        """
        group_name(group)
        route = await self._route(topic)
        moved: dict[Queue, int] = {}
        for name, address in _masters(route).items():
            queues = _queues_of(topic, route, name)
            if isinstance(to, Mapping):
                wanted = {queue: to[queue] for queue in queues if queue in to}
                moved |= await self._to_offsets(group, address, wanted)
            else:
                moved |= await self._to_a_time(group, address, queues, to)
        if isinstance(to, Mapping) and (unknown := to.keys() - moved.keys()):
            raise UsageError(
                f"{', '.join(map(str, sorted(unknown)))}: no queue of {topic} that can be read."
            )
        return moved

    async def _to_a_time(
        self,
        group: str,
        address: str,
        queues: Sequence[Queue],
        to: Literal["first", "last"] | datetime,
    ) -> dict[Queue, int]:
        if not queues:
            return {}
        topic = queues[0].topic
        at_ms = _ms(to) if isinstance(to, datetime) else {"first": FIRST_MS, "last": END_MS}.get(to)
        if at_ms is None:
            raise UsageError(
                f"A group is reset to 'first', 'last', a datetime or offsets by queue, not to {to!r}."
            )
        if not await self._keeps_resets(group, topic, address) and not await self._is_online(
            group, address
        ):
            found = {queue: await self._place(address, queue, at_ms) for queue in queues}
            return await self._commit(group, address, found)
        header = ResetOffsetHeader(topic, group, at_ms, is_force=True)
        op = self._begin(group, queues)
        answer = await self._try(op, address, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)
        return self._end(op, queues, answer)

    async def _to_offsets(
        self, group: str, address: str, wanted: Mapping[Queue, int]
    ) -> dict[Queue, int]:
        if not wanted:
            return {}
        topic = next(iter(wanted)).topic
        if not await self._keeps_resets(group, topic, address):
            if await self._is_online(group, address):
                raise UsageError(
                    f"{group} has members online, and a broker before 5.2 tells them times, not offsets: stop them "
                    "first, or name a time."
                )
            return await self._commit(group, address, wanted)
        moved: dict[Queue, int] = {}
        for queue, offset in sorted(wanted.items()):
            # With the time of the end, and without force: a broker that would overlook the offset moves nothing ahead.
            header = ResetOffsetHeader(topic, group, END_MS, queue_id=queue.queue_id, offset=offset)
            op = self._begin(group, [queue], offset)
            answer = await self._try(op, address, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)
            moved |= self._end(op, [queue], answer)
        return moved

    async def _keeps_resets(self, group: str, topic: str, address: str) -> bool:
        """Does the broker keep resets itself? From 5.2 on, which also has a code of its own for an empty commit."""
        ext = {"consumerGroup": group, "topic": topic}
        answer = await self._ask(address, RequestCode.UPDATE_CONSUMER_OFFSET, None, ext)
        if answer.code in (ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, ResponseCode.TOPIC_NOT_EXIST):
            raise Refused(f"reset {group}", answer.code, answer.remark)
        return answer.code == ResponseCode.INVALID_PARAMETER

    async def _is_online(self, group: str, address: str) -> bool:
        header = ConsumerGroupHeader(group)
        answer = await self._ask(address, RequestCode.GET_CONSUMER_LIST_BY_GROUP, header)
        return answer.code == ResponseCode.SUCCESS

    async def _place(self, address: str, queue: Queue, at_ms: int) -> int:
        header: Header
        if at_ms == FIRST_MS:
            code, header = (
                RequestCode.GET_MIN_OFFSET,
                GetMinOffsetHeader(queue.topic, queue.queue_id),
            )
        elif at_ms == END_MS:
            code, header = (
                RequestCode.GET_MAX_OFFSET,
                GetMaxOffsetHeader(queue.topic, queue.queue_id),
            )
        else:
            code, header = (
                RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
                SearchOffsetHeader(*queue[::2], at_ms),
            )
        answer = await self._ask(address, code, header)
        if answer.code != ResponseCode.SUCCESS:
            raise Refused(f"find a place in {queue}", answer.code, answer.remark)
        return OffsetResponse.from_ext(answer.ext).offset

    async def _commit(
        self, group: str, address: str, wanted: Mapping[Queue, int]
    ) -> dict[Queue, int]:
        """As a member would; nobody is there who could commit something else."""
        for queue, offset in sorted(wanted.items()):
            header = UpdateConsumerOffsetHeader(group, queue.topic, queue.queue_id, offset)
            op = self._begin(group, [queue], offset)
            answer = await self._try(op, address, RequestCode.UPDATE_CONSUMER_OFFSET, header)
            self._end(op, [queue], answer, offset)
        return dict(wanted)

    # ------------------------------------------------------------ what is recorded

    def _begin(self, group: str, queues: Sequence[Queue], offset: int | None = None) -> int:
        self._resets += 1
        common = {"client_id": self.client_id, "group": group, "level": Level.WIRE}
        fields = common if offset is None else {**common, "value": offset}
        self._recorder.begin(
            self._resets, Kind.RESET, fields, [queue._asdict() for queue in queues]
        )
        return self._resets

    async def _try(self, op: int, address: str, code: RequestCode, header: Header) -> Command:
        try:
            return await self._ask(address, code, header)
        except Unanswered as error:
            outcome = Outcome.UNKNOWN if error.maybe_done else Outcome.REFUSED
            self._recorder.end(op, outcome, {"detail": str(error)}, [])
            raise

    def _end(
        self, op: int, queues: Sequence[Queue], answer: Command, offset: int | None = None
    ) -> dict[Queue, int]:
        """Where the queues were reset to. offset: where the answer does not say so."""
        if answer.code != ResponseCode.SUCCESS:
            self._recorder.end(
                op, Outcome.REFUSED, {"code": answer.code, "detail": answer.remark}, []
            )
            raise Refused("reset the offsets", answer.code, answer.remark)
        moved = (
            decode_reset_offsets(answer.body) if offset is None else dict.fromkeys(queues, offset)
        )
        rows = [{"value": moved.get(queue)} for queue in queues]
        self._recorder.end(op, Outcome.OK, {"code": answer.code}, rows)
        return {queue: moved[queue] for queue in queues if queue in moved}

    # ------------------------------------------------------------ asking

    async def _route(self, topic: str) -> TopicRoute:
        """From the first name server that knows the topic."""
        header, answer, failure = GetRouteHeader(topic_name(topic), True), None, None
        for address in self._name_servers:
            try:
                answer = await self._ask(address, RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
            except Unanswered as error:
                failure = error
                continue
            if answer.code == ResponseCode.SUCCESS:
                return TopicRoute.decode(answer.body)
        if answer is None:
            assert failure is not None, "there is at least one name server"
            raise failure
        raise Refused(f"find {topic}", answer.code, answer.remark)

    async def _brokers(self, topic: str) -> dict[str, str]:
        return _masters(await self._route(topic))

    async def _ask(
        self,
        address: str,
        code: RequestCode,
        header: Header | None,
        more: Mapping[str, str] | None = None,
    ) -> Command:
        if self._remoting is None:
            raise UsageError(
                "The admin is not started: use it in `async with Admin(...) as admin:`."
            )
        ext = {**(header.to_ext() if header is not None else {}), **(more or {})}
        try:
            return await self._remoting.request(address, Command(code, ext), self._timeout_ms)
        except RequestFailed as error:
            raise Unanswered(str(error), maybe_done=error.reason != UNREACHABLE) from error


def _masters(route: TopicRoute) -> dict[str, str]:
    """Address by name of each broker that can be asked."""
    return {broker.broker: broker.master for broker in route.brokers if broker.master is not None}


def _queues_of(topic: str, route: TopicRoute, broker: str) -> list[Queue]:
    return [
        Queue(topic, broker, number)
        for item in route.queues
        if item.broker == broker and item.perm & PERM_READ
        for number in range(item.read_queues)
    ]


def _messages(answer: Command, broker: str) -> list[Message]:
    def as_message(stored: StoredMessage) -> Message:
        return Message.of(stored, Queue(stored.topic, broker, stored.queue_id), 0)

    return [as_message(stored) for stored in decode_all(answer.body)]


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
