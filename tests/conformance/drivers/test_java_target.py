"""What the target with a Java client tells its drivers, and what it makes of their lines; here without any Java."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.drivers.process import DriverProcess, Event
from conformance.drivers.watching import ANSWER_WAY_MS
from conformance.run import run
from conformance.targets import driven
from conformance.targets.base import find
from conformance.targets.driven import JavaTarget, pair
from specs.errors import TargetMisbehaved, UsageError
from specs.plan.ability import Ability
from specs.plan.config import Config
from specs.plan.plan import Action, ClientPlan, Plan, TopicPlan, Topology
from specs.vocabulary import Kind

PROGRAM = """
import json, pathlib, sys, time
for line in sys.stdin:
    ask = json.loads(line)
    hello = {"version": 1, "events": ["delivered", "finished", "sent", "added"], "verbs": []}
    said = hello if ask["verb"] == "hello" else {}
    if ask["verb"] == "start":
        pathlib.Path(sys.argv[1]).write_text(line)
        if sys.argv[2]:
            print(sys.argv[2], flush=True)
    print(json.dumps({"reply": ask["id"], "ok": True, "at_us": time.monotonic_ns() // 1000, **said}), flush=True)
    if ask["verb"] == "stop":
        break
"""


class Stub:
    """Stands for Apache's Java client. noise: what its driver writes besides."""

    def __init__(self, folder: Path, noise: str = "") -> None:
        self.config = Config()
        self._asked, self._noise = folder / "asked.json", noise

    @property
    def asked(self) -> dict[str, Any]:
        return dict(json.loads(self._asked.read_text()))

    def start(
        self,
        version: str,
        name: str,
        config: Config,
        folder: Path,
        on_event: Callable[[Event], Any],
    ) -> DriverProcess:
        self.config = config
        argv: list[str | Path] = [sys.executable, "-c", PROGRAM, self._asked, self._noise]
        return DriverProcess(f"{name} {version}", argv, folder / f"{name}.log", on_event)


def target() -> JavaTarget:
    found = pair(None, "5.4.0")
    assert isinstance(found, JavaTarget)
    return found


def plan(*more: Action) -> Plan:
    return Plan(
        topology=Topology(topics=(TopicPlan("orders", 2),), groups=("billing",)),
        config=target().config,
        clients=(ClientPlan("c1", "consumer", "billing", ("orders",)),),
        actions=(Action(0, "start", {"client": "c1"}), *more),
        until_ms=10,
        settle_ms=100,
    )


def test_a_driver_is_told_where_to_go_and_a_shorter_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker tells when it answered, and the client counts from the answer's arrival."""
    stub, under_test = Stub(tmp_path), target()
    monkeypatch.setattr(driven, "start_java", stub.start)
    history = run(plan(), under_test, tmp_path)
    assert stub.asked["namesrv"].startswith("127.0.0.1:")
    assert stub.config.client_lease_ms == under_test.config.client_lease_ms - ANSWER_WAY_MS
    assert history.info.config.client_lease_ms == under_test.config.client_lease_ms
    # The client's own, which no setting changes.
    assert history.info.config.persist_first_ms == 10_000
    kinds = [row.kind for row in history.rows()]
    assert (kinds.count(Kind.JOIN), kinds.count(Kind.LEAVE)) == (1, 1)
    assert kinds.count(Kind.READ) == 3  # of two queues and of the dead letters
    records = history.info.records or {}
    assert Kind.LOCK in records["wire"]
    assert Kind.ADD in records["client"]
    assert Kind.DROP not in records["client"]


def test_a_line_that_is_none_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driven, "start_java", Stub(tmp_path, "log4j: no appender").start)
    with pytest.raises(
        TargetMisbehaved,
        match=r"wrote the line .log4j: no appender., which can.t be: it is not JSON",
    ):
        run(plan(), target(), tmp_path)


def test_what_a_driver_does_not_know_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driven, "start_java", Stub(tmp_path).start)
    for number, args in enumerate(({"batch": True}, {"delay_level": 1})):
        send = Action(1, "send", {"client": "c1", "topic": "orders", "count": 2, **args})
        folder = tmp_path / f"{number}"
        with pytest.raises(UsageError, match="the hello of its driver names no send_"):
            run(plan(send), target(), folder)


def test_a_java_client_can_be_put_to_work_on_a_cluster_that_runs_already() -> None:
    """Its brokers are not ours to kill, and its lease is taken to be the product's."""
    name = "rocketmq:127.0.0.1:9876+java:5.4.0"
    found = find(name)
    assert isinstance(found, JavaTarget)
    assert (found.name, found.parties["broker"]) == (name, "Apache RocketMQ at 127.0.0.1:9876")
    assert found.config.broker_lease_ms == Config().broker_lease_ms
    assert Ability.CRASH_BROKER in target().abilities - found.abilities
    with pytest.raises(UsageError, match="no Java client"):
        find("rocketmq:127.0.0.1:9876+java:1.0")
