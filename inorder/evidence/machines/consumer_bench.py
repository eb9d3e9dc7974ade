"""An orderly consumer core alone, before a scripted broker, beside the abstract model of its lanes.

The broker answers at once, later, with an error, or not at all, as the program says; the listener's calls end when
the program ends them. Everything that the core does is shown to the model of the lane that it concerns, and at
each moment the model says what should have been done. Virtual time, no cluster, no socket.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from inorder.evidence.machines.answers import grants_of, messages_from, route_of, stored_offset
from inorder.evidence.machines.programs import Bench, Disagreement
from reference_impl.core.consumer import ConsumerConfig, OrderlyConsumer
from reference_impl.core.io import (
    Answered,
    CallListener,
    CancelTimer,
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
from reference_impl.mutants import Mutant
from reference_impl.protocol.bodies import (
    LockBatch,
    decode_consumer_ids,
    decode_lock_answer,
    encode_consumer_ids,
)
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import OffsetResponse, SendHeader, SendResponse
from reference_impl.protocol.message import (
    PROPERTY_ORIGIN_MESSAGE_ID,
    PROPERTY_SHARDING_KEY,
    StoredMessage,
    decode_all,
    unpack_properties,
)
from reference_impl.sim.time import EPOCH_MS
from specs.model.orderly_lane import NOTHING, OrderlyLane, start_of
from specs.vocabulary import Kind, Outcome, Queue, retry_topic

CLIENT, GROUP, TOPIC, BROKER = "c5", "billing", "orders", "b0"
BEFORE, AFTER = "c1", "c9"
"""Other members, that sort before and after the consumer."""
RETRY = retry_topic(GROUP)
FATES = ("ok", "late", "error", "timeout", "lost")
"""Of a request: answered at once, later, by an error; not heard of; done, but the answer is not heard of."""
LATE_MS = 40
NUMBERS: dict[str, Any] = {
    "client_lease_ms": 1_500,
    "lock_first_ms": 300,
    "lock_interval_ms": 1_000,
    "lock_timeout_ms": 200,
    "rebalance_interval_ms": 2_000,
    "rebalance_min_ms": 100,
    "persist_first_ms": 1_000,
    "persist_interval_ms": 500,
    "request_timeout_ms": 300,
    "pull_timeout_ms": 60_000,
    "send_timeout_ms": 300,
    "shutdown_wait_ms": 500,
    "continuous_ms": 20_000,
}
_TO_NAMES = {
    "lock": RequestCode.LOCK_BATCH_MQ,
    "fetch": RequestCode.QUERY_CONSUMER_OFFSET,
    "pull": RequestCode.PULL_MESSAGE,
    "send": RequestCode.SEND_MESSAGE_V2,
    "end": RequestCode.GET_MAX_OFFSET,
    "time": RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
    "members": RequestCode.GET_CONSUMER_LIST_BY_GROUP,
    "back": RequestCode.CONSUMER_SEND_MSG_BACK,
}
SCRIPTED = tuple(name for name in _TO_NAMES if name != "back")
"""What an orderly consumer asks for; it sends nothing back."""
_ABOUT_A_QUEUE = frozenset(
    {
        RequestCode.QUERY_CONSUMER_OFFSET,
        RequestCode.PULL_MESSAGE,
        RequestCode.GET_MAX_OFFSET,
        RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
    }
)


class ConsumerBench(Bench):
    """One consumer of one group; one broker with `queues` queues of the topic, and one of the retry topic."""

    def __init__(self, mutant: Mutant | None) -> None:
        super().__init__(mutant)
        self._class: type[OrderlyConsumer] = OrderlyConsumer
        if mutant is not None and mutant.consumer is not None:
            self._class = mutant.consumer
        self.now_ms = EPOCH_MS
        self.calls: list[CallListener] = []
        self.lanes: dict[Queue, OrderlyLane] = {}
        self.leaving: list[OrderlyLane] = []
        self.logs: dict[Queue, list[StoredMessage]] = {}
        self.starts: dict[Queue, int] = {}
        self.stored: dict[Queue, int] = {}
        self.others: set[Queue] = set()  # whose lease somebody else holds
        self.grants: dict[Queue, int] = {}  # when each lease was granted
        self.fetched: dict[
            Queue, int | None
        ] = {}  # the last answer about a stored offset; None for an error
        self.ends: dict[Queue, int] = {}
        self.members = [CLIENT]
        self.stopping_ms: int | None = None
        self.is_stopped = False
        self._script: dict[int, list[str]] = {}
        self._parked: list[tuple[Request, Queue, int]] = []
        self._due: list[tuple[int, int, Hashable, Callable[[], None]]] = []
        self._asked: dict[
            Hashable, dict[Queue, OrderlyLane | None]
        ] = {}  # whose lanes a request was for
        self._tries: dict[
            tuple[int, int], int
        ] = {}  # of dead letters being sent, by the lane's identity and offset
        self._letters: dict[Hashable, tuple[OrderlyLane, int]] = {}
        self.view: list[str] = []
        self._timers: dict[Hashable, int] = {}
        self._count = 0

    # ------------------------------------------------------------ verbs

    def begin(
        self,
        queues: int,
        batch: int,
        limit: int,
        threads: int,
        suspend_ms: int,
        consume_from: str,
        with_retry_topic: bool,
    ) -> None:
        self.queues = {TOPIC: queues} | ({RETRY: 1} if with_retry_topic else {})
        self.config = ConsumerConfig(
            client_id=CLIENT,
            group=GROUP,
            topics={TOPIC: "*"},
            name_servers=("ns",),
            batch=batch,
            max_reconsume_times=limit,
            threads=threads,
            suspend_ms=suspend_ms,
            consume_from=consume_from,
            **NUMBERS,
        )

    def start(self) -> None:
        """The consumer comes to life, once."""
        if not hasattr(self, "consumer"):
            self.consumer = self._class(self.config)
            self._give(Start())

    def store(self, queue_id: int, value: int, topic: str = TOPIC) -> None:
        """An offset that somebody stored before."""
        self.stored[Queue(topic, BROKER, queue_id)] = value

    def append(
        self,
        queue_id: int,
        count: int,
        carried: int = 0,
        topic: str = TOPIC,
        keys: Sequence[str] = (),
    ) -> None:
        """Messages come to a queue; parked pulls wake. carried: retries that they bring along.

        keys: their sharding keys, in turn; an empty one, or none at all, for no key.
        """
        if queue_id >= self.queues.get(topic, 0):
            return
        queue = Queue(topic, BROKER, queue_id)
        log = self.logs.setdefault(queue, [])
        for number in range(count):
            offset = self._end(queue)
            named = {"UNIQ_KEY": f"{topic} {queue_id} {offset}"}
            if keys and keys[number % len(keys)]:
                named[PROPERTY_SHARDING_KEY] = keys[number % len(keys)]
            stored = StoredMessage(topic, queue_id, offset, 100 * offset, b"body", named)
            log.append(replace(stored, store_ms=self.now_ms, reconsume_times=carried))
        woken = [each for each in self._parked if each[1] == queue]
        self._parked = [each for each in self._parked if each[1] != queue]
        for request, lane, asked in woken:
            self._tell(request, self._read(lane, asked))

    def trim(self, queue_id: int, start: int) -> None:
        """Retention takes the messages below `start`."""
        queue = Queue(TOPIC, BROKER, queue_id)
        gone = max(0, min(start, self._end(queue)) - self.starts.get(queue, 0))
        if gone:
            del self.logs[queue][:gone]
            self.starts[queue] = self.starts.get(queue, 0) + gone

    def script(self, request: str, fates: list[str]) -> None:
        """What becomes of the next requests of that name."""
        self._script.setdefault(_TO_NAMES[request], []).extend(fates)

    def contest(self, queue_id: int, taken: bool) -> None:
        """Somebody else has the lane's lease, as far as the broker is concerned; or has it no more."""
        queue = Queue(TOPIC, BROKER, queue_id)
        if taken:
            self.others.add(queue)
        else:
            self.others.discard(queue)

    def returns(self, which: int, outcome: str, *, manual: bool, suspend_ms: int) -> None:
        """A call ends, if one runs."""
        if not self.calls or self.is_stopped:
            return
        call = self.calls.pop(which % len(self.calls))
        lane = self._lane_with(call)
        if lane is not None:
            lane.returned(Outcome(outcome), manual, suspend_ms, self.now_ms)
        self._give(ListenerReturned(call.call_id, Outcome(outcome), manual, suspend_ms))

    def regroup(self, before: bool, after: bool, alone: bool, notify: bool) -> None:
        """Other members come or go. alone: we are not among them ourselves."""
        ours = [] if alone else [CLIENT]
        self.members = [BEFORE] * before + ours + [AFTER] * after
        if notify and hasattr(self, "consumer"):
            self.wait(self.config.rebalance_min_ms)
            command = Command(
                RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, {"consumerGroup": GROUP}, flag=2
            )
            self._give(Pushed(f"{BROKER}:1", command))

    def shut_down(self) -> None:
        if hasattr(self, "consumer") and self.stopping_ms is None:
            self.stopping_ms = self.now_ms
            self._give(Shutdown())

    def wait(self, ms: int) -> None:
        """Time passes; what is due happens at its moment."""
        end_ms = self.now_ms + ms
        while self._due and self._due[0][0] <= end_ms:
            self._go_on(self._due[0][0])
            _, number, token, act = heapq.heappop(self._due)
            if token is None or self._timers.get(token) == number:
                self._timers.pop(token, None)
                act()
        self._go_on(end_ms)

    def reach_suspend(self, which: int, beyond_ms: int) -> None:
        """Until a suspended lane may go on, and so much more."""
        waits = sorted(
            lane.not_before_ms for lane in self.lanes.values() if lane.not_before_ms > self.now_ms
        )
        if waits:
            self.wait(max(0, waits[which % len(waits)] - self.now_ms + beyond_ms))

    def reach_lease(self, which: int, beyond_ms: int) -> None:
        """Until a grant is as old as the client believes in it, and so much more."""
        ends = sorted(lane.granted_ms for lane in self.lanes.values() if lane.locked)
        if ends:
            self.wait(
                max(
                    0,
                    ends[which % len(ends)] + self.config.client_lease_ms - self.now_ms + beyond_ms,
                )
            )

    def end(self) -> None:
        """Let it come to rest: nothing fails any more, calls end well, and whatever is owed has its time."""
        if not self.begun or not hasattr(self, "consumer"):
            return
        self._script.clear()
        self.others.clear()
        self.members = self.members or [CLIENT]
        for _ in range(6):
            self.wait(1_200)
            for _ in range(len(self.calls)):
                self.returns(0, Outcome.SUCCESS, manual=False, suspend_ms=-1)
        if self.stopping_ms is None:
            ours = [queue for topic in sorted(self.queues) for queue in self.share(topic)]
            if sorted(self.lanes) != sorted(ours):
                self._check(
                    f"of {self.view} the lanes are {sorted(self.lanes)}, expected {sorted(ours)}"
                )
        if self.is_stopped:
            kept = [lane.name for lane in self.leaving if not lane.unlocked]
            self._check(f"the consumer has left and keeps the leases of {kept}" if kept else "")

    def abstract(self) -> Hashable:
        """Of each lane: what its lease, its call, its messages and its offset are like."""
        lanes = (*self.lanes.values(), *(each for each in self.leaving if not each.unlocked))
        words = sorted(
            (
                lane.has_lease(self.now_ms),
                lane.running is not None,
                bool(lane.giving_up),
                min(len(lane.pending), 3),
                min(len(lane.taken), 3),
                max((min(times, 3) for times in lane.counted.values()), default=0),
                lane.not_before_ms > self.now_ms,
                lane.unsaved_ms is not None,
                lane.dropped,
            )
            for lane in lanes
        )
        return (self.stopping_ms is not None, *words)

    # ------------------------------------------------------------ time and inputs

    def _go_on(self, at_ms: int) -> None:
        """Before time goes on, what is owed now must be done. Then it is that time."""
        if at_ms <= self.now_ms:
            return
        self._look()
        self.now_ms = at_ms
        config = self.config
        if self.stopping_ms is None:
            for lane in (*self.lanes.values(), *self.leaving):
                self._check(lane.owes(at_ms - 1, config.persist_first_ms, config.lock_interval_ms))

    def _free_threads(self) -> bool:
        busy = sum(lane.running is not None for lane in (*self.lanes.values(), *self.leaving))
        return busy < self.config.threads and self.stopping_ms is None

    def _look(self) -> None:
        free = self._free_threads()
        for lane in self.lanes.values():
            lane.looks(self.now_ms, free)

    def _give(self, input: Input) -> None:
        """One input, and all that follows from it at this moment."""
        inputs = [input]
        while inputs:
            if self.is_stopped:
                return
            for effect in self.consumer.handle(self.now_ms, inputs.pop(0)):
                inputs += self._carry_out(effect)
            self._look()

    def _at(self, delay_ms: int, act: Callable[[], None], token: Hashable = None) -> None:
        self._count += 1
        if token is not None:
            self._timers[token] = self._count
        heapq.heappush(self._due, (self.now_ms + max(0, delay_ms), self._count, token, act))

    def _check(self, wrong: str) -> None:
        if wrong:
            raise Disagreement(f"{self.now_ms - EPOCH_MS} ms: {wrong}")

    # ------------------------------------------------------------ what the core does

    def _carry_out(self, effect: Any) -> list[Input]:
        match effect:
            case Request():
                return self._request(effect)
            case Oneway(_, command):
                self._oneway(command)
            case SetTimer(token, delay_ms):
                self._at(delay_ms, partial(self._give, TimerFired(token)), token)
            case CancelTimer(token):
                self._timers.pop(token, None)
            case CallListener():
                self._called(effect)
            case Note(Kind.ADD, _, fields):
                self._added(
                    Queue(fields["topic"], fields["broker"], fields["queue_id"]), fields["value"]
                )
            case Note(Kind.DROP, _, fields):
                self._dropped(Queue(fields["topic"], fields["broker"], fields["queue_id"]))
            case Stopped():
                self.is_stopped = True
            case _:
                pass
        return []

    def _lane_with(self, call: CallListener) -> OrderlyLane | None:
        offsets = tuple(message.queue_offset for message in call.messages)
        for lane in (self.lanes.get(call.lane.queue), *self.leaving):
            if lane is not None and lane.name == str(call.lane.queue) and lane.running == offsets:
                return lane
        return None

    def _called(self, call: CallListener) -> None:
        offsets = [message.queue_offset for message in call.messages]
        lane = self.lanes.get(call.lane.queue)
        if lane is None:
            self._check(
                f"a call of {call.lane.queue} with {offsets} begins, though the lane is not ours"
            )
            return
        if self.stopping_ms is not None:
            self._check(f"a call of {call.lane.queue} begins after the shutdown did")
        self._check(lane.begins(offsets, self.now_ms))
        self.calls.append(call)

    def _added(self, queue: Queue, start: int) -> None:
        granted_ms = self.grants.get(queue)
        if granted_ms is None:
            self._check(f"{queue} is added without a lease")
            return
        if queue in self.lanes:
            self._check(f"{queue} is added twice")
        self._check(self._wrong_start(queue, start))
        if queue not in self.share(queue.topic):
            self._check(f"{queue} is added, though of {self.view} it is another's")
        config = self.config
        stored = self.fetched.get(queue)
        self.lanes[queue] = OrderlyLane(
            str(queue),
            config.batch,
            None if config.max_reconsume_times < 0 else config.max_reconsume_times,
            config.client_lease_ms,
            config.suspend_ms,
            start,
            granted_ms,
            granted_ms,
            stored=NOTHING if stored is None else stored,
            told=NOTHING if stored is None else stored,
        )

    def share(self, topic: str) -> list[Queue]:
        """What is ours by the latest view: a contiguous block, the first members get one more."""
        queues = [Queue(topic, BROKER, number) for number in range(self.queues[topic])]
        size, rest = divmod(len(queues), max(1, len(self.view)))
        for number, member in enumerate(self.view):
            block = size + (number < rest)
            if member == CLIENT:
                return queues[:block]
            queues = queues[block:]
        return []

    def _wrong_start(self, queue: Queue, start: int) -> str:
        if queue not in self.fetched:
            return f"{queue} is added without having asked where it was left"
        stored = self.fetched[queue]
        if stored is None:
            return f"{queue} is added though the look-up of its offset failed"
        known = self.ends.get(queue, 0)
        expected = start_of(self.config.consume_from, queue.topic == RETRY, stored, known, known)
        return "" if start == expected else f"{queue} starts at {start}, expected {expected}"

    def _dropped(self, queue: Queue) -> None:
        lane = self.lanes.pop(queue, None)
        if lane is None:
            self._check(f"{queue} is dropped, though it is not ours")
            return
        self.leaving = [
            each for each in self.leaving if each.running is not None or not each.unlocked
        ]
        self.leaving.append(lane)
        if (
            self.stopping_ms is not None
            and self.now_ms - self.stopping_ms >= self.config.shutdown_wait_ms
        ):
            lane.running = None  # the waiting time is over: the call is cut
        self._check(lane.drops())

    def _oneway(self, command: Command) -> None:
        if command.code == RequestCode.UPDATE_CONSUMER_OFFSET:
            self._reported(self._queue(command), int(command.ext["commitOffset"]))
        elif command.code == RequestCode.UNLOCK_BATCH_MQ:
            for queue in LockBatch.decode(command.body).queues:
                self.grants.pop(queue, None)
                if queue in self.lanes:
                    self._check(self.lanes[queue].unlocks())
                for lane in [
                    lane for lane in self.leaving if lane.name == str(queue) and not lane.unlocked
                ]:
                    if (
                        self.stopping_ms is not None
                        and self.now_ms - self.stopping_ms >= self.config.shutdown_wait_ms
                    ):
                        lane.running = None
                    self._check(lane.unlocks())

    def _reported(self, queue: Queue, value: int) -> None:
        lane = self.lanes.get(queue)
        if lane is None:
            self._check(f"{queue} is reported as consumed up to {value}, though it is not ours")
            return
        self._check(lane.commits(value))
        self.stored[queue] = value

    # ------------------------------------------------------------ the scripted broker

    def _request(self, request: Request) -> list[Input]:
        command = request.command
        self._seen(request)
        waiting = self._script.get(command.code)
        fate = waiting.pop(0) if waiting else "ok"
        if fate == "error":
            answer: Command | None = Command(
                ResponseCode.SERVICE_NOT_AVAILABLE, flag=1, remark="as scripted"
            )
        else:
            answer = None if fate == "timeout" else self._answer(request)
        if fate in ("timeout", "lost"):
            self._parked = [each for each in self._parked if each[0] is not request]
            self._at(request.timeout_ms, partial(self._tell, request, None))
        elif answer is not None and fate == "late":
            self._at(LATE_MS, partial(self._tell, request, answer))
        elif answer is not None:
            self._ended(request, answer)
            return [Answered(request.token, answer)]
        return []

    def _tell(self, request: Request, answer: Command | None) -> None:
        """The model learns how a request ended when the core does."""
        if not self.is_stopped:
            self._ended(request, answer)
            self._give(
                Failed(request.token, "timeout")
                if answer is None
                else Answered(request.token, answer)
            )

    def _queue(self, command: Command) -> Queue:
        return Queue(command.ext["topic"], BROKER, int(command.ext["queueId"]))

    def _end(self, queue: Queue) -> int:
        return self.starts.get(queue, 0) + len(self.logs.get(queue, ()))

    def _seen(self, request: Request) -> None:
        """A request as the model sees it."""
        command = request.command
        queues: tuple[Queue, ...] = ()
        if command.code == RequestCode.LOCK_BATCH_MQ:
            queues = LockBatch.decode(command.body).queues
        elif command.code in _ABOUT_A_QUEUE:
            queues = (self._queue(command),)
        asked = self._asked[request.token] = {queue: self.lanes.get(queue) for queue in queues}
        if command.code == RequestCode.LOCK_BATCH_MQ:
            for each in asked.values():
                if each is not None:
                    each.asked_ms = self.now_ms
        if command.code == RequestCode.PULL_MESSAGE:
            queue = self._queue(command)
            lane = self.lanes.get(queue)
            if lane is None:
                self._check(f"{queue} is pulled, though it is not ours")
                return
            self._check(lane.pulls(int(command.ext["queueOffset"]), self.now_ms))
            if int(command.ext["sysFlag"]) & 1:
                self._reported(queue, int(command.ext["commitOffset"]))
        elif command.code == RequestCode.SEND_MESSAGE_V2:
            header = SendHeader.from_ext_v2(command.ext)
            lane, offset = self._given_up(header)
            self._check(lane.gives_up(offset, header.reconsume_times or 0))
            self._letters[request.token] = (lane, offset)
            self._tries[id(lane), offset] = self._tries.get((id(lane), offset), 0) + 1
            if header.topic != RETRY or (header.max_reconsume_times or 0) != self.config.limit:
                self._check(
                    f"{offset} is given up to {header.topic} with the limit {header.max_reconsume_times}"
                )

    def _ended(self, request: Request, answer: Command | None) -> None:
        """How a request ended, told to the models of the lanes for which it was made. answer: None for none."""
        code = None if answer is None else answer.code
        asked = self._asked.pop(request.token, {})
        match request.command.code:
            case RequestCode.LOCK_BATCH_MQ if answer is not None and code == 0:
                granted = decode_lock_answer(answer.body)
                for queue, lane in asked.items():
                    if lane is not None:
                        lane.granted(self.now_ms, queue in granted)
                    elif queue in granted:
                        self.grants[queue] = self.now_ms
            case RequestCode.QUERY_CONSUMER_OFFSET:
                for queue, lane in asked.items():
                    self._fetched(queue, lane, answer)
            case RequestCode.GET_MAX_OFFSET | RequestCode.SEARCH_OFFSET_BY_TIMESTAMP:
                for queue in asked if answer is not None and code == 0 else ():
                    self.ends[queue] = int(answer.ext["offset"]) if answer is not None else 0
            case RequestCode.PULL_MESSAGE:
                for lane in asked.values():
                    if lane is not None:
                        self._pulled(lane, answer)
            case RequestCode.SEND_MESSAGE_V2:
                self._sent(request.token, code)
            case RequestCode.GET_CONSUMER_LIST_BY_GROUP if answer is not None and code == 0:
                self.view = sorted(set(decode_consumer_ids(answer.body)))
            case _:
                pass

    def _fetched(self, queue: Queue, lane: OrderlyLane | None, answer: Command | None) -> None:
        stored: int | None = None
        if answer is not None and answer.code == 0:
            stored = int(answer.ext["offset"])
        elif answer is not None and answer.code == ResponseCode.QUERY_NOT_FOUND:
            stored = NOTHING
        if lane is None:
            self.fetched[queue] = stored
        elif stored is not None and not lane.dropped:
            lane.anchored(stored)

    def _pulled(self, lane: OrderlyLane, answer: Command | None) -> None:
        code = None if answer is None else answer.code
        if answer is None or code not in (0, 19, 21):
            lane.pulling = False
            return
        following = int(answer.ext["nextBeginOffset"])
        if code == ResponseCode.PULL_OFFSET_MOVED:
            lane.moved(following, self.now_ms)
        else:
            found = decode_all(answer.body) if code == 0 else []
            lane.pulled(
                [(m.queue_offset, m.reconsume_times) for m in found], following, self.now_ms
            )

    def _sent(self, token: Hashable, code: int | None) -> None:
        """A refusal is tried again, up to three times in all; silence is not."""
        lane, offset = self._letters.pop(token)
        if (
            code is not None
            and code != 0
            and self._tries[id(lane), offset] <= self.config.dead_letter_retries
        ):
            return
        self._tries[id(lane), offset] = 0
        lane.gave_up(offset, code == 0, self.now_ms)

    def _given_up(self, header: SendHeader) -> tuple[OrderlyLane, int]:
        name = unpack_properties(header.properties or "").get(PROPERTY_ORIGIN_MESSAGE_ID, "")
        for queue in self.logs:
            words = name.split()
            if words[:2] == [queue.topic, str(queue.queue_id)]:
                for lane in (self.lanes.get(queue), *self.leaving):
                    if lane is not None and lane.name == str(queue) and lane.giving_up:
                        return lane, int(words[2])
        raise Disagreement(
            f"{self.now_ms - EPOCH_MS} ms: {name!r} is given up, expected was nothing of it"
        )

    def _answer(self, request: Request) -> Command | None:
        command = request.command
        match command.code:
            case RequestCode.GET_ROUTEINFO_BY_TOPIC:
                return route_of(command.ext["topic"], self.queues, BROKER)
            case RequestCode.GET_CONSUMER_LIST_BY_GROUP:
                if not self.members:
                    return Command(
                        ResponseCode.SYSTEM_ERROR, flag=1, remark="no consumer for this group"
                    )
                return Command(0, body=encode_consumer_ids(self.members), flag=1)
            case RequestCode.LOCK_BATCH_MQ:
                return grants_of(command, self.others)
            case RequestCode.QUERY_CONSUMER_OFFSET:
                return stored_offset(self.stored.get(self._queue(command)))
            case RequestCode.GET_MAX_OFFSET:
                return Command(0, OffsetResponse(self._end(self._queue(command))).to_ext(), flag=1)
            case RequestCode.SEARCH_OFFSET_BY_TIMESTAMP:
                return Command(0, OffsetResponse(self._by_time(command)).to_ext(), flag=1)
            case RequestCode.PULL_MESSAGE:
                queue, offset = self._queue(command), int(command.ext["queueOffset"])
                if offset == self._end(queue):
                    self._parked.append((request, queue, offset))
                    return None
                return self._read(queue, offset)
            case RequestCode.SEND_MESSAGE_V2:
                return Command(0, SendResponse("0" * 32, 0, 0).to_ext(), flag=1)
            case _:
                return Command(0, flag=1)

    def _by_time(self, command: Command) -> int:
        queue = self._queue(command)
        early = [m for m in self.logs.get(queue, ()) if m.store_ms < int(command.ext["timestamp"])]
        return self.starts.get(queue, 0) + len(early)

    def _read(self, queue: Queue, asked: int) -> Command:
        log, low = self.logs.get(queue, []), self.starts.get(queue, 0)
        return messages_from(asked, log, low, self.config.pull_batch)
