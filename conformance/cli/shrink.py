"""`inorder shrink RUN`: the same failure with less of everything."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click
from rich import box
from rich.table import Table

from conformance.cli import completion, seam
from conformance.cli.options import JSON, OutFolder, format_option, print_human, print_json
from conformance.cli.people import tell, watching
from conformance.reports.saving import check
from conformance.reports.schemas import SHRINK_SCHEMA
from conformance.shrink_real import MINUTES, shrink_real
from conformance.shrink_run import BUDGET, Shrunk, shrink_run
from conformance.stopping import Bounds, Stop, listening
from conformance.targets.base import Target
from specs.errors import EXIT_INCONCLUSIVE, UsageError


@click.command(name="shrink")
@click.argument(
    "run", metavar="RUN|PLAN", type=click.Path(path_type=Path), shell_complete=completion.run
)
@click.option(
    "--clause",
    "clause_id",
    metavar="ID",
    shell_complete=completion.clause,
    help="What has to stay refuted. Default: what is refuted first.",
)
@click.option(
    "--target",
    metavar="NAME",
    shell_complete=completion.target,
    help="Run it on `reference` or `mutant:NAME`. Default: as the run did.",
)
@click.option(
    "--tries",
    type=click.IntRange(1),
    default=BUDGET,
    show_default=True,
    help="Plans to try, at most.",
)
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    help=f"On real parts: so long, at most; {MINUTES:g} if not given.",
)
@click.option(
    "--out",
    type=OutFolder(),
    metavar="DIR",
    help="The new run. Default: RUN-shrunk.",
)
@format_option()
def command(
    run: Path,
    clause_id: str | None,
    target: str | None,
    tries: int,
    minutes: float | None,
    out: Path | None,
    form: str,
) -> int:
    """Make a RUN smaller while the same clause stays refuted.

    Faults, actions, messages, listener rules, clients, brokers and queues are left out for as long as the run of
    what remains still breaks the clause.

    A run on real parts is first done again some times, for its rate; then a plan with less in it is kept if a
    sequential test says that it breaks the clause about as often. The smallest so far and all tries are kept as they
    are made: after a Ctrl-C the same command goes on.

    \b
    Exits with 0: a smaller run, or the same one if there is none, is in DIR; 2: on real parts it did not
    come again, or was cut short; 64 for a run that refutes nothing, or has no plan that can be done again.
    """
    out = Path(f"{str(run).removesuffix('.json')}-shrunk") if out is None else out
    if out.resolve() == run.resolve():
        raise UsageError(f"{out} is the run itself; give another --out")
    info = seam.info_of(run)
    real = None if info is None or target is not None else seam.real_target_of(info)
    tell(f"shrinking {run}")
    if real is not None:
        shrunk = _on_real_parts(run, out, real, clause_id, MINUTES if minutes is None else minutes)
        if shrunk is None:
            return EXIT_INCONCLUSIVE
    else:
        seam.refuse_real_runs(run, info)
        if minutes is not None:
            raise UsageError("a simulated run is shrunk by a number of plans: give --tries")
        seam.make_room(out)
        with watching() as watch:
            shrunk = shrink_run(
                run, out, clause_id=clause_id, target=target, budget=tries, progress=watch.progress
            )
    if form == JSON:
        data = shrunk.to_json()
        check(data, SHRINK_SCHEMA)
        print_json(data)
    else:
        print_human(_table(shrunk))
        print_human(f"{shrunk.clause.id} {shrunk.clause.title}: {shrunk.explanation}")
    tell(f"kept in {out}; tell its story with: inorder explain {out}")
    tell(f"replay: inorder replay {out}")
    return 0


def _on_real_parts(
    run: Path, out: Path, target: Target, clause_id: str | None, minutes: float
) -> Shrunk | None:
    """The smaller run; None where there is none yet, or a Ctrl-C came first."""
    stop = Stop(Bounds(minutes * 60))
    with watching() as watch, listening(stop, watch.say):
        stop.breaks_in = True
        try:
            shrunk = shrink_real(run, out, target, stop, watch.say, clause_id=clause_id)
        except KeyboardInterrupt:
            if not stop.interrupted or stop.again:
                raise
            kept = f"the smallest so far is in {out}" if out.is_dir() else "nothing is smaller yet"
            tell(f"cut short: {kept}; the same again goes on")
            return None
        finally:
            stop.breaks_in = False
    if shrunk is None:
        tell(f"nothing smaller was found in {minutes:g} minutes; the same again goes on")
    return shrunk


def _table(shrunk: Shrunk) -> Table:
    drawn = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for name in ("", "before", "after"):
        drawn.add_column(name, justify="right" if name else "left")
    after = asdict(shrunk.after)
    for name, number in asdict(shrunk.before).items():
        drawn.add_row("events" if name == "rows" else name, f"{number:,}", f"{after[name]:,}")
    return drawn
