"""The numbers that a consumer works with; the defaults are RocketMQ's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reference_impl.core.io import Address
from reference_impl.protocol.bodies import BROADCASTING, CLUSTERING
from specs.errors import UsageError
from specs.plan.config import MODES, Config

NO_LIMIT = -1
WITHOUT_LIMIT = 2**31 - 1
"""What a limit of -1 means where messages are retried in place: in effect, for ever."""
CONCURRENT_LIMIT = 16
"""What it means to a concurrent consumer (`DefaultMQPushConsumerImpl.getMaxReconsumeTimes` of apache/rocketmq)."""


@dataclass(frozen=True, slots=True)
class ConsumerConfig:
    """One consumer of one group. Times in ms.

    topics: topic → tag expression, `*` for all. client_lease_ms: a grant is expired when it is strictly older.
    max_reconsume_times: N gives N + 1 deliveries; -1 means no limit. suspend_ms: used when the listener names
    none. consume_from: first, last or timestamp, for a lane without a stored offset. consume_from_timestamp_ms:
    ms since the epoch; None is half an hour before the question. strategy: a name of `core.allocation.STRATEGIES`.
    pull_threshold: a lane with more cached messages is not pulled. continuous_ms: after so long in one lane a
    thread turns to the next. mode: a name of `specs.plan.config.MODES`. span_max: a lane whose oldest and newest
    cached messages are further apart is not pulled, in the modes that go on past an unfinished one.
    reset_wait_ms: after an operator's reset that the broker left to us, how long running calls may go on.
    send_back_retry_ms: a message that could not be sent back is tried again here after so long.
    """

    client_id: str
    group: str
    topics: Mapping[str, str]
    name_servers: tuple[Address, ...]
    strategy: str = "AVG"
    mode: str = "orderly"
    message_model: str = CLUSTERING
    consume_from: str = "last"
    consume_from_timestamp_ms: int | None = None
    threads: int = 20
    batch: int = 1
    max_reconsume_times: int = NO_LIMIT
    suspend_ms: int = 1_000
    client_lease_ms: int = 30_000
    lock_first_ms: int = 1_000
    lock_interval_ms: int = 20_000
    lock_timeout_ms: int = 1_000
    rebalance_interval_ms: int = 20_000
    rebalance_min_ms: int = 1_000
    rebalance_retry_ms: int = 500
    persist_first_ms: int = 10_000
    persist_interval_ms: int = 5_000
    heartbeat_ms: int = 30_000
    route_poll_ms: int = 30_000
    route_retry_ms: int = 1_000
    request_timeout_ms: int = 3_000
    long_poll_ms: int = 15_000
    pull_timeout_ms: int = 30_000
    pull_batch: int = 32
    pull_threshold: int = 1_000
    span_max: int = 2_000
    send_back_retry_ms: int = 5_000
    pull_retry_ms: int = 3_000
    pull_flow_control_ms: int = 50
    pull_busy_ms: int = 20
    continuous_ms: int = 60_000
    send_timeout_ms: int = 3_000
    dead_letter_retries: int = 2
    shutdown_wait_ms: int = 5_000
    reset_wait_ms: int = 10_000
    limit: int = field(init=False)

    def __post_init__(self) -> None:
        if self.consume_from not in ("first", "last", "timestamp"):
            raise UsageError(
                f"consume_from is {self.consume_from!r}; it must be first, last or timestamp"
            )
        if self.mode not in MODES:
            raise UsageError(f"mode is {self.mode!r}; it must be one of {', '.join(MODES)}")
        if self.message_model not in (CLUSTERING, BROADCASTING):
            raise UsageError(
                f"the model is {self.message_model!r}; it must be {CLUSTERING} or {BROADCASTING}"
            )
        if self.message_model == BROADCASTING and self.mode != "concurrent":
            raise UsageError(
                f"a broadcast consumer works in the mode concurrent only, not {self.mode}"
            )
        if self.threads < 1 or self.batch < 1 or not self.name_servers:
            raise UsageError(
                "a consumer needs at least one thread, a batch of at least one and a name server"
            )
        without = CONCURRENT_LIMIT if self.mode == "concurrent" else WITHOUT_LIMIT
        limit = without if self.max_reconsume_times == NO_LIMIT else self.max_reconsume_times
        object.__setattr__(self, "limit", limit)

    @classmethod
    def from_plan(
        cls,
        plan: Config,
        *,
        client_id: str,
        group: str,
        topics: Mapping[str, str],
        name_servers: tuple[Address, ...],
        strategy: str | None = None,
    ) -> ConsumerConfig:
        """A consumer for a planned run. Routes are polled as often as hearts beat: both are 30 s by default.

        strategy: None for the plan's.
        """
        return cls(
            client_id=client_id,
            group=group,
            topics=topics,
            name_servers=name_servers,
            mode=plan.mode,
            message_model=plan.message_model.upper(),
            strategy=strategy or plan.strategy,
            consume_from=plan.consume_from,
            threads=plan.threads,
            batch=plan.batch,
            max_reconsume_times=plan.max_reconsume_times,
            suspend_ms=plan.suspend_ms,
            client_lease_ms=plan.client_lease_ms,
            lock_first_ms=min(1_000, plan.lock_interval_ms),
            lock_interval_ms=plan.lock_interval_ms,
            rebalance_interval_ms=plan.rebalance_ms,
            rebalance_min_ms=min(1_000, plan.rebalance_ms),
            persist_first_ms=plan.persist_first_ms,
            persist_interval_ms=plan.persist_ms,
            heartbeat_ms=plan.heartbeat_ms,
            route_poll_ms=plan.heartbeat_ms,
            long_poll_ms=plan.long_poll_ms,
            pull_timeout_ms=max(2 * plan.long_poll_ms, 3_000),
            pull_batch=plan.pull_batch,
            shutdown_wait_ms=plan.shutdown_wait_ms,
            continuous_ms=plan.continuous_ms,
        )
