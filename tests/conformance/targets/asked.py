"""What the tests of foreign systems ask of each: one run of producers and consumers, and wrong clients in it.

A system's own file says how long, how much and against which floor; the plan, and what is looked for, are the same.
"""

from __future__ import annotations

import os
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from conformance.parts.local_server import HOST
from conformance.run import fresh_names, judge, run
from conformance.targets.base import Asked
from specs import profiles
from specs.errors import UsageError
from specs.plan.config import Config
from specs.plan.plan import Action, ClientPlan, ListenerRule, Plan, TopicPlan, Topology
from specs.verdicts.verdict import ClauseVerdict, Verdict

BROKEN, KEPT = ClauseVerdict.REFUTED, ClauseVerdict.UPHELD
OF_HANDOVERS = {"ORD-4", "ORD-5", "ORD-13", "LSE-2", "CMT-5", "CMT-9", "PML-1", "KEY-1"}
"""A second consumer has to come in time for them, which it does not always on a busy machine."""


@dataclass(frozen=True)
class Work:
    """Messages of `keys` keys in `turns` turns, for a consumer that stays and a second one that comes and goes.

    sends_ms: the first turn's moment, and the time between two. second_ms: when the second consumer comes and goes,
    None where the first stays alone. first_ms: when the first one goes and comes back, if it does. floor: opportunities
    below which a clause counts as not exercised.
    """

    config: Config
    keys: int
    turns: int
    sends_ms: tuple[int, int]
    second_ms: tuple[int, int] | None
    fails: tuple[ListenerRule, ...]
    until_ms: int
    settle_ms: int
    queues: int = 4
    floor: int = 1
    first_ms: tuple[int, int] | None = None


def parties(seed: int) -> tuple[str, str, str, tuple[str, str, str]]:
    """(prefix, topic, group, (producer, first consumer, second consumer)): new names on a server that others use."""
    names = fresh_names(seed, 1)
    return names, f"{names}orders", f"{names}billing", (f"{names}shop", f"{names}c1", f"{names}c2")


def clients(
    shop: str, first: str, second: str, group: str, topic: str
) -> tuple[ClientPlan, ClientPlan, ClientPlan]:
    return (
        ClientPlan(shop, "producer"),
        ClientPlan(first, "consumer", group, (topic,)),
        ClientPlan(second, "consumer", group, (topic,)),
    )


FIRST = "the first consumer"


def judged(target: Any, folder: Path, work: Work, *faults: Action) -> Verdict:
    """The verdict of one run of the work, with the faults in it. They and the rules of the listener say FIRST for the
    first consumer, whose name is new in each run."""
    names, topic, group, (shop, first, second) = parties(7)
    faults = tuple(
        replace(each, args={word: first if of == FIRST else of for word, of in each.args.items()})
        for each in faults
    )
    rules = (replace(rule, client=first) if rule.client == FIRST else rule for rule in work.fails)
    begin_ms, every_ms = work.sends_ms
    sends = [
        Action(
            begin_ms + turn * every_ms,
            "send",
            {"client": shop, "topic": topic, "key": f"k{key}", "count": 1},
        )
        for turn in range(work.turns)
        for key in range(work.keys)
    ]
    changes = [
        Action(at_ms, verb, {"client": second})
        for verb, at_ms in zip(("start", "stop"), work.second_ms or (), strict=False)
    ]
    changes += [
        Action(at_ms, verb, {"client": first})
        for verb, at_ms in zip(("stop", "start"), work.first_ms or (), strict=False)
    ]
    plan = Plan(
        topology=Topology(topics=(TopicPlan(topic, work.queues),), groups=(group,)),
        config=work.config,
        clients=clients(shop, first, second, group, topic),
        actions=(
            Action(0, "start", {"client": shop}),
            Action(0, "start", {"client": first}),
            *sorted([*sends, *changes, *faults], key=lambda action: action.at_ms),
        ),
        listener=tuple(rules),
        until_ms=work.until_ms,
        settle_ms=work.settle_ms,
    )
    folder.mkdir()
    history = run(plan, target, folder, info={"profile": target.profile}, prefix=names)
    return judge(history, profiles.load(target.profile), options={"floor": work.floor})


def found(verdict: Verdict) -> dict[str, ClauseVerdict]:
    return {clause.id: clause.verdict for clause in verdict.clauses}


def refuted(told: Mapping[str, ClauseVerdict]) -> list[str]:
    return [name for name, each in told.items() if each is BROKEN]


def claimed(profile: str) -> list[str]:
    """The clauses that the profile claims, without what every run has to meet."""
    return [
        name
        for name, claim in profiles.load(profile).claims.items()
        if claim.status == "claimed" and not name.startswith("MET")
    ]


def of_a_release(made: Any, out: Path) -> dict[str, ClauseVerdict]:
    """What `conform` alone finds, with one example."""
    asked = Asked(seed=1, examples=1, floor=None, out=out)
    return found(made.search(profiles.load(made.profile), asked).verdict)


def one_server(local: Callable[[str], Any], version: str) -> Iterator[Any]:
    """A target with a server for all the tests of a file: what each of them makes there is new."""
    made = local(version)
    yield made
    made.release()


def tells_before_anything_starts(make: Any, text: str | None, words: str) -> None:
    """Who asks for what is not there gets one sentence with these words."""
    with pytest.raises(UsageError, match=words):
        make(text)


def shows_no_credential(
    local: Callable[[str], Any], version: str, name: str, folder: Path, **settings: str
) -> None:
    """It is in no file that a run leaves, and in no command line. settings: what else the driver has to be told."""
    secret = f"secret-{os.getpid()}"
    config = folder / "mine.toml"
    config.write_text(f'[credentials]\n"{name}" = "{secret}"\n')
    made = local(f"{version},config={config}")
    assert secret not in made.name + repr(made.parties)
    driver = made.library.start("c1", {name: secret, **settings}, folder, lambda _: None)
    try:
        driver.hello()
        assert secret not in " ".join(psutil.Process(driver.process.pid).cmdline())
    finally:
        driver.kill()
    logs = [path for path in folder.iterdir() if path != config]
    assert [path for path in logs if secret in path.read_text()] == []


# ---------------------------------------------------------------- wrong clients


def bugs_of(sabotaged: Path) -> dict[str, str]:
    """Wrong client → the clause that refutes it, as the file of them says."""
    return dict(
        re.findall(r'"(\w+)": \(\w+, "([A-Z]+-\d+)"\)', sabotaged.read_text(encoding="utf-8"))
    )


@contextmanager
def sabotaged(
    target: Any, library: Any, bug: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """The target's clients have the bug, until it has its right library again."""
    monkeypatch.setenv("INORDER_SABOTAGE", bug)
    rightly = target.library
    target.library = library
    try:
        yield
    finally:
        target.library = rightly


# ---------------------------------------------------------------- processes and servers


def children() -> set[psutil.Process]:
    """Those of this process that run; other tests of the same process have theirs."""
    running = psutil.Process().children()
    return {child for child in running if child.status() != psutil.STATUS_ZOMBIE}


def left_since(before: set[psutil.Process]) -> list[str]:
    """The names of the children that have come since."""
    return sorted(child.name() for child in children().difference(before))


def is_ready(answers: Callable[[str, int], bool], said: bytes) -> bool:
    """What is found of a server that says so to whoever connects."""
    with socket.create_server((HOST, 0)) as listening:

        def say() -> None:
            taken, _ = listening.accept()
            with taken:
                taken.sendall(said)

        thread = threading.Thread(target=say)
        thread.start()
        try:
            return answers(HOST, listening.getsockname()[1])
        finally:
            thread.join()


def begins_nothing_without_a_server(remote: Callable[[str], Any], words: str, folder: Path) -> None:
    """One sentence that names the address (`{}` in words), and no driver was started."""
    with socket.create_server((HOST, 0)) as listening:
        nobody = f"{HOST}:{listening.getsockname()[1]}"
    names = fresh_names(9, 1)
    plan = Plan(topology=Topology(topics=(TopicPlan(f"{names}orders", 1),), groups=()))
    with pytest.raises(UsageError, match=words.format(re.escape(nobody))):
        run(plan, remote(nobody), folder, prefix=names)
    assert list(folder.glob("*.log")) == []
