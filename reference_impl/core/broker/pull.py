"""PULL_MESSAGE, with waiting for what is not there yet.

What a read meets is answered by one table. A pull at the queue's end that may be suspended is parked until a
message arrives that its filter wants, or its time is up; then it is read once more and answered as it is. A
commit that travels with the pull is applied before the read, at the first pass only, and like every commit it
is not asked for a lease; neither is the pull. No more than `parked_pulls_max` wait; a further one is refused with
SYSTEM_BUSY.

A pull is given no more than `pull_messages_max` messages and `pull_bytes_max` bytes, but always one.

Where an operator has reset the group's offset, the next pull of the queue takes that word instead of messages: it is
answered PULL_OFFSET_MOVED with the new offset, and the commit that came with it changes nothing. A parked pull
hears of it when it is answered.
Source: docs/sources.md#pull (PullMessageProcessor, PullRequestHoldService, DefaultMessageStore.isTheBatchFull).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from reference_impl.core.broker.log import Read, ReadResult
from reference_impl.core.broker.parts import OVERLOAD, Parts, Refused
from reference_impl.core.io import ConnId, Effect, Send, SetTimer
from reference_impl.protocol.bodies import Subscription
from reference_impl.protocol.codes import ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.errors import ProtocolError
from reference_impl.protocol.headers import (
    PERM_READ,
    PULL_COMMIT,
    PULL_SUBSCRIPTION,
    PULL_SUSPEND,
    PullHeader,
)

HOLD_TIMER = "holds"

READ_TO_CODE: Mapping[Read, ResponseCode] = MappingProxyType(
    {
        Read.FOUND: ResponseCode.SUCCESS,
        Read.NO_MATCH: ResponseCode.PULL_RETRY_IMMEDIATELY,
        Read.AT_END: ResponseCode.PULL_NOT_FOUND,
        Read.BEYOND_END: ResponseCode.PULL_OFFSET_MOVED,
        Read.BELOW_START: ResponseCode.PULL_OFFSET_MOVED,
        Read.EMPTY: ResponseCode.PULL_NOT_FOUND,
        Read.EMPTY_BEYOND: ResponseCode.PULL_OFFSET_MOVED,
        Read.RESET: ResponseCode.PULL_OFFSET_MOVED,
    }
)

Wanted = Callable[[int], bool]


@dataclass(frozen=True, slots=True)
class Hold:
    """A parked pull. wanted: its filter by tag code, None for all."""

    conn: ConnId
    request: Command
    header: PullHeader
    wanted: Wanted | None
    until_ms: int


class Pulling:
    read_to_code: ClassVar[Mapping[Read, ResponseCode]] = READ_TO_CODE

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._holds: dict[tuple[str, int], dict[int, Hold]] = {}
        self._due: list[tuple[int, int, tuple[str, int]]] = []
        self._parked = 0
        self._next_id = 0
        self._armed_ms: int | None = None

    def pull(
        self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]
    ) -> Command | None:
        header = PullHeader.from_ext(request.ext)
        if header.sys_flag & PULL_SUSPEND and self._parked >= self._parts.config.parked_pulls_max:
            raise Refused(
                ResponseCode.SYSTEM_BUSY, OVERLOAD
            )  # before its commit is applied: all of it is refused
        self.check(header)
        wanted = self.filter(header)
        self._parts.pulled[header.consumer_group, header.topic, header.queue_id] = (
            header.queue_offset
        )
        if header.sys_flag & PULL_COMMIT:
            self._parts.offsets.commit(
                now_ms, header.consumer_group, header.topic, header.queue_id, header.commit_offset
            )
        result = self.reset(header) or self.read(header, wanted)
        code = self.read_to_code[result.status]
        may_wait = header.sys_flag & PULL_SUSPEND and self._parts.config.long_polling
        if code is ResponseCode.PULL_NOT_FOUND and may_wait and header.suspend_timeout_millis > 0:
            self._park(
                now_ms,
                Hold(conn, request, header, wanted, now_ms + header.suspend_timeout_millis),
                out,
            )
            return None
        return self.answer(request, result)

    def check(self, header: PullHeader) -> None:
        """Raises Refused with the code that RocketMQ answers."""
        group = self._parts.groups.find(header.consumer_group)
        if group is None:
            raise Refused(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
                f"group {header.consumer_group} does not exist",
            )
        if not group.consume_enable:
            raise Refused(
                ResponseCode.NO_PERMISSION, f"group {header.consumer_group} may not consume"
            )
        topic = self._parts.topics.find(header.topic)
        if topic is None:
            raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"topic {header.topic} does not exist")
        if not topic.perm & PERM_READ:
            raise Refused(ResponseCode.NO_PERMISSION, f"topic {header.topic} is not readable")
        if not 0 <= header.queue_id < topic.read_queues:
            code = self._parts.config.rules.bad_queue_id
            raise Refused(code, f"topic {header.topic} has no queue {header.queue_id}")

    def read(self, header: PullHeader, wanted: Wanted | None) -> ReadResult:
        return self._parts.store.read(
            header.topic,
            header.queue_id,
            header.queue_offset,
            max(1, min(header.max_msg_nums, self._parts.config.pull_messages_max)),
            self._parts.config.pull_bytes_max,
            wanted,
        )

    def reset(self, header: PullHeader) -> ReadResult | None:
        """What an operator's reset makes of the pull, which takes it; None where none stands."""
        offset = self._parts.offsets.take_reset(
            header.consumer_group, header.topic, header.queue_id
        )
        if offset is None:
            return None
        queue = self._parts.store.queue(header.topic, header.queue_id)
        return ReadResult(Read.RESET, offset, queue.min_offset, queue.max_offset)

    def answer(self, request: Command, result: ReadResult) -> Command:
        return request.reply(
            self.read_to_code[result.status],
            {
                "suggestWhichBrokerId": "0",
                "nextBeginOffset": str(result.next_offset),
                "minOffset": str(result.min_offset),
                "maxOffset": str(result.max_offset),
            },
            result.body,
        )

    # ------------------------------------------------------------ waiting

    def wake(self, now_ms: int, queue: tuple[str, int], out: list[Effect]) -> None:
        """A message arrived: answer the parked pulls that it satisfies; the others go on waiting."""
        waiting = self._holds.get(queue)
        if not waiting:
            return
        for number, hold in list(waiting.items()):
            result = self.read(hold.header, hold.wanted)
            if result.status not in (Read.NO_MATCH, Read.AT_END):
                del waiting[number]
                self._parked -= 1
                self._answer_hold(hold, self.reset(hold.header) or result, out)

    def expire(self, now_ms: int, out: list[Effect]) -> None:
        """The timer fired: answer the pulls whose time is up, as the queue is now."""
        self._armed_ms = None
        while self._due and self._due[0][0] <= now_ms:
            _, number, queue = heapq.heappop(self._due)
            hold = self._holds.get(queue, {}).pop(number, None)
            if hold is not None:
                self._parked -= 1
                result = self.reset(hold.header) or self.read(hold.header, hold.wanted)
                self._answer_hold(hold, result, out)
        self._arm(now_ms, out)

    def _park(self, now_ms: int, hold: Hold, out: list[Effect]) -> None:
        queue = (hold.header.topic, hold.header.queue_id)
        self._next_id += 1
        self._parked += 1
        self._holds.setdefault(queue, {})[self._next_id] = hold
        heapq.heappush(self._due, (hold.until_ms, self._next_id, queue))
        self._arm(now_ms, out)

    def _arm(self, now_ms: int, out: list[Effect]) -> None:
        """One timer, for the earliest pull that still waits."""
        while self._due and self._due[0][1] not in self._holds[self._due[0][2]]:
            heapq.heappop(self._due)
        if self._due and (self._armed_ms is None or self._due[0][0] < self._armed_ms):
            self._armed_ms = self._due[0][0]
            out.append(SetTimer(HOLD_TIMER, max(0, self._armed_ms - now_ms)))

    def _answer_hold(self, hold: Hold, result: ReadResult, out: list[Effect]) -> None:
        out.append(Send(hold.conn, self.answer(hold.request, result)))

    def closed(self, conn: ConnId) -> None:
        """Nobody waits on a closed connection."""
        for waiting in self._holds.values():
            for number in [number for number, hold in waiting.items() if hold.conn == conn]:
                del waiting[number]
                self._parked -= 1

    # ------------------------------------------------------------ filters

    def filter(self, header: PullHeader) -> Wanted | None:
        """Which tag codes the pull wants: by its own subscription, else by the one its group registered."""
        if header.sys_flag & PULL_SUBSCRIPTION:
            expression = header.subscription or "*"
            if expression == "*":
                return None
            subscription = self._parse(header, expression)
        else:
            subscription = self._registered(header)
        if subscription.sub_string.strip() in ("", "*"):
            return None
        return frozenset(subscription.codes).__contains__

    def _parse(self, header: PullHeader, expression: str) -> Subscription:
        if header.expression_type not in (None, "", "TAG"):
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                f"this broker does not filter by {header.expression_type}",
            )
        try:
            return Subscription.of(header.topic, expression, header.sub_version)
        except ProtocolError as error:
            raise Refused(ResponseCode.SUBSCRIPTION_PARSE_FAILED, str(error)) from error

    def _registered(self, header: PullHeader) -> Subscription:
        subscription = self._parts.members.subscription(header.consumer_group, header.topic)
        if subscription is None:
            raise Refused(
                ResponseCode.SUBSCRIPTION_NOT_EXIST,
                f"group {header.consumer_group} has not subscribed to {header.topic}",
            )
        if subscription.sub_version < header.sub_version:
            raise Refused(
                ResponseCode.SUBSCRIPTION_NOT_LATEST, "the subscription is older than the pull's"
            )
        return subscription
