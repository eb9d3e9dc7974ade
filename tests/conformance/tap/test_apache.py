"""Apache's brokers and Apache's Java clients with a tap between them: nothing is refuted that did not happen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Self

import pytest

from conformance.drivers import java
from conformance.drivers.stage import Actor, Stage
from conformance.drivers.work import make_topic
from conformance.parts import jars
from conformance.parts.doctor import why_not
from conformance.targets.driven import profile_of
from conformance.targets.systems import ApacheOnThisMachine
from conformance.waiting import wait_until
from inorder.evidence.track_record.tapped import QUICK_UNLOCK, SMALL_FILES
from specs.errors import UsageError
from specs.history.journal import Journal
from specs.plan.config import Config
from specs.plan.plan import ListenerRule
from specs.vocabulary import Kind, Lane, Level, Outcome
from tests.conformance.tap.tapping import Seen, tap_before

CONFIG = Config(
    broker_lease_ms=6_000,
    lock_interval_ms=1_000,
    rebalance_ms=1_000,
    heartbeat_ms=1_000,
    channel_expiry_ms=10_000,
    persist_ms=1_000,
    max_reconsume_times=1,
    suspend_ms=100,
    delay_levels=" ".join(["1s"] * 18),
)
PAIRS = [("5.4.0", "5.4.0"), ("4.9.7", "4.9.8"), ("5.4.0", "4.9.8"), ("4.9.7", "5.4.0")]
UNHEARD = {"ORD-2", "ORD-3", "ORD-12", "LSE-2", "RTY-1", "CMT-1", "CMT-2"}
"""Clauses about listener calls, of which no frame tells."""


class Scene(Stage):
    """A stage before which the command stands, and nothing that the drivers tell is part of the history."""

    def __init__(
        self, system: ApacheOnThisMachine, version: str, config: Config, folder: Path, seen: Seen
    ) -> None:
        super().__init__(system, version, config, folder, "t-", properties=QUICK_UNLOCK)
        self._behind = seen

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.wire = stack.enter_context(
                Journal(self._folder, "wire", common={"level": Level.WIRE})
            )
            self._tap = self.through(self._behind.namesrv)  # type: ignore[assignment]
            self._recorder = SimpleNamespace(incarnation=_incarnation)  # type: ignore[assignment]
            make_topic(self._system, self.address, self.broker, self.queue.topic, self.wire)
            self._stack = stack.pop_all()
        return self

    def through(self, namesrv: str) -> SimpleNamespace:
        return SimpleNamespace(namesrv=namesrv)

    def past_the_tap(self, name: str) -> Actor:
        """A consumer that the tap does not see."""
        before, self._tap = self._tap, self.through(self._system.namesrv)  # type: ignore[assignment]
        try:
            return self.consumer(name)
        finally:
            self._tap = before


def _incarnation(client: str, lane: Lane) -> str:
    return f"{client}/{lane.topic}"


def healthy(scene: Scene, _: ApacheOnThisMachine) -> None:
    """A message comes twice, another is given up; a second member joins, the first one leaves."""
    shop = scene.producer()
    first = scene.consumer(
        "c1",
        ListenerRule(Outcome.SUSPEND, number=2, delivery_max=1),
        ListenerRule(Outcome.SUSPEND, number=3),
    )
    scene.send(shop, 6)
    scene.wait(first, "get to the last message", lambda: first.begun(6))
    second = scene.consumer("c2")
    scene.wait_until_stored(6)
    scene.stop(first)
    scene.send(shop, 4)
    scene.wait(second, "get to the last message", lambda: second.begun(10))
    scene.stop(second)
    scene.stop(shop)


def old_topic(scene: Scene, _: ApacheOnThisMachine) -> None:
    """A group begins where the first messages are no longer kept: it is sent on, and stores that."""
    scene.lose_the_first()
    shop = scene.producer()
    scene.send(shop, 3)
    worker = scene.consumer("c1")
    scene.wait(worker, "get to the last message", lambda: worker.begun(3))
    scene.send(shop, 3)
    scene.wait(worker, "get to the last message", lambda: worker.begun(6))
    scene.stop(worker)
    scene.stop(shop)


def broker_restarts(scene: Scene, system: ApacheOnThisMachine) -> None:
    """The broker is killed and comes again in mid-work; what was not persisted is consumed again."""
    shop = scene.producer()
    worker = scene.consumer("c1")
    scene.consumer("c2")
    scene.send(shop, 5)
    scene.wait(worker, "get to the fifth message", lambda: worker.begun(5))
    system.crash_broker(scene.broker)
    system.restart_broker(scene.broker)
    assert wait_until(lambda: _gets_the_next(scene, shop, worker), 60.0, 0.5)


def side_by_side(scene: Scene, _: ApacheOnThisMachine) -> None:
    """A message is sent back once. A member takes the lane over, and the first one has it again when that leaves."""
    shop = scene.producer()
    first = scene.consumer("m", ListenerRule(Outcome.SUSPEND, number=2, delivery_max=1))
    scene.send(shop, 4)
    scene.wait(first, "be given the second message again", lambda: first.ended(5))
    scene.wait_until_stored(4)
    second = scene.consumer("a")  # sorts first, and so is given the only queue
    assert wait_until(lambda: _gets_the_next(scene, shop, second), 60.0, 0.5)
    scene.stop(second)
    assert wait_until(lambda: _gets_the_next(scene, shop, first), 60.0, 0.5)
    scene.stop(first)
    scene.stop(shop)


def _gets_the_next(scene: Scene, shop: Actor, worker: Actor) -> bool:
    scene._send(shop)
    return wait_until(lambda: worker.begun(scene._sent), 2.0, 0.1)


def stranger(scene: Scene, _: ApacheOnThisMachine) -> None:
    """A member that does not pass the tap takes the lane over, works, and gives it back."""
    shop = scene.producer()
    first = scene.consumer("c1")
    scene.send(shop, 4)
    scene.wait(first, "get to the last message", lambda: first.begun(4))
    other = scene.past_the_tap("c2")
    scene.wait_until_stored(4)
    scene.stop(first)
    scene.send(shop, 4)
    scene.wait(other, "get to the last message", lambda: other.begun(8))
    again = scene.consumer("c3")
    scene.wait_until_stored(8)
    scene.stop(other)
    scene.send(shop, 4)
    scene.wait(again, "get to the last message", lambda: again.begun(12))
    scene.stop(again)
    scene.stop(shop)


def play(
    tmp_path: Path,
    versions: tuple[str, str],
    scene: Callable[[Scene, ApacheOnThisMachine], None],
    *,
    more: Mapping[str, str] | None = None,
    mode: str = "orderly",
) -> Seen:
    broker, client = versions
    config = replace(CONFIG, dialect="4.9" if broker.startswith("4.") else "5.x", mode=mode)
    profile = profile_of(min(broker, client)) if mode == "orderly" else f"rocketmq-5-{mode}"
    with (
        ApacheOnThisMachine(broker, config, more=more) as system,
        tap_before(system.namesrv, tmp_path / "tap", config.to_json(), profile) as seen,
        Scene(system, client, config, tmp_path / "own", seen) as stage,
    ):
        scene(stage, system)
    rows = seen.rows()
    assert {row.level for row in rows} == {Level.TAP}
    assert {Kind.PULL, Kind.COMMIT, Kind.SEND, Kind.ADD} <= {row.kind for row in rows}
    assert seen.clauses("refuted") == [], seen.text
    assert mode != "orderly" or set(seen.clauses("not_recorded")) >= UNHEARD
    headline = " ".join(seen.text.rpartition("UPHELD ")[2].split())
    assert f"{len(seen.clauses('not_recorded'))} not recorded" in headline, seen.text
    return seen


def needs(*versions: str) -> None:
    for part in ("java", "maven"):
        if (reason := why_not(part)) is not None:
            pytest.skip(reason)
    for version in versions:
        if version in jars.VERSIONS and version in jars.DEFAULT and not jars.present(version):
            pytest.skip(f"needs the jars of RocketMQ {version}; `make setup` gets them")


@pytest.fixture(params=PAIRS, ids=lambda pair: f"broker {pair[0]}, client {pair[1]}")
def versions(request: pytest.FixtureRequest) -> tuple[str, str]:
    pair: tuple[str, str] = request.param
    needs(pair[0])
    try:
        java.classes(pair[1])
    except UsageError as error:
        pytest.skip(str(error))
    return pair


pytestmark = [pytest.mark.apache, pytest.mark.long]


def test_healthy_work(versions: tuple[str, str], tmp_path: Path) -> None:
    seen = play(tmp_path, versions, healthy)
    assert {row.broker_epoch for row in seen.rows() if row.broker} == {1}
    assert {Kind.DEAD_LETTER, Kind.UNLOCK} <= {row.kind for row in seen.rows()}
    assert {"LSE-4", "LSE-6", "CMT-4", "CMT-8", "ORD-9"} <= set(seen.clauses("upheld")), seen.text


def test_a_new_group_on_a_topic_that_is_older_than_its_retention(
    versions: tuple[str, str], tmp_path: Path
) -> None:
    seen = play(tmp_path, versions, old_topic, more=SMALL_FILES)
    moved = {row.value for row in seen.rows() if row.kind is Kind.PULL and row.code == 21}
    assert len(moved) == 1
    commits = [(row.value in moved, row.detail) for row in seen.rows() if row.kind is Kind.COMMIT]
    assert (True, "corrected") in commits
    assert {detail for sent_on, detail in commits if not sent_on} == {None}


def test_a_broker_that_is_restarted_in_mid_work(versions: tuple[str, str], tmp_path: Path) -> None:
    seen = play(tmp_path, versions, broker_restarts)
    rows = [row for row in seen.rows() if row.broker]
    (crash,) = [row for row in rows if row.kind is Kind.CRASH]
    assert (crash.broker, crash.process, crash.broker_epoch) == ("b0", "b0", 1)
    assert [row.broker_epoch for row in rows] == [
        1 if row.seq_begin <= crash.seq_begin else 2 for row in rows
    ]
    assert [row.client_id for row in rows if row.kind is Kind.LOCK and row.broker_epoch == 2]


def test_healthy_work_side_by_side(tmp_path: Path) -> None:
    """A concurrent consumer asks for no lease: that it dropped the lane shows when it looks its offset up again."""
    needs("5.4.0")
    seen = play(tmp_path, ("5.4.0", "5.4.0"), side_by_side, mode="concurrent")
    rows = [row for row in seen.rows() if row.topic == "t-orders"]
    (back,) = [row for row in rows if row.kind is Kind.SEND_BACK]
    assert (back.delay_level, back.reconsume_times) == (3, 0)
    lives = [
        row.incarnation
        for row in rows
        if row.kind is Kind.ADD and (row.client_id or "").endswith("-m")
    ]
    assert [(life or "").partition("#")[2] for life in lives] == ["", "2"]


def test_a_member_that_does_not_pass_the_tap(versions: tuple[str, str], tmp_path: Path) -> None:
    seen = play(tmp_path, versions, stranger)
    clients = {row.client_id for row in seen.rows() if row.kind is Kind.LOCK}
    assert len(clients) == 2, "the stranger left no row"
