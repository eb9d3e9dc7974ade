"""`inorder shrink RUN`: the same failure with less of everything."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click
from rich import box
from rich.table import Table

from conformance.cli import completion, seam
from conformance.cli.options import JSON, format_option, print_human, print_json
from conformance.cli.people import tell, watching
from conformance.reports.saving import check
from conformance.reports.schemas import SHRINK_SCHEMA
from conformance.shrink_run import BUDGET, Shrunk, shrink_run
from specs.errors import UsageError


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
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The new run. Default: RUN-shrunk.",
)
@format_option()
def command(
    run: Path, clause_id: str | None, target: str | None, tries: int, out: Path | None, form: str
) -> int:
    """Make a simulated RUN smaller while the same clause stays refuted.

    Faults, actions, messages, listener rules, clients, brokers and queues are left out for as long as the run of
    what remains still breaks the clause.

    \b
    Exits with 0: a smaller run, or the same one if there is none, is in DIR; 64 for a run that refutes
    nothing, or was made on real sockets.
    """
    out = Path(f"{str(run).removesuffix('.json')}-shrunk") if out is None else out
    if out.resolve() == run.resolve():
        raise UsageError(f"{out} is the run itself; give another --out")
    seam.refuse_real_runs(run, seam.info_of(run))
    seam.make_room(out)
    tell(f"shrinking {run}")
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


def _table(shrunk: Shrunk) -> Table:
    drawn = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for name in ("", "before", "after"):
        drawn.add_column(name, justify="right" if name else "left")
    after = asdict(shrunk.after)
    for name, number in asdict(shrunk.before).items():
        drawn.add_row("events" if name == "rows" else name, f"{number:,}", f"{after[name]:,}")
    return drawn
