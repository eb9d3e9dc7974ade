"""A concurrent or key-ordered consumer core alone, before a scripted broker, beside the abstract model of its lanes.

The broker and the clock are those of the orderly consumer's bench; what differs is that calls of a lane run side by
side, that there are no leases, and that messages are sent back.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from inorder.evidence.machines.consumer_bench import (
    BROKER,
    CLIENT,
    GROUP,
    NUMBERS,
    RETRY,
    TOPIC,
    ConsumerBench,
)
from inorder.evidence.machines.programs import Disagreement
from reference_impl.core.consumer import ConsumerConfig, KeyOrderedConsumer, consumer_class
from reference_impl.core.io import CallListener, ListenerReturned, Request
from reference_impl.mutants import Mutant
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import SendBackHeader, SendHeader
from reference_impl.protocol.message import (
    PROPERTY_ORIGIN_MESSAGE_ID,
    decode_all,
    unpack_properties,
)
from reference_impl.sim.time import EPOCH_MS
from specs.model.orderly_lane import NOTHING
from specs.model.side_by_side_lane import SideBySideLane
from specs.vocabulary import Outcome, Queue

OWN: dict[str, Any] = {
    "pull_batch": 4,
    "pull_threshold": 6,
    "span_max": 5,
    "send_back_retry_ms": 700,
}
"""Small, so that a lane is soon too full to be pulled, and what failed soon comes again."""
_FOR_LEASES = frozenset({RequestCode.LOCK_BATCH_MQ, RequestCode.UNLOCK_BATCH_MQ})


class SideBySideBench(ConsumerBench):
    """One consumer of one group; one broker with `queues` queues of the topic."""

    lanes: dict[Queue, SideBySideLane]  # type: ignore[assignment]  # the other model, told by other methods
    leaving: list[SideBySideLane]  # type: ignore[assignment]

    def __init__(self, mutant: Mutant | None) -> None:
        super().__init__(mutant)
        self._lane_of: dict[int, SideBySideLane] = {}
        self._returns: dict[Hashable, tuple[SideBySideLane, int]] = {}

    # ------------------------------------------------------------ verbs

    def begin(  # type: ignore[override]  # a bench's verbs are its own
        self, mode: str, queues: int, batch: int, limit: int, threads: int, suspend_ms: int
    ) -> None:
        bug = None if self.mutant is None else self.mutant.consumer
        if bug is not None:  # a bug of one mode's consumer has no other
            mode = "key_ordered" if issubclass(bug, KeyOrderedConsumer) else "concurrent"
        self.queues = {TOPIC: queues}
        self.config = ConsumerConfig(
            client_id=CLIENT,
            group=GROUP,
            topics={TOPIC: "*"},
            name_servers=("ns",),
            mode=mode,
            batch=batch,
            max_reconsume_times=limit,
            threads=threads,
            suspend_ms=suspend_ms,
            consume_from="first",
            **{**NUMBERS, **OWN},
        )
        self._class = bug or consumer_class(self.config)  # type: ignore[assignment]  # of this mode

    def returns(
        self, which: int, outcome: str, *, manual: bool = False, suspend_ms: int = -1
    ) -> None:
        """A call ends, if one runs."""
        if not self.calls or self.is_stopped:
            return
        call = self.calls.pop(which % len(self.calls))
        lane = self._lane_of.pop(call.call_id)
        offsets = [message.queue_offset for message in call.messages]
        lane.returned(offsets, Outcome(outcome), suspend_ms, self.now_ms)
        self._give(ListenerReturned(call.call_id, Outcome(outcome), manual, suspend_ms))

    def reach_suspend(self, which: int, beyond_ms: int) -> None:
        """Until something that waits for its time may go on, and so much more."""
        moments = {
            since_ms
            for lane in self.lanes.values()
            for since_ms in (*lane.resting.values(), *(since_ms for _, since_ms in lane.apart))
            if since_ms > self.now_ms
        }
        if moments:
            self.wait(max(0, sorted(moments)[which % len(moments)] - self.now_ms + beyond_ms))

    def abstract(self) -> Hashable:
        """Of each lane: how many calls run and how many send away, what waits, and for what."""
        words = sorted(
            (
                min(len(lane.calls), 3),
                min(sum(bool(call.owed) for call in lane.calls), 2),
                min(len(lane.held), 4),
                min(len(lane.ready(self.now_ms)), 2),
                sum(since_ms > self.now_ms for since_ms in lane.resting.values()),
                sum(since_ms > self.now_ms for _, since_ms in lane.apart),
                max((min(times, 3) for times in lane.counted.values()), default=0),
                lane.unsaved_ms is not None,
                lane.dropped,
            )
            for lane in (*self.lanes.values(), *self.leaving)
        )
        return (self.config.mode, self.stopping_ms is not None, *words)

    # ------------------------------------------------------------ time

    def _go_on(self, at_ms: int) -> None:
        if at_ms <= self.now_ms:
            return
        self._look()
        self.now_ms = at_ms
        if self.stopping_ms is None:
            for lane in self.lanes.values():
                self._check(lane.owes(at_ms - 1, self.config.persist_first_ms))

    def _free_threads(self) -> bool:
        at_work = sum(len(lane.calls) for lane in (*self.lanes.values(), *self.leaving))
        return at_work < self.config.threads and self.stopping_ms is None

    # ------------------------------------------------------------ what the core does

    def _called(self, call: CallListener) -> None:
        offsets = [message.queue_offset for message in call.messages]
        lane = self.lanes.get(call.lane.queue)
        if lane is None or not offsets:
            self._check(
                f"a call of {call.lane.queue} with {offsets} begins, though there is nothing to be called for"
            )
            return
        if self.stopping_ms is not None:
            self._check(f"a call of {call.lane.queue} begins after the shutdown did")
        if not self._free_threads():
            self._check(
                f"a call of {call.lane.queue} begins, though all {self.config.threads} threads are at work"
            )
        self._check(lane.begins(offsets, self.now_ms))
        self._lane_of[call.call_id] = lane
        self.calls.append(call)

    def _added(self, queue: Queue, start: int) -> None:
        if queue in self.lanes:
            self._check(f"{queue} is added twice")
        self._check(self._wrong_start(queue, start))
        if queue not in self.share(queue.topic):
            self._check(f"{queue} is added, though of {self.view} it is another's")
        stored, config = self.fetched.get(queue), self.config
        self.lanes[queue] = SideBySideLane(
            str(queue),
            config.mode == "key_ordered",
            config.batch,
            config.limit,
            config.suspend_ms,
            config.send_back_retry_ms,
            config.pull_threshold,
            config.span_max,
            start,
            NOTHING if stored is None else stored,
        )

    def _dropped(self, queue: Queue) -> None:
        lane = self.lanes.pop(queue, None)
        if lane is None:
            self._check(f"{queue} is dropped, though it is not ours")
            return
        self.leaving = [each for each in self.leaving if each.calls]
        self.leaving.append(lane)
        self._check(lane.drops())

    def end(self) -> None:
        """Let it come to rest: nothing fails any more, calls end well, and whatever waits has its time."""
        if not self.begun or not hasattr(self, "consumer"):
            return
        self._script.clear()
        self.members = self.members or [CLIENT]
        for _ in range(8):
            self.wait(1_200)
            while self.calls and not self.is_stopped:
                self.returns(0, Outcome.SUCCESS)
        if self.stopping_ms is not None:
            return
        ours = self.share(TOPIC)
        if sorted(self.lanes) != sorted(ours):
            self._check(
                f"of {self.view} the lanes are {sorted(self.lanes)}, expected {sorted(ours)}"
            )
        left = {lane.name: sorted(lane.held) for lane in self.lanes.values() if lane.held}
        self._check(f"everything came to rest, and nobody finished {left}" if left else "")

    # ------------------------------------------------------------ requests

    def _oneway(self, command: Command) -> None:
        if command.code in _FOR_LEASES:
            self._check("a lease is given back by a consumer that takes none")
        super()._oneway(command)

    def _seen(self, request: Request) -> None:
        command = request.command
        if command.code in _FOR_LEASES:
            self._check("a lease is asked for by a consumer that takes none")
        if command.code == RequestCode.PULL_MESSAGE:
            self._pulls(request)
        elif command.code == RequestCode.CONSUMER_SEND_MSG_BACK:
            header = SendBackHeader.from_ext(command.ext)
            self._sends_away(request, header.origin_msg_id or "", header.delay_level)
        elif command.code == RequestCode.SEND_MESSAGE_V2:
            self._gives_up(request)
        else:
            super()._seen(request)

    def _pulls(self, request: Request) -> None:
        command = request.command
        queue = self._queue(command)
        lane = self.lanes.get(queue)
        self._asked[request.token] = {queue: lane}  # type: ignore[dict-item]  # read back by `_ended` below
        if lane is None:
            self._check(f"{queue} is pulled, though it is not ours")
            return
        self._check(lane.pulls(int(command.ext["queueOffset"])))
        if int(command.ext["sysFlag"]) & 1:
            self._reported(queue, int(command.ext["commitOffset"]))

    def _sends_away(self, request: Request, name: str, level: int = 0) -> None:
        """One message leaves its lane, by the name that it was given when it came to its queue."""
        words = name.split()
        queue, offset = Queue(words[0], BROKER, int(words[1])), int(words[2])
        owing = [
            lane
            for lane in (self.lanes.get(queue), *self.leaving)
            if lane is not None and lane.name == str(queue) and not lane.sends_away(offset)
        ]
        if not owing:
            raise Disagreement(
                f"{self.now_ms - EPOCH_MS} ms: {name!r} is sent away, expected was nothing of it"
            )
        if level:
            self._check(f"{name!r} is sent back with level {level}, which nobody asked for")
        self._returns[request.token] = (owing[0], offset)

    def _gives_up(self, request: Request) -> None:
        header = SendHeader.from_ext_v2(request.command.ext)
        name = unpack_properties(header.properties or "").get(PROPERTY_ORIGIN_MESSAGE_ID, "")
        self._sends_away(request, name)
        lane, offset = self._returns[request.token]
        if header.topic != RETRY or header.reconsume_times != lane.times(offset) + 1:
            self._check(
                f"{offset} is given up to {header.topic} with counter {header.reconsume_times}"
            )
        self._tries[id(lane), offset] = self._tries.get((id(lane), offset), 0) + 1

    def _ended(self, request: Request, answer: Command | None) -> None:
        code = None if answer is None else answer.code
        match request.command.code:
            case RequestCode.CONSUMER_SEND_MSG_BACK:
                lane, offset = self._returns.pop(request.token)
                lane.sent_away(offset, code == ResponseCode.SUCCESS, self.now_ms)
            case RequestCode.SEND_MESSAGE_V2:
                lane, offset = self._returns.pop(request.token)
                tries = self._tries.pop((id(lane), offset))
                if code in (None, ResponseCode.SUCCESS) or tries > self.config.dead_letter_retries:
                    lane.sent_away(offset, code == ResponseCode.SUCCESS, self.now_ms)
                else:
                    self._tries[id(lane), offset] = tries
            case RequestCode.PULL_MESSAGE:
                for asked in self._asked.pop(request.token).values():
                    if isinstance(asked, SideBySideLane):
                        self._brought(asked, answer)
            case _:
                super()._ended(request, answer)

    def _brought(self, lane: SideBySideLane, answer: Command | None) -> None:
        if answer is None or answer.code not in (0, 19, 21):
            lane.pulling = False
            return
        following = int(answer.ext["nextBeginOffset"])
        if answer.code == ResponseCode.PULL_OFFSET_MOVED:
            lane.moved(following, self.now_ms)
        else:
            found = decode_all(answer.body) if answer.code == 0 else []
            brought = [
                (message.queue_offset, message.reconsume_times, message.sharding_key)
                for message in found
            ]
            lane.pulled(brought, following, self.now_ms)
