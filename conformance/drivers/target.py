"""A target whose clients are drivers: processes that speak the driver protocol.

A driver is one client of the plan, in a process of its own, or one process that hosts all of them (its answer to hello
says so). What the driver tells is recorded at level `client` (`conformance.drivers.recording`).

A crash is SIGKILL and a pause SIGSTOP, by the process's id; a process that hosts everybody is asked for a crash
instead, if it knows the verb.
"""

from __future__ import annotations

import asyncio
import threading
import zlib
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from conformance.drivers.process import DriverProcess, Event, answer_s
from conformance.drivers.protocol import (
    REQUIRED_EVENTS,
    WITH_PROPERTIES,
    configured,
    rules_as_json,
)
from conformance.drivers.recording import TOLD_BY, DriverRecorder, shown_properties, told_by
from conformance.parts.processes import wait_until
from conformance.targets.base import NEVER_ASKED, Run, Target
from specs.clauses.stored import COMMIT, ROLLBACK, waits_ms
from specs.errors import DriverBug, TargetMisbehaved, UsageError
from specs.faults import crash, pause
from specs.history.hashes import props_hash
from specs.history.runinfo import declared
from specs.plan.ability import Ability
from specs.plan.plan import Action, ClientPlan

PRODUCERS = "inorder-producers"
"""The group of producers, for a client library that wants one."""
SEND, SEND_BATCH, SEND_DELAYED, SEND_HALF = "send", "send_batch", "send_delayed", "send_half"
LOOK_S = 0.1
NO_VERB = "ping"
"""None of the protocol: its refusal shows that a driver is there."""


@dataclass(slots=True)
class _Client:
    """A client of the plan while it is at work."""

    plan: ClientPlan
    driver: DriverProcess
    recorder: DriverRecorder
    asked: int = 0


class DriverTarget(Target):
    """What is common to all of them; a target says how a driver is started, and what it is told besides.

    handed_out: whether a coordinator hands the lanes out (`conformance.drivers.recording`). beyond_the_limit: how many
    times more than its limit says the client is known to deliver what never succeeds; that is no fault of its driver.
    """

    handed_out = False
    beyond_the_limit = 0

    def __init__(self) -> None:
        self._run: Run | None = None
        self._clients: dict[str, _Client] = {}
        self._lives: dict[str, int] = {}
        self._announced: set[frozenset[str]] = set()
        self._verbs: dict[int, frozenset[str]] = {}  # by the process that knows them
        self._paused: set[str] = set()
        self._recorders: dict[str, DriverRecorder] = {}
        self._host: DriverProcess | None = None
        self._one_at_a_time = threading.Lock()
        self._failures: list[TargetMisbehaved] = []
        self.exit_codes: list[int] = []
        """Of the drivers that were stopped in good order."""

    @abstractmethod
    def spawn(self, name: str, run: Run, on_event: Callable[[Event], Any]) -> DriverProcess:
        """A driver, running and not yet greeted. name: the client's, for its log."""

    @abstractmethod
    def start_alone(self, name: str, folder: Path) -> DriverProcess:
        """A driver by itself, with its log in the folder, for whoever tries its manners."""

    def told_at_start(self, client: ClientPlan, run: Run) -> Mapping[str, Any]:
        """What a driver is told at its start besides what every one is."""
        return {"namesrv": ""}

    def names(self, run: Run) -> Mapping[str, str]:
        """Client id in the system's own protocol → in the plan, where they differ."""
        return {}

    @property
    def run(self) -> Run:
        assert self._run is not None, "a target is prepared first"
        return self._run

    @property
    def recorders(self) -> Collection[DriverRecorder]:
        """Of the clients of the run, each as it was started last."""
        return self._recorders.values()

    @property
    def events(self) -> frozenset[str]:
        """What every driver of the run said that it tells; before, what each must."""
        return frozenset.intersection(*(self._announced or {frozenset(REQUIRED_EVENTS)}))

    @property
    def records(self) -> Mapping[str, tuple[str, ...]]:  # type: ignore[override]
        return declared(client=told_by(self.events) | NEVER_ASKED - set(TOLD_BY.values()))

    async def prepare(self, run: Run) -> None:
        self._run, self._clients, self._lives, self._paused = run, {}, {}, set()
        self._announced, self._recorders, self._verbs = set(), {}, {}
        self.exit_codes, self._failures = [], []

    async def start(self, party: str) -> None:
        plan = next((client for client in self.run.plan.clients if client.id == party), None)
        if plan is None:
            raise UsageError(f"the target {self.name} can't {Ability.CRASH_BROKER.value}")
        await asyncio.to_thread(self._start, plan)

    async def act(self, action: Action) -> None:
        client = self._clients.get(action.args.get("client") or action.args.get("node", ""))
        match action.do:
            case crash.VERB if Ability.CRASH_CLIENT in self.abilities:
                if client is not None:
                    await asyncio.to_thread(self._crash, client)
            case pause.VERB | pause.HEALED_BY if Ability.PAUSE_CLIENT in self.abilities:
                if client is not None and action.do == pause.VERB:
                    self._paused.add(client.plan.id)
                    client.driver.process.pause()
                elif client is not None:
                    self._let_on(client)
            case "send" | "send_half":
                if client is not None:
                    sends = self._send if action.do == "send" else self._send_half
                    await asyncio.to_thread(sends, client, action.args)
            case other:
                raise UsageError(f"the target {self.name} can't do {other!r}")

    async def stop(self, party: str) -> None:
        await asyncio.to_thread(self._stop, self._clients[party])

    async def until(self, run: Run, at_ms: int) -> None:
        """As any target's; a driver that has failed ends the run meanwhile."""
        while run.now_ms < at_ms:
            self.check()
            await asyncio.sleep(min(LOOK_S, (at_ms - run.now_ms) / 1000))
        self.check()

    async def settle(self, run: Run) -> bool:
        """Likewise."""
        settling = asyncio.create_task(super().settle(run))
        try:
            while not settling.done():
                self.check()
                await asyncio.wait([settling], timeout=LOOK_S)
        finally:
            settling.cancel()
        return await settling

    async def is_awake(self) -> bool:
        """Every driver refuses a verb that there is not."""
        for driver in list(self.drivers):
            await asyncio.to_thread(self.ask_anything, driver, NO_VERB)
        return True

    @property
    def drivers(self) -> Iterator[DriverProcess]:
        """Those that run."""
        if self._host is not None:
            yield self._host
        for client in list(self._clients.values()):
            if client.driver is not self._host:
                yield client.driver

    def check(self) -> None:
        """Raises what a driver has done wrong, if any has."""
        for driver in self.drivers:
            driver.check()

    async def close(self) -> None:
        """Raises what a driver has done wrong: of several what makes everything doubtful that was told."""
        if self._host is not None:  # what it tells to its end is of clients that are at work
            self._end(self._host)
        for client in list(self._clients.values()):
            if client.driver.failure is not None:
                client.recorder.dies()  # what it did after its last word nobody knows
            self._let_go(client)
        self._host = None
        failures, self._failures = self._failures, []
        wrong = [each for each in failures if isinstance(each, DriverBug)]
        for failure in (*wrong, *failures):
            raise failure

    def _end(self, driver: DriverProcess) -> None:
        driver.kill()
        if driver.failure is not None:
            self._failures.append(driver.failure)

    # ------------------------------------------------------------ a client's own turn

    def hello(self, driver: DriverProcess) -> Mapping[str, Any]:
        """Greet a driver, and remember what it tells."""
        said = driver.hello()
        self.announced(said["events"])
        self._verbs[driver.process.pid] = frozenset(said.get("verbs", ()))
        return said

    def greeted(self, name: str, said: Mapping[str, Any]) -> None:
        """What a client's own driver has said of itself."""

    def announced(self, events: Iterable[str]) -> None:
        """A driver of the run tells these."""
        self._announced.add(frozenset(events))

    def ask(self, driver: DriverProcess, verb: str, **fields: Any) -> Mapping[str, Any]:
        """A request and its answer; a process that hosts everybody is asked by one at a time."""
        with self._one_at_a_time if driver is self._host else nullcontext():
            return driver.ask(verb, **fields)

    def ask_anything(self, driver: DriverProcess, verb: str, **fields: Any) -> Mapping[str, Any]:
        """As `ask`, of what may be refused: the answer says so (`ok`)."""
        with self._one_at_a_time if driver is self._host else nullcontext():
            return driver.ask_anything({"verb": verb, "id": driver.next_number(), **fields})

    def hosts_all(self, driver: DriverProcess) -> None:
        """From now on this process is every client's."""
        self._host = driver

    def on_hosted_event(self, event: Event) -> None:
        """An event of a process that hosts everybody: it names its client."""
        client = event.get("client", "")
        if client in self._clients:
            self.takes(self._recorders[client], event)
        else:
            raise DriverBug(
                f"{event['event']} is told of the client {client!r}, who is not at work"
            )

    def takes(self, recorder: DriverRecorder, event: Event) -> None:
        """An event of a client's driver, in the reader's thread. Raises DriverBug for what can't be judged."""
        recorder.on_event(event)

    def _start(self, plan: ClientPlan) -> None:
        run, name = self.run, plan.id
        group = plan.group or PRODUCERS
        self._lives[name] = self._lives.get(name, 0) + 1
        recorder = DriverRecorder(
            run.folder,
            name,
            group,
            suspend_ms=run.plan.config.suspend_ms,
            life=self._lives[name],
            names=self.names(run),
            lanes=True,
            handed_out=self.handed_out,
        )
        self._recorders[name] = recorder
        driver = self._host or self.spawn(name, run, partial(self.takes, recorder))
        self._clients[name] = _Client(plan, driver, recorder)
        if driver is not self._host:
            self.greeted(name, self.hello(driver))
        more: dict[str, Any] = {}
        if plan.kind == "consumer":
            more = {"topics": list(plan.topics), "listener": rules_as_json(run.plan.listener)}
        more |= self.told_at_start(plan, run)
        config = configured(run.plan.config)
        self.ask(driver, "start", role=plan.kind, client=name, group=group, config=config, **more)

    def _stop(self, client: _Client) -> None:
        wait_until(lambda: self._is_done_or_failed(client), deadline_s=answer_s())
        client.driver.check()
        if client.driver is self._host:
            self.ask(client.driver, "stop", client=client.plan.id)
        else:
            self.exit_codes.append(client.driver.stop())
        self._let_go(client)

    def _is_done_or_failed(self, client: _Client) -> bool:
        """Has it told of each send? One that has failed never will."""
        return len(client.recorder.sent) >= client.asked or client.driver.failure is not None

    def _crash(self, client: _Client) -> None:
        self._let_on(client)
        if client.driver is self._host:
            self.ask(client.driver, crash.VERB, client=client.plan.id)
        else:
            client.driver.kill()
        self._let_go(client)

    def _let_on(self, client: _Client) -> None:
        """A stopped process takes no signal but the last."""
        if client.plan.id in self._paused:
            self._paused.discard(client.plan.id)
            client.driver.process.resume()

    def _send(self, client: _Client, args: Mapping[str, Any]) -> None:
        """Ask for the sends of an action; the driver makes them one after the other.

        The journal comes first, so that a kill leaves a send whose outcome is unknown.
        """
        messages = self.run.messages.of(args)
        driver, recorder = client.driver, client.recorder
        hosted = {"client": client.plan.id} if driver is self._host else {}
        tags = {"tags": args["tags"]} if args.get("tags") else {}
        if args.get("batch"):
            self._check(driver, SEND_BATCH, "send messages in one request")
            number = driver.next_number()
            client.asked += 1
            bodies = [{"message_id": m.message_id, "body_hash": m.body_hash} for m in messages]
            recorder.sending(number, {"topic": args["topic"], **tags}, bodies)
            told = [{"message": m.message_id, "body": m.message_id} for m in messages]
            driver.send(number, SEND_BATCH, topic=args["topic"], messages=told, **tags, **hosted)
            return
        verb, delay = SEND, {}
        if level := args.get("delay_level"):
            self._check(driver, SEND_DELAYED, "send a delayed message")
            waits = waits_ms(self.run.plan.config.delay_levels)
            verb, delay = (
                SEND_DELAYED,
                {"delay_level": level, "delay_ms": waits[min(level, len(waits)) - 1]},
            )
        for message in messages:
            fields: dict[str, Any] = {"message": message.message_id, "body": message.message_id}
            if message.sharding_key is not None:
                fields["key"] = message.sharding_key
            if message.key_seq is not None:
                fields["key_seq"] = message.key_seq
            number = driver.next_number()
            client.asked += 1
            columns = {k: v for k, v in message.columns().items() if v is not None}
            if driver.version >= WITH_PROPERTIES:
                fields["properties"] = message.properties
                columns["props_hash"] = props_hash(message.properties)
            recorder.sending(number, columns)
            driver.send(number, verb, topic=args["topic"], **fields, **tags, **delay, **hosted)

    def _send_half(self, client: _Client, args: Mapping[str, Any]) -> None:
        """Ask for a transaction of all messages of an action. Nobody is asked later how it is to end."""
        driver, recorder, ends = client.driver, client.recorder, args["ends"]
        self._check(driver, SEND_HALF, "send in transactions")
        messages = self.run.messages.of(args)
        told: list[dict[str, Any]] = []
        for message in messages:
            number = driver.next_number()
            client.asked += 1
            columns = {k: v for k, v in message.columns().items() if v is not None}
            recorder.sending(number, {**columns, "detail": "half"})
            told.append(
                {"number": number, "message": message.message_id, "body": message.message_id}
            )
            if message.sharding_key is not None:
                told[-1]["key"] = message.sharding_key
        number = driver.next_number()
        fields = {"topic": args["topic"], "value": COMMIT if ends == "commit" else ROLLBACK}
        recorder.ends(number, fields, {each["number"]: each["message"] for each in told})
        hosted = {"client": client.plan.id} if driver is self._host else {}
        driver.send(number, SEND_HALF, topic=args["topic"], messages=told, ends=ends, **hosted)

    def _check(self, driver: DriverProcess, verb: str, what: str) -> None:
        if verb not in self._verbs.get(driver.process.pid, ()):
            raise UsageError(
                f"the target {self.name} can't {what}: the hello of its driver names no {verb}"
            )

    def _let_go(self, client: _Client) -> None:
        self._let_on(client)
        self._clients.pop(client.plan.id, None)
        if client.driver is not self._host:
            self._end(client.driver)
        client.recorder.close()


def columns_of(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message of an answer to `read`, as the columns of a READ row."""
    seq = message.get("key_seq")
    return {
        "queue_offset": message["queue_offset"],
        "message_id": message["message_id"],
        "sharding_key": message.get("key"),
        "key_seq": int(seq) if seq else None,
        "reconsume_times": message["reconsume_times"],
        "body_hash": zlib.crc32(message["body"].encode()),
        "tags": message.get("tags"),
        "props_hash": shown_properties(message),
    }
