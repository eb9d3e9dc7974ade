"""`make everywhere`: every profile and every case, on every body of the reference; refreshes `docs/everywhere.md`.

    python -m inorder.evidence.profile_grid [TARGET...] [--only profiles|cases] [--profile P]... [--seed N]
                                            [--examples N] [--rounds N] [--out DIR] [--budget TIME] [--fresh]
                                            [--page FILE]

The targets are reference, reference:sync, reference:async, reference+tcp, reference+tcp:sync and reference+tcp:async;
without a name all of them. On the last two the broker is a process that is killed with SIGKILL and started again on
its store while the clients are at work. Cases are played simulated and on sockets, and once more in both with every
broker killed before the last question; they have no target and no profile. Prints a line for each profile and target.
In --out lies a folder for each run, everywhere.json, everywhere.md with every row, and everywhere.svg; with the same
--out a run that was ended goes on where it was, and what the same code has judged is not run again. Exit code: 0 when
everything that ran holds, 1 when something is refuted, 2 when something claimed was hardly at stake or --budget left
some; 64 for wrong usage, 70 when a run failed.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import click

from conformance.parts.places import CHECKOUT
from conformance.parts.processes import exit_on_sigterm
from conformance.wire.work import Way
from inorder.evidence import grid, tables
from inorder.evidence.interop.__main__ import today
from inorder.evidence.options import GridOptions, close, grid_options, in_a_sentence
from inorder.evidence.profile_grid.cases import BODIES, CasesKept, keep_cases
from inorder.evidence.profile_grid.page import picture, whole, with_cases, with_summary
from inorder.evidence.profile_grid.profiles import TARGETS, Kept, from_json, keep, ways
from specs.errors import EXIT_SUITE, EXIT_UPHELD, EXIT_USAGE, InorderError
from specs.profiles import Profile
from specs.scratch import Scratch
from specs.verdicts.verdict import EXIT_CODES, ClauseVerdict, RunVerdict

PAGE = CHECKOUT / "docs" / "everywhere.md"
CELL_FILES = ".cells"
CODE = ("specs", "reference_impl", "conformance", "inorder/evidence/profile_grid")
"""What a cell depends on."""


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
    "--page",
    type=click.Path(path_type=Path),
    default=PAGE,
    help="The page whose tables are refreshed.",
)
@grid_options(out="Where to keep the runs; nowhere if not given.")
@in_a_sentence
def main(
    targets: tuple[str, ...],
    only: str | None,
    names: tuple[str, ...],
    examples: int | None,
    rounds: int | None,
    page: Path,
    how: GridOptions,
) -> None:
    out = how.out
    exit_on_sigterm()
    try:
        chosen = ways(names)
        page.read_text(encoding="utf-8")  # before anything slow
    except (InorderError, OSError) as error:
        say(str(error))
        sys.exit(EXIT_USAGE)
    bodies = {
        cases_cell(body): body
        for body in (BODIES if only != "profiles" and not (targets or names) else ())
    }
    options = {"seed": how.seed, "examples": examples, "rounds": rounds}
    runs = {
        profiles_cell(target, way, each, options): (target, way, each)
        for target in ((targets or TARGETS) if only != "cases" else ())
        for way, each in chosen.items()
    }
    found: list[Kept] = []
    played: list[CasesKept] = []
    made: list[grid.Done] = []
    failed = False
    with ExitStack() as stack:
        root = out or Path(stack.enter_context(Scratch("everywhere")))

        def make(cell: grid.Cell) -> object:
            if cell in bodies:
                return keep_cases(bodies[cell], date=today(), say=say).to_json()
            target, way, each = runs[cell]
            folder = root / folder_of(target, way)
            if folder.exists():  # of a run that was ended, or of other code
                shutil.rmtree(folder)
            kept = keep(target, each, folder=folder, date=today(), say=say, **options)  # type: ignore[arg-type]
            return [one.to_json() for one in kept]

        for done in how.make(
            [*bodies, *runs],
            make,
            None if out is None else out / CELL_FILES,
            stands=lambda cell, _: cell in bodies or (root / folder_of(*runs[cell][:2])).is_dir(),
        ):
            made.append(done)
            if done.error is not None:
                say(f"{done.cell.name}: {done.error}")
                failed = True
                continue
            # Read at the last moment: what was run is kept whatever follows.
            text = page.read_text(encoding="utf-8")
            if done.cell in bodies:
                played.append(CasesKept(**done.value))
                tell_of_cases(played[-1])
                text = with_cases(text, played[-1])
            else:
                for kept in map(from_json, done.value):
                    found.append(kept)
                    click.echo(said(kept))
                    for clause in kept.clauses[ClauseVerdict.REFUTED]:
                        say(f"  {clause}: {kept.reasons[clause]}")
                text = with_summary(text, found)
            page.write_text(text, encoding="utf-8")
        if out is not None:
            data = {
                "profiles": [kept.to_json() for kept in found],
                "cases": [kept.to_json() for kept in played],
            }
            (out / "everywhere.json").write_text(
                json.dumps(data, indent=2) + "\n", encoding="utf-8"
            )
            (out / "everywhere.md").write_text(whole(found, played), encoding="utf-8")
            if found:
                tables.draw(out / "everywhere.svg", picture(found))
    code = close(made, len(bodies) + len(runs))
    verdicts = {kept.verdict for kept in found} | {
        RunVerdict.REFUTED for cases in played if cases.differs
    }
    if code:
        verdicts.add(RunVerdict.INCONCLUSIVE)
    sys.exit(EXIT_SUITE if failed else worst(verdicts))


def cases_cell(body: str) -> grid.Cell:
    """All cases on one body, and all that the answers depend on."""
    return grid.Cell("profile grid", f"cases on {body}", {"body": body, **grid.code_key(*CODE)})


def profiles_cell(
    target: str, way: Way, chosen: Sequence[Profile], options: Mapping[str, int | None]
) -> grid.Cell:
    """One run, judged by the profiles of a way, and all that the verdicts depend on."""
    key = {"target": target, "profiles": [each.name for each in chosen], **options}
    return grid.Cell("profile grid", f"{target}, {way}", {**key, **grid.code_key(*CODE)})


def folder_of(target: str, way: Way) -> str:
    return f"{target}-{way}".replace(":", "-").replace(", ", "-")


def tell_of_cases(cases: CasesKept) -> None:
    missing = sum(map(len, cases.not_applicable.values()))
    told = f"{len(cases.held)} held, {len(cases.differs)} did not, {missing} can't be played there"
    click.echo(f"{cases.count} cases on {cases.target}: {told} ({cases.seconds} s)")


def worst(verdicts: set[RunVerdict]) -> int:
    """The exit code of all runs together."""
    for verdict in (RunVerdict.INADMISSIBLE, RunVerdict.REFUTED, RunVerdict.INCONCLUSIVE):
        if verdict in verdicts:
            return EXIT_CODES[verdict]
    return EXIT_UPHELD


if __name__ == "__main__":
    main()
