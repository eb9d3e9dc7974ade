"""What `smoke`, `conform` and `chaos` say of wrong drivers: 60 of them, each the driver of docs/drivers.md with one
line altered.

    python -m inorder.evidence.wrong_drivers [WORD...] [--command NAME] [--out DIR] [--budget TIME] [--fresh]

A WORD chooses those in whose name it stands. The table lies in the run's folder, `table.md`. Exit code: 0 when each
came to what it must, 1 when one did not (70, a hang, or a mistake that nobody told), 2 when --budget left some.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from functools import partial

import click

from conformance.cli.options import print_human
from conformance.cli.people import tell
from conformance.drivers.guide import DOCUMENT
from conformance.parts.processes import exit_on_sigterm
from inorder.evidence import grid, tables
from inorder.evidence.options import GridOptions, close, grid_options, in_a_sentence
from inorder.evidence.wrong_drivers.cells import (
    COMMANDS,
    WRONG_DRIVERS,
    Told,
    WrongDriver,
    make_cell,
)

CODE = ("specs", "conformance", "chaos", "inorder/evidence/wrong_drivers")
HEAD = ("driver", "command", "came", "exit code", "seconds", "sentence")
CELLS, TABLE = ".cells", "table.md"
SHOWN = 400
"""So much of a sentence stands in the table."""


def cell_of(wrong: WrongDriver, command: str) -> grid.Cell:
    """All that it depends on."""
    driver = hashlib.sha256(DOCUMENT.read_bytes()).hexdigest()[:16]
    key = {"change": wrong.change, "kind": wrong.kind, "command": command, "driver": driver}
    return grid.Cell("wrong drivers", f"{wrong.name}, {command}", {**key, **grid.code_key(*CODE)})


def row_of(wrong: WrongDriver, command: str, told: Told) -> tuple[str, ...]:
    code = "none" if told.code is None else f"{told.code}"
    come = "yes" if told.met else "no"
    return (wrong.name, command, come, code, f"{told.seconds:.1f}", told.sentence[:SHOWN])


@click.command(help=__doc__)
@click.argument("words", nargs=-1, metavar="[WORD]...")
@click.option("--command", "only", type=click.Choice(list(COMMANDS)), help="Only by this one.")
@grid_options(out="Where to keep it: runs/wrong-drivers-1 if not given.", seed=None, workers=1)
@in_a_sentence
def main(words: Sequence[str], only: str | None, how: GridOptions) -> None:
    """See the module."""
    exit_on_sigterm()
    folder = how.folder("wrong-drivers")
    chosen = {
        cell_of(wrong, command): (wrong, command)
        for wrong in WRONG_DRIVERS
        for command in COMMANDS
        if only in (None, command) and all(word in wrong.name for word in words)
    }
    made, rows, bad = list[grid.Done](), list[tuple[str, ...]](), list[str]()
    by_name = {cell.name: which for cell, which in chosen.items()}
    for done in how.make(list(chosen), partial(make_cell, folder), folder / CELLS):
        wrong, command = by_name[done.cell.name]
        told = Told(**done.value)
        made.append(done)
        rows.append(row_of(wrong, command, told))
        if not told.is_right(wrong):
            bad.append(done.cell.name)
        tell(f"{done.cell.name}: {rows[-1][3]} after {rows[-1][4]} s: {rows[-1][5][:120]}")
    text = tables.markdown(HEAD, sorted(rows), right=HEAD[3:5])
    (folder / TABLE).write_text("\n".join(text) + "\n", encoding="utf-8")
    codes = Counter(row[3] for row in rows)
    print_human(", ".join(f"{number} of {code}" for code, number in sorted(codes.items())))
    for name in bad:
        tell(f"not what it must be: {name}")
    raise SystemExit(close(made, len(chosen), wrong=bool(bad)))


if __name__ == "__main__":
    main()
