"""Java clients behind a tap, on one lane: what scenes are played on.

A driver tells its listener calls and sends; the tap tells the same client's locks, pulls, look-ups and commits; the
two together are a history that clauses about leases, starts and hand-overs can judge.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from conformance.drivers.java import start_java
from conformance.drivers.process import DriverProcess
from conformance.drivers.protocol import rules_as_json
from conformance.drivers.recording import DriverRecorder
from conformance.drivers.work import make_topic
from conformance.tap.faults import Faults, Rule
from conformance.tap.proxy import ThreadedTap
from conformance.tap.rows import TapRecorder
from conformance.targets.systems import System
from conformance.waiting import pass_time, wait_until
from conformance.wire.client import WireClient
from reference_impl.protocol.codes import RequestCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import GetMinOffsetHeader, OffsetResponse, SendHeader
from reference_impl.shell.client import SyncClient
from specs.errors import TargetMisbehaved
from specs.history.clock import host_clock
from specs.history.journal import Journal
from specs.plan.config import Config
from specs.plan.plan import ListenerRule
from specs.vocabulary import Kind, Lane, Level, Outcome, Queue

SCENE_S = 90.0
"""Within this time whatever a scene waits for has to happen."""

POLL_S = 0.25
"""How often the broker is asked for what is to be stored there: each time is a row of the history."""

OLD_MESSAGES = 30
OLD_BODY = b"x" * 100_000
ASK_S = 5.0
DELETED_S = 150.0
DELETE_EXPIRED_COMMITLOG = 329
"""`RequestCode.DELETE_EXPIRED_COMMITLOG` of apache/rocketmq: an operator's order to delete what may be deleted."""

HOST_MARK = "127.0.0.1@"
"""What the Java client puts before the name of a driver's client."""

_ASKED = (
    "max_reconsume_times", "suspend_ms", "batch", "threads", "pull_batch", "persist_ms", "heartbeat_ms", "consume_from",
    "mode",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Actor:
    """A running driver, and what it told."""

    name: str
    driver: DriverProcess
    told: DriverRecorder

    def begun(self, number: int) -> bool:
        """Has its listener been given message `number`?"""
        return any(
            m["body"].endswith(f"-m{number}")
            for call in self.told.deliveries
            for m in call["messages"]
        )

    def ended(self, calls: int) -> bool:
        """Have so many of its listener calls come to their end?"""
        return len(self.told.results) >= calls


class Stage:
    """One topic of one queue and one group, on a running system, with a tap before it.

    version: of the Java clients. properties: system properties that they are started with. prefix: makes names
    unique among runs. rules: the faults that the tap injects, for clients by their short names (`c1`).
    """

    def __init__(
        self,
        system: System,
        version: str,
        config: Config,
        folder: Path,
        prefix: str,
        *,
        properties: Mapping[str, str | int],
        rules: Sequence[Rule] = (),
    ) -> None:
        self.config = config
        self.broker, self.address = next(iter(sorted(system.brokers.items())))
        self.queue = Queue(f"{prefix}orders", self.broker, 0)
        self.group = f"{prefix}billing"
        self._system, self._version, self._folder, self._prefix = system, version, folder, prefix
        self._properties = properties
        self._rules = tuple(rules)
        self._stack = ExitStack()
        self._sent = 0

    @property
    def lane(self) -> Lane:
        return Lane(self.group, *self.queue)

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.wire = stack.enter_context(
                Journal(self._folder, "wire", common={"level": Level.WIRE})
            )
            tapped = stack.enter_context(Journal(self._folder, "tap", common={"level": Level.TAP}))
            self._recorder = TapRecorder(tapped, name_of=self._short, skip=frozenset({Kind.SEND}))
            self._faults = Faults(self._rules)
            self._tap = stack.enter_context(
                ThreadedTap(self._system.namesrv, self._recorder, self._faults)
            )
            make_topic(self._system, self.address, self.broker, self.queue.topic, self.wire)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def _short(self, client_id: str) -> str:
        """A client's name in the history: what it was started as."""
        return client_id.removeprefix(HOST_MARK).removeprefix(self._prefix)

    # ------------------------------------------------------------------ parties

    def producer(self, name: str = "shop") -> Actor:
        return self._start(name, "producer", f"{self._prefix}shops")

    def consumer(self, name: str, *rules: ListenerRule) -> Actor:
        return self._start(
            name,
            "consumer",
            self.group,
            topics=[self.queue.topic],
            listener=rules_as_json(rules),
        )

    def _start(self, name: str, role: str, group: str, **more: Any) -> Actor:
        told = DriverRecorder(
            self._folder,
            name,
            group,
            suspend_ms=self.config.suspend_ms,
            incarnation_of=self._recorder.incarnation,
        )
        self._stack.callback(told.close)
        driver = self._stack.enter_context(
            start_java(
                self._version, name, self.config, self._folder, told.on_event, self._properties
            )
        )
        driver.hello()
        config = {name: value for name, value in self.config.to_json().items() if name in _ASKED}
        client = f"{self._prefix}{name}"
        driver.ask(
            "start",
            role=role,
            client=client,
            group=group,
            namesrv=self._tap.namesrv,
            config=config,
            **more,
        )
        return Actor(name, driver, told)

    def send(self, shop: Actor, count: int) -> None:
        """Send the next `count` messages, m1, m2 and so on, of one key, and wait for their answers.

        Raises TargetMisbehaved where one is not stored for certain: a scene counts on its messages.
        """
        for _ in range(count):
            self._send(shop)
        self._wait_for_sends(shop)
        failed = [sent for sent in shop.told.sent.values() if sent["outcome"] != Outcome.OK]
        if failed:
            raise shop.driver.process.misbehaved(
                f"could not send {len(failed)} of {self._sent} messages"
            )

    @contextmanager
    def sending(self, shop: Actor, every_s: float) -> Iterator[None]:
        """Meanwhile send one message after the other, at these intervals; at the end wait for their answers."""
        enough = threading.Event()

        def send_on() -> None:
            while not enough.wait(every_s):
                self._send(shop)

        thread = threading.Thread(target=send_on, name="sending", daemon=True)
        thread.start()
        try:
            yield
        finally:
            enough.set()
            thread.join(SCENE_S)
        self._wait_for_sends(shop)

    def _send(self, shop: Actor) -> None:
        self._sent += 1
        name = f"{self._prefix}m{self._sent}"
        number = shop.driver.next_number()
        fields = {"topic": self.queue.topic, "message": name, "key": "k", "key_seq": self._sent}
        columns = {
            "topic": self.queue.topic,
            "message_id": name,
            "sharding_key": "k",
            "key_seq": self._sent,
        }
        shop.told.sending(number, columns)
        shop.driver.send(number, **fields, body=name)

    def _wait_for_sends(self, shop: Actor) -> None:
        if not shop.told.wait_for_sends(self._sent, SCENE_S):
            raise shop.driver.process.misbehaved(
                f"sent {len(shop.told.sent)} of {self._sent} messages"
            )

    def stop(self, actor: Actor) -> None:
        """A clean end, told as LEAVE from the order to the end."""
        with Journal(
            self._folder, f"{actor.name}-leaves", common={"client_id": actor.name}
        ) as journal:
            journal.begin("leave", Kind.LEAVE, {"group": self.group})
            actor.driver.stop()
            journal.end("leave", Outcome.OK)

    def wait(self, actor: Actor, what: str, condition: Callable[[], bool]) -> None:
        """Wait for what a consumer is to tell. Raises TargetMisbehaved when it does not come about."""
        if not actor.told.wait_for(condition, SCENE_S):
            raise actor.driver.process.misbehaved(f"did not {what} within {SCENE_S:g} s")

    def let_take_up(self) -> None:
        """Let pass what judges allow a client for taking up what its listener returned, twice."""
        pass_time(2 * self.config.guard_slack_ms / 1000)

    def check_faults(self) -> None:
        """Raises TargetMisbehaved if a fault met nothing: the scene then shows nothing about it."""
        for rule in self._faults.unused:
            raise TargetMisbehaved(f"the fault {rule.text} met no request")

    # ------------------------------------------------------------------ the broker, asked past the tap

    def commit(self, value: int) -> None:
        """Store an offset for the group, as a client of it would have done before."""
        client = WireClient("before", self.address, self.broker, self.wire)
        try:
            client.pull(
                self.group, self.queue, 0, 1
            )  # a 5.x broker takes commits of groups only that it knows
            answer = client.commit(self.lane, value)
            if answer.code != 0:
                raise TargetMisbehaved(
                    f"the broker did not store an offset: code {answer.code} {answer.remark}"
                )
        finally:
            client.close()

    def lose_the_first(self) -> None:
        """Messages that are no part of the history lie there when it begins, and the first of them are deleted.

        For a broker that deletes at once. Apache's does so from a minute after its start on.
        """
        header = SendHeader(
            "before", self.queue.topic, 0, host_clock().wall_us() // 1000, properties=""
        )
        with SyncClient() as link:
            for _ in range(OLD_MESSAGES):
                link.call(
                    self.address,
                    Command(RequestCode.SEND_MESSAGE_V2, header.to_ext_v2(), OLD_BODY),
                    ASK_S,
                )

            def first_kept() -> int:
                link.call(self.address, Command(DELETE_EXPIRED_COMMITLOG), ASK_S)
                asked = GetMinOffsetHeader(self.queue.topic, 0).to_ext()
                answer = link.call(self.address, Command(RequestCode.GET_MIN_OFFSET, asked), ASK_S)
                return OffsetResponse.from_ext(answer.ext).offset if answer.code == 0 else 0

            if not wait_until(lambda: first_kept() > 0, DELETED_S, POLL_S):
                raise TargetMisbehaved(f"the broker deleted nothing within {DELETED_S:g} s")
            self.wire.note(Kind.TRIM, Outcome.OK, {**self.queue._asdict(), "value": first_kept()})

    def wait_until_stored(self, value: int) -> None:
        """Wait until the broker has this offset for the group, or a higher one. TargetMisbehaved if it never has."""
        client = WireClient("watch", self.address, self.broker, self.wire)
        try:

            def is_stored() -> bool:
                _, stored = client.fetch(self.lane)
                return isinstance(stored, int) and stored >= value

            if not wait_until(is_stored, SCENE_S, POLL_S):
                raise TargetMisbehaved(f"no offset {value} was stored within {SCENE_S:g} s")
        finally:
            client.close()
