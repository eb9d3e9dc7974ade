"""`inorder confirm RUN --times 20`: how often the failure of a run comes again."""

from __future__ import annotations

from pathlib import Path

import click

from conformance.cli import completion
from conformance.cli.options import JSON, format_option, print_human, print_json
from conformance.cli.people import tell, watching
from conformance.confirm import confirm, failure_of
from conformance.reports.rate import FILE
from conformance.stopping import Stop, listening
from specs.errors import EXIT_INCONCLUSIVE, EXIT_REFUTED, EXIT_UPHELD

TIMES = 20


@click.command(name="confirm")
@click.argument(
    "run",
    metavar="RUN",
    type=click.Path(path_type=Path, exists=True),
    shell_complete=completion.run,
)
@click.option(
    "--times",
    type=click.IntRange(1),
    default=TIMES,
    show_default=True,
    metavar="N",
    help="So many tries in all.",
)
@click.option(
    "--clause",
    metavar="ID",
    shell_complete=completion.clause,
    help="What is to break again. Default: any clause that the run refutes.",
)
@click.option("--fresh", is_flag=True, help="Forget the tries that were made before.")
@format_option()
def command(run: Path, times: int, clause: str | None, form: str, *, fresh: bool) -> int:
    """Do a refuted RUN's plan again, and say how often the same clause breaks: 7 of 20 (18 to 57 %).

    A simulated run gets another seed of its world for each try; a run on real parts is done as it was. Every try is
    kept in the run's folder as it is made: the same command goes on after a Ctrl-C, and reports show the rate.

    \b
    Exits with 1: it came again at least once; 0: it never did; 2: cut short before all tries
    were made; 64 for a run that refutes nothing.
    """
    failure = failure_of(run, clause)
    tell(f"trying {', '.join(failure.clauses)} of {run} again, on {failure.info.target}")
    stop = Stop()
    with watching() as watch, listening(stop, watch.say):
        stop.breaks_in = True
        try:
            made = confirm(failure, times, stop, watch.say, fresh=fresh)
        except KeyboardInterrupt:
            if not stop.interrupted or stop.again:
                raise
            tell(f"cut short; what was tried is in {run / FILE}")
            return EXIT_INCONCLUSIVE
        finally:
            stop.breaks_in = False
    if form == JSON:
        print_json(made.to_json())
    else:
        print_human(f"{', '.join(made.clauses)} broken in {made}")
    tell(f"kept in {run / FILE}")
    return EXIT_REFUTED if made.broken else EXIT_UPHELD
