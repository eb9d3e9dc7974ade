"""`make track-record`: reproduces the entries (all, or those named) and refreshes the table.

    python -m inorder.evidence.track_record [ID...] [--times N] [--out DIR] [--page FILE]

An entry whose parts are missing is skipped with the reason, and its row stays; so does that of one that could not be
played to its end, which counts as wrong. The witness of the first red run is
kept beside the page, in `track-record/ID`. Exit code: 0 when everything that
ran came out red and green as it should, else 1; 64 for wrong usage.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import click

from conformance.parts.places import CHECKOUT
from conformance.parts.processes import exit_on_sigterm
from inorder.evidence.track_record.entries import ENTRIES, Entry, Say, entry
from inorder.evidence.track_record.table import Reproduction, refresh
from inorder.evidence.track_record.witness import keep_witness
from specs.errors import EXIT_REFUTED, EXIT_UPHELD, EXIT_USAGE, InorderError, UsageError
from specs.history.clock import host_clock

PAGE = CHECKOUT / "docs" / "track-record.md"
TIMES = 3


def reproduce(chosen: Entry, times: int, folder: Path, say: Say) -> Reproduction:
    """Run an entry's two sides, `times` seeds each; the runs lie in `folder`/ID/red|green/SEED."""
    seeds = range(1, times + 1)
    sides = [
        trial(target, chosen.profile, chosen.judged_by, seeds, folder / chosen.id / side, say)
        for side, target, trial in (
            ("red", chosen.red, chosen.trial),
            ("green", chosen.green, chosen.green_trial or chosen.trial),
        )
    ]
    today = datetime.fromtimestamp(host_clock().wall_us() / 1e6, UTC).date().isoformat()
    return Reproduction(chosen, sides[0], sides[1], today)


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
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Keep the runs: DIR/ID/red|green/SEED.",
)
@click.option(
    "--page",
    type=click.Path(path_type=Path),
    default=PAGE,
    help="The page whose table is refreshed.",
)
def main(names: tuple[str, ...], times: int, out: Path | None, page: Path) -> None:
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
            if out is not None and (out / each.id).exists():
                raise UsageError(
                    f"{out / each.id} is there already; runs get a folder of their own"
                )
    except (InorderError, OSError) as error:
        say(str(error))
        sys.exit(EXIT_USAGE)
    with ExitStack() as stack:
        if out is None:
            out = Path(
                stack.enter_context(tempfile.TemporaryDirectory(prefix="inorder-track-record-"))
            )
        for each in chosen:
            say(f"{each.id}: {each.bug}")
            try:
                done = reproduce(each, times, out, say)
            except UsageError as error:  # a part that this machine lacks
                say(f"{each.id} is skipped: {error}")
                continue
            except (
                InorderError
            ) as error:  # a machine that is too busy, or a driver that is wrong: no verdict
                wrong.append(f"{each.id} could not be played: {error}")
                continue
            click.echo(done.line())
            if done.red_times:
                number = next(
                    n for n, one in enumerate(done.red) if one.explanation and one.violations
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
                refresh(text, [one.id for one in ENTRIES], {each.id: done.line()}), encoding="utf-8"
            )
    for sentence in wrong:
        say(sentence)
    sys.exit(EXIT_REFUTED if wrong else EXIT_UPHELD)


if __name__ == "__main__":
    main()
