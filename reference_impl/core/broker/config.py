"""The numbers and names that a broker is started with."""

from __future__ import annotations

from dataclasses import dataclass, field

from reference_impl.core.broker.dialect import Dialect, dialect
from specs.errors import UsageError
from specs.plan.config import Config

FIRST, NEXT = 1, 2
"""The releases of ours between which a broker is upgraded: one code, so that whatever changes with them is a bug."""
DELAY_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """Times in ms; the defaults are RocketMQ's.

    address: what the broker tells the name servers about itself, `host:port` or a simulated node's name.
    dialect: "5.x" or "4.9", see `dialect`. delay_levels: one duration for each level from 1, as `5s 10m 2h`.
    retry_queues, retry_max: a group's number of retry queues and limit of retries where it sets none.
    default_queues: queues of the template topic from which unknown topics are made. flush_timeout_ms: how long a send
    waits for its sync before it is answered FLUSH_DISK_TIMEOUT.
    waiting_sends_max, parked_pulls_max: so many sends may wait for their sync, and pulls for a message; more are
    answered SYSTEM_BUSY. stalled_ms: nor are sends taken while one has waited for its sync for so long.
    pull_messages_max, pull_bytes_max: what one pull is given at most, however many it asks for; a message that is
    larger comes alone (MessageStoreConfig.maxTransferCountOnMessageInMemory and maxTransferBytesOnMessageInMemory).
    keep_ms: how long messages are kept at least, None for ever (then the disk is not looked at either). delete_hours:
    the hours of the day (UTC) in which what is too old is removed, none of them for all. clean_ms: how often is looked.
    disk_max, disk_force, disk_refuse: shares of the disk in use above which what is too old goes at any hour, the
    oldest goes whatever its age, and no client's message is taken (until it is disk_force or less again).
    clean_segments: how many segments of the log go at once. release: `FIRST` or `NEXT`, which it says of itself.
    """

    name: str = "b0"
    cluster: str = "DefaultCluster"
    address: str = "127.0.0.1:10911"
    broker_id: int = 0
    name_servers: tuple[str, ...] = ()
    dialect: str = "5.x"
    lease_ms: int = 60_000
    persist_first_ms: int = 10_000
    persist_ms: int = 5_000
    channel_expiry_ms: int = 120_000
    channel_scan_ms: int = 10_000
    register_ms: int = 30_000
    register_timeout_ms: int = 6_000
    long_polling: bool = True
    delay_levels: str = DELAY_LEVELS
    transaction_timeout_ms: int = 6_000
    transaction_check_interval_ms: int = 30_000
    transaction_check_max: int = 15
    auto_create_topics: bool = True
    auto_create_groups: bool = True
    default_queues: int = 8
    retry_queues: int = 1
    retry_max: int = 16
    body_bytes_max: int = 4 * 1024 * 1024
    pull_messages_max: int = 32
    pull_bytes_max: int = 256 * 1024
    flush_timeout_ms: int = 5_000
    waiting_sends_max: int = 10_000
    parked_pulls_max: int = 100_000
    stalled_ms: int = 1_000
    keep_ms: int | None = None
    delete_hours: tuple[int, ...] = ()
    clean_ms: int = 10_000
    disk_max: float = 0.75
    disk_force: float = 0.85
    disk_refuse: float = 0.90
    clean_segments: int = 10
    release: int = FIRST
    rules: Dialect = field(init=False)
    delay_ms: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", dialect(self.dialect))
        object.__setattr__(self, "delay_ms", parse_delay_levels(self.delay_levels))

    @classmethod
    def from_plan(
        cls,
        plan: Config,
        *,
        name: str = "b0",
        address: str = "127.0.0.1:10911",
        name_servers: tuple[str, ...] = (),
        release: int = FIRST,
    ) -> BrokerConfig:
        """A broker for a planned run: leases, persistence, expiry, delays, retention and dialect are the plan's."""
        return cls(
            name=name,
            address=address,
            name_servers=name_servers,
            release=release,
            dialect=plan.dialect,
            lease_ms=plan.broker_lease_ms,
            persist_first_ms=plan.stored_first_ms,
            persist_ms=plan.stored_each_ms,
            channel_expiry_ms=plan.channel_expiry_ms,
            channel_scan_ms=min(10_000, max(1, plan.channel_expiry_ms // 4)),
            delay_levels=plan.delay_levels,
            transaction_timeout_ms=plan.transaction_timeout_ms,
            transaction_check_interval_ms=plan.transaction_check_interval_ms,
            transaction_check_max=plan.transaction_check_max,
            keep_ms=plan.keep_ms or None,
            clean_ms=min(10_000, max(1, plan.keep_ms // 4)),
        )


def version_name(dialect: str, release: int) -> str:
    """What a broker of ours says of its version."""
    return f"inorder ({dialect}{'' if release == FIRST else ', next release'})"


def parse_delay_levels(text: str) -> tuple[int, ...]:
    """The delay of each level in ms, level 1 first. Raises UsageError naming the word that is no duration."""
    delays = []
    for word in text.split():
        number, unit = word[:-1], word[-1:]
        if not number.isdigit() or unit not in _UNIT_MS:
            raise UsageError(
                f"delay level {word!r} is no duration; write a whole number and s, m, h or d, as in 10m"
            )
        delays.append(int(number) * _UNIT_MS[unit])
    return tuple(delays)
