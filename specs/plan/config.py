"""The numbers a run is made with, which clauses need in order to judge it.

Defaults are those of Apache RocketMQ (docs/sources.md). A history's `run.json` carries them, so that a judge
never guesses a lease time. Of another system it carries what that one was told, under its own names: no default of
RocketMQ's stands for what is not told, and a clause that would need it is not judged (`Config.untold`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from specs.errors import UsageError

ROCKETMQ = "rocketmq"
MODES = ("orderly", "concurrent", "key_ordered")
"""orderly: one call per lane at a time, under a lease. concurrent: calls side by side, in no order. key_ordered:
calls side by side, one per sharding key at a time."""
MESSAGE_MODELS = ("clustering", "broadcasting")
STRATEGIES = ("AVG", "CIRCLE", "CONSISTENT_HASH", "CONFIG", "MACHINE_ROOM", "NEARBY")
"""How the members of a group share its queues: blocks, like cards, by a ring of hashes, a fixed list for each, within
the listed machine rooms, or first within each machine room."""
LOOKS_FOR_SILENT_MS = 10_000
LOCK_WAIT_MS = 1_000
"""So long Apache's client waits for the answer of each broker that it asks for leases."""
IN_MEMORY, IN_SYNC = "memory", "sync"
FLUSHES = (IN_MEMORY, IN_SYNC, "async")
"""What a crash of a simulated broker does to its store. memory: nothing, as a kill of the process on a machine that
lives. sync, async: the machine is gone, and with it what was not synced; a send is answered after that, or before."""
CHOICES = {
    "flush": FLUSHES,
    "mode": MODES,
    "message_model": MESSAGE_MODELS,
    "strategy": STRATEGIES,
    "consume_from": ("first", "last", "timestamp"),
}


@dataclass(frozen=True, slots=True)
class Config:
    """Times in ms. max_reconsume_times: -1 means no limit. consume_from: first, last or timestamp.

    mode: how a group's listener is called (MODES). message_model: clustering, where members share the queues, or
    broadcasting, where each of them consumes all. strategy: how they share them (STRATEGIES).
    subscription: what every group wants of its topics: `*` for all, or tags, as in `red || blue`.
    broker_persist_first_ms, broker_persist_ms: when brokers write offsets to their disk, 0 where that is as often as
    the clients report them.
    flush: what simulated brokers keep their messages on (FLUSHES). flush_ms: with async, how often they sync.
    """

    broker_lease_ms: int = 60_000
    client_lease_ms: int = 30_000
    lock_interval_ms: int = 20_000
    rebalance_ms: int = 20_000
    persist_ms: int = 5_000
    persist_first_ms: int = 10_000
    broker_persist_first_ms: int = 0
    broker_persist_ms: int = 0
    heartbeat_ms: int = 30_000
    channel_expiry_ms: int = 120_000
    suspend_ms: int = 1_000
    max_reconsume_times: int = -1
    batch: int = 1
    threads: int = 20
    pull_batch: int = 32
    long_poll_ms: int = 15_000
    shutdown_wait_ms: int = 5_000
    continuous_ms: int = 60_000
    consume_from: str = "first"
    mode: str = "orderly"
    message_model: str = "clustering"
    strategy: str = "AVG"
    subscription: str = "*"
    delay_levels: str = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
    transaction_timeout_ms: int = (
        6_000  # so long a half message may be open before its producer is asked
    )
    transaction_check_interval_ms: int = 30_000
    transaction_check_max: int = 15
    keep_ms: int = 0  # so long a broker keeps its messages at least; 0: for ever
    dialect: str = "5.x"
    flush: str = IN_MEMORY
    flush_ms: int = 500
    # What the judges allow for, beyond the product's own numbers:
    dead_letter_bound_ms: int = 1_000  # an acknowledged dead letter is to be seen this soon
    delay_bound_ms: int = 3_000  # a one-way request is applied within this time, or never
    schedule_slack_ms: int = 1_000  # how late a timer of a healthy process may be
    # From a look at the lease to the begin of its call, or from a result to its being taken up; virtual time: 0
    guard_slack_ms: int = 200
    disk_slack_ms: int = 5_000  # so long a sync of a disk may take; virtual time: 0

    @property
    def system(self) -> str:
        """Whose numbers these are."""
        return ROCKETMQ

    @property
    def forgotten_ms(self) -> int:
        """Until a member that is silent is forgotten, at the latest: a broker looks every ten seconds who is.

        Source: `broker:client/ClientHousekeepingService.java`, as in docs/sources.md#membership.
        """
        return self.channel_expiry_ms + LOOKS_FOR_SILENT_MS

    @property
    def stored_first_ms(self) -> int:
        """So long after its start a broker writes the offsets to its disk for the first time."""
        return self.broker_persist_first_ms or self.persist_first_ms

    @property
    def stored_each_ms(self) -> int:
        """And so often from then on."""
        return self.broker_persist_ms or self.persist_ms

    @property
    def untold(self) -> frozenset[str]:
        """The numbers that nobody knows: what stands here for them is not to be relied on."""
        return frozenset()

    def says(self, name: str) -> Any:
        """What another system was told, or is, under a name of its own; None where nobody says."""
        return None

    def counts(self, name: str) -> int:
        """Likewise, a number; 0 where nobody says one."""
        return 0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Config:
        """Unknown names are an error: a misspelt limit would silently be the default."""
        known = {f.name: f.type for f in fields(cls)}
        unknown = sorted(set(data) - set(known))
        if unknown:
            raise UsageError(
                f"unknown configuration: {', '.join(unknown)}; known are {', '.join(sorted(known))}"
            )
        for name, value in data.items():
            wanted = str if known[name] == "str" else int
            if not isinstance(value, wanted) or isinstance(value, bool):
                raise UsageError(
                    f"configuration {name} must be {'text' if wanted is str else 'a whole number'}"
                )
            if value not in CHOICES.get(name, (value,)):
                raise UsageError(
                    f"configuration {name} must be one of {', '.join(CHOICES[name])}, not {value}"
                )
        return cls(**data)

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """What `from_json` takes."""
        kinds = {"int": {"type": "integer"}, "str": {"type": "string"}}
        known = {each.name: _choice(each.name) or kinds[str(each.type)] for each in fields(Config)}
        return {"type": "object", "additionalProperties": False, "properties": known}


OF_BROKERS = frozenset(
    {
        "broker_lease_ms",
        "broker_persist_first_ms",
        "broker_persist_ms",
        "channel_expiry_ms",
        "delay_levels",
        "transaction_timeout_ms",
        "transaction_check_interval_ms",
        "transaction_check_max",
        "keep_ms",
        "flush",
        "flush_ms",
    }
)
"""What a broker was told, and its clients need not know."""
ALLOWED_BY_JUDGES = frozenset(
    {
        "dead_letter_bound_ms",
        "delay_bound_ms",
        "schedule_slack_ms",
        "guard_slack_ms",
        "disk_slack_ms",
    }
)
"""Of the configuration, what no system is told: the judges allow for it, whatever was tested."""
NOTHING_IS_LOST = frozenset({"flush", "flush_ms", "keep_ms"})
"""What says nothing by its default: no message is lost in a crash or removed, unless the system says that it may."""


@dataclass(frozen=True, slots=True)
class OtherConfig(Config):
    """Of another system: what it was told, as it stands there. Names that RocketMQ's have too mean the same here."""

    name: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def system(self) -> str:
        return self.name

    @property
    def forgotten_ms(self) -> int:
        return self.channel_expiry_ms

    @property
    def untold(self) -> frozenset[str]:
        known = {each.name for each in fields(Config)}
        return frozenset(
            known - ALLOWED_BY_JUDGES - NOTHING_IS_LOST - _shared(self.settings).keys()
        )

    def says(self, name: str) -> Any:
        return self.settings.get(name)

    def counts(self, name: str) -> int:
        value = self.settings.get(name)
        return value if isinstance(value, int) else 0

    def to_json(self) -> dict[str, Any]:
        return dict(self.settings)


def _shared(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What of another system's settings says something that RocketMQ's configuration says too."""
    found = {}
    for each in fields(Config):
        value = settings.get(each.name)
        wanted = str if each.type == "str" else int
        fits = isinstance(value, wanted) and not isinstance(value, bool)
        if fits and value in CHOICES.get(each.name, (value,)):
            found[each.name] = value
    return found


def config_of(data: Mapping[str, Any], where: str = "") -> Config:
    """The configuration that names its `system` (RocketMQ where it names none) and holds what that one was told.

    Raises UsageError for a name that RocketMQ's lacks; of another system's nothing is refused.
    """
    told = dict(data)
    system = told.pop("system", ROCKETMQ)
    if not isinstance(system, str) or not system:
        raise UsageError(f"{where}: 'system' must be text".removeprefix(": "))
    if system != ROCKETMQ:
        return OtherConfig(**_shared(told), name=system, settings=told)
    try:
        return Config.from_json(told)
    except UsageError as error:
        raise UsageError(f"{where}: {error}".removeprefix(": ")) from error


def without_the_brokers(config: Config, system: str, *, known: Collection[str] = ()) -> Config:
    """What is known of it where the brokers are somebody's: what our own clients were told.

    system: whose they are. known: what of these brokers' settings somebody has told us.
    """
    unknown = OF_BROKERS.difference(known)
    told = {name: value for name, value in config.to_json().items() if name not in unknown}
    return config_of({"system": system, **told})


def config_schema() -> dict[str, Any]:
    """The JSON schema of `config_of`'s argument."""
    ours = Config.json_schema()
    ours["properties"] = {"system": {"const": ROCKETMQ}, **ours["properties"]}
    other = {"type": "string", "minLength": 1, "not": {"const": ROCKETMQ}}
    others = {"type": "object", "required": ["system"], "properties": {"system": other}}
    return {"anyOf": [ours, others]}


def _choice(name: str) -> dict[str, Any] | None:
    return {"enum": list(CHOICES[name])} if name in CHOICES else None
