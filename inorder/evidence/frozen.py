"""Is a correct system accused because a party stood still? `python -m inorder.evidence.frozen [SYSTEM...]`

A cell is one run of the suite in which one party is stopped (SIGSTOP) at one stage and goes on after some seconds, and
nobody is told: no row of the history says so but what the suite sees by itself. The systems are correct as far as
anybody knows, so a refutation is to be shown to be true by its witness, or it is a fault of ours. Each cell has to end
by itself, upheld, inconclusive or with a part that is not there, and to leave no process and no folder behind.

The cells are kept in the folder, with each run and what it printed. Exit code: 0 when all went well; 1 when a cell was
refuted, failed, did not end or left something; 2 when --budget left some.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import click
import psutil

from conformance.cli.options import print_human
from conformance.cli.people import tell
from conformance.parts.processes import Process, exit_on_sigterm, wait_until
from conformance.waiting import now_s, pass_time
from inorder.evidence import grid, tables
from inorder.evidence.options import GridOptions, close, grid_options, in_a_sentence
from specs.errors import (
    EXIT_INCONCLUSIVE,
    EXIT_REFUTED,
    EXIT_UNAVAILABLE,
    EXIT_UPHELD,
    UsageError,
)

CODE = ("specs", "reference_impl", "conformance", "chaos", "drivers", "inorder/evidence/frozen.py")
HARNESS = "harness"
"""The suite's own process, with everything that lives in it."""
CLIENT, DRIVERS, REFERENCE = "--client c1", "drivers/", "reference_impl"
START, WORK, FAULT, SETTLING, READING, END = (
    "start",
    "work",
    "fault",
    "settling",
    "reading back",
    "end",
)
SHORT_S, LONG_S = 6, 20
RUN_S, BEGIN_S, GONE_S = 400.0, 120.0, 10.0
"""So long a run may take, a stage or a party is waited for, and a process may outlive the run."""
STAYS = "inorder-ports"
"""What remembers which ports are taken is for all runs of a machine."""
WELL = frozenset({EXIT_UPHELD, EXIT_INCONCLUSIVE, EXIT_UNAVAILABLE})


@dataclass(frozen=True, slots=True)
class Stage:
    """When a party is stopped: so long after the run has said these words (a regular expression)."""

    words: str
    after_s: float = 0.0


STAGES: Mapping[str, Stage] = {
    START: Stage("starting |round 1"),
    WORK: Stage("consumers at work|starting processes|round 1", 3.0),
    FAULT: Stage(r"^  (?:crash|delay) ", 0.5),
    SETTLING: Stage("waiting until nothing happens any more", 0.3),
    READING: Stage("reading everything back"),
    END: Stage("reading everything back", 0.6),
}


@dataclass(frozen=True, slots=True)
class System:
    """A run of a system, and who takes part in it: by a regular expression on the command lines below the suite's.

    workers: who has to be there before the stage of work begins, and how many.
    """

    command: tuple[str, ...]
    workers: tuple[str, int]
    parties: Mapping[str, str] = field(hash=False)
    stages: tuple[str, ...] = tuple(STAGES)
    seconds: tuple[int, ...] = (SHORT_S,)


def _chaos(scenario: str, target: str) -> tuple[str, ...]:
    return ("chaos", scenario, "--target", target, "--seed", "1")


def _conform(target: str) -> tuple[str, ...]:
    return ("conform", "--target", target, "--seed", "1", "--examples", "1")


def _served(target: str, server: str) -> System:
    parties = {"broker": server, "clients": DRIVERS}
    stages, seconds = (WORK, SETTLING, READING), (SHORT_S, LONG_S)
    return System(_conform(target), (DRIVERS, 3), parties, stages, seconds)


SYSTEMS: Mapping[str, System] = {
    "reference+tcp": System(
        _chaos("link-slow", "reference+tcp"),
        (CLIENT, 1),
        {HARNESS: "", "client": CLIENT, "toxiproxy": "toxiproxy-server"},
    ),
    "reference+tcp:sync": System(
        _conform("reference+tcp:sync"),
        (REFERENCE, 1),
        {HARNESS: "", "broker": REFERENCE},
        tuple(name for name in STAGES if name != FAULT),
    ),
    "rocketmq-local:5.4.0": System(
        _chaos("consumer-killed", "rocketmq-local:5.4.0"),
        (CLIENT, 1),
        {
            HARNESS: "",
            "broker": "BrokerStartup",
            "name server": "NamesrvStartup",
            "client": CLIENT,
        },
    ),
    "kafka-local:4.3.1": _served("kafka-local:4.3.1", r"kafka\.Kafka"),
    "nats-local:2.15.2": _served("nats-local:2.15.2", "nats-server"),
    "redis-local:7.0.15": _served("redis-local:7.0.15", "redis-server"),
    "rabbitmq-local:3.10.8": _served("rabbitmq-local:3.10.8", r"beam\.smp"),
    "sqs-local:1.6.11": _served("sqs-local:1.6.11", "elasticmq"),
}


def cells_of(names: Sequence[str]) -> Iterator[grid.Cell]:
    """The cells of these systems, all where none is named. UsageError for an unknown one."""
    for name in names:
        if name not in SYSTEMS:
            raise UsageError(f"{name} is none of the systems: {', '.join(SYSTEMS)}")
    for name in names or SYSTEMS:
        system = SYSTEMS[name]
        for party in system.parties:
            for stage in system.stages:
                for seconds in system.seconds:
                    key = {"system": name, "party": party, "stage": stage, "seconds": seconds}
                    told = f"{name}, {party} stands still for {seconds} s at {stage}"
                    yield grid.Cell("frozen", told, {**key, **grid.code_key(*CODE)})


def make(cell: grid.Cell, root: Path) -> dict[str, Any]:
    """Do a run, stop the party in it, and tell what became of the run. root: where its folder is made."""
    key, folder = cell.key, root / cell.stem
    folder.mkdir(parents=True, exist_ok=True)
    system, stage = SYSTEMS[key["system"]], STAGES[key["stage"]]
    log = folder / "log"
    log.unlink(missing_ok=True)
    argv = [sys.executable, "-m", "inorder", *system.command, "--out", str(folder / "run")]
    began_s, seen = now_s(), dict[int, psutil.Process]()
    with (
        tempfile.TemporaryDirectory(prefix="fz-") as temporary,
        Process("inorder", argv, log=log, env={"TMPDIR": temporary}) as suite,
    ):
        wait_until(partial(_said, suite, log, stage.words), deadline_s=BEGIN_S)
        if key["stage"] == WORK:
            _there(suite, *system.workers, seen)
        pass_time(stage.after_s)
        stopped = _there(suite, system.parties[key["party"]], 1, seen)
        _stand_still(stopped, key["seconds"])
        code = wait_until(
            lambda: _ended(suite, seen), deadline_s=max(1.0, RUN_S - (now_s() - began_s))
        )
        living = [each for each in seen.values() if each.pid != suite.pid]
        wait_until(lambda: not any(map(_lives, living)), deadline_s=GONE_S)
        left = [" ".join(each.cmdline())[-120:] for each in living if _lives(each)]
        left += sorted(
            each.name for each in Path(temporary).iterdir() if not each.name.startswith(STAYS)
        )
    return {
        "stopped": len(stopped),
        "code": None if code is None else suite.returncode,
        "seconds": round(now_s() - began_s, 1),
        "left": left,
        "told": _last(log),
    }


def _said(suite: Process, log: Path, words: str) -> bool:
    """Has the run said the words, or ended?"""
    text = log.read_text(encoding="utf-8", errors="replace")
    return re.search(words, text, re.MULTILINE) is not None or not suite.alive


def _there(
    suite: Process, words: str, least: int, seen: dict[int, psutil.Process]
) -> list[psutil.Process]:
    """So many of a party, once they are there; fewer where the run ends before, or they do not come."""
    found: list[psutil.Process] = []

    def are_there() -> bool:
        found[:] = _party(suite, words, seen)
        return len(found) >= least or not suite.alive

    wait_until(are_there, deadline_s=BEGIN_S)
    return found


def _below(suite: Process, seen: dict[int, psutil.Process]) -> Sequence[psutil.Process]:
    """All processes of the run, itself first; remembered in `seen`."""
    try:
        first = psutil.Process(suite.pid)
        found = [first, *first.children(recursive=True)]
    except psutil.NoSuchProcess:
        return ()
    seen.update((each.pid, each) for each in found)
    return found


def _party(suite: Process, words: str, seen: dict[int, psutil.Process]) -> list[psutil.Process]:
    """The processes of a party; the suite's own for no words."""
    found = _below(suite, seen)
    return [*found[:1]] if not words else [each for each in found[1:] if _is(each, words)]


def _is(process: psutil.Process, words: str) -> bool:
    try:
        return re.search(words, " ".join(process.cmdline())) is not None
    except psutil.Error:
        return False


def _stand_still(party: Collection[psutil.Process], seconds: float) -> None:
    for do in (psutil.Process.suspend, psutil.Process.resume):
        for each in party:
            try:
                do(each)
            except psutil.NoSuchProcess:
                continue
        if do is psutil.Process.suspend and party:
            pass_time(seconds)


def _ended(suite: Process, seen: dict[int, psutil.Process]) -> bool:
    _below(suite, seen)
    return not suite.alive


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _last(log: Path) -> str:
    """What the run came to, in its own words."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    told = [
        line for line in lines if line and not line.startswith((" ", "kept", "replay", "again"))
    ]
    return told[-1][:200] if told else ""


def is_well(result: Mapping[str, Any]) -> bool:
    """Did it end by itself, accuse nobody, and leave nothing?"""
    return result["code"] in WELL and not result["left"]


def row_of(done: grid.Done) -> tuple[str, ...]:
    key, result = done.cell.key, done.value
    code = "did not end" if result["code"] is None else str(result["code"])
    stopped = str(result["stopped"]) if result["stopped"] else "not there"
    at = (key["system"], key["party"], key["stage"], str(key["seconds"]))
    return (*at, stopped, code, f"{result['seconds']:.0f}", "; ".join(result["left"]))


HEAD = ("system", "party", "stage", "s", "stopped", "exit code", "run, s", "left behind")


@click.command(help=__doc__)
@click.argument("systems", nargs=-1, metavar="[SYSTEM]...")
@grid_options(
    out="Where cells and runs are kept: runs/frozen-1 if not given.", seed=None, workers=2
)
@in_a_sentence
def main(systems: Sequence[str], how: GridOptions) -> None:
    """See the module."""
    exit_on_sigterm()
    root = how.folder("frozen")
    cells = list(cells_of(systems))
    made: list[grid.Done] = []
    for done in how.make(cells, partial(make, root=root), root):
        made.append(done)
        if done.error is not None:
            tell(f"{done.cell.name} could not be made: {done.error}")
        elif not done.resumed:
            tell(f"{done.cell.name}: {done.value['code']} ({done.value['told']})")
    whole = [done for done in made if done.error is None]
    rows = [row_of(done) for done in whole]
    bad = {at for at, done in enumerate(whole) if not is_well(done.value)}
    print_human(tables.terminal(HEAD, rows, right=("s", "run, s"), bad=bad.__contains__))
    (root / "frozen.md").write_text(
        "\n".join(tables.markdown(HEAD, rows, right=("s", "run, s"))) + "\n", encoding="utf-8"
    )
    refuted = sum(done.value["code"] == EXIT_REFUTED for done in whole)
    told = f"{len(whole)} cells, {refuted} refuted, {len(bad)} that are to be looked at"
    tell(f"{told}; {sum(done.seconds for done in whole):.0f} s of runs")
    sys.exit(close(made, len(cells), wrong=bool(bad) or len(whole) < len(made)))


if __name__ == "__main__":
    main()
