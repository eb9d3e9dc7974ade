"""Which lanes are ours: asked each interval, and at once when the group changes.

For each topic: the group's members are asked for, both lists are sorted, the strategy gives our share.
A lane that is no longer in it is dropped. A new one goes through four steps, and is skipped until the next
rebalance if one of them fails:

    lease granted → stored offset asked for → start computed where nothing is stored → ADD, first pull

No answer about the members changes nothing; a list without ourselves leaves us nothing, and is answered with a
heartbeat. A lane that we are still leaving is passed over for now.
Two rebalances are never closer than the minimal interval. Source: `RebalanceImpl` of apache/rocketmq.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from reference_impl.core.allocation import STRATEGIES, Strategy, strategy
from reference_impl.core.consumer.config import ConsumerConfig
from reference_impl.core.consumer.leases import Granted, by_broker
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.core.consumer.pulling import Pulling
from reference_impl.core.consumer.start_offset import (
    FAILED,
    HALF_AN_HOUR_MS,
    NOT_FOUND,
    START,
    Where,
)
from reference_impl.core.io import Pushed
from reference_impl.protocol.bodies import decode_consumer_ids
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import (
    ConsumerGroupHeader,
    GetMaxOffsetHeader,
    OffsetResponse,
    SearchOffsetHeader,
)
from specs.vocabulary import Kind, Queue

REBALANCE = ("rebalance",)
REBALANCE_SOON = ("rebalance-soon",)
REBALANCE_MIN = ("rebalance-min",)


@dataclass(slots=True, eq=False)
class Candidate:
    """A lane on its way in. unwanted: a later rebalance gave it to somebody else."""

    queue: Queue
    locked_ms: int = 0
    unwanted: bool = False


class Rebalancing(Pulling):
    """Keeps the lanes in step with the group. strategies: by name, of which the configuration names one."""

    strategies: ClassVar[Mapping[str, Strategy]] = STRATEGIES

    queue_class: ClassVar[type[ProcessQueue]] = ProcessQueue

    def __init__(self, config: ConsumerConfig) -> None:
        super().__init__(config)
        self.allocate = strategy(config.strategy, self.strategies)
        self.candidates: dict[Queue, Candidate] = {}
        self._serial = 0
        self._resting = False  # the minimal interval since the last rebalance is not over
        self._wanted_again = False
        self._asking: set[str] = set()
        self._last_view: dict[str, tuple[object, ...]] = {}
        self._timers["rebalance"] = self._rebalance_tick
        self._timers["rebalance-soon"] = self.rebalance
        self._timers["rebalance-min"] = self._rested

    # ------------------------------------------------------------ when

    def is_ready(self, now_ms: int) -> None:
        self._rebalance_tick(now_ms)

    def on_pushed(self, now_ms: int, input: Pushed) -> None:
        """A notice that the group has changed; everything else that a broker may push is not for us."""
        command = input.command
        if (
            command.code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED
            and command.ext.get("consumerGroup") == self.config.group
        ):
            self.rebalance(now_ms)

    def rebalance_soon(self, delay_ms: int = 0) -> None:
        self.set_timer(REBALANCE_SOON, delay_ms)

    def _rebalance_tick(self, now_ms: int) -> None:
        self.set_timer(REBALANCE, self.config.rebalance_interval_ms)
        self.rebalance(now_ms)

    def _rested(self, now_ms: int) -> None:
        self._resting = False
        if self._wanted_again:
            self.rebalance(now_ms)

    def rebalance(self, now_ms: int) -> None:
        if self.stopping or not self._is_ready:
            return
        if self._resting:
            self._wanted_again = True
            return
        self._resting, self._wanted_again = True, False
        self.set_timer(REBALANCE_MIN, self.config.rebalance_min_ms)
        for topic in sorted(self.queues):
            if topic not in self._asking:
                self._ask_members(now_ms, topic)

    # ------------------------------------------------------------ the share

    def _ask_members(self, now_ms: int, topic: str) -> None:
        """Asks the topic's brokers in turn until one answers."""
        brokers = sorted({queue.broker for queue in self.queues[topic]})
        if brokers:
            self._asking.add(topic)
            self._ask_members_of(now_ms, topic, brokers, 0)
        else:
            self.take_share(now_ms, topic, [])

    def _ask_members_of(self, now_ms: int, topic: str, brokers: list[str], tried: int) -> None:
        ext = ConsumerGroupHeader(self.config.group).to_ext()
        command = Command(RequestCode.GET_CONSUMER_LIST_BY_GROUP, ext)
        address = self.addresses.get(brokers[tried])
        on_end = partial(self._members_answered, topic, brokers, tried)
        self.request(now_ms, address, command, self.config.request_timeout_ms, on_end)

    def _members_answered(
        self,
        topic: str,
        brokers: list[str],
        tried: int,
        now_ms: int,
        answer: Command | None,
        reason: str,
    ) -> None:
        if answer is not None and answer.code == ResponseCode.SUCCESS:
            members = sorted(
                set(decode_consumer_ids(answer.body))
            )  # a client is listed once per connection
            self._asking.discard(topic)
            if members and not self.stopping:
                if self.config.client_id not in members:  # a restarted broker has forgotten us
                    self.beat(now_ms, [self.addresses[brokers[tried]]])
                self.take_share(now_ms, topic, members)
            return
        if tried + 1 < len(brokers) and not self.stopping:
            self._ask_members_of(now_ms, topic, brokers, tried + 1)
        else:
            self._asking.discard(topic)

    def take_share(self, now_ms: int, topic: str, members: Sequence[str]) -> None:
        queues = self.in_order(self.queues[topic])
        share = self.allocate(self.config.client_id, queues, members)
        self._note_share(topic, queues, members, share)
        wanted = set(share)
        for queue in sorted(
            queue for queue in self.lanes if queue.topic == topic and queue not in wanted
        ):
            self.drop(now_ms, self.lanes[queue], "assigned to somebody else")
        for queue, candidate in self.candidates.items():
            if queue.topic == topic:
                candidate.unwanted = queue not in wanted
        self._add_lanes(now_ms, share)

    def in_order(self, queues: Sequence[Queue]) -> Sequence[Queue]:
        """The queues as they are shared out: by broker name and number, so that all members share the same list."""
        return sorted(queues)

    def _note_share(
        self, topic: str, queues: Sequence[Queue], members: Sequence[str], share: Sequence[Queue]
    ) -> None:
        view = (tuple(queues), tuple(members), tuple(share))
        if self._last_view.get(topic) == view:
            return
        self._last_view[topic] = view
        detail = " ".join(f"{queue.broker}/{queue.queue_id}" for queue in share)
        view_text = f"{' '.join(members)} | {' '.join(f'{queue.broker}/{queue.queue_id}' for queue in queues)}"
        self.note(
            Kind.ASSIGN,
            {**self._who, "topic": topic, "value": len(share), "view": view_text, "detail": detail},
        )

    # ------------------------------------------------------------ new lanes

    def is_wanted(self, queue: Queue) -> bool:
        return queue in self.lanes or queue in self.leaving or queue in self.candidates

    def _add_lanes(self, now_ms: int, share: Sequence[Queue]) -> None:
        fresh = [
            queue for queue in share if queue not in self.lanes and queue not in self.candidates
        ]
        if any(queue in self.leaving for queue in fresh):
            fresh = [queue for queue in fresh if queue not in self.leaving]
            self.rebalance_soon(self.config.rebalance_retry_ms)
        for broker, queues in by_broker(fresh).items():
            candidates = [Candidate(queue) for queue in queues]
            for candidate in candidates:
                self.candidates[candidate.queue] = candidate
            self.lock_before_add(now_ms, broker, candidates)

    def lock_before_add(self, now_ms: int, broker: str, candidates: Sequence[Candidate]) -> None:
        queues = [candidate.queue for candidate in candidates]
        self.ask_lease(now_ms, broker, queues, partial(self._candidates_answered, candidates))

    def _candidates_answered(
        self, candidates: Sequence[Candidate], now_ms: int, granted: Granted
    ) -> None:
        for candidate in candidates:
            if granted is not None and candidate.queue in granted:
                candidate.locked_ms = now_ms
                self.find_start(now_ms, candidate)
            else:
                self._skip(candidate, locked=False)

    def _skip(self, candidate: Candidate, *, locked: bool) -> None:
        """Not this time; a lease that we got goes back, since nothing would renew it."""
        if self.candidates.pop(candidate.queue, None) is None:
            return  # the shutdown has taken care of it
        if locked:
            self.unlock(candidate.queue.broker, [candidate.queue])
        if not candidate.unwanted:
            self.rebalance_soon(self.config.rebalance_retry_ms)

    def find_start(self, now_ms: int, candidate: Candidate) -> None:
        if candidate.unwanted or self.stopping:
            self._skip(candidate, locked=True)
        else:
            self.fetch_stored(now_ms, candidate.queue, partial(self._stored_known, candidate))

    def _stored_known(self, candidate: Candidate, now_ms: int, stored: int) -> None:
        if stored == FAILED:
            self._skip(candidate, locked=True)
        elif stored == NOT_FOUND:
            self._compute_start(now_ms, candidate)
        else:
            self.add(now_ms, candidate, stored, stored)

    def _compute_start(self, now_ms: int, candidate: Candidate) -> None:
        """Nothing is stored: the start is fixed here, once."""
        queue = candidate.queue
        where = START[self.config.consume_from, queue.topic == self.retry_topic]
        if where is Where.ZERO:
            self.add(now_ms, candidate, 0)
            return
        if where is Where.END:
            code, ext = (
                RequestCode.GET_MAX_OFFSET,
                GetMaxOffsetHeader(queue.topic, queue.queue_id).to_ext(),
            )
        else:
            since = self.config.consume_from_timestamp_ms
            moment = now_ms - HALF_AN_HOUR_MS if since is None else since
            code = RequestCode.SEARCH_OFFSET_BY_TIMESTAMP
            ext = SearchOffsetHeader(queue.topic, queue.queue_id, moment).to_ext()
        on_end = partial(self._start_known, candidate)
        address = self.addresses.get(queue.broker)
        self.request(now_ms, address, Command(code, ext), self.config.request_timeout_ms, on_end)

    def _start_known(
        self, candidate: Candidate, now_ms: int, answer: Command | None, reason: str
    ) -> None:
        if answer is None or answer.code != ResponseCode.SUCCESS:
            self._skip(candidate, locked=True)
        else:
            self.add(now_ms, candidate, OffsetResponse.from_ext(answer.ext).offset)

    def add(self, now_ms: int, candidate: Candidate, start: int, stored: int = NOT_FOUND) -> None:
        """The incarnation begins. start: where the first pull will ask, unless another offset is stored by then."""
        if (
            candidate.unwanted
            or self.stopping
            or self.candidates.get(candidate.queue) is not candidate
        ):
            self._skip(candidate, locked=True)
            return
        del self.candidates[candidate.queue]
        queue = candidate.queue
        self._serial += 1
        incarnation = f"{self.config.client_id}#{self._serial}"
        pq = self.queue_class(
            lane=self.lane_of(queue),
            serial=self._serial,
            incarnation=incarnation,
            start=start,
            row={**self.row_of(queue), "incarnation": incarnation},
            delivered=self.delivery_counts(queue),
        )
        pq.locked, pq.last_lock_ms = True, candidate.locked_ms
        pq.offset = stored
        self.lanes[queue] = self.serials[pq.serial] = self.remembered[pq.serial] = pq
        self.note(Kind.ADD, {**pq.row, "value": start})
        self.pull(now_ms, pq)
