"""Getting the messages of a lane: one pull at a time, each asking where the last one ended.

| before a pull | then |
|---|---|
| the lane dropped, or the consumer stopping | none |
| more messages cached than the threshold | again after 50 ms |
| the lane not locked | again after 3 s |
| the first pull of the incarnation | the stored offset is asked for once more |

| stored offset | then |
|---|---|
| there is one | it is adopted, even when lower |
| nothing is stored | the start stays as it was fixed when the lane was added |
| no answer | again after 3 s |

| the answer | then |
|---|---|
| FOUND | the messages are kept (tags compared exactly), the next pull asks at `nextBeginOffset` |
| FOUND, and a message in it can't be read | those before it are kept, the next pull asks for it again |
| PULL_NOT_FOUND, PULL_RETRY_IMMEDIATELY | the same without messages; an idle lane's offset follows |
| PULL_OFFSET_MOVED | the offset is set to the broker's word and told to it, the lane is dropped and rebalanced |
| anything else, or none | again after 3 s |

A pull carries the consumed offset along when it is above 0, so a commit travels with each pull.
Source: `DefaultMQPushConsumerImpl.pullMessage` of apache/rocketmq.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING

from reference_impl.core.consumer.part import Part, failure_outcome
from reference_impl.core.consumer.process_queue import ProcessQueue
from reference_impl.core.consumer.start_offset import FAILED
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import PULL_COMMIT, PULL_SUSPEND, PullHeader, PullResponse
from reference_impl.protocol.message import StoredMessage, decode_readable
from specs.vocabulary import Kind, Outcome

if TYPE_CHECKING:
    from reference_impl.core.consumer.consumer import Consumer

EMPTY_CODES = frozenset({ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_RETRY_IMMEDIATELY})
READ_CODES = EMPTY_CODES | {ResponseCode.SUCCESS, ResponseCode.PULL_OFFSET_MOVED}
"""Answers of a broker that got as far as reading, and so has taken the commit that came along."""


class Pulling(Part, ABC):
    """One chain of pulls per lane."""

    def __init__(self, consumer: Consumer) -> None:
        super().__init__(consumer)
        consumer.timers["pull"] = self._pull_tick

    def _pull_tick(self, now_ms: int, serial: int) -> None:
        pq = self.consumer.serials.get(serial)
        if pq is not None:
            self.pull(now_ms, pq)

    def pull_later(self, pq: ProcessQueue, delay_ms: int) -> None:
        if not pq.dropped:
            self.consumer.set_timer(("pull", pq.serial), delay_ms)

    @abstractmethod
    def pull(self, now_ms: int, pq: ProcessQueue) -> None:
        """The next pull of the lane: at once, after a while, or none."""

    def send_pull(self, now_ms: int, pq: ProcessQueue) -> None:
        asked, commit = pq.next_offset, self.consumer.offsets.offset_to_piggyback(pq)
        if not pq.pull_ext:
            pq.pull_ext = self._pull_template(pq)
        op = self.consumer.begin(Kind.PULL, {**pq.row, "queue_offset": asked})
        ext = {**pq.pull_ext, "queueOffset": str(asked)}
        commit_op = None
        if commit > 0:
            ext["commitOffset"] = str(commit)
            ext["sysFlag"] = str(PULL_SUSPEND | PULL_COMMIT)
            commit_op = self.consumer.begin(
                Kind.COMMIT, {**self.consumer.offsets.commit_row(pq, commit), "view": "pull"}
            )
        command = Command(RequestCode.PULL_MESSAGE, ext)
        on_end = partial(self.pulled, pq, op, commit_op)
        self.consumer.request(
            now_ms,
            self.consumer.addresses.get(pq.queue.broker),
            command,
            self.config.pull_timeout_ms,
            on_end,
        )

    def _pull_template(self, pq: ProcessQueue) -> dict[str, str]:
        subscription = self.consumer.subscriptions[pq.queue.topic]
        return PullHeader(
            consumer_group=self.config.group,
            topic=pq.queue.topic,
            queue_id=pq.queue.queue_id,
            queue_offset=0,
            max_msg_nums=self.config.pull_batch,
            sys_flag=PULL_SUSPEND,
            suspend_timeout_millis=self.config.long_poll_ms,
            sub_version=subscription.sub_version,
            expression_type=subscription.expression_type,
        ).to_ext()

    # ------------------------------------------------------------ the answer

    def pulled(
        self,
        pq: ProcessQueue,
        op: int,
        commit_op: int | None,
        now_ms: int,
        answer: Command | None,
        reason: str,
    ) -> None:
        if answer is None:
            outcome = failure_outcome(reason)
            self.consumer.end(op, outcome, {"detail": reason})
            if commit_op is not None:
                self.consumer.end(commit_op, outcome, {})
            self.pull_later(pq, self.config.pull_retry_ms)
            return
        code = answer.code
        if code not in READ_CODES:
            self.consumer.end(op, Outcome.REFUSED, {"code": code, "detail": answer.remark})
            if commit_op is not None:
                self.consumer.end(commit_op, Outcome.REFUSED, {"code": code})
            is_busy = code == ResponseCode.FLOW_CONTROL
            self.pull_later(pq, self.config.pull_busy_ms if is_busy else self.config.pull_retry_ms)
            return
        next_offset = PullResponse.from_ext(answer.ext).next_begin_offset
        messages, is_whole = (
            decode_readable(answer.body) if code == ResponseCode.SUCCESS else ([], True)
        )
        if not is_whole:  # the rest is asked for again
            next_offset = messages[-1].queue_offset + 1
        outcome = Outcome.REFUSED if code == ResponseCode.PULL_OFFSET_MOVED else Outcome.OK
        self.consumer.end(
            op, outcome, {"code": code, "value": next_offset, "detail": str(len(messages))}
        )
        if commit_op is not None:
            self.consumer.end(commit_op, Outcome.OK, {"code": ResponseCode.SUCCESS})
        if pq.dropped or self.consumer.stopping:
            return
        if code == ResponseCode.PULL_OFFSET_MOVED:
            self.offset_moved(now_ms, pq, next_offset)
            return
        pq.next_offset = next_offset
        if messages:
            self.consumer.loop.keep(now_ms, pq, self.wanted(pq, messages))
        else:
            self.consumer.offsets.correct_offset(pq, next_offset)
        self.pull(now_ms, pq)

    def wanted(self, pq: ProcessQueue, messages: list[StoredMessage]) -> list[StoredMessage]:
        """The broker filters by the tags' hash codes, which may collide; here they are compared."""
        tags = self.consumer.subscriptions[pq.queue.topic].tags
        return [message for message in messages if message.tags in tags] if tags else messages

    def offset_moved(self, now_ms: int, pq: ProcessQueue, next_offset: int) -> None:
        """The broker says where to go on. The lane is dropped with that offset, which nothing can move any more."""
        pq.offset = pq.corrected = next_offset
        self.consumer.release.drop(now_ms, pq, "offset moved by the broker")
        self.consumer.rebalance.soon()


class LeasedPulling(Pulling):
    """Pulls lanes under a lease: the first table of this file."""

    def pull(self, now_ms: int, pq: ProcessQueue) -> None:
        if pq.dropped or self.consumer.stopping:
            return
        if pq.count > self.config.pull_threshold:
            self.pull_later(pq, self.config.pull_flow_control_ms)
        elif not pq.locked:
            self.pull_later(pq, self.config.pull_retry_ms)
        elif not pq.anchored:
            then = partial(self.anchor, pq)
            self.consumer.offsets.fetch_stored(now_ms, pq.queue, then)
        else:
            self.send_pull(now_ms, pq)

    def anchor(self, pq: ProcessQueue, now_ms: int, stored: int) -> None:
        """The second table."""
        if pq.dropped or self.consumer.stopping:
            return
        if stored == FAILED:
            self.pull_later(pq, self.config.pull_retry_ms)
            return
        if stored >= 0:
            pq.next_offset = stored
            pq.offset = stored
        pq.anchored = True
        self.send_pull(now_ms, pq)


def span_of(held: Collection[int]) -> int:
    """How far the lowest and the highest of these offsets are apart."""
    return max(held) - min(held) if held else 0


class BoundedPulling(Pulling):
    """Pulls lanes that go on past an unfinished message: not while too much of them is unfinished."""

    def pull(self, now_ms: int, pq: ProcessQueue) -> None:
        if span_of(pq.held) > self.config.span_max:
            self.pull_later(pq, self.config.pull_flow_control_ms)
        elif pq.dropped or self.consumer.stopping:
            return
        elif pq.count > self.config.pull_threshold:
            self.pull_later(pq, self.config.pull_flow_control_ms)
        else:
            self.send_pull(now_ms, pq)
