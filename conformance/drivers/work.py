"""One driver producing, one consuming, one lane: the smallest work in which a client shows its order path.

The consumer suspends some messages once and some until it gives them up; when everything has ended, the topic and
the group's dead letters are read to their end, so that the clauses can judge what a client alone can't tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.drivers.java import start_java
from conformance.drivers.process import DriverProcess
from conformance.drivers.protocol import rules_as_json
from conformance.drivers.recording import DriverRecorder
from conformance.targets.systems import System
from conformance.waiting import pass_time
from conformance.wire import brokers
from conformance.wire.client import WireClient
from specs.history.journal import Journal
from specs.plan.config import Config
from specs.plan.plan import ListenerRule
from specs.vocabulary import Lane, Level, Outcome, Queue, dead_letter_topic, retry_topic

WORK_S = 60.0
SUSPENDED_ONCE = 2
GIVEN_UP = 4
MESSAGES = 6


@dataclass(frozen=True, slots=True)
class Worked:
    """What was seen: hello's answer, the recorders, exit codes and what was no line of the protocol."""

    hello: Mapping[str, Any]
    producer: DriverRecorder
    consumer: DriverRecorder
    exit_codes: tuple[int, int]
    faults: tuple[str, ...]
    finished: bool


def expected_calls(config: Config, messages: int = MESSAGES) -> int:
    """How many listener calls the work takes of a client that counts right."""
    return messages + 1 + max(config.max_reconsume_times, 0)


def work(
    system: System,
    version: str,
    config: Config,
    folder: Path,
    prefix: str,
    say: Callable[[str], Any],
    *,
    namesrv: str | None = None,
    incarnation_of: Callable[[str, Lane], str] | None = None,
) -> Worked:
    """Do it, journalled in `folder`. config: with a limit of reconsume times. namesrv: what the
    clients are given, where it is not the system's own. incarnation_of: as of a `DriverRecorder`.

    Raises UsageError where a part is missing, TargetMisbehaved when a driver breaks the protocol.
    """
    broker, address = next(iter(sorted(system.brokers.items())))
    topic, group = f"{prefix}orders", f"{prefix}billing"
    namesrv = namesrv or system.namesrv
    producer = DriverRecorder(
        folder, f"{prefix}shop", f"{prefix}shops", suspend_ms=config.suspend_ms
    )
    consumer = DriverRecorder(
        folder, f"{prefix}c1", group, suspend_ms=config.suspend_ms, incarnation_of=incarnation_of
    )
    rules = [
        ListenerRule(Outcome.SUSPEND, number=SUSPENDED_ONCE, delivery_max=1),
        ListenerRule(Outcome.SUSPEND, number=GIVEN_UP),
    ]
    with ExitStack() as stack:
        journal = stack.enter_context(Journal(folder, "wire", common={"level": Level.WIRE}))
        stack.callback(producer.close)
        stack.callback(consumer.close)
        make_topic(system, address, broker, topic, journal)
        say(f"Java client {version}: a producer")
        shop = stack.enter_context(
            start_java(version, f"{prefix}shop", config, folder, producer.on_event)
        )
        hello = shop.hello()
        _start(shop, "producer", f"{prefix}shop", f"{prefix}shops", namesrv, config)
        for number in range(1, MESSAGES + 1):
            fields = {
                "topic": topic,
                "message": f"{prefix}m{number}",
                "key": "k",
                "key_seq": number,
            }
            _send(shop, producer, fields)
        if not producer.wait_for_sends(MESSAGES, WORK_S):
            raise shop.process.misbehaved(f"sent {len(producer.sent)} of {MESSAGES} messages")
        stopped = shop.stop()
        say(f"Java client {version}: a consumer")
        worker = stack.enter_context(
            start_java(version, f"{prefix}c1", config, folder, consumer.on_event)
        )
        worker.hello()
        _start(
            worker,
            "consumer",
            f"{prefix}c1",
            group,
            namesrv,
            config,
            topics=[topic],
            listener=rules_as_json(rules),
        )
        finished = consumer.wait_for_results(expected_calls(config), WORK_S)
        # What is given up is to be readable after the bound; what a client does too much has the time to show.
        pass_time(config.dead_letter_bound_ms * 2 / 1000)
        codes = (stopped, worker.stop())
        _drain(address, broker, topic, group, journal)
    return Worked(hello, producer, consumer, codes, (*shop.faults, *worker.faults), finished)


def _start(
    driver: DriverProcess,
    role: str,
    client: str,
    group: str,
    namesrv: str,
    config: Config,
    **more: Any,
) -> None:
    asked = (
        "max_reconsume_times",
        "suspend_ms",
        "batch",
        "threads",
        "pull_batch",
        "persist_ms",
        "heartbeat_ms",
    )
    chosen = {
        name: value for name, value in config.to_json().items() if name in (*asked, "consume_from")
    }
    driver.ask(
        "start", role=role, client=client, group=group, namesrv=namesrv, config=chosen, **more
    )


def _send(shop: DriverProcess, recorder: DriverRecorder, fields: Mapping[str, Any]) -> None:
    """The journal's begin comes first, so that a kill leaves a send whose outcome is unknown."""
    number = shop.next_number()
    columns = {
        "topic": fields["topic"],
        "message_id": fields["message"],
        "sharding_key": fields["key"],
    }
    recorder.sending(number, {**columns, "key_seq": fields["key_seq"]})
    shop.send(number, **fields, body=fields["message"])


def make_topic(system: System, address: str, broker: str, topic: str, journal: Journal) -> None:
    """Create a topic of one queue, and wait until its route is known."""
    client = WireClient("setup", address, broker, journal)
    try:
        brokers.make_topic(client, topic, 1, system.namesrv)
    finally:
        client.close()


def _drain(address: str, broker: str, topic: str, group: str, journal: Journal) -> None:
    reader = WireClient("drain", address, broker, journal)
    try:
        for name, of in (
            (topic, None),
            (retry_topic(group), group),
            (dead_letter_topic(group), group),
        ):
            reader.read(Queue(name, broker, 0), of)
    finally:
        reader.close()
