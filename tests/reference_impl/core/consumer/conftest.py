"""A bench for one orderly consumer: a scripted broker that answers at once, a hand on the clock, and the listener.

Requests whose code is in `hold` stay open until `answer_held` or `fail_held`; `refused` lanes are never granted.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import pytest

from inorder.evidence.machines.answers import grants_of, messages_from, route_of, stored_offset
from reference_impl.core.consumer import ConsumerConfig, OrderlyConsumer
from reference_impl.core.io import (
    Answered,
    Begin,
    CallListener,
    CancelTimer,
    End,
    Failed,
    Input,
    ListenerReturned,
    Note,
    Oneway,
    Pushed,
    Request,
    SetTimer,
    Shutdown,
    Start,
    Stopped,
    TimerFired,
)
from reference_impl.protocol.bodies import (
    LockBatch,
    encode_consumer_ids,
)
from reference_impl.protocol.codes import RequestCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import OffsetResponse, SendHeader, SendResponse
from reference_impl.protocol.message import StoredMessage, unpack_properties
from specs.vocabulary import Kind, Outcome, Queue

T0 = 1_700_000_000_000


@dataclass
class Seen:
    """One operation as the recorder would see it."""

    kind: Kind
    fields: dict[str, Any]
    rows: list[dict[str, Any]]
    outcome: Outcome | None = None
    end_fields: dict[str, Any] = field(default_factory=dict)
    end_rows: list[dict[str, Any]] = field(default_factory=list)
    began_ms: int = 0
    ended_ms: int | None = None


class Bench:
    """One consumer `c1` of group `g` on topic `t` of broker `b0`; the group's retry topic is unknown."""

    def __init__(
        self,
        consumer_class: type[OrderlyConsumer] = OrderlyConsumer,
        queues: int = 1,
        **config: Any,
    ) -> None:
        settings = {"consume_from": "first", **config}
        settings.setdefault("topics", {"t": "*"})
        self.config = ConsumerConfig(client_id="c1", group="g", name_servers=("ns",), **settings)
        self.consumer = consumer_class(self.config)
        self.now = T0
        self.members = ["c1"]
        self.queues = {"t": queues}
        self.logs: dict[Queue, list[StoredMessage]] = {}
        self.min_offset: dict[Queue, int] = {}
        self.stored: dict[Queue, int] = {}
        self.refused: set[Queue] = set()
        self.hold: set[int] = set()
        self.codes: dict[int, list[int]] = {}
        self.held: list[Request] = []
        self.parked: list[tuple[Request, Queue, int]] = []
        self.sent: list[SendHeader] = []
        self.unlocked: list[Queue] = []
        self.effects: list[Any] = []
        self.calls: list[CallListener] = []
        self.seen: list[Seen] = []
        self._ops: dict[Hashable, Seen] = {}
        self._timers: dict[Hashable, int] = {}
        self._due: list[tuple[int, int, Hashable]] = []
        self._count = 0

    # ------------------------------------------------------------ driving

    def give(self, input: Input) -> list[Any]:
        """One input, and all that follows from it at this moment; the effects in their order."""
        at = len(self.effects)
        inputs = [input]
        while inputs:
            for effect in self.consumer.handle(self.now, inputs.pop(0)):
                self.effects.append(effect)
                inputs += self._carry_out(effect)
        return self.effects[at:]

    def start(self) -> Bench:
        self.give(Start())
        return self

    def advance(self, ms: int) -> None:
        """Lets time pass, firing timers in order."""
        end = self.now + ms
        while self._due and self._due[0][0] <= end:
            due, number, token = heapq.heappop(self._due)
            if self._timers.get(token) == number:
                del self._timers[token]
                self.now = due
                self.give(TimerFired(token))
        self.now = end

    def append(self, count: int = 1, queue_id: int = 0, **properties: str) -> None:
        """Messages come to a queue; parked pulls wake."""
        queue = Queue("t", "b0", queue_id)
        log = self.logs.setdefault(queue, [])
        for _ in range(count):
            offset = len(log) + self.min_offset.get(queue, 0)
            named = {"UNIQ_KEY": f"m{queue_id}-{offset}", **properties}
            log.append(StoredMessage("t", queue_id, offset, 100 * offset, b"body", named))
        woken, self.parked = self.parked, []
        for request, lane, asked in woken:
            self.give(Answered(request.token, self._read(lane, asked)))

    @property
    def call(self) -> CallListener:
        """The one listener call that is open."""
        assert len(self.calls) == 1, f"{len(self.calls)} calls are open"
        return self.calls[0]

    @property
    def offsets(self) -> list[int]:
        """Offsets of the open call; empty when there is none."""
        return [m.queue_offset for m in self.calls[0].messages] if self.calls else []

    def returns(
        self,
        outcome: Outcome = Outcome.SUCCESS,
        *,
        manual: bool = False,
        suspend_ms: int = -1,
        at: int = 0,
    ) -> list[Any]:
        call = self.calls.pop(at)
        return self.give(ListenerReturned(call.call_id, outcome, manual, suspend_ms))

    def notify(self) -> None:
        """The broker says that the group has changed; the minimal interval passes first."""
        self.advance(self.config.rebalance_min_ms)
        command = Command(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, {"consumerGroup": "g"}, flag=2)
        self.give(Pushed("b0:1", command))

    def take_away(self, *queues: int) -> None:
        """A member comes that sorts first, so that this client keeps only the later half of the queues."""
        self.members = ["a0", "c1"]
        self.notify()

    def shut_down(self) -> list[Any]:
        return self.give(Shutdown())

    def answer_held(self, code: int, *, keep: bool = False) -> None:
        """Answers the open requests of that code; keep: later ones stay open too."""
        found = self._unhold(code)
        if keep:
            self.hold.add(code)
        for request in found:
            self.give(Answered(request.token, self._answer(request)))

    def fail_held(self, code: int, reason: str = "timeout", *, keep: bool = False) -> None:
        """Fails the open requests of that code; keep: later ones stay open too."""
        found = self._unhold(code)
        if keep:
            self.hold.add(code)
        for request in found:
            self.give(Failed(request.token, reason))

    def refuse_held(self, code: int, error: int) -> None:
        """Answers the open requests of that code with an error."""
        for request in self._unhold(code):
            self.give(Answered(request.token, request.command.reply(error)))

    def _unhold(self, code: int) -> list[Request]:
        self.hold.discard(code)
        found = [request for request in self.held if request.command.code == code]
        self.held = [request for request in self.held if request.command.code != code]
        return found

    # ------------------------------------------------------------ observing

    def of(self, kind: Kind) -> list[Seen]:
        return [seen for seen in self.seen if seen.kind is kind]

    def commits(self) -> list[int]:
        return [seen.fields["value"] for seen in self.of(Kind.COMMIT)]

    def requests(self, code: int) -> list[Request]:
        return [e for e in self.effects if isinstance(e, Request) and e.command.code == code]

    def timer(self, name: str) -> list[int]:
        """The delays with which timers of that name were set."""
        return [e.delay_ms for e in self.effects if isinstance(e, SetTimer) and e.token[0] == name]

    # ------------------------------------------------------------ the world

    def _carry_out(self, effect: Any) -> list[Input]:
        match effect:
            case Request():
                return self._request(effect)
            case Oneway(_, command):
                self._oneway(command)
            case SetTimer(token, delay_ms):
                self._count += 1
                self._timers[token] = self._count
                heapq.heappush(self._due, (self.now + delay_ms, self._count, token))
            case CancelTimer(token):
                self._timers.pop(token, None)
            case CallListener():
                self.calls.append(effect)
            case Begin(op, kind, fields, rows):
                seen = Seen(kind, dict(fields), [dict(row) for row in rows], began_ms=self.now)
                self._ops[op] = seen
                self.seen.append(seen)
            case End(op, outcome, fields, rows):
                seen = self._ops.pop(op)
                seen.outcome, seen.end_fields, seen.ended_ms = outcome, dict(fields), self.now
                seen.end_rows = [dict(row) for row in rows]
            case Note(kind, outcome, fields):
                self.seen.append(
                    Seen(kind, dict(fields), [], outcome, began_ms=self.now, ended_ms=self.now)
                )
            case Stopped():
                pass
        return []

    def _request(self, request: Request) -> list[Input]:
        if request.command.code in self.hold:
            self.held.append(request)
            return []
        answer = self._answer(request)
        return [] if answer is None else [Answered(request.token, answer)]

    def _oneway(self, command: Command) -> None:
        if command.code == RequestCode.UNLOCK_BATCH_MQ:
            self.unlocked += LockBatch.decode(command.body).queues
        elif command.code == RequestCode.UPDATE_CONSUMER_OFFSET:
            self.stored[self._queue(command)] = int(command.ext["commitOffset"])

    def _queue(self, command: Command) -> Queue:
        return Queue(command.ext["topic"], "b0", int(command.ext["queueId"]))

    def _answer(self, request: Request) -> Command | None:
        command = request.command
        codes = self.codes.get(command.code)
        if codes:
            return Command(codes.pop(0), flag=1, remark="as scripted")
        match command.code:
            case RequestCode.GET_ROUTEINFO_BY_TOPIC:
                return route_of(command.ext["topic"], self.queues, "b0")
            case RequestCode.GET_CONSUMER_LIST_BY_GROUP:
                return Command(0, body=encode_consumer_ids(self.members), flag=1)
            case RequestCode.LOCK_BATCH_MQ:
                return grants_of(command, self.refused)
            case RequestCode.QUERY_CONSUMER_OFFSET:
                return stored_offset(self.stored.get(self._queue(command)))
            case RequestCode.GET_MAX_OFFSET:
                return Command(0, OffsetResponse(self._end(self._queue(command))).to_ext(), flag=1)
            case RequestCode.SEARCH_OFFSET_BY_TIMESTAMP:
                return Command(0, OffsetResponse(2).to_ext(), flag=1)
            case RequestCode.PULL_MESSAGE:
                return self._pull(request)
            case RequestCode.SEND_MESSAGE_V2:
                self.sent.append(SendHeader.from_ext_v2(command.ext))
                return Command(0, SendResponse("0" * 32, 0, len(self.sent) - 1).to_ext(), flag=1)
            case _:
                return Command(0, flag=1)

    def _end(self, queue: Queue) -> int:
        return len(self.logs.get(queue, ())) + self.min_offset.get(queue, 0)

    def _pull(self, request: Request) -> Command | None:
        ext = request.command.ext
        queue, asked = self._queue(request.command), int(ext["queueOffset"])
        if int(ext["sysFlag"]) & 1:
            self.stored[queue] = int(ext["commitOffset"])
        if asked == self._end(queue):
            self.parked.append((request, queue, asked))
            return None
        return self._read(queue, asked)

    def _read(self, queue: Queue, asked: int) -> Command:
        log, low = self.logs.get(queue, []), self.min_offset.get(queue, 0)
        return messages_from(asked, log, low, self.config.pull_batch)


def properties_of(header: SendHeader) -> dict[str, str]:
    return unpack_properties(header.properties or "")


@pytest.fixture
def bench() -> type[Bench]:
    """The class: `bench(queues=2, batch=3)` builds one, not started."""
    return Bench


@pytest.fixture
def one_message(bench: type[Bench]) -> Bench:
    """A started consumer with the first of three messages at its listener."""
    made = bench().start()
    made.append(3)
    assert made.offsets == [0]
    return made
