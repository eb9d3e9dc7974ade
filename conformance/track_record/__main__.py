"""`make track-record`: reproduces the entries (all, or those named) and refreshes the table.

    python -m conformance.track_record [ID...] [--times N] [--page FILE]

An entry whose parts are missing is skipped with the reason, and its row stays. Exit code: 0 when everything that
ran came out red and green as it should, else 1; 64 for wrong usage.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from conformance.parts.places import CHECKOUT
from conformance.parts.processes import exit_on_sigterm
from conformance.track_record.entries import ENTRIES, Entry, Say, entry
from conformance.track_record.table import Reproduction, refresh
from specs.errors import EXIT_REFUTED, EXIT_UPHELD, EXIT_USAGE, InorderError, UsageError
from specs.history.clock import host_clock

PAGE = CHECKOUT / "docs" / "track-record.md"
TIMES = 3


def reproduce(chosen: Entry, times: int, folder: Path, say: Say) -> Reproduction:
    """Run an entry's two sides, `times` seeds each."""
    seeds = range(1, times + 1)
    sides = [
        chosen.trial(target, chosen.profile, chosen.judged_by, seeds, folder / chosen.id / side, say)
        for side, target in (("red", chosen.red), ("green", chosen.green))
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
@click.option("--times", type=click.IntRange(1), default=TIMES, show_default=True, help="Seeds for each side.")
@click.option("--page", type=click.Path(path_type=Path), default=PAGE, help="The page whose table is refreshed.")
def main(names: tuple[str, ...], times: int, page: Path) -> None:
    def say(line: str) -> None:
        click.echo(line, err=True)

    exit_on_sigterm()
    wrong: list[str] = []
    try:
        chosen = _chosen(names)
        refresh(page.read_text(encoding="utf-8"), (), {})  # before anything slow: is there a table at all?
    except (InorderError, OSError) as error:
        say(str(error))
        sys.exit(EXIT_USAGE)
    with tempfile.TemporaryDirectory(prefix="inorder-track-record-") as scratch:
        for each in chosen:
            say(f"{each.id}: {each.bug}")
            try:
                done = reproduce(each, times, Path(scratch), say)
            except UsageError as error:  # a part that this machine lacks
                say(f"{each.id} is skipped: {error}")
                continue
            click.echo(done.line())
            if done.red_times:
                example = next(one for one in done.red if one.explanation and one.violations)
                say(f"{each.judged_by}: {example.explanation} ({len(example.witness)} events of witness)")
            if not done.reproduced:
                wrong.append(done.wrong())
                continue
            # Read at the last moment, and a row at a time: what was reproduced is kept whatever follows.
            text = page.read_text(encoding="utf-8")
            page.write_text(refresh(text, [one.id for one in ENTRIES], {each.id: done.line()}), encoding="utf-8")
    for sentence in wrong:
        say(sentence)
    sys.exit(EXIT_REFUTED if wrong else EXIT_UPHELD)


if __name__ == "__main__":
    main()
