"""`sqs-local:VERSION[+boto3:VERSION][,KEY=VALUE...]` and `sqs:ENDPOINT[...]`: SQS FIFO queues, through boto3.

The first starts ElasticMQ on this machine (`conformance.parts.elasticmq`), which speaks SQS' protocol and keeps its
queues in memory: it can't be killed and started again. The second speaks to an endpoint, as
`sqs:http://127.0.0.1:9324`, where all that is made begins with `inorder-`. The clients are drivers in processes of
their own.

A group has a FIFO queue for each topic, and a lane is a message group in it: of one message group one message is in
flight at a time, whoever of the members has it; whose work a lane is then says `conformance.drivers.message_leases`.
Places are the order of sending, and what was sent is read out of a log (`conformance.drivers.published`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Self
from urllib.parse import urlsplit

from conformance.drivers.library import InPython
from conformance.drivers.message_leases import first_tenures, with_tenures
from conformance.drivers.plans import STEADY
from conformance.drivers.published import confirmed, placed
from conformance.drivers.served import ServedTarget
from conformance.parts import elasticmq
from conformance.parts.elasticmq import ElasticServer
from conformance.parts.places import beside
from conformance.targets.base import Run
from conformance.targets.options import Argument, parse
from specs.errors import UsageError
from specs.history.row import Row
from specs.history.runinfo import declared
from specs.plan.ability import Ability
from specs.plan.config import Config, config_of
from specs.plan.plan import ListenerRule, Plan
from specs.vocabulary import Kind, Level

BOTO3 = "boto3"
OPTIONS = frozenset(
    {"aws_access_key_id", "aws_secret_access_key", "aws_session_token", "region_name"}
)
"""What a target takes: boto3's own."""
CONFIG = replace(
    STEADY,
    broker_lease_ms=2_000,
    rebalance_ms=250,
    batch=1,
)
"""broker_lease_ms is the visibility timeout, which SQS has in whole seconds."""
POLL_MS, SPARE_MS = 1_000, 100
"""Of it the driver counts against a call how long it may have polled for the message, and a rest to be safe."""
TOLD = (
    "batch",
    "broker_lease_ms",
    "consume_from",
    "message_model",
    "mode",
    "subscription",
    "suspend_ms",
)
NO_LIMIT = {"max_reconsume_times": -1}
SLOW = range(20, 220, 25)
"""Numbers of messages of which a call takes longer than the lease, twice: so the first deletion comes while another
receipt of the message lives."""
PORTS = {"http": 80, "https": 443}


class Boto3(InPython):
    """Its wheel, and our driver of it."""

    name = BOTO3
    wheel = elasticmq.client
    program = beside("drivers") / "boto3" / "driver.py"


class SqsTarget(ServedTarget):
    """A server, and boto3 at work on it."""

    abilities = frozenset({Ability.READ, Ability.CRASH_CLIENT, Ability.PAUSE_CLIENT})
    system = "sqs"
    server = ElasticServer
    port = 9324
    clients = (BOTO3,)
    knows = OPTIONS
    profile = "sqs-fifo"
    config: Config = CONFIG
    reads_at_work = True
    behind_link = True
    call_ms_max = CONFIG.broker_lease_ms - POLL_MS - SPARE_MS

    def __init__(
        self, argument: Argument, version: str | None, library: Boto3, keeper: Boto3
    ) -> None:
        super().__init__(argument, version, library, keeper)
        self.abilities -= {Ability.CRASH_BROKER}
        if version is None:
            self.parties = {**self.parties, "broker": f"SQS at {argument.head}"}

    @classmethod
    def made(cls, argument: Argument, version: str | None) -> Self:
        library = Boto3(argument.client_version or elasticmq.DEFAULT_CLIENT)
        return cls(argument, version, library, Boto3(elasticmq.DEFAULT_CLIENT))

    @classmethod
    def remote(cls, text: str | None) -> Self:
        """On a server that runs already, by its endpoint. Raises UsageError for what is none."""
        argument = parse(cls.system, text, clients=cls.clients, options=cls.knows)
        endpoint = urlsplit(argument.head or "")
        if endpoint.scheme not in PORTS or not endpoint.hostname:
            raise UsageError(
                f"the target {cls.system} needs an endpoint, as in {cls.system}:http://127.0.0.1:{cls.port}"
            )
        return cls.made(argument, None)

    @property
    def product(self) -> str:
        return super().product if self._version is not None else "SQS"

    @property
    def address(self) -> str:
        if self._version is not None:
            return super().address
        endpoint = urlsplit(str(self._argument.head))
        return f"{endpoint.hostname}:{endpoint.port or PORTS[endpoint.scheme]}"

    def own_settings(self, run: Run, address: str) -> dict[str, str]:
        endpoint = f"http://{address}" if self._version is not None else str(self._argument.head)
        lease_s = max(1, run.plan.config.broker_lease_ms // 1000)
        return {"endpoint": endpoint, "visibility_timeout": str(lease_s)}

    async def prepare(self, run: Run) -> None:
        """Raises Unavailable where no server is that somebody has named."""
        await super().prepare(run)
        first_tenures(run, [queue for queue, _ in self.queues(run)])

    def suited(self, plan: Plan) -> Plan:
        """A call has one message, and takes longer than the lease now and then."""
        plan = replace(plan, config=replace(plan.config, batch=1))
        slow_ms = plan.config.broker_lease_ms * 13 // 10
        slow = [ListenerRule(duration_ms=slow_ms, number=each, delivery_max=2) for each in SLOW]
        more = tuple(rule for rule in slow if rule not in plan.listener)
        return replace(plan, listener=(*plan.listener, *more))

    def settings(self, plan: Plan) -> Config:
        """What the driver and the queues are told. Without a redrive policy nothing is given up."""
        ours = plan.config.to_json()
        return config_of({"system": "sqs", **{name: ours[name] for name in TOLD}, **NO_LIMIT})

    @property
    def records(self) -> Mapping[str, tuple[str, ...]]:  # type: ignore[override]
        """Besides what the drivers tell: whose the lanes are.

        Nobody looks up where to begin, for the server knows, and it drops no lane. Nobody is told to go on elsewhere.
        """
        told = {Kind(kind) for kind in super().records[Level.CLIENT]}
        return declared(client=told | {Kind.ADD, Kind.DROP, Kind.FETCH_OFFSET, Kind.PULL})

    def written(self, run: Run) -> int:
        """Who waits for a message says now and then that none came; nothing else happens then."""
        return sum(recorder.told for recorder in self.recorders)

    def completed(self, rows: list[Row]) -> list[Row]:
        return with_tenures(placed(confirmed(rows)), self.run.plan.config.broker_lease_ms)


def local(text: str | None) -> SqsTarget:
    """A released ElasticMQ on this machine, as `sqs-local:1.6.11`; boto3 works on it.

    Raises UsageError for what is not known.
    """
    return SqsTarget.local(text)


def remote(text: str | None) -> SqsTarget:
    """SQS, or a server of its protocol that runs already, by its endpoint. Raises UsageError for what is none."""
    return SqsTarget.remote(text)
