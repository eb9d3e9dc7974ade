"""The Go driver: what of the client's source is compiled otherwise, its target, and its smoke test on our cluster."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.cli.main import root
from conformance.drivers.targets import find_driver
from conformance.parts import golang, rocketmq_go
from conformance.parts.doctor import why_not
from conformance.run import judge
from conformance.targets.base import Asked, find
from conformance.targets.driven import GoTarget, pair
from specs import profiles
from specs.errors import Unavailable, UsageError
from specs.history.store import open_history
from specs.verdicts.verdict import ClauseVerdict

TIMERS = """const (
	_PullNameServerInterval = 30 * time.Second
	_HeartbeatBrokerInterval = 30 * time.Second
	_PersistOffsetInterval = 5 * time.Second
	_RebalanceInterval = 20 * time.Second
)
"""
LEASE = "const (\n\t_RebalanceLockMaxTime = 30 * time.Second\n\t_RebalanceInterval    = 20 * time.Second\n)\n"
TABLE = "\tprocessQueueTable sync.Map\n\t\tdc.processQueueTable.Store(mq, pq)\n"


def module(folder: Path, timers: str = TIMERS, table: str = TABLE) -> Path:
    """As much of the released module as is compiled otherwise."""
    for name, text in (
        ("internal/client.go", timers),
        ("consumer/process_queue.go", LEASE),
        ("consumer/consumer.go", table),
    ):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def needs_the_driver() -> None:
    for part in ("rocketmq-go", "java"):
        if (reason := why_not(part)) is not None:
            pytest.skip(reason)


def test_constants_become_timers_and_the_table_tells(tmp_path: Path) -> None:
    """What is no timer of ours stays as it is, also where another file has a constant of the same name."""
    made = rocketmq_go.changes(module(tmp_path))
    timers = made["internal/client.go"]
    assert "_PullNameServerInterval = 30 * time.Second" in timers
    assert (
        'var _PersistOffsetInterval = inorderTimer("INORDER_PERSIST_MS", 5 * time.Second)' in timers
    )
    assert timers.count("_PersistOffsetInterval") == 1
    assert "_RebalanceInterval    = 20 * time.Second" in made["consumer/process_queue.go"]
    assert made["consumer/consumer.go"] == (
        "\tprocessQueueTable inorderTable\n\t\tdc.processQueueTable.begin(&mq, pq)\n"
    )
    added = {"internal/inorder_timer.go", "consumer/inorder_timer.go", "consumer/inorder_lanes.go"}
    assert set(made) - added == {
        "internal/client.go",
        "consumer/process_queue.go",
        "consumer/consumer.go",
    }


@pytest.mark.parametrize(
    ("timers", "table", "why"),
    [
        (TIMERS.replace("_Persist", "_Store"), TABLE, "_PersistOffsetInterval"),
        (TIMERS, TABLE * 2, "2 times"),
    ],
)
def test_a_version_that_looks_otherwise_is_refused(
    tmp_path: Path, timers: str, table: str, why: str
) -> None:
    """It would run with other timers than it is told, or tell too little."""
    with pytest.raises(Unavailable, match=why):
        rocketmq_go.changes(module(tmp_path, timers, table))


@pytest.mark.long
def test_without_go_it_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither the machine has one, nor can one be borrowed."""
    monkeypatch.setenv("INORDER_TOOLS", str(tmp_path))
    monkeypatch.setattr(golang, "go", lambda: None)
    monkeypatch.setattr(golang, "GO_FROM_INDEX", "no-such-package-as-this==0")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(Unavailable, match="There is no recent Go on this machine"):
        rocketmq_go.DRIVER.ensure(rocketmq_go.DEFAULT)
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == []


def test_without_a_checkout_it_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="built from a source checkout"):
        replace(rocketmq_go.DRIVER, source=tmp_path / "main.go").ensure(rocketmq_go.DEFAULT)


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("rocketmq-local:5.4.0+go:1.0", "no Go client of Apache RocketMQ '1.0' .* 2.1.2"),
        ("rocketmq:127.0.0.1:9876+go:2.1.2,keep_ms=1", "with a Go client it takes no options"),
    ],
)
def test_targets_that_are_none(target: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        find_driver(target)


def test_a_pair_has_the_profile_of_its_client() -> None:
    """On a release's brokers those of the release stand beside it."""
    assert (
        find("rocketmq-local:5.4.0+go:2.1.2").profile
        == "rocketmq-5.2-orderly + rocketmq-go-orderly"
    )
    own = pair(None, "2.1.2", GoTarget.mark)
    assert (own.name, own.profile) == ("reference+go:2.1.2", "reference + rocketmq-go-orderly")
    abroad = find("rocketmq:127.0.0.1:9876+go:2.1.2")
    assert (abroad.parties["client"], abroad.lease_known) == ("Apache Go client 2.1.2", False)


@pytest.mark.apache
def test_smoke() -> None:
    """What fails here is the driver's fault: that the client delivers once too often is known, and no failure."""
    needs_the_driver()
    done = CliRunner().invoke(root, ["smoke", "--target", "reference+go:2.1.2", "--format", "json"])
    items = json.loads(done.stdout)["items"]
    assert [item for item in items if not item["ok"]] == []
    assert done.exit_code == 0


@pytest.mark.long
@pytest.mark.apache
def test_a_round_is_allowed_as_built_and_refuted_as_documented(tmp_path: Path) -> None:
    """On our own broker, which writes down what the client asks for."""
    needs_the_driver()
    target = find("reference+go:2.1.2")
    built = profiles.load(str(target.profile))
    found = target.search(built, Asked(seed=1, examples=1, floor=None, out=tmp_path / "run"))
    lines = {line.id: line for line in found.verdict.clauses}
    refuted = [name for name, line in lines.items() if line.verdict is ClauseVerdict.REFUTED]
    assert refuted == []
    assert lines["ORD-2"].verdict is ClauseVerdict.UPHELD
    documented = profiles.load("reference + rocketmq-go-orderly-documented")
    known = ("RTY-1", "RTY-5", "RTY-7", "CMT-1", "LIV-1")
    again = judge(open_history(tmp_path / "run"), documented, options={"clauses": known})
    assert {line.id: line.verdict for line in again.clauses} == dict.fromkeys(
        known, ClauseVerdict.REFUTED
    )
