"""`make everywhere`: every profile and every case, on every body of the reference; refreshes `docs/everywhere.md`.

    python -m inorder.evidence.profile_grid [TARGET...] [--only profiles|cases] [--profile P]... [--seed N]
                                            [--examples N] [--rounds N] [--out DIR] [--page FILE]

The targets are reference, reference:sync, reference:async, reference+tcp, reference+tcp:sync and reference+tcp:async;
without a name all of them. On the last two the broker is a process that is killed with SIGKILL and started again on
its store while the clients are at work. Cases are played simulated and on sockets, and once more in both with every
broker killed before the last question; they have no target and no profile. Prints a line for each profile and target.
In --out lies a folder for each run, and everywhere.json. Exit code: 0 when everything that ran holds, 1 when something
is refuted, 2 when something claimed was hardly at stake; 64 for wrong usage, 70 when a run failed.
"""

from __future__ import annotations

import json
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import click

from conformance.parts.places import CHECKOUT
from conformance.parts.processes import exit_on_sigterm
from inorder.evidence.interop.__main__ import today
from inorder.evidence.profile_grid.cases import BODIES, CasesKept, keep_cases
from inorder.evidence.profile_grid.page import with_cases, with_profile
from inorder.evidence.profile_grid.profiles import TARGETS, Kept, keep, ways
from specs.errors import EXIT_SUITE, EXIT_UPHELD, EXIT_USAGE, InorderError
from specs.verdicts.verdict import EXIT_CODES, ClauseVerdict, RunVerdict

PAGE = CHECKOUT / "docs" / "everywhere.md"


def said(kept: Kept) -> str:
    """A profile on a target, in a line."""
    counted = ", ".join(
        f"{count} {each.value.replace('_', ' ')}" for each, count in kept.counts.items() if count
    )
    return f"{kept.verdict.value.upper():12} {kept.profile} on {kept.target}: {counted} ({kept.seconds} s)"


def say(line: str) -> None:
    click.echo(line, err=True)


@click.command(help=__doc__)
@click.argument("targets", nargs=-1, metavar="[TARGET]...", type=click.Choice(TARGETS))
@click.option("--only", type=click.Choice(["profiles", "cases"]), help="Leave the other out.")
@click.option(
    "--profile", "names", multiple=True, metavar="P", help="Only this one; may be repeated."
)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
@click.option(
    "--examples",
    type=click.IntRange(1),
    metavar="N",
    help="Generated runs, or examples on the wire.",
)
@click.option(
    "--rounds", type=click.IntRange(0), metavar="N", help="Rounds of clients at work on sockets."
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="Where to keep the runs; nowhere if not given."
)
@click.option(
    "--page",
    type=click.Path(path_type=Path),
    default=PAGE,
    help="The page whose tables are refreshed.",
)
def main(
    targets: tuple[str, ...],
    only: str | None,
    names: tuple[str, ...],
    seed: int,
    examples: int | None,
    rounds: int | None,
    out: Path | None,
    page: Path,
) -> None:
    exit_on_sigterm()
    try:
        chosen = ways(names)
        page.read_text(encoding="utf-8")  # before anything slow
    except (InorderError, OSError) as error:
        say(str(error))
        sys.exit(EXIT_USAGE)
    found: list[Kept] = []
    played: list[CasesKept] = []
    failed = False
    with ExitStack() as stack:
        root = out or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="inorder-everywhere-"))
        )
        for body in BODIES if only != "profiles" and not (targets or names) else ():
            cases = keep_cases(body, date=today(), say=say)
            played.append(cases)
            missing = sum(map(len, cases.not_applicable.values()))
            told = f"{len(cases.held)} held, {len(cases.differs)} did not, {missing} can't be played there"
            click.echo(f"{cases.count} cases on {body}: {told} ({cases.seconds} s)")
            page.write_text(with_cases(page.read_text(encoding="utf-8"), cases), encoding="utf-8")
        for target in (targets or TARGETS) if only != "cases" else ():
            for way, each in chosen.items():
                folder = root / f"{target}-{way}".replace(":", "-").replace(", ", "-")
                options = {"seed": seed, "examples": examples, "rounds": rounds}
                try:
                    for kept in keep(target, each, folder=folder, date=today(), say=say, **options):  # type: ignore[arg-type]
                        found.append(kept)
                        click.echo(said(kept))
                        for clause in kept.clauses[ClauseVerdict.REFUTED]:
                            say(f"  {clause}: {kept.reasons[clause]}")
                        # Read at the last moment: what was run is kept whatever follows.
                        page.write_text(
                            with_profile(page.read_text(encoding="utf-8"), kept), encoding="utf-8"
                        )
                except InorderError as error:
                    say(f"{target}, {way}: {error}")
                    failed = True
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            data = {
                "profiles": [kept.to_json() for kept in found],
                "cases": [kept.to_json() for kept in played],
            }
            (out / "everywhere.json").write_text(
                json.dumps(data, indent=2) + "\n", encoding="utf-8"
            )
    verdicts = {kept.verdict for kept in found} | {
        RunVerdict.REFUTED for cases in played if cases.differs
    }
    sys.exit(EXIT_SUITE if failed else worst(verdicts))


def worst(verdicts: set[RunVerdict]) -> int:
    """The exit code of all runs together."""
    for verdict in (RunVerdict.INADMISSIBLE, RunVerdict.REFUTED, RunVerdict.INCONCLUSIVE):
        if verdict in verdicts:
            return EXIT_CODES[verdict]
    return EXIT_UPHELD


if __name__ == "__main__":
    main()
