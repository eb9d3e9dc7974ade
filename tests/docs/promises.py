"""`make promises`: README's targets, and by turns the pages, each as a process that has to end as it is promised.

    python -m tests.docs.promises [NAME...] [--turn N] [--out DIR] [--workers N] [--budget TIME] [--fresh]

A cell is a command of README that names a target (with one seed and one example), or a page whose commands are all
typed from top to end (`test_all_commands_of_a_page`). Without NAME: README's targets, and the pages whose turn it is;
the turn follows from the commit, as a fresh clone remembers nothing. NAME: what of all cells begins so. A cell that is
red is tried once more at once: red twice is *broken*, red once *unsteady*, and both logs are printed. What is not on
this machine is *not here*; where CI is set that is broken as well, but for a page that skips. Exit code: 0 nothing is
broken, 1 something is, 2 when --budget left a target, 64 for wrong usage.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from conformance.cli.people import tell
from conformance.parts.processes import exit_on_sigterm
from inorder.evidence import grid, tables
from inorder.evidence.options import GridOptions, close, grid_options, in_a_sentence
from specs.errors import (
    EXIT_INCONCLUSIVE,
    EXIT_REFUTED,
    EXIT_UNAVAILABLE,
    EXIT_UPHELD,
    UsageError,
)
from specs.fingerprint import code_digest
from tests.docs import how
from tests.docs.commands import Command, every_command, read_pages, steps
from tests.docs.reader import ENDED, Things, typed
from tests.docs.reading import ROOT, named
from tests.turns import TURNS, turn_of_the_commit

KEPT, UNSTEADY, BROKEN = "kept", "unsteady", "broken"
NOT_HERE, NOT_ENDED = "not here", "not ended"
TARGET_S, PAGE_S = 420, 600
"""After which a cell is ended: a target is red then, and of a page is told that it was not read to its end."""
TAIL = 40
AHEAD = 5
"""With each commit so many targets further on comes the first one: what --budget leaves is not always the same."""
WIDTH = 200
"""Of the table, wherever it is printed: a log of CI has no terminal, and would lose columns."""
CODE = (
    "specs",
    "reference_impl",
    "conformance",
    "chaos",
    "spark_checkers",
    "drivers",
    "tests/docs",
)
"""What a cell depends on, beside README.md."""
ONE = "--seed 1 --examples 1 --floor 0"
SIMULATED = "--seed 1 --examples 6 --floor 0"
"""Without a broker an example takes no time worth naming, and six put at stake what one does not."""
_TARGET = re.compile(r"--(?:inorder-)?target (\S+)")


@dataclass(frozen=True, slots=True)
class Promise:
    """How a command with this target ends. options: what is written behind it.

    at_stake: families of clauses of each of which one has to be at stake; refuted: the clause that has to be.
    """

    code: int = EXIT_UPHELD
    options: str = ONE
    at_stake: Sequence[str] = ("ORD", "SND")
    refuted: str | None = None


REAL = Promise()
BUG = Promise(EXIT_REFUTED, SIMULATED, refuted="LSE-2")
PROMISED: Mapping[str, Promise] = {
    "reference": Promise(options=SIMULATED, at_stake=("ORD", "SND", "LSE", "CMT", "RTY")),
    "reference:sync": Promise(options=SIMULATED, at_stake=("ORD", "SND", "LSE", "CMT", "RTY")),
    "mutant:NAME": BUG,
    "mutant:unlock-while-listener-runs": BUG,
    # On sockets the listeners do not overlap in each run; the lease is given back too early in all.
    "mutant+tcp:NAME": Promise(EXIT_REFUTED, SIMULATED, refuted="LSE-15"),
    "reference+tcp:sync": REAL,
    "rocketmq-local:5.4.0": REAL,
    "kafka-local:4.3.1": REAL,
    "nats-local:2.15.2": REAL,
    "redis-local:7.0.15": REAL,
    "rabbitmq-local:3.10.8": REAL,
    "sqs-local:1.6.11": REAL,
    "reference+java:5.4.0": REAL,
    "rocketmq-local:5.4.0+java:4.9.8": REAL,
    "rocketmq-local:5.4.0+go:2.1.2": REAL,
    "rocketmq-local:5.4.0+grpc:5.1.2": REAL,
    "rocketmq:HOST:PORT": REAL,
}
"""README's targets, as it writes them. One that is not here is not in README (`test_promises.py`)."""


def target_of(command: Command) -> str | None:
    """The target as the page writes it; None of a command that names none."""
    found = _TARGET.search(command.text)
    return found[1] if found else None


def readme_targets() -> list[Command]:
    """The commands of README that name a target; of those that type the same, the first."""
    first: dict[str, Command] = {}
    for command in every_command():
        if command.page == "README.md" and target_of(command) is not None:
            first.setdefault(words_of(command), command)
    return list(first.values())


def page_names() -> list[str]:
    return [
        named(page)
        for page in read_pages()
        if any(isinstance(each, Command) for each in steps(page))
    ]


def words_of(command: Command) -> str:
    """What is typed: the command with what its placeholders stand for, quickly, with its one seed."""
    target = target_of(command)
    assert target is not None
    words = how.replaced(how.replaced(command.text, how.STANDS_FOR), how.SHORTER)
    words = re.sub(r" --out \S+| --seed \d+", "", words)
    if words.startswith("inorder conform"):
        return f"{words} {PROMISED[target].options} --out run"
    return f"{words} --seed 1 --out run" if words.startswith("inorder chaos") else words


def all_cells() -> Iterator[grid.Cell]:
    """Those of README, then the pages in their order."""
    code = grid.code_key(*CODE)
    for command in readme_targets():
        key = {"words": words_of(command), "target": target_of(command), "limit_s": TARGET_S}
        yield grid.Cell("promises", command.text, {**key, **code})
    for page in page_names():
        text = code_digest(page)
        key = {"page": page, "text": text, "limit_s": PAGE_S}
        yield grid.Cell("promises", f"page {page}", {**key, **code})


def chosen(names: Sequence[str], turn: int) -> list[grid.Cell]:
    """What a run makes; UsageError for a name that no cell begins with."""
    cells = list(all_cells())
    for name in names:
        if not any(cell.name.startswith(name) for cell in cells):
            told = "; ".join(cell.name for cell in cells)
            raise UsageError(f"no promise begins with {name!r}; there are: {told}")
    if names:
        return [cell for cell in cells if cell.name.startswith(tuple(names))]
    targets = [cell for cell in cells if "page" not in cell.key]
    first = turn * AHEAD % len(targets)
    pages = [cell for cell in cells if "page" in cell.key][turn % TURNS :: TURNS]
    return [*targets[first:], *targets[:first], *pages]


def keep(cell: grid.Cell, root: Path) -> dict[str, Any]:
    """Make a cell, a second time where it is red; {"verdict", "why", "logs"}."""
    exit_on_sigterm()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # As a worker of a grid: what it starts would ignore Ctrl-C as well, and could not be ended by it.
        signal.signal(signal.SIGINT, lambda number, frame: None)
    logs: list[str] = []
    reasons: list[str] = []
    for attempt in (1, 2):
        folder = root / cell.stem / str(attempt)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        verdict, why, printed = tried(cell, folder)
        log = folder.with_suffix(".log")
        log.write_text(printed, encoding="utf-8")
        logs.append(str(log))
        reasons.append(why)
        if verdict != BROKEN:
            verdict = verdict if attempt == 1 else UNSTEADY
            break
    return {"verdict": verdict, "why": " | then: ".join(filter(None, reasons)), "logs": logs}


def tried(cell: grid.Cell, folder: Path) -> tuple[str, str, str]:
    """Verdict, why it is not kept, and what was printed."""
    key = cell.key
    if "page" in key:
        # The node's id as an argument: a reader's own patience is longer than the limit of the cell.
        node = f"{ROOT}/tests/docs/test_commands.py::test_all_commands_of_a_page[{key['page']}]"
        words = f"python -m pytest -q -p no:cacheprovider --rootdir {ROOT} '{node}'"
        code, printed = typed(words, folder, patience_s=key["limit_s"])
        skipped = code == 0 and re.search(r"^=+ 1 skipped|^1 skipped", printed, re.M)
        verdict = NOT_HERE if skipped else KEPT if code == 0 else BROKEN
        if code == ENDED:
            verdict = NOT_ENDED
        return verdict, "" if code == 0 else ended(code), printed
    things = Things(folder)
    with things.rest:
        code, printed = typed(things.fill(key["words"]), folder, patience_s=key["limit_s"])
    if code == EXIT_UNAVAILABLE:
        return (BROKEN if in_ci() else NOT_HERE), ended(code), printed
    why = judged(key["target"], key["words"], code, folder / "run" / "verdict.json")
    return (BROKEN if why else KEPT), why, printed


def judged(target: str, words: str, code: int, kept: Path) -> str:
    """Why the promise of a target is not kept; empty where it is."""
    promise = PROMISED[target]
    # What is cut to some seconds of its ten minutes may have had no occasion.
    may_be = {promise.code, *(() if words.startswith("inorder conform") else (EXIT_INCONCLUSIVE,))}
    if code not in may_be:
        return ended(code) + f", not with {' or '.join(map(str, sorted(may_be)))}"
    if not words.startswith("inorder conform"):
        return ""
    clauses = json.loads(kept.read_text(encoding="utf-8"))["clauses"]
    if promise.refuted is not None:
        found = [each["id"] for each in clauses if each["verdict"] == "refuted"]
        return "" if promise.refuted in found else f"{promise.refuted} is not refuted, but {found}"
    staked = {each["id"].partition("-")[0] for each in clauses if each["opportunities"]}
    idle = [family for family in promise.at_stake if family not in staked]
    return f"no clause of {', '.join(idle)} was at stake" if idle else ""


def ended(code: int) -> str:
    return "it was ended at its limit" if code == ENDED else f"it ended with {code}"


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def show(done: Sequence[grid.Done], say: Console) -> None:
    """The table, then the logs' ends of what is not steady."""
    head = ["promise", "seconds", "verdict", "why"]
    rows = [
        [each.cell.name, f"{each.seconds:.0f}", each.value["verdict"], each.value["why"]]
        for each in done
    ]
    say.print(
        tables.terminal(
            head, rows, right=["seconds"], bad=lambda n: rows[n][2] in (BROKEN, UNSTEADY)
        )
    )
    for each in done:
        if each.value["verdict"] in (BROKEN, UNSTEADY):
            for log in each.value["logs"]:
                text = Path(log).read_text(encoding="utf-8").splitlines()[-TAIL:]
                say.print(f"--- {each.cell.name}: {log} ends with", markup=False)
                say.out("\n".join(text), highlight=False)


@click.command(help=__doc__)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--turn",
    type=click.IntRange(0),
    metavar="N",
    help="Which pages; the number of the commit if not given.",
)
@grid_options(out="Where to keep the logs: runs/promises-SEED if not given.", workers=2)
@in_a_sentence
def main(names: Sequence[str], turn: int | None, how: GridOptions) -> None:
    """See the module."""
    exit_on_sigterm()
    root = how.folder("promises").absolute()
    cells = chosen(names, turn_of_the_commit() if turn is None else turn)
    made: list[grid.Done] = []
    # Only what is kept stands: what was red is tried again, and so is what was not here.
    for done in how.make(
        cells,
        functools.partial(keep, root=root),
        root / ".cells",
        stands=lambda cell, value: value["verdict"] == KEPT,
    ):
        made.append(done)
        if done.error is not None:
            raise done.error
        tell(f"{done.cell.name}: {done.value['verdict']} ({done.seconds:.0f} s)")
    show(made, Console(width=WIDTH))
    count = [each.value["verdict"] for each in made]
    broken = count.count(BROKEN)
    close(made, len(cells))
    left = [cell for cell in cells if cell.name not in {each.cell.name for each in made}]
    for cell in left:
        tell(f"{cell.name}: not tried")
    # A page comes again with its turn; a target is promised at every landing.
    code = EXIT_INCONCLUSIVE if any("page" not in cell.key for cell in left) else EXIT_UPHELD
    code = EXIT_REFUTED if broken else code
    kept = count.count(KEPT) + count.count(UNSTEADY)
    click.echo(f"promises: {kept} kept, {broken} broken, {len(cells) - kept - broken} not tried")
    sys.exit(code)


if __name__ == "__main__":
    main()
