"""A stranger's target: sixty lines registered by an entry point, and two drivers behind `exec:`.

They import nothing of the reference. The right ones are upheld by everything that takes a target; each wrong one is
refuted by the clause that the guide (docs/targets.md) names.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.cli.main import root
from conformance.drivers.plans import FAST
from conformance.parts.places import CHECKOUT
from conformance.run import judge, run
from conformance.targets.base import find
from specs.errors import TargetMisbehaved
from specs.plan.plan import Action, ClientPlan, ListenerRule, Plan, TopicPlan, Topology
from specs.profiles import Profile, load
from specs.verdicts.verdict import ClauseVerdict
from specs.vocabulary import Kind, Outcome

TOYS = CHECKOUT / "drivers" / "examples"
WRONG_ONES = Path(__file__).parent / "toys"
REGISTERED = """[inorder.targets]
toy = toy:toy
skips = wrong:skips
twice = wrong:twice
loses = wrong:loses
silent = wrong:silent
"""
WRONG = {"skips": "ORD-4", "twice": "ORD-3", "loses": "SND-1"}


@pytest.fixture
def path(tmp_path: Path) -> dict[str, str]:
    """The environment of somebody who has installed a distribution with the toys."""
    info = tmp_path / "site" / "toys-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 1\n")
    (info / "entry_points.txt").write_text(REGISTERED)
    there = [str(info.parent), str(TOYS), str(WRONG_ONES), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, there))}


@pytest.fixture
def server() -> Iterator[int]:
    """The port of a queue server."""
    command = [sys.executable, str(TOYS / "queue_server.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.kill()


def inorder(path: dict[str, str], *words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "inorder", *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, env=path, timeout=200, check=False
    )


def clauses(out: Path) -> dict[str, str]:
    verdict = json.loads((out / "verdict.json").read_text())
    return {clause["id"]: clause["verdict"] for clause in verdict["clauses"]}


def test_they_are_small_and_know_no_reference() -> None:
    lines = {"toy.py": 60, "hosted.py": 150, "by_key.py": 180, "networked.py": 150}
    for name, most in lines.items():
        text = (TOYS / name).read_text()
        assert len(text.splitlines()) <= most
        imported = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
        rooms = {str(node.module).partition(".")[0] for node in imported}
        assert "reference_impl" not in rooms
        assert name == "toy.py" or rooms == set()


def test_the_toy_is_upheld_and_its_run_can_be_done_again(
    path: dict[str, str], tmp_path: Path
) -> None:
    out, again = tmp_path / "run", tmp_path / "again"
    done = inorder(path, "conform", "--target", "toy", "--seed", "1", "--out", out)
    assert done.returncode == 0, done.stdout + done.stderr
    upheld = [clause for clause, verdict in clauses(out).items() if verdict == "upheld"]
    assert len(upheld) >= 8
    done = inorder(path, "replay", out, "--out", again)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ORD-4" in [clause for clause, verdict in clauses(again).items() if verdict == "upheld"]
    done = inorder(path, "check", out)
    assert done.returncode == 0, done.stdout + done.stderr


def bugs(*at_once: str, wrong: Sequence[str] = ("", *WRONG)) -> list[object]:
    """These in every run of the tests, the others in the long one."""
    return [bug if bug in at_once else pytest.param(bug, marks=pytest.mark.long) for bug in wrong]


@pytest.mark.parametrize("name", bugs("skips", wrong=[*WRONG]))
def test_a_wrong_toy_is_refuted_by_the_clause_of_the_guide(
    path: dict[str, str], tmp_path: Path, name: str
) -> None:
    out = tmp_path / "run"
    done = inorder(path, "conform", "--target", name, "--seed", "1", "--out", out)
    assert done.returncode == 1, done.stdout + done.stderr
    assert clauses(out)[WRONG[name]] == "refuted"
    told = inorder(path, "explain", out, "--clause", WRONG[name])
    assert told.returncode == 0, told.stderr


def test_silence_accuses_nobody_and_is_told(path: dict[str, str], tmp_path: Path) -> None:
    """A queue of which nobody says the end is not an empty one, for whoever judges the run, now or later."""
    out, told = (
        tmp_path / "run",
        "MET-12 what was asked at the end was answered: the toy did not say",
    )
    done = inorder(path, "conform", "--target", "silent", "--seed", "1", "--out", out)
    assert done.returncode == 2, done.stdout + done.stderr
    assert told in " ".join(done.stdout.split())
    assert "refuted" not in clauses(out).values()
    checked = inorder(path, "check", out)
    assert checked.returncode == 2
    assert told in " ".join(checked.stdout.split())


@pytest.mark.long
@pytest.mark.parametrize("bug", bugs(""))
def test_a_driver_that_hosts_everybody(path: dict[str, str], tmp_path: Path, bug: str) -> None:
    _judge_driver(path, tmp_path, f"{sys.executable} {TOYS / 'hosted.py'} {bug}".strip(), bug)


@pytest.mark.parametrize("bug", bugs())
def test_a_driver_for_each_client(
    path: dict[str, str], tmp_path: Path, server: int, bug: str
) -> None:
    command = f"{sys.executable} {TOYS / 'networked.py'} {server} {bug}"
    _judge_driver(path, tmp_path, command.strip(), bug)


@pytest.mark.long
def test_a_driver_whose_messages_lose_their_properties(
    path: dict[str, str], tmp_path: Path, server: int
) -> None:
    """The protocol's second version tells them; the body is as it was sent."""
    command = f"{sys.executable} {TOYS / 'networked.py'} {server} forgets"
    _judge_driver(path, tmp_path, command, "forgets")


def test_a_driver_is_tried_before_anything_is_judged_by_it(
    path: dict[str, str], tmp_path: Path
) -> None:
    """Smoke holds for the right one, and says of a wrong one what is wrong."""
    command = f"exec:{sys.executable} {TOYS / 'hosted.py'}"
    done = inorder(path, "smoke", "--target", command)
    assert done.returncode == 0, done.stdout + done.stderr
    wrong = tmp_path / "hosted.py"
    text = (TOYS / "hosted.py").read_text()
    wrong.write_text(text.replace('"queue_offset": offset', '"queue_offset": offset + 1'))
    done = inorder(path, "smoke", "--target", f"exec:{sys.executable} {wrong}")
    assert done.returncode == 64
    assert "WRONG" in done.stdout


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ('range(topic["queues"])', 'range(7, topic["queues"] + 7)', "added names the queue orders/b0/7"),
        ('"broker": "b0"', '"broker": "mine"', "added names the queue orders/mine/0"),
        ('"queue_id": place[1], "queue_offset": n', '"queue_id": 7, "queue_offset": n',
         "the answer to read names the queue orders/b0/7"),
        ('told = {**message, **at,', 'told = {**message, **at, "topic": "mine",',
         "delivered names the queue mine/b0/0"),
        ('"client": client,', '"client": "somebody",', "added is told of the client 'somebody', who is not at work"),
        ("call_later(DEAD_S if client in wanted else 0, lock.release)",
         'call_later(0.03, lambda: tell(client, "dropped", **at))',
         "dropped is told of the client 'alice', who is not at work"),
    ],
    ids=["a queue too many", "another broker", "read elsewhere", "another topic", "nobody's", "a dead one's"],
)  # fmt: skip
def test_nothing_that_a_driver_tells_is_left_out_in_silence(
    tmp_path: Path, right: str, wrong: str, told: str
) -> None:
    """Nobody reads a queue that was not asked for, and of a client whom nobody started nothing is recorded."""
    text = (TOYS / "hosted.py").read_text()
    assert right in text
    (tmp_path / "hosted.py").write_text(text.replace(right, wrong))
    target = find(f"exec:{sys.executable} {tmp_path / 'hosted.py'}")
    plan = Plan(
        topology=Topology(topics=(TopicPlan("orders", 1),), groups=("billing",)),
        config=replace(FAST, max_reconsume_times=-1, suspend_ms=20),
        clients=(
            ClientPlan("shop", "producer"),
            ClientPlan("alice", "consumer", "billing", ("orders",)),
        ),
        actions=(
            Action(0, "start", {"client": "shop"}),
            Action(0, "start", {"client": "alice"}),
            Action(1, "send", {"client": "shop", "topic": "orders", "key": "k", "count": 1}),
            Action(100, "crash", {"client": "alice"}),
        ),
        until_ms=200,
    )
    (tmp_path / "run").mkdir()
    with pytest.raises(TargetMisbehaved, match=told):
        run(plan, target, tmp_path / "run")


@pytest.mark.parametrize(
    ("bug", "clause"),
    [
        ("", None),
        ("unfenced", "PML-3"),
        pytest.param("shares", "KEY-1", marks=pytest.mark.long),
        pytest.param("overtakes", "ORD-12", marks=pytest.mark.long),
        pytest.param("forgets", "LIV-1", marks=pytest.mark.long),
    ],
)
def test_a_queue_that_keeps_the_order_of_each_key(
    tmp_path: Path, bug: str, clause: str | None
) -> None:
    """Its members work side by side on one queue: it is held to what is promised of a key, and to nothing else."""
    target = find(f"exec:{sys.executable} {TOYS / 'by_key.py'} {bug}")
    (tmp_path / "mine.toml").write_text(
        f'extends = "{target.profile}"\n[clauses]\nPML-1 = "claimed"\nPML-3 = "claimed"\n'
    )
    profile = load(str(tmp_path / "mine.toml"))
    keys = [{"client": "shop", "topic": "orders", "key": f"k{n}", "count": 2} for n in range(6)]
    consumers = [ClientPlan(name, "consumer", "billing", ("orders",)) for name in ("alice", "bob")]
    fails = ListenerRule(Outcome.SUSPEND, duration_ms=20, number=5, delivery_max=2)
    plan = Plan(
        topology=Topology(topics=(TopicPlan("orders", 1),), groups=("billing",)),
        config=replace(target.config_for(profile), max_reconsume_times=-1, suspend_ms=20),
        clients=(ClientPlan("shop", "producer"), *consumers),
        actions=(
            *(Action(0, "start", {"client": name}) for name in ("shop", "alice", "bob")),
            *(Action(at_ms, "send", send) for at_ms in (1, 200) for send in keys),
        ),
        listener=(ListenerRule(duration_ms=20), fails),
        until_ms=600,
    )
    out = tmp_path / "run"
    out.mkdir()
    verdict = judge(run(plan, target, out, info={"profile": profile.name}), profile)
    refuted = [judged.id for judged in verdict.of(ClauseVerdict.REFUTED)]
    assert "ORD-2" not in claimed_by(profile)
    assert (clause in refuted) if clause else refuted == []
    upheld = {judged.id for judged in verdict.of(ClauseVerdict.UPHELD)}
    assert bug or {"ORD-11", "ORD-12", "KEY-1", "PML-1", "PML-3", "LIV-1", "SND-1"} <= upheld


@pytest.mark.parametrize("command", ["conform", "chaos"])
def test_promises_of_another_way_of_consuming_are_refused(tmp_path: Path, command: str) -> None:
    """What is done one way is not judged by what is promised of another; nothing is started, nothing removed."""
    (tmp_path / "mine.toml").write_text('extends = "ordered-queue"\nmode = "key_ordered"\n')
    words = ["consumer-killed"] if command == "chaos" else []
    asked = ["--profile", str(tmp_path / "mine.toml"), "--out", str(tmp_path / "run")]
    target = ["--target", f"exec:{sys.executable} {TOYS / 'hosted.py'}"]
    done = CliRunner().invoke(root, [command, *words, *target, *asked])
    assert done.exit_code == 64, done.output
    said = " ".join(done.stderr.split())
    assert "speaks of groups that consume key_ordered, and those of exec:" in said
    assert "name another --profile" in said
    assert not (tmp_path / "run").exists()


@pytest.mark.long
def test_the_pytest_suite_takes_it(path: dict[str, str], tmp_path: Path) -> None:
    asked = ["--inorder-target", "toy", "--inorder-seed", "1", "--inorder-out", tmp_path / "run"]
    command = [sys.executable, "-m", "pytest", "-q", "--pyargs", "conformance.suite", *asked]
    done = subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        env=path,
        timeout=200,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "UPHELD  toy under ordered-queue" in done.stdout


def claimed_by(profile: Profile) -> set[str]:
    return {name for name, claim in profile.claims.items() if claim.status == "claimed"}


def _judge_driver(path: dict[str, str], tmp_path: Path, command: str, bug: str) -> None:
    out = tmp_path / "run"
    asked = ("--target", f"exec:{command}", "--seed", "1", "--examples", "1", "--out", out)
    done = inorder(path, "conform", *asked)
    assert done.returncode == (1 if bug else 0), done.stdout + done.stderr
    found = clauses(out)
    if bug:
        assert found[{**WRONG, "forgets": "SND-10"}[bug]] == "refuted"
    else:
        assert len([clause for clause, verdict in found.items() if verdict == "upheld"]) >= 8


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("exec:", "needs a command"),
        ("exec:no-such-program-here", "there is no such program"),
        ("exec:cat", "does not speak the driver protocol"),
    ],
)
def test_what_is_no_driver_is_told_before_anything_starts(
    tmp_path: Path, command: str, words: str
) -> None:
    out = str(tmp_path / "run")
    done = CliRunner().invoke(root, ["conform", "--target", command, "--out", out])
    assert done.exit_code == 64
    assert words in " ".join(done.stderr.split())
    assert not (tmp_path / "run").exists()


def test_messages_without_a_key_pass_through_the_toy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(TOYS)
    target = importlib.import_module("toy").toy(None)
    plan = Plan(
        topology=Topology(topics=(TopicPlan("orders", 2),), groups=("billing",)),
        config=target.config,
        clients=(
            ClientPlan("shop", "producer"),
            ClientPlan("alice", "consumer", "billing", ("orders",)),
        ),
        actions=(
            Action(0, "start", {"client": "shop"}),
            Action(0, "start", {"client": "alice"}),
            Action(1, "send", {"client": "shop", "topic": "orders", "count": 3, "tags": "red"}),
        ),
        until_ms=100,
    )
    rows = [row for row in run(plan, target, tmp_path).rows() if row.kind is Kind.DELIVER]
    assert {(row.message_id, row.sharding_key, row.tags) for row in rows} == {
        (f"m{number}", None, "red") for number in (1, 2, 3)
    }


def test_a_paused_process_begins_nothing_and_goes_on(server: int, tmp_path: Path) -> None:
    """And messages without a key pass through a driver as well."""
    target = find(f"exec:{sys.executable} {TOYS / 'networked.py'} {server}")
    send = {"client": "shop", "topic": "orders", "count": 1}
    plan = Plan(
        topology=Topology(topics=(TopicPlan("orders", 1),), groups=("billing",)),
        config=replace(target.config, max_reconsume_times=-1),
        clients=(
            ClientPlan("shop", "producer"),
            ClientPlan("alice", "consumer", "billing", ("orders",)),
        ),
        actions=(
            Action(0, "start", {"client": "shop"}),
            Action(0, "start", {"client": "alice"}),
            *(Action(at_ms, "send", send) for at_ms in range(100, 500, 100)),
            Action(500, "pause", {"node": "alice"}),
            *(Action(at_ms, "send", send) for at_ms in range(600, 1_400, 100)),
            Action(1_500, "resume", {"node": "alice"}),
        ),
        until_ms=1_600,
        settle_ms=20_000,
    )
    rows = list(run(plan, target, tmp_path).rows())
    (paused,) = [row for row in rows if row.kind is Kind.PAUSE]
    assert paused.ended_us is not None
    assert paused.ended_us - paused.started_us >= 900_000
    calls = [row for row in rows if row.kind is Kind.DELIVER]
    assert [row.message_id for row in calls] == [f"m{number}" for number in range(1, 13)]
    assert {row.sharding_key for row in calls} == {None}
    began = [row.started_us for row in calls]
    longest_us = max(after - before for before, after in itertools.pairwise(began))
    assert longest_us >= 500_000  # a message came every 100 ms
