"""A broker core beside the abstract model of a broker, with a clock that the program moves.

Every request is put to both, and what the core shows must be what one of the model's possible pasts would show.
The core is called directly: no socket, no thread, virtual time, to the millisecond. A request may be lost on its
way, or its answer; then the model is not told whether it happened.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping
from typing import Any

from inorder.evidence.machines.programs import Bench, Disagreement
from reference_impl.core.broker import Broker, BrokerConfig, BrokerStore
from reference_impl.core.io import (
    Close,
    Closed,
    Effect,
    Input,
    Opened,
    Received,
    Send,
    SetTimer,
    Start,
    TimerFired,
)
from reference_impl.mutants import Mutant
from reference_impl.protocol.bodies import (
    ConsumerData,
    Heartbeat,
    LockBatch,
    Subscription,
    SubscriptionGroup,
    decode_consumer_ids,
    decode_lock_answer,
    decode_reset_offsets,
)
from reference_impl.protocol.codes import RequestCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.errors import ProtocolError
from reference_impl.protocol.headers import (
    PULL_COMMIT,
    PULL_SUBSCRIPTION,
    PULL_SUSPEND,
    ConsumerGroupHeader,
    CreateTopicHeader,
    DeleteGroupHeader,
    GetMaxOffsetHeader,
    GetMinOffsetHeader,
    PullHeader,
    QueryConsumerOffsetHeader,
    ResetOffsetHeader,
    SearchOffsetHeader,
    SendBackHeader,
    SendHeader,
    UnregisterClientHeader,
    UpdateConsumerOffsetHeader,
    ViewMessageHeader,
)
from reference_impl.protocol.message import (
    PROPERTY_DELAY,
    PROPERTY_ORIGIN_MESSAGE_ID,
    PROPERTY_RETRY_TOPIC,
    PROPERTY_TAGS,
    PROPERTY_UNIQ_KEY,
    BatchPart,
    StoredMessage,
    decode_all,
    encode_batch,
    pack_properties,
    parse_offset_message_id,
)
from reference_impl.sim.time import EPOCH_MS
from specs.model import broker as model
from specs.model.broker import Answer, Message, Oracle, Pushed, Request, Rules, Seen
from specs.vocabulary import SCHEDULE_TOPIC, Queue, retry_topic

BROKER = "b0"
ORIGIN_TOPIC = "orders"
"""Where a copy says that it comes from."""
STATES_MAX = 12
"""With more possible pasts than this nothing is lost any more, until some are ruled out."""
NUMBERS: Mapping[str, Any] = {
    "lease_ms": 3_000,
    "persist_first_ms": 1_000,
    "persist_ms": 500,
    "channel_expiry_ms": 4_000,
    "pull_messages_max": 4,
}
"""Short times, in the ratios of the product's, and pulls that are soon full."""
SCAN_MS = 1_000
DELAY_LEVELS = "1s 2s 5s"
FATES = ("answered", "answered", "answered", "answered", "request lost", "answer lost")
_NOWHERE = 1 << 40
_READ = frozenset({0, 19, 20, 21})


class BrokerBench(Bench):
    """One broker, its store, and the oracle."""

    def __init__(self, mutant: Mutant | None) -> None:
        super().__init__(mutant)
        self._class = Broker if mutant is None else mutant.broker
        self.now_ms = EPOCH_MS
        self._number = 0
        self._asked: dict[int, Request] = {}
        self._names: dict[
            int, str
        ] = {}  # of the messages that were asked for by their place in the log

    def begin(self, version: str) -> None:
        self.config = BrokerConfig(
            name=BROKER,
            dialect=version,
            delay_levels=DELAY_LEVELS,
            channel_scan_ms=SCAN_MS,
            **NUMBERS,
        )
        delays = (1_000, 2_000, 5_000)
        self.rules = Rules.of(version, **NUMBERS, channel_scan_ms=SCAN_MS, delay_ms=delays)
        self.store = BrokerStore()
        self.oracle = Oracle(self.rules, self.now_ms)
        self.is_up = False
        self.restart()

    # ------------------------------------------------------------ the process

    def crash(self) -> None:
        """What lies in the store stays."""
        if self.is_up:
            self.is_up = False
            self.oracle.crash(self.now_ms)

    def restart(self) -> None:
        if self.is_up:
            return
        self.is_up = True
        self._timers: dict[Hashable, int] = {}
        self._connected: set[str] = set()
        self.broker = self._class(self.config, self.store)
        self._check(self.oracle.boot(self.now_ms, self._feed(Start())))

    def close(self, conn: str) -> None:
        if self.is_up and conn in self._connected:
            self._connected.discard(conn)
            self._check(self.oracle.closed(conn, self._feed(Closed(conn))))

    def trim(self, topic: str, queue_id: int, start: int) -> None:
        """Retention takes the messages below `start`."""
        self.store.trim(topic, queue_id, start)
        self.oracle.trim((topic, queue_id), start)

    def fill(self, is_full: bool) -> None:
        """The disk is full, or has room again."""
        self.store.is_full = is_full
        self.oracle.fill(is_full)

    # ------------------------------------------------------------ time

    def wait(self, ms: int) -> None:
        """Time passes; everything that is due happens at its moment, and the model expects it then."""
        end_ms = self.now_ms + ms
        while True:
            times = [*self._timers.values()] if self.is_up else []
            expected_ms = self.oracle.next_ms() if self.is_up else None
            if expected_ms is not None:
                times.append(max(expected_ms, self.now_ms))
            next_ms = min(times, default=end_ms + 1)
            if next_ms > end_ms:
                break
            self.now_ms = next_ms
            self._check(self.oracle.due(next_ms, self._fire()))
        self.now_ms = end_ms

    def _fire(self) -> Seen:
        """Every timer that is due now; what is delayed comes before what gives up waiting for it."""
        pushed: list[Pushed] = []
        due = [token for token, at_ms in self._timers.items() if at_ms <= self.now_ms]
        for token in sorted(
            due, key=lambda token: (not isinstance(token, tuple), token == "channels", str(token))
        ):
            if self._timers.pop(token, None) is not None:
                pushed += self._feed(TimerFired(token)).pushed
        return Seen(None, tuple(sorted(pushed, key=repr)))

    # ------------------------------------------------------------ requests

    def ask(self, conn: str, request: Request, fate: str = "answered") -> Answer | None:
        """Put the request to both. fate: `answered`, `request lost` or `answer lost`."""
        if not self.is_up:
            return None
        if len(self.oracle.states) > STATES_MAX:
            fate = "answered"
        if conn not in self._connected:
            self._connected.add(conn)
            self._feed(Opened(conn, "127.0.0.1:4000"))
        self._number += 1
        self._asked[self._number] = request
        seen = Seen()
        if fate != "request lost":
            seen = self._feed(Received(conn, self._command(request)), self._number)
        wrong = self.oracle.ask(
            conn, self._number, request, self.now_ms, seen, answered=fate == "answered"
        )
        self._check(wrong)
        return seen.answer

    def _check(self, wrong: model.Wrong | None) -> None:
        if wrong is not None:
            raise Disagreement(f"{self.now_ms - EPOCH_MS} ms: {wrong}")

    def _feed(self, event: Input, number: int = 0) -> Seen:
        answer: Answer | None = None
        pushed: list[Pushed] = []
        effects = deque[Effect](self.broker.handle(self.now_ms, event))
        while effects:
            effect = effects.popleft()
            match effect:
                case Send(conn, command) if command.is_response and command.opaque == number:
                    answer = self._answer(number, command)
                case Send(conn, command) if command.is_response:
                    pushed.append(
                        Pushed(str(conn), command.opaque, self._answer(command.opaque, command))
                    )
                case Send(conn, command) if (
                    command.code == RequestCode.RESET_CONSUMER_CLIENT_OFFSET
                ):
                    told = self._told(decode_reset_offsets(command.body))
                    about = (command.ext.get("group"), command.ext.get("topic"), told)
                    pushed.append(Pushed(str(conn), about))
                case Send(conn, command):
                    pushed.append(Pushed(str(conn), command.ext.get("consumerGroup")))
                case SetTimer(token, delay_ms):
                    self._timers[token] = self.now_ms + max(0, delay_ms)
                case Close(conn) if conn in self._connected:
                    # Whoever closes a connection hears of its end, as of any other's.
                    self._connected.discard(str(conn))
                    effects += self.broker.handle(self.now_ms, Closed(conn))
                case _:
                    pass
        return Seen(answer, tuple(sorted(pushed, key=repr)))

    # ------------------------------------------------------------ to the wire and back

    def _command(self, request: Request) -> Command:
        code, ext, body = self._encode(request)
        return Command(code, ext, body, self._number)

    def _encode(self, request: Request) -> tuple[int, Mapping[str, str], bytes]:
        match request:
            case model.Lock(group, client, queues):
                return RequestCode.LOCK_BATCH_MQ, {}, LockBatch(group, client, queues).encode()
            case model.Unlock(group, client, queues):
                return RequestCode.UNLOCK_BATCH_MQ, {}, LockBatch(group, client, queues).encode()
            case model.CreateTopic(topic, queues):
                return (
                    RequestCode.UPDATE_AND_CREATE_TOPIC,
                    CreateTopicHeader(topic, queues, queues).to_ext(),
                    b"",
                )
            case model.CreateGroup(group, retry_max):
                body = SubscriptionGroup(group, retry_max_times=retry_max).encode()
                return RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, body
            case model.DeleteGroup(group, with_offsets):
                gone = DeleteGroupHeader(group, with_offsets)
                return RequestCode.DELETE_SUBSCRIPTIONGROUP, gone.to_ext(), b""
            case model.Send():
                return self._send(request)
            case model.SendBatch(topic, queue_id, names):
                parts = [BatchPart(name.encode(), {PROPERTY_UNIQ_KEY: name}) for name in names]
                header = SendHeader("P", topic, queue_id, self.now_ms, batch=True)
                return RequestCode.SEND_BATCH_MESSAGE, header.to_ext_v2(), encode_batch(parts)
            case model.SendBack(group, topic, queue_id, offset, level, limit):
                place = self._place(topic, queue_id, offset)
                back = SendBackHeader(place, group, level, max_reconsume_times=limit)
                return RequestCode.CONSUMER_SEND_MSG_BACK, back.to_ext(), b""
            case model.Pull():
                return RequestCode.PULL_MESSAGE, self._pull(request), b""
            case model.Fetch(group, topic, queue_id, zero):
                fetch = QueryConsumerOffsetHeader(group, topic, queue_id, zero)
                return RequestCode.QUERY_CONSUMER_OFFSET, fetch.to_ext(), b""
            case model.Commit(group, topic, queue_id, value):
                commit = UpdateConsumerOffsetHeader(group, topic, queue_id, value)
                return RequestCode.UPDATE_CONSUMER_OFFSET, commit.to_ext(), b""
            case model.Reset(group, topic, queue_id, offset, at_ms, force):
                reset = ResetOffsetHeader(topic, group, at_ms, force, queue_id, offset)
                return RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, reset.to_ext(), b""
            case model.MaxOffset(topic, queue_id):
                return RequestCode.GET_MAX_OFFSET, GetMaxOffsetHeader(topic, queue_id).to_ext(), b""
            case model.MinOffset(topic, queue_id):
                return RequestCode.GET_MIN_OFFSET, GetMinOffsetHeader(topic, queue_id).to_ext(), b""
            case model.Search(topic, queue_id, at_ms, upper):
                search = SearchOffsetHeader(topic, queue_id, at_ms, "UPPER" if upper else None)
                return RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, search.to_ext(), b""
            case model.View(topic, queue_id, offset):
                view = ViewMessageHeader(self._place(topic, queue_id, offset))
                return RequestCode.VIEW_MESSAGE_BY_ID, view.to_ext(), b""
            case model.Beat(client, groups):
                consumers = tuple(
                    ConsumerData(
                        group,
                        subscriptions=tuple(Subscription.of(topic) for topic in sorted(topics)),
                    )
                    for group, topics in groups
                )
                return RequestCode.HEART_BEAT, {}, Heartbeat(client, (), consumers).encode()
            case model.Unregister(client, group):
                leave = UnregisterClientHeader(client, consumer_group=group)
                return RequestCode.UNREGISTER_CLIENT, leave.to_ext(), b""
            case model.Members(group):
                return (
                    RequestCode.GET_CONSUMER_LIST_BY_GROUP,
                    ConsumerGroupHeader(group).to_ext(),
                    b"",
                )
            case model.Unknown(code):
                return code, {}, b""

    def _send(self, request: model.Send) -> tuple[int, Mapping[str, str], bytes]:
        properties = {PROPERTY_UNIQ_KEY: request.message}
        if request.tag is not None:
            properties[PROPERTY_TAGS] = request.tag
        if request.origin is not None:
            properties |= {
                PROPERTY_ORIGIN_MESSAGE_ID: request.origin,
                PROPERTY_RETRY_TOPIC: ORIGIN_TOPIC,
            }
        if request.level:
            properties[PROPERTY_DELAY] = str(request.level)
        header = SendHeader(
            "P",
            request.topic,
            request.queue_id,
            self.now_ms,
            properties=pack_properties(properties),
            reconsume_times=request.times,
            max_reconsume_times=request.limit,
        )
        return RequestCode.SEND_MESSAGE_V2, header.to_ext_v2(), request.message.encode()

    def _pull(self, request: model.Pull) -> Mapping[str, str]:
        flags = PULL_SUBSCRIPTION
        flags |= PULL_COMMIT if request.commit is not None else 0
        flags |= PULL_SUSPEND if request.wait_ms else 0
        return PullHeader(
            request.group,
            request.topic,
            request.queue_id,
            request.offset,
            request.most,
            flags,
            request.commit or 0,
            request.wait_ms,
            "*" if request.tags is None else "||".join(sorted(request.tags)),
        ).to_ext()

    def _place(self, topic: str, queue_id: int, offset: int) -> int:
        """Where the message lies in the log; a place that there is not, where there is no such message."""
        found = self.store.queue(topic, queue_id).get(offset)
        if found is None:
            return _NOWHERE
        self._names[found.physical_offset] = found.message_id or "?"
        return found.physical_offset

    def _answer(self, number: int, command: Command) -> Answer:
        try:
            return Answer(int(command.code), self._value(self._asked[number], command))
        except (ProtocolError, KeyError, ValueError) as error:
            raise Disagreement(
                f"{self._asked[number]}: the answer {command} can't be read: {error!r}"
            ) from error

    def _value(self, request: Request, command: Command) -> Hashable:
        ext, is_ok = command.ext, command.code == 0
        match request:
            case model.Lock() if is_ok:
                return decode_lock_answer(command.body)
            case model.Send() if is_ok:
                _, place = parse_offset_message_id(ext["msgId"])
                stored = self.store.at(place)
                waits = stored is not None and stored.topic == SCHEDULE_TOPIC
                return None if waits else (int(ext["queueId"]), int(ext["queueOffset"]))
            case model.SendBatch() if is_ok:
                return int(ext["queueId"]), int(ext["queueOffset"])
            case model.Pull() if command.code in _READ:
                found = tuple((m.queue_offset, self._message(m)) for m in decode_all(command.body))
                return (
                    int(ext["nextBeginOffset"]),
                    int(ext["minOffset"]),
                    int(ext["maxOffset"]),
                    found,
                )
            case model.Reset() if is_ok:
                moved = decode_reset_offsets(command.body)
                if not self.rules.server_side_reset:
                    return self._told(moved)
                ((queue, offset),) = moved.items()
                return offset if queue == Queue(request.topic, BROKER, request.queue_id) else queue
            case model.Fetch() | model.MaxOffset() | model.MinOffset() | model.Search() if is_ok:
                return int(ext["offset"])
            case model.View() if is_ok:
                (message,) = decode_all(command.body)
                return self._message(message)
            case model.Members() if is_ok:
                return tuple(sorted(decode_consumer_ids(command.body)))
            case _:
                return None

    def _told(self, moved: Mapping[Queue, int]) -> tuple[int, ...]:
        """A reset that is left to the clients: the offset of every queue, in order."""
        return tuple(moved[queue] for queue in sorted(moved))

    def _message(self, stored: StoredMessage) -> Message:
        name = stored.message_id or "?"
        if stored.body.decode() != name:
            name = f"{name} with the body of {stored.body.decode()}"
        return Message(
            name, stored.tags, stored.reconsume_times, self._origin(stored), stored.store_ms
        )

    def _origin(self, stored: StoredMessage) -> str | None:
        """A copy that the broker made names its origin by its place in the log."""
        origin = stored.origin_id
        if origin is None:
            return None
        try:
            _, place = parse_offset_message_id(origin)
        except ProtocolError:
            return origin
        return self._names.get(place, origin)  # retention may have taken it since

    # ------------------------------------------------------------ verbs that several machines have

    def lock(self, who: str, group: str, queues: list[list[Any]], fate: str) -> None:
        self.ask(who, model.Lock(group, who, _queues(queues)), fate)

    def unlock(self, who: str, group: str, queues: list[list[Any]], fate: str) -> None:
        self.ask(who, model.Unlock(group, who, _queues(queues)), fate)

    def create_topic(self, topic: str, queues: int) -> None:
        self.ask("admin", model.CreateTopic(topic, queues))

    def send(self, topic: str, queue_id: int, fate: str = "answered", **fields: Any) -> None:
        """A message; its id is made from the number of the request."""
        self.ask("producer", model.Send(topic, queue_id, f"m{self._number + 1}", **fields), fate)

    def commit(
        self, who: str, group: str, topic: str, queue_id: int, value: int, fate: str
    ) -> None:
        self.ask(who, model.Commit(group, topic, queue_id, value), fate)

    def reset(
        self,
        group: str,
        topic: str,
        queue_id: int,
        offset: int | None,
        ago_ms: int | None,
        fate: str,
    ) -> None:
        """An operator's word: an offset, or a time before now, or (neither) the end. Who names no offset insists."""
        at_ms = -1 if ago_ms is None else self.now_ms - ago_ms
        self.ask("admin", model.Reset(group, topic, queue_id, offset, at_ms, offset is None), fate)

    def delete_group(self, group: str, with_offsets: bool, fate: str) -> None:
        self.ask("admin", model.DeleteGroup(group, with_offsets), fate)

    def fetch(
        self, who: str, group: str, topic: str, queue_id: int, zero: bool | None, fate: str
    ) -> None:
        self.ask(who, model.Fetch(group, topic, queue_id, zero), fate)

    def pull(
        self, who: str, group: str, topic: str, queue_id: int, offset: int, fate: str, **fields: Any
    ) -> None:
        tags = fields.pop("tags", None)
        wanted = None if tags is None else frozenset(tags)
        self.ask(who, model.Pull(group, topic, queue_id, offset, tags=wanted, **fields), fate)

    def beat(self, who: str, conn: str, group: str, topics: list[str], fate: str) -> None:
        self.ask(conn, model.Beat(who, ((group, frozenset(topics)),)), fate)

    def unregister(self, who: str, conn: str, group: str, fate: str) -> None:
        self.ask(conn, model.Unregister(who, group), fate)

    def members(self, who: str, group: str) -> None:
        self.ask(who, model.Members(group))

    def bounds(self, topic: str, queue_id: int) -> None:
        self.ask("admin", model.MaxOffset(topic, queue_id))
        self.ask("admin", model.MinOffset(topic, queue_id))

    def unknown(self, code: int) -> None:
        self.ask("admin", model.Unknown(code))

    # ------------------------------------------------------------ what the model knows

    @property
    def past(self) -> model.State:
        """One of the possible pasts: good enough to aim at its boundaries."""
        return self.oracle.states[0]

    def end_of(self, topic: str, queue_id: int) -> int:
        return self.past.end((topic, queue_id))

    def look_again(self, group: str) -> None:
        """Read everything once, by which what was unknown comes to light."""
        for (topic, queue_id), log in sorted(self.past.logs.items()):
            if log and topic in self.past.topics:
                start = self.past.starts.get((topic, queue_id), 0)
                self.ask("reader", model.Pull(group, topic, queue_id, start, 1_000))

    def end(self) -> None:
        """At the end everything is asked for once."""
        if not self.begun:
            return
        self.restart()
        for group, topic, queue_id in sorted(self.past.offsets):
            self.ask("reader", model.Fetch(group, topic, queue_id))
        for group in sorted(self.past.members):
            self.ask("reader", model.Members(group))
        self.look_again("reader")

    def abstract(self) -> Hashable:
        """How many pasts, how many leases live and are over, how much is stored, waits, is parked, belongs."""
        if not self.begun:
            return None
        past = self.past
        living = sum(
            self.now_ms - since.ended <= self.rules.lease_ms for _, since in past.locks.values()
        )
        return (
            self.is_up,
            min(len(self.oracle.states), 4),
            living,
            len(past.locks) - living,
            min(len(past.offsets), 4),
            min(len(past.logs), 4),
            min(len(past.delayed), 2),
            min(len(past.holds), 2),
            tuple(sorted(len(members) for members in past.members.values())),
        )


def _queues(queues: list[list[Any]]) -> tuple[Queue, ...]:
    return tuple(Queue(*each) for each in queues)


__all__ = ["BROKER", "DELAY_LEVELS", "FATES", "NUMBERS", "SCAN_MS", "BrokerBench", "retry_topic"]
