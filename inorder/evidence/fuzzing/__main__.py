"""`python -m inorder.evidence.fuzzing`: bad inputs in plenty, and a table of what became of them."""

from __future__ import annotations

import sys

import click

from inorder.evidence.fuzzing.readers import readers
from inorder.evidence.fuzzing.run import fuzz_all, largest_mib
from specs.errors import EXIT_REFUTED, EXIT_UPHELD


@click.command()
@click.option(
    "--inputs", default=100_000, show_default=True, type=click.IntRange(1), help="How many in all."
)
@click.option("--seed", default=1, show_default=True)
def main(inputs: int, seed: int) -> None:
    """Exit 1 when a reader raised, hung or answered nothing."""
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
    sys.exit(EXIT_REFUTED if found else EXIT_UPHELD)


if __name__ == "__main__":
    main()
