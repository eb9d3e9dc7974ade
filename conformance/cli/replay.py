"""`inorder replay RUN|PLAN|CASE|PROGRAM`: do again what a run or a machine did, or what a case says."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import click

from conformance.cases.folder import find_case, is_case
from conformance.cases.play import play
from conformance.cases.report import as_json, as_text
from conformance.cli import completion, seam
from conformance.cli.options import (
    JSON,
    OutFolder,
    Reporting,
    format_option,
    print_json,
    profile_option,
)
from conformance.cli.people import put, tell, watching
from conformance.replay import REFERENCE, mutant_of
from conformance.reports.saving import check
from conformance.reports.schemas import CASE_SCHEMA
from conformance.targets.options import COMMANDS
from specs.errors import EXIT_REFUTED, EXIT_UPHELD, UsageError
from specs.secrets import refuse_in_target

REPLAY_GROUP = "inorder.replays"
"""Entry points that can run further kinds of files again, named by what such a file is.

Each is called with the path. It answers None for a file that is not of its kind, else a function of the target (None:
as the file says) and the format that runs it, prints what came of it and returns the exit code.
"""
Replayer = Callable[[str | None, str], int]


@click.command(name="replay")
@click.argument(
    "run",
    metavar="RUN|PLAN|CASE|PROGRAM",
    type=click.Path(path_type=Path),
    shell_complete=completion.replayed,
)
@profile_option("What is promised. Default: the profile of the run.")
@click.option(
    "--target",
    metavar="NAME",
    shell_complete=completion.target,
    help="Do it on `reference` or on `mutant:NAME`. Default: as the run did.",
)
@click.option(
    "--out",
    type=OutFolder(),
    metavar="DIR",
    help="Keep the run and its verdict here.",
)
@format_option()
def command(run: Path, profile: str | None, target: str | None, out: Path | None, form: str) -> int:
    """Run the plan of RUN (a run's folder, or a plan's file) again and judge it; play a CASE; or run a PROGRAM.

    Exits like conform; for a case 0 when all answers are the expected ones, else 1; for a program 0 when system and
    model agree, else 1.
    """
    if target is not None:
        refuse_in_target(target, COMMANDS)
    further = _further(run)
    if further is not None:
        kind, again = further
        if profile is not None or out is not None:
            raise UsageError(f"a {kind} is compared with its model; leave --profile and --out out")
        return again(target, form)
    if is_case(run) and not run.is_dir():
        if profile is not None or out is not None:
            raise UsageError(
                "a case is compared with the answers in its file; leave --profile and --out out"
            )
        return _play(run, target or REFERENCE, form)
    tell(f"replaying {run}")
    with watching() as watch:
        verdict = seam.replay(run, profile=profile, out=out, watch=watch, target=target)
    Reporting(form).show(verdict)
    return verdict.exit_code


def _further(path: Path) -> tuple[str, Replayer] | None:
    """Of which further kind a file is, and how to run it again. None: of none of them."""
    for entry in entry_points(group=REPLAY_GROUP):
        again: Replayer | None = entry.load()(path)
        if again is not None:
            return entry.name, again
    return None


def _play(path: Path, target: str, form: str) -> int:
    case = find_case(path)
    tell(f"playing {case.path} on {target}")
    played = play(case, mutant_of(target))
    if form == JSON:
        data = as_json(played, target)
        check(data, CASE_SCHEMA)
        print_json(data)
    else:
        put(as_text(played))
    return EXIT_REFUTED if played.differences else EXIT_UPHELD
