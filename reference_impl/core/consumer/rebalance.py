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
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from reference_impl.core.allocation import STRATEGIES, Strategy, strategy
from reference_impl.core.consumer.candidate import Candidate
from reference_impl.core.consumer.lane_life import Event, Phase
from reference_impl.core.consumer.leases import Granted, by_broker
from reference_impl.core.consumer.part import Part
from reference_impl.core.consumer.start_offset import (
    FAILED,
    HALF_AN_HOUR_MS,
    NOT_FOUND,
    START,
    Where,
)
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

if TYPE_CHECKING:
    from reference_impl.core.consumer.consumer import Consumer

REBALANCE = ("rebalance",)
REBALANCE_SOON = ("rebalance-soon",)
REBALANCE_MIN = ("rebalance-min",)


class Rebalance(Part):
    """Keeps the lanes in step with the group. strategies: by name, of which the configuration names one."""

    strategies: ClassVar[Mapping[str, Strategy]] = STRATEGIES

    def __init__(self, consumer: Consumer) -> None:
        super().__init__(consumer)
        self.allocate = strategy(self.config.strategy, self.strategies)
        self._serial = 0
        self._resting = False  # the minimal interval since the last rebalance is not over
        self._wanted_again = False
        self.asking: set[str] = set()
        self._last_view: dict[str, tuple[object, ...]] = {}
        consumer.timers["rebalance"] = self.in_turn
        consumer.timers["rebalance-soon"] = self.begin_round
        consumer.timers["rebalance-min"] = self._rested

    # ------------------------------------------------------------ when

    def start(self, now_ms: int) -> None:
        self.consumer.set_timer(REBALANCE, self.config.rebalance_interval_ms)

    def on_group_changed(self, now_ms: int, command: Command) -> None:
        """A broker's notice."""
        if command.ext.get("consumerGroup") == self.config.group:
            self.begin_round(now_ms)

    def soon(self, delay_ms: int = 0) -> None:
        self.consumer.set_timer(REBALANCE_SOON, delay_ms)

    def in_turn(self, now_ms: int) -> None:
        self.consumer.set_timer(REBALANCE, self.config.rebalance_interval_ms)
        self.begin_round(now_ms)

    def _rested(self, now_ms: int) -> None:
        self._resting = False
        if self._wanted_again:
            self.begin_round(now_ms)

    def begin_round(self, now_ms: int) -> None:
        if self.consumer.stopping or not self.consumer.routes.is_ready:
            return
        if self._resting:
            self._wanted_again = True
            return
        self._resting, self._wanted_again = True, False
        self.consumer.set_timer(REBALANCE_MIN, self.config.rebalance_min_ms)
        for topic in sorted(self.consumer.routes.queues):
            if topic not in self.asking:
                self.ask_members(now_ms, topic)

    # ------------------------------------------------------------ the share

    def ask_members(self, now_ms: int, topic: str) -> None:
        """Asks the topic's brokers in turn until one answers."""
        brokers = sorted({queue.broker for queue in self.consumer.routes.queues[topic]})
        if brokers:
            self.asking.add(topic)
            self._ask_members_of(now_ms, topic, brokers, 0)
        else:
            self.take_share(now_ms, topic, [])

    def _ask_members_of(self, now_ms: int, topic: str, brokers: list[str], tried: int) -> None:
        ext = ConsumerGroupHeader(self.config.group).to_ext()
        command = Command(RequestCode.GET_CONSUMER_LIST_BY_GROUP, ext)
        address = self.consumer.addresses.get(brokers[tried])
        on_end = partial(self.members_answered, topic, brokers, tried)
        self.consumer.request(now_ms, address, command, self.config.request_timeout_ms, on_end)

    def members_answered(
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
            self.asking.discard(topic)
            if members and not self.consumer.stopping:
                if self.config.client_id not in members:  # a restarted broker has forgotten us
                    self.consumer.routes.beat(now_ms, [self.consumer.addresses[brokers[tried]]])
                self.take_share(now_ms, topic, members)
            return
        if tried + 1 < len(brokers) and not self.consumer.stopping:
            self._ask_members_of(now_ms, topic, brokers, tried + 1)
        else:
            self.asking.discard(topic)

    def take_share(self, now_ms: int, topic: str, members: Sequence[str]) -> None:
        queues = self.in_order(self.consumer.routes.queues[topic])
        share = self.allocate(self.config.client_id, queues, members)
        self._note_share(topic, queues, members, share)
        wanted = set(share)
        for queue, pq in sorted(self.consumer.lanes.items()):
            if queue.topic == topic and queue not in wanted:
                self.consumer.release.drop(now_ms, pq, "assigned to somebody else")
        for queue, lane in self.consumer.tracked.items():
            if queue.topic == topic and isinstance(lane, Candidate):
                lane.unwanted = queue not in wanted
        self.add_lanes(now_ms, share)

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
        self.consumer.note(
            Kind.ASSIGN,
            {
                **self.consumer.who,
                "topic": topic,
                "value": len(share),
                "view": view_text,
                "detail": detail,
            },
        )

    # ------------------------------------------------------------ new lanes

    def add_lanes(self, now_ms: int, share: Sequence[Queue]) -> None:
        tracked = self.consumer.tracked
        if any(self.consumer.phase_of(queue) is Phase.LEAVING for queue in share):
            self.soon(self.config.rebalance_retry_ms)
        fresh = [queue for queue in share if queue not in tracked]
        for broker, queues in by_broker(fresh).items():
            candidates = [Candidate(queue) for queue in queues]
            for candidate in candidates:
                tracked[candidate.queue] = candidate
                self.consumer.move(candidate, Event.WANT)
            then = partial(self.candidates_answered, candidates)
            self.consumer.leases.acquire(now_ms, broker, queues, then)

    def candidates_answered(
        self, candidates: Sequence[Candidate], now_ms: int, granted: Granted
    ) -> None:
        for candidate in candidates:
            if candidate.phase is Phase.ELSEWHERE:
                continue  # the shutdown has taken care of it
            if granted is not None and candidate.queue in granted:
                candidate.locked_ms = now_ms
                self.consumer.move(candidate, Event.GRANT)
                self.find_start(now_ms, candidate)
            else:
                self._skip(candidate)

    def _skip(self, candidate: Candidate) -> None:
        """Not this time; a lease that we got goes back, since nothing would renew it."""
        if candidate.phase is Phase.ELSEWHERE:
            return  # the shutdown has taken care of it
        has_lease = candidate.phase is Phase.GRANTED
        self.consumer.move(candidate, Event.SKIP)
        if has_lease:
            self.consumer.leases.unlock(candidate.queue.broker, [candidate.queue])
        if not candidate.unwanted:
            self.soon(self.config.rebalance_retry_ms)

    def find_start(self, now_ms: int, candidate: Candidate) -> None:
        if candidate.unwanted or self.consumer.stopping:
            self._skip(candidate)
        else:
            self.consumer.offsets.fetch_stored(
                now_ms, candidate.queue, partial(self.stored_known, candidate)
            )

    def stored_known(self, candidate: Candidate, now_ms: int, stored: int) -> None:
        if stored == FAILED:
            self._skip(candidate)
        elif stored == NOT_FOUND:
            self.compute_start(now_ms, candidate)
        else:
            self.add(now_ms, candidate, stored, stored)

    def compute_start(self, now_ms: int, candidate: Candidate) -> None:
        """Nothing is stored: the start is fixed here, once."""
        queue = candidate.queue
        where = START[self.config.consume_from, queue.topic == self.consumer.retry_topic]
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
        address = self.consumer.addresses.get(queue.broker)
        self.consumer.request(
            now_ms, address, Command(code, ext), self.config.request_timeout_ms, on_end
        )

    def _start_known(
        self, candidate: Candidate, now_ms: int, answer: Command | None, reason: str
    ) -> None:
        if answer is None or answer.code != ResponseCode.SUCCESS:
            self._skip(candidate)
        else:
            self.add(now_ms, candidate, OffsetResponse.from_ext(answer.ext).offset)

    def add(self, now_ms: int, candidate: Candidate, start: int, stored: int = NOT_FOUND) -> None:
        """The incarnation begins. start: where the first pull will ask, unless another offset is stored by then."""
        if candidate.unwanted or self.consumer.stopping or candidate.phase is not Phase.GRANTED:
            self._skip(candidate)
            return
        self.consumer.move(candidate, Event.ADD)
        queue = candidate.queue
        self._serial += 1
        incarnation = f"{self.config.client_id}#{self._serial}"
        pq = self.consumer.loop.queue_class(
            lane=self.consumer.lane_of(queue),
            serial=self._serial,
            incarnation=incarnation,
            start=start,
            row={**self.consumer.row_of(queue), "incarnation": incarnation},
            delivered=self.consumer.calls.delivery_counts(queue),
            phase=candidate.phase,
        )
        self.consumer.leases.admit(pq, candidate.locked_ms)
        pq.offset = stored
        self.consumer.tracked[queue] = pq
        self.consumer.serials[pq.serial] = self.consumer.offsets.remembered[pq.serial] = pq
        self.consumer.note(Kind.ADD, {**pq.row, "value": start})
        self.consumer.pulling.pull(now_ms, pq)
