"""`inorder replay RUN|PLAN|CASE|PROGRAM`: do again what a run or a machine did, or what a case says."""

from __future__ import annotations

from pathlib import Path

import click

from conformance.cases.folder import find_case, is_case
from conformance.cases.play import play
from conformance.cases.report import as_json, as_text
from conformance.cli import seam
from conformance.cli.options import JSON, format_option, print_json, print_verdict, profile_option
from conformance.cli.people import tell, watching
from conformance.machines.every import is_program, read_program, run_program
from conformance.replay import REFERENCE, mutant_of
from conformance.reports.saving import check
from conformance.reports.schemas import CASE_SCHEMA, PROGRAM_SCHEMA
from specs.errors import EXIT_REFUTED, EXIT_UPHELD, UsageError


@click.command(name="replay")
@click.argument("run", metavar="RUN|PLAN|CASE|PROGRAM", type=click.Path(path_type=Path))
@profile_option("What is promised. Default: the profile of the run.")
@click.option(
    "--target",
    metavar="NAME",
    help="Do it on `reference` or on `mutant:NAME`. Default: as the run did.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Keep the run and its verdict here.",
)
@format_option()
def command(run: Path, profile: str | None, target: str | None, out: Path | None, form: str) -> int:
    """Run the plan of RUN (a run's folder, or a plan's file) again and judge it; play a CASE; or run a PROGRAM.

    Exits like conform; for a case 0 when all answers are the expected ones, else 1; for a program 0 when system and
    model agree, else 1.
    """
    if is_program(run):
        if profile is not None or out is not None:
            raise UsageError("a program is compared with its model; leave --profile and --out out")
        return _run_program(run, target, form)
    if is_case(run) and not run.is_dir():
        if profile is not None or out is not None:
            raise UsageError(
                "a case is compared with the answers in its file; leave --profile and --out out"
            )
        return _play(run, target or REFERENCE, form)
    tell(f"replaying {run}")
    with watching() as watch:
        verdict = seam.replay(run, profile=profile, out=out, watch=watch, target=target)
    print_verdict(verdict, form)
    return verdict.exit_code


def _run_program(path: Path, target: str | None, form: str) -> int:
    program = read_program(path)
    mutant = mutant_of(target) if target is not None else None
    name = mutant.name if mutant is not None else program.mutant if target is None else None
    tell(f"running a program of the machine {program.machine} on {name or REFERENCE}")
    wrong = run_program(program, name)
    if form == JSON:
        data = {**program.to_json(), "mutant": name, "disagreement": wrong}
        check(data, PROGRAM_SCHEMA)
        print_json(data)
    else:
        click.echo(f"{program}\n\n{wrong or 'system and model agree'}")
    return EXIT_UPHELD if wrong is None else EXIT_REFUTED


def _play(path: Path, target: str, form: str) -> int:
    case = find_case(path)
    tell(f"playing {case.path} on {target}")
    played = play(case, mutant_of(target))
    if form == JSON:
        data = as_json(played, target)
        check(data, CASE_SCHEMA)
        print_json(data)
    else:
        click.echo(as_text(played))
    return EXIT_REFUTED if played.differences else EXIT_UPHELD
