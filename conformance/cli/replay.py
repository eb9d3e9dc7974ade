"""`inorder replay RUN|PLAN`: do again what a run did."""

from __future__ import annotations

from pathlib import Path

import click

from conformance.cli import seam
from conformance.cli.options import format_option, print_verdict, profile_option
from conformance.cli.people import tell, watching


@click.command(name="replay")
@click.argument("run", type=click.Path(path_type=Path))
@profile_option("What is promised. Default: the profile of the run.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Keep the run and its verdict here.")
@format_option()
def command(run: Path, profile: str | None, out: Path | None, form: str) -> int:
    """Run the plan of RUN (a run's folder, or a plan's file) again and judge it.

    Exits like conform.
    """
    tell(f"replaying {run}")
    with watching() as watch:
        verdict = seam.replay(run, profile=profile, out=out, watch=watch)
    print_verdict(verdict, form)
    return verdict.exit_code
