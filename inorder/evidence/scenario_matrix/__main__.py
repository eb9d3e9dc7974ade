"""Does each scenario show the bug that it names? `python -m inorder.evidence.scenario_matrix`

In virtual time there are three runs for each bug that a scenario names, and for each of so many seeds: the cluster with
the bug, which the clause that the bug names must refute; the correct cluster, which must be upheld; and the cluster
with the bug while the faults befall somebody else (`chaos.bystanders`), which must not be refuted by that clause: a bug
that shows without the fault says nothing about the scenario. A scenario that names no bug has the second run alone.
With --all each scenario also meets the bugs that the others name, with the first seed.

The correct cluster has twice as many seeds, and as many again where its broker answers after the sync, unless the
scenario says itself when the broker syncs. Of these runs stakes.md tells how many messages they had, and how often the
scenario's clauses were at stake while something was broken.

With --sockets the first of the three is made on real sockets, in real time, wherever the scenario's faults can be done
there: our own cluster with the bug, each consumer a process. A run that did not reach what it must is made again when
the same command goes on.

The cells are kept in the folder, beside them matrix.json, matrix.md, matrix.svg and stakes.md; with --docs the page
docs/chaos-matrix.md tells of them too. Exit code: 1 where a bug was not refuted, the correct cluster was, or a bug
showed in more than a fifth of the runs without effect; 70 when a run failed; 2 when --budget left some; else 0.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from chaos.scenario import load, names
from conformance.cli.options import print_human
from conformance.cli.people import tell
from conformance.parts.processes import exit_on_sigterm
from inorder.evidence import grid, tables
from inorder.evidence.options import GridOptions, close, grid_options, in_a_sentence
from inorder.evidence.scenario_matrix import pages, simulated, sockets
from inorder.evidence.scenario_matrix.lines import HEAD, Line
from specs.errors import EXIT_SUITE, UsageError

SEEDS = 10


@click.command(help=__doc__)
@click.option(
    "--scenario",
    "wanted",
    multiple=True,
    type=click.Choice(names()),
    metavar="S",
    help="Only this one; may be repeated.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1),
    default=SEEDS,
    show_default=True,
    help="How many, from --seed on.",
)
@click.option("--all", "every", is_flag=True, help="Each scenario on the bugs of the others too.")
@click.option("--sockets", "on_sockets", is_flag=True, help="On real sockets, the bugs alone.")
@click.option(
    "--docs",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="Where the page is that tells of these runs too.",
)
@grid_options(out="Where to keep it: runs/scenario-matrix-SEED if not given.", workers=1)
@in_a_sentence
def main(
    wanted: tuple[str, ...],
    seeds: int,
    docs: Path | None,
    how: GridOptions,
    *,
    every: bool,
    on_sockets: bool,
) -> None:
    """See the module."""
    exit_on_sigterm()
    if every and on_sockets:
        raise UsageError("--all is for virtual time; leave --sockets out")
    root, scenarios = how.folder("scenario-matrix"), wanted or names()
    tried = range(how.seed, how.seed + seeds)
    cells = list(
        sockets.cells_of(scenarios, tried)
        if on_sockets
        else simulated.cells_of(scenarios, tried, every=every)
    )
    work = partial(sockets.make, root) if on_sockets else simulated.make
    more = {"stands": sockets.stands} if on_sockets else {}
    made: list[grid.Done] = []
    for done in how.make(cells, work, root / "cells", **more):
        made.append(done)
        if done.error is not None:
            tell(f"{done.cell.name}: {done.error}")
    kept = [done for done in made if done.error is None]
    found = lines_of(scenarios, kept, on_sockets=on_sockets)
    print_human(
        tables.terminal(HEAD, [line.row for line in found], bad=lambda n: found[n].is_wrong)
    )
    pages.write(root, found, kept)
    if docs is not None:
        pages.refresh(docs, found, kept)
    code = close(made, len(cells), wrong=any(line.is_wrong for line in found))
    sys.exit(EXIT_SUITE if len(kept) < len(made) else code)


def lines_of(
    scenarios: Sequence[str], kept: Sequence[grid.Done], *, on_sockets: bool
) -> list[Line]:
    """A line for each bug of each scenario; of those that sockets can't have with the reason."""
    why = sockets.left_out(scenarios) if on_sockets else {}
    lines = [Line.of(name, bug, kept) for name in scenarios for bug in load(name).shows or ("",)]
    return [replace(line, left_out=why.get(line.place, "")) for line in lines]


if __name__ == "__main__":
    main()
