"""`make track-record`: reproduces the entries (all, or those named) and refreshes the table.

    python -m inorder.evidence.track_record [ID...] [--times N] [--out DIR] [--budget TIME] [--fresh]
                                            [--page FILE]

An entry whose parts are missing is skipped with the reason, and its row stays; so does that of one that could not be
played to its end, which counts as wrong. The witness of the first red run is kept beside the page, in `track-
record/ID`; in --out lies a picture of all, track-record.svg. With the same --out a run that was ended goes on where
it was, and what the same code has reproduced is not run again. Exit code: 0 when everything that ran came out red and
green as it should, else 1; 2 when --budget left some; 64 for wrong usage.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import click

from conformance.parts.places import CHECKOUT
from conformance.parts.processes import exit_on_sigterm
from inorder.evidence import grid, tables
from inorder.evidence.options import GridOptions, close, grid_options, in_a_sentence
from inorder.evidence.track_record.entries import ENTRIES, Entry, Say, entry
from inorder.evidence.track_record.planned import ByPlan, digests_of
from inorder.evidence.track_record.table import Reproduction, picture, refresh
from inorder.evidence.track_record.witness import keep_witness
from specs.errors import (
    EXIT_USAGE,
    InorderError,
    UsageError,
)
from specs.history.clock import host_clock
from specs.scratch import Scratch

PAGE = CHECKOUT / "docs" / "track-record.md"
TIMES = 3
CELL_FILES = ".cells"
PICTURE = "track-record.svg"
CODE = ("specs", "reference_impl", "conformance", "drivers", "inorder/evidence/track_record")
"""What a reproduction depends on."""


def reproduce(chosen: Entry, times: int, folder: Path, say: Say) -> Reproduction:
    """Run an entry's two sides, `times` seeds each; the runs lie in `folder`/ID/red|green/SEED."""
    seeds = range(1, times + 1)
    own = folder / chosen.id
    sides = [
        trial(target, chosen.profile, chosen.judged_by, seeds, own / side, say)
        for side, target, trial in (
            ("red", chosen.red, chosen.trial),
            ("green", chosen.green, chosen.green_trial or chosen.trial),
        )
    ]
    today = datetime.fromtimestamp(host_clock().wall_us() / 1e6, UTC).date().isoformat()
    plans: tuple[tuple[str, ...], tuple[str, ...]] = (), ()
    if isinstance(chosen.trial, ByPlan):
        plans = digests_of(own / "red", seeds), digests_of(own / "green", seeds)
    return Reproduction(chosen, sides[0], sides[1], today, plans)


def _chosen(names: Sequence[str]) -> list[Entry]:
    if not names:
        return list(ENTRIES)
    found = []
    for name in names:
        one = entry(name)
        if one is None:
            known = ", ".join(each.id for each in ENTRIES)
            raise UsageError(f"there is no entry {name!r} in the track record; known are {known}")
        found.append(one)
    return found


@click.command(help=__doc__)
@click.argument("names", nargs=-1, metavar="[ID]...")
@click.option(
    "--times", type=click.IntRange(1), default=TIMES, show_default=True, help="Seeds for each side."
)
@click.option(
    "--page",
    type=click.Path(path_type=Path),
    default=PAGE,
    help="The page whose table is refreshed.",
)
@grid_options(out="Keep the runs: DIR/ID/red|green/SEED.", seed=None)
@in_a_sentence
def main(
    names: tuple[str, ...],
    times: int,
    page: Path,
    how: GridOptions,
) -> None:
    out = how.out

    def say(line: str) -> None:
        click.echo(line, err=True)

    exit_on_sigterm()
    wrong: list[str] = []
    try:
        chosen = _chosen(names)
        refresh(
            page.read_text(encoding="utf-8"), (), {}
        )  # before anything slow: is there a table at all?
        for each in chosen:
            if out is None or grid.is_store(out / CELL_FILES):
                continue
            if (out / each.id).exists():
                raise UsageError(
                    f"{out / each.id} is there already; runs get a folder of their own"
                )
    except (InorderError, OSError) as error:
        say(str(error))
        sys.exit(EXIT_USAGE)
    store = None if out is None else out / CELL_FILES
    with ExitStack() as stack:
        if out is None:
            out = Path(stack.enter_context(Scratch("track-record")))
        root, cells = out, {cell_for(each, times): each for each in chosen}
        made: list[grid.Done] = []
        found: list[Reproduction] = []

        def make(cell: grid.Cell) -> object:
            each = cells[cell]
            say(f"{each.id}: {each.bug}")
            if (root / each.id).exists():  # of a run that was ended, or of other code
                shutil.rmtree(root / each.id)
            return reproduce(each, times, root, say).to_json()

        for one in how.make(
            list(cells),
            make,
            store,
            stands=lambda cell, _: (root / cells[cell].id).is_dir(),
        ):
            made.append(one)
            each = cells[one.cell]
            if isinstance(one.error, UsageError):  # a part that this machine lacks
                say(f"{each.id} is skipped: {one.error}")
                continue
            if one.error is not None:
                # A machine that is too busy, or a driver that is wrong: no verdict.
                wrong.append(f"{each.id} could not be played: {one.error}")
                continue
            done = Reproduction.from_json(each, one.value)
            found.append(done)
            click.echo(done.line())
            if done.red_times:
                number = next(
                    n for n, red in enumerate(done.red) if red.explanation and red.violations
                )
                example = done.red[number]
                say(
                    f"{each.judged_by}: {example.explanation} ({len(example.witness)} events of witness)"
                )
            if not done.reproduced:
                wrong.append(done.wrong())
                continue
            if example.witness:
                keep_witness(
                    example, out / each.id / "red" / f"{number + 1}", page.with_suffix("") / each.id
                )
            # Read at the last moment, and a row at a time: what was reproduced is kept whatever follows.
            text = page.read_text(encoding="utf-8")
            page.write_text(
                refresh(text, [known.id for known in ENTRIES], {each.id: done.line()}),
                encoding="utf-8",
            )
        if store is not None and found:
            tables.draw(root / PICTURE, picture(found))
    for sentence in wrong:
        say(sentence)
    sys.exit(close(made, len(cells), wrong=bool(wrong)))


def cell_for(each: Entry, times: int) -> grid.Cell:
    """An entry, and all that its reproduction depends on; a trial is code."""
    key = {"entry": each.id, "red": each.red, "green": each.green, "times": times}
    return grid.Cell("track record", each.id, {**key, **grid.code_key(*CODE)})


if __name__ == "__main__":
    main()
