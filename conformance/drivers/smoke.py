"""`inorder smoke`: does a driver speak the protocol, and does it tell what happens? Its author runs this first.

The expectations are of the driver, held against what was sent: a failure means that the driver is wrong, not the
broker. Whether the client keeps its promises is for the clauses.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from conformance.drivers.java import start_java
from conformance.drivers.protocol import LINE_BYTES_MAX, REQUIRED_EVENTS, VERSION
from conformance.drivers.targets import find_driven
from conformance.drivers.work import GIVEN_UP, MESSAGES, SUSPENDED_ONCE, Worked, work
from conformance.wire.runner import run_nonce
from specs.plan.config import Config

SMOKE = Config(
    max_reconsume_times=1, suspend_ms=100, rebalance_ms=1_000, heartbeat_ms=1_000, persist_ms=500
)


@dataclass(frozen=True, slots=True)
class Check:
    """One expectation. why: what was seen instead; empty when it holds."""

    name: str
    why: str = ""

    @property
    def ok(self) -> bool:
        return not self.why


def smoke(target: str, say: Callable[[str], Any]) -> list[Check]:
    """Try the driver of a target. UsageError where a part is missing, TargetMisbehaved where it dies."""
    run, version = find_driven(target)
    config = replace(SMOKE, dialect=run.config.dialect, delay_levels=run.config.delay_levels)
    with tempfile.TemporaryDirectory(prefix="inorder-smoke-") as scratch:
        folder = Path(scratch)
        say("the driver alone")
        checks = list(_manners(version, config, folder))
        say(f"starting {target}")
        with run.open_system(config, False) as system:
            seen = work(system, version, config, folder, f"smoke{run_nonce(system)}-", say)
        return [*checks, *_told(seen, version, config)]


def _manners(version: str, config: Config, folder: Path) -> Iterator[Check]:
    """Requests that a driver has to refuse, and that must not end it."""
    with start_java(version, "manners", config, folder, lambda _: None) as driver:
        early = driver.ask_anything({"verb": "start", "id": 1})
        yield Check(
            "a request before hello is refused", "" if not early["ok"] else f"it answered {early}"
        )
        future = driver.ask_anything({"verb": "hello", "id": 2, "version": VERSION + 1})
        yield Check(
            "another version is refused", "" if not future["ok"] else f"it answered {future}"
        )
        hello = driver.hello()
        missing = sorted(set(REQUIRED_EVENTS) - set(hello.get("events", ())))
        yield Check(
            "hello names every required event", f"missing: {', '.join(missing)}" if missing else ""
        )
        unknown = driver.ask_anything({"verb": "dance", "id": 4})
        right = not unknown["ok"] and unknown["reply"] == 4
        yield Check(
            "an unknown verb is an error, by its id", "" if right else f"it answered {unknown}"
        )
        known_faults = len(driver.faults)
        long = driver.ask_anything({"verb": "x" * LINE_BYTES_MAX, "id": 5})
        yield Check(
            "a line beyond the limit is refused", "" if not long["ok"] else f"it answered {long}"
        )
        del driver.faults[known_faults:]  # it may say that without an id
        code = driver.stop()
        yield Check("stop ends it with exit code 0", "" if code == 0 else f"exit code {code}")
        yield Check("every line is one of the protocol", "; ".join(driver.faults))


def _told(seen: Worked, version: str, config: Config) -> Iterator[Check]:
    client = seen.hello.get("client")
    yield Check(
        "hello names the client's version", "" if client == version else f"it says {client}"
    )
    outcomes = [event["outcome"] for event in seen.producer.sent.values()]
    yield Check(
        "every send is told, and acknowledged",
        "" if outcomes == ["ok"] * MESSAGES else f"{outcomes}",
    )
    offsets = [event.get("queue_offset") for event in seen.producer.sent.values()]
    yield Check(
        "a send tells where it lies",
        "" if offsets == list(range(MESSAGES)) else f"offsets {offsets}",
    )
    deliveries = seen.consumer.deliveries
    told = [message for event in deliveries for message in event["messages"]]
    numbers = [int(message["body"].rpartition("-m")[2]) for message in told]
    again = {SUSPENDED_ONCE: 1, GIVEN_UP: config.max_reconsume_times}
    expected = [
        number for number in range(1, MESSAGES + 1) for _ in range(1 + again.get(number, 0))
    ]
    yield Check(
        "every call of the listener is told",
        "" if numbers == expected else f"{numbers}, not {expected}",
    )
    ids = all(message["message_id"] == message["body"] for message in told)
    yield Check(
        "a delivery tells the producer's id of the message", "" if ids else "the ids are others"
    )
    pairs = [(message.get("key"), message.get("key_seq")) for message in told]
    keys = pairs == [("k", str(number)) for number in numbers]
    yield Check("a delivery tells key and number", "" if keys else "they are others")
    counters = [
        message["reconsume_times"]
        for message, number in zip(told, numbers, strict=True)
        if number == GIVEN_UP
    ]
    right = counters == list(range(config.max_reconsume_times + 1))
    yield Check("a delivery tells the retry counter", "" if right else f"{counters}")
    results = seen.consumer.results
    calls = [event["call"] for event in deliveries]
    right = sorted(results) == sorted(calls) and seen.finished
    yield Check(
        "every call is finished", "" if right else f"delivered {calls}, finished {sorted(results)}"
    )
    wrong = []
    for event, number in zip(deliveries, numbers, strict=False):
        result = results.get(event["call"])
        suspends = number == GIVEN_UP or _first(number, event, deliveries)
        if result is not None and (result["outcome"] == "suspend") != suspends:
            wrong.append(event["call"])
    yield Check(
        "the listener ends as the plan says", f"not so in the calls {wrong}" if wrong else ""
    )
    times = [event["at_us"] for event in deliveries]
    right = times == sorted(times) and all(
        event["at_us"] <= results[event["call"]]["at_us"]
        for event in deliveries
        if event["call"] in results
    )
    yield Check("its clock goes forward", "" if right else f"{times}")
    yield Check(
        "it stops in good order",
        "" if seen.exit_codes == (0, 0) else f"exit codes {seen.exit_codes}",
    )
    yield Check("every line of the work is one of the protocol", "; ".join(seen.faults))


def _first(number: int, event: Any, deliveries: list[Any]) -> bool:
    """Is this the first delivery of the message that is suspended once?"""
    if number != SUSPENDED_ONCE:
        return False
    offset = event["messages"][0]["queue_offset"]
    return event is next(
        each for each in deliveries if each["messages"][0]["queue_offset"] == offset
    )
