"""A plan done by driver processes: what a plan says about its clients, done by Apache's Java client in real time.

Every client of the plan is a process. What it is asked to do happens in its own thread and in the plan's order, so
that a client that takes long to start holds up nobody else; the plan's time begins when those that start at 0 are up.
A crash is SIGKILL, by the process's id.

What the harness itself does is recorded here (level `client`): JOIN from the order to start until the client is up,
LEAVE from the order to stop until its process has ended, CRASH once the killed process is gone.
"""

from __future__ import annotations

import queue
import threading
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from conformance.drivers.java import start_java
from conformance.drivers.process import DriverProcess
from conformance.drivers.protocol import REQUIRED_EVENTS, configured, rules_as_json
from conformance.drivers.recording import DriverRecorder
from conformance.targets.systems import System
from conformance.waiting import now_s, pass_time, wait_until
from specs.errors import UsageError
from specs.faults import perform
from specs.history.journal import Journal
from specs.plan.ability import Ability
from specs.plan.plan import Action, ClientPlan, Plan
from specs.plan.rig import PartialRig
from specs.vocabulary import Kind, Outcome

CLIENT_IP = "127.0.0.1"
PRODUCERS = "inorder-producers"
SENDS_S = 60.0
JOIN_S = 120.0
"""How long a client's thread may take to end."""


def client_id_of(client: str) -> str:
    """The id in the protocol of a driven client of the plan."""
    return f"{CLIENT_IP}@{client}"


def protocol_names(plan: Plan) -> dict[str, str]:
    """Client id in the protocol → name in the plan."""
    return {client_id_of(client.id): client.id for client in plan.clients}


@dataclass(slots=True)
class _Client:
    """A client of the plan: its thread's jobs, and its present process."""

    plan: ClientPlan
    jobs: queue.SimpleQueue[Callable[[], None] | None] = field(default_factory=queue.SimpleQueue)
    thread: threading.Thread | None = None
    driver: DriverProcess | None = None
    recorder: DriverRecorder | None = None
    lives: int = 0
    asked: int = 0


class DrivenPlan:
    """Does a plan's actions on a system by drivers of one version. prefix: makes message ids unique among runs.

    lease_less_ms: by how much shorter than the plan says a client's own lease limit is.
    """

    def __init__(
        self,
        plan: Plan,
        system: System,
        version: str,
        folder: Path,
        prefix: str,
        *,
        lease_less_ms: int = 0,
    ) -> None:
        self._plan = plan
        self._system = system
        self._version = version
        self._folder = folder
        self._prefix = prefix
        self._config = replace(
            plan.config, client_lease_ms=plan.config.client_lease_ms - lease_less_ms
        )
        self._names = protocol_names(plan)
        self._clients = {client.id: _Client(client) for client in plan.clients}
        self._harness = Journal(folder, "harness")
        self._marks = 0
        self._lock = threading.Lock()
        self._messages = 0
        self._key_seq: dict[str, int] = {}
        self._failures: list[BaseException] = []
        self.faults: list[str] = []
        """What a driver wrote that is no line of the protocol."""
        self._announced: set[frozenset[str]] = set()

    @property
    def events(self) -> frozenset[str]:
        """The events that every driver of the plan said to tell; without any driver, those that each must."""
        return (
            frozenset.intersection(*self._announced)
            if self._announced
            else frozenset(REQUIRED_EVENTS)
        )

    def run(self) -> None:
        """Do everything, then stop every client in good order. Raises what went wrong with a driver."""
        try:
            began_s = self._first_up()
            for action in self._plan.actions:
                if self._is_first(action):
                    continue
                pass_time(began_s + action.at_ms / 1000 - now_s())
                if self._failures:
                    break
                self.act(action)
            if not self._failures:
                pass_time(began_s + self._plan.until_ms / 1000 - now_s())
            for client in self._producers_first():
                self._ask(client, lambda client=client: self._stop(client))  # type: ignore[misc]
            self._end_threads()
        finally:
            for client in self._clients.values():
                self._let_go(client)
            self._harness.close()
        if self._failures:
            raise self._failures[0]

    @staticmethod
    def _is_first(action: Action) -> bool:
        return action.at_ms == 0 and action.do == "start"

    def _first_up(self) -> float:
        """Start who starts at 0, and let the plan's time begin when all of them are up."""
        first = [action for action in self._plan.actions if self._is_first(action)]
        for action in first:
            self.act(action)
        for name in {action.args["client"] for action in first}:
            is_up = threading.Event()
            self._clients[name].jobs.put(is_up.set)
            wait_until(lambda is_up=is_up: is_up.is_set() or bool(self._failures), JOIN_S)  # type: ignore[misc]
        return now_s()

    def act(self, action: Action) -> None:
        """One action. UsageError for one that a driver can't do."""
        args = action.args
        client = self._clients.get(args.get("client", ""))
        if client is None:
            raise UsageError(f"the action {action.do!r} needs a client of the plan")
        match action.do:
            case "start":
                self._ask(client, lambda: self._start(client))
            case "stop":
                self._ask(client, lambda: self._stop(client))
            case "send":
                self._ask(client, lambda: self._send(client, args))
            case other:
                if not perform(_Rig(self), other, args):
                    raise UsageError(f"the action {other!r} is none that a driver can do")

    # ------------------------------------------------------------ a client's own thread

    def _ask(self, client: _Client, job: Callable[[], None]) -> None:
        if client.thread is None:
            client.thread = threading.Thread(
                target=self._work, args=(client,), name=client.plan.id, daemon=True
            )
            client.thread.start()
        client.jobs.put(job)

    def _work(self, client: _Client) -> None:
        while (job := client.jobs.get()) is not None:
            if self._failures:
                continue
            try:
                job()
            except BaseException as error:  # handed to the thread that runs the plan
                self._failures.append(error)

    def _producers_first(self) -> list[_Client]:
        return sorted(self._clients.values(), key=lambda client: client.plan.kind != "producer")

    def _end_threads(self) -> None:
        for client in self._clients.values():
            client.jobs.put(None)
        for client in self._clients.values():
            if client.thread is not None:
                client.thread.join(JOIN_S)

    # ------------------------------------------------------------ what it does

    def _start(self, client: _Client) -> None:
        if client.driver is not None:
            return
        name, plan, config = client.plan.id, self._plan, self._config
        group = client.plan.group or PRODUCERS
        client.lives += 1
        recorder = client.recorder = DriverRecorder(
            self._folder,
            name,
            group,
            suspend_ms=config.suspend_ms,
            life=client.lives,
            names=self._names,
            lanes=True,
        )
        driver = client.driver = start_java(
            self._version, name, config, self._folder, recorder.on_event
        )
        self._announced.add(frozenset(driver.hello()["events"]))
        more: dict[str, Any] = {}
        mark = None
        if client.plan.kind == "consumer":
            more = {"topics": list(client.plan.topics), "listener": rules_as_json(plan.listener)}
            mark = self._begin(Kind.JOIN, client)
        driver.ask(
            "start",
            role=client.plan.kind,
            client=name,
            group=group,
            namesrv=self._system.namesrv,
            config=configured(config),
            **more,
        )
        if mark is not None:
            self._harness.end(mark, Outcome.OK)

    def _stop(self, client: _Client) -> None:
        driver = client.driver
        if driver is None or client.recorder is None:
            return
        client.recorder.wait_for_sends(client.asked, SENDS_S)
        mark = self._begin(Kind.LEAVE, client) if client.plan.kind == "consumer" else None
        driver.stop()
        if mark is not None:
            self._harness.end(mark, Outcome.OK)
        self._let_go(client)

    def _crash(self, client: _Client) -> None:
        if client.driver is None:
            return
        client.driver.kill()
        self._harness.note(
            Kind.CRASH,
            Outcome.OK,
            {"client_id": client.plan.id, "group": client.plan.group or None},
        )
        self._let_go(client)

    def _send(self, client: _Client, args: Mapping[str, Any]) -> None:
        """Ask for the sends of an action; the driver makes them one after the other."""
        if client.driver is None or client.recorder is None:
            return
        common = {"topic": args["topic"], **({"tags": args["tags"]} if args.get("tags") else {})}
        key = None if args.get("batch") else args.get("key")
        ids = []
        numbers = []
        with self._lock:
            for _ in range(args["count"]):
                self._messages += 1
                ids.append(f"{self._prefix}m{self._messages}")
                if key is not None:
                    self._key_seq[key] = self._key_seq.get(key, 0) + 1
                    numbers.append(self._key_seq[key])
        bodies = [{"message_id": each, "body_hash": zlib.crc32(each.encode())} for each in ids]
        # The journal comes first, so that a kill leaves a send whose outcome is unknown.
        if args.get("batch"):
            number = client.driver.next_number()
            client.asked += 1
            client.recorder.sending(number, common, bodies)
            client.driver.send_batch(
                number, **common, messages=[{"message": each, "body": each} for each in ids]
            )
            return
        for place, columns in enumerate(bodies):
            fields: dict[str, Any] = {**common, "message": ids[place], "body": ids[place]}
            if key is not None:
                fields |= {"key": key, "key_seq": numbers[place]}
                columns |= {"sharding_key": key, "key_seq": numbers[place]}
            number = client.driver.next_number()
            client.asked += 1
            client.recorder.sending(number, {**common, **columns})
            client.driver.send(number, **fields)

    def _let_go(self, client: _Client) -> None:
        driver, recorder = client.driver, client.recorder
        client.driver = client.recorder = None
        client.asked = 0
        if driver is not None:
            driver.kill()
            self.faults.extend(driver.faults)
        if recorder is not None:
            recorder.close()

    def _begin(self, kind: Kind, client: _Client) -> int:
        with self._lock:
            self._marks += 1
            mark = self._marks
        self._harness.begin(mark, kind, {"client_id": client.plan.id, "group": client.plan.group})
        return mark


class _Rig(PartialRig):
    """What can be done to a driven client: each thing in the client's own thread, in its turn."""

    abilities = frozenset({Ability.CRASH_CLIENT})

    def __init__(self, plan: DrivenPlan) -> None:
        self._plan = plan

    def kill(self, node: str, *, silent: bool = False) -> None:
        client = self._plan._clients[node]
        self._plan._ask(client, lambda: self._plan._crash(client))

    def revive(self, node: str) -> None:
        client = self._plan._clients[node]
        self._plan._ask(client, lambda: self._plan._start(client))
