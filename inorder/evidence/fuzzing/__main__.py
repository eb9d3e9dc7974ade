"""`python -m inorder.evidence.fuzzing`: bad inputs in plenty, and a table of what became of them."""

from __future__ import annotations

import sys
from collections import Counter

import click

from conformance.cli.people import tell
from inorder.evidence.fuzzing import handed_in
from inorder.evidence.fuzzing.readers import readers
from inorder.evidence.fuzzing.run import fuzz_all, largest_mib
from inorder.evidence.options import GridOptions, close, grid_options, in_a_sentence
from specs.errors import EXIT_REFUTED, EXIT_UPHELD


@click.command()
@click.option(
    "--inputs", default=100_000, show_default=True, type=click.IntRange(1), help="How many in all."
)
@click.option(
    "--handed-in",
    "by_users",
    is_flag=True,
    help="What users hand in, instead of what comes over a connection: all of it is 100,300 samples.",
)
@grid_options(out="Where finished cells of --handed-in are kept: runs/fuzzing-SEED.", workers=1)
@in_a_sentence
def main(inputs: int, by_users: bool, how: GridOptions) -> None:
    """Exit 1 when a reader raised, hung or answered nothing, or a command failed by itself; 2: some are left."""
    sys.exit(_handed_in(how) if by_users else _over_a_connection(inputs, how.seed))


def _over_a_connection(inputs: int, seed: int) -> int:
    before = largest_mib()
    tallies = fuzz_all(readers(), inputs, seed)
    for tally in tallies:
        rate = tally.inputs / max(tally.seconds, 1e-9)
        click.echo(
            f"{tally.reader:14} {tally.inputs:>9,} inputs  {tally.taken:>9,} taken  {rate:>9,.0f}/s  "
            f"{len(tally.found)} found"
        )
    total, seconds = sum(tally.inputs for tally in tallies), sum(tally.seconds for tally in tallies)
    click.echo(
        f"{total:,} inputs in {seconds:.1f} s, {total / max(seconds, 1e-9):,.0f} inputs/s, "
        f"memory {before:.0f} MiB before and at most {largest_mib():.0f} MiB; seed {seed}"
    )
    found = [found for tally in tallies for found in tally.found]
    for each in found:
        click.echo(str(each), err=True)
    return EXIT_REFUTED if found else EXIT_UPHELD


def _handed_in(how: GridOptions) -> int:
    cells = handed_in.cells(handed_in.WHOLE, how.seed)
    made = []
    for done in how.make(cells, handed_in.make, how.folder("fuzzing")):
        made.append(done)
        if done.error is not None:
            raise done.error
        if not done.resumed:
            tell(f"  {len(made)} of {len(cells)}  {done.cell.name}, {done.seconds:.0f} s")
    wrong = False
    for kind in handed_in.WHOLE:
        its = [done for done in made if done.cell.key["kind"] == kind]
        codes = sum((Counter(done.value["codes"]) for done in its), Counter[str]())
        found = [each for done in its for each in done.value["found"]]
        taken = sum(codes[str(code)] for code in handed_in.TAKEN) / max(1, codes.total())
        few = bool(its) and kind != handed_in.PROCESSES and taken < handed_in.LEAST_TAKEN
        wrong = wrong or few or bool(found)
        click.echo(
            f"{kind:14} {codes.total():>7,}  {taken:4.0%} taken  "
            f"exits {', '.join(f'{code}: {codes[code]:,}' for code in sorted(codes, key=int))}; "
            f"at most {max((done.value['slowest'] for done in its), default=0):.1f} s and "
            f"{max((done.value['mib'] for done in its), default=0):,} MiB; {len(found)} found"
        )
        for each in found:
            click.echo(each, err=True)
    return close(made, len(cells), wrong=wrong)


if __name__ == "__main__":
    main()
