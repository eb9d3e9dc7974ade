"""`inorder generate` and `inorder compact`. Data on stdout, people on stderr."""

import json
import secrets
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from specs.outputs import writable_folder

LARGEST_SEED = 2**31 - 1
EDGES = ("none", "file", "group", "key")
ORDERS = ("queue", "time")
MOST_GROUPS = 9


_FORMAT = click.option(
    "--format",
    "form",
    type=click.Choice(["human", "json"]),
    default="human",
    show_default=True,
    help="What to print on stdout.",
)
_FOLDER = click.Path(path_type=Path)
_OUT = click.option(
    "--out", type=_FOLDER, required=True, metavar="DIR", help="An empty or new folder."
)


class _NamesDefects(click.Command):
    """Its help ends with what can be planted, in many modules that other commands need not wait for."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from spark_checkers.trace_mutants import DEFECTS, LOOKALIKES

        defects, lookalikes = ", ".join(DEFECTS), ", ".join(LOOKALIKES)
        self.epilog = f"Defects: {defects}. Lookalikes, which break nothing: {lookalikes}."
        super().format_epilog(ctx, formatter)


@click.command(name="generate", cls=_NamesDefects)
@click.option(
    "--events", type=click.IntRange(100), required=True, metavar="N", help="About so many rows."
)
@_OUT
@click.option(
    "--seed",
    type=click.IntRange(0, LARGEST_SEED),
    metavar="N",
    help="An integer; drawn when left out.",
)
@click.option(
    "--queues",
    type=click.IntRange(1, 100_000),
    metavar="N",
    help="How many queues; by the events if left out.",
)
@click.option(
    "--groups",
    type=click.IntRange(1, MOST_GROUPS),
    default=1,
    show_default=True,
    metavar="N",
    help="How many groups consume every queue.",
)
@click.option(
    "--order",
    type=click.Choice(ORDERS),
    default="queue",
    show_default=True,
    help="How the rows lie: queue by queue, or by time as a recorder writes them.",
)
@click.option(
    "--defect", metavar="NAME", help="Plant this defect, or lookalike, in the middle queue."
)
@click.option(
    "--edge",
    type=click.Choice(EDGES),
    default="none",
    show_default=True,
    help="Plant it across the edge of two files or row groups, or at a queue's first rows.",
)
@_FORMAT
def generate(
    events: int,
    out: Path,
    seed: int | None,
    queues: int | None,
    groups: int,
    order: str,
    defect: str | None,
    edge: str,
    form: str,
) -> int:
    """Write a valid history of any size, or one with a defect.

    What orderly consumers do is at stake in it: `inorder check` says which clauses, and how often. By queue is the
    order in which it is judged fastest; the same seed writes the same rows.
    """
    from spark_checkers import generate as generator

    writable_folder(out)
    seed = secrets.randbelow(1_000_000) if seed is None else seed
    console = Console(stderr=True, highlight=False)
    click.echo(f"generating {events} events, seed {seed}", err=True)
    planting = None if defect is None else generator.plan_defect(defect, events, seed, queues, edge)
    with _bar(console) as bar:
        task = bar.add_task("events", total=events)
        written = generator.generate(
            out,
            events,
            seed,
            queues=queues,
            groups=groups,
            order=order,
            change=planting,
            progress=lambda rows: bar.update(task, completed=rows),
        )
    breaks = None if planting is None else planting.mutant.clause
    data = {
        "schema": "inorder/generated/v1",
        "out": str(out),
        "run": written.info.run,
        "seed": seed,
        "events": written.events,
        "queues": written.queues,
        "files": written.files,
        "defect": defect,
        "breaks": breaks,
        "about": [] if planting is None else list(planting.about),
    }
    planted = f" (it breaks {breaks})" if breaks else " (a lookalike, it breaks nothing)"
    planted = "" if defect is None else f", with the defect {defect}{planted}"
    return _told(form, data, f"events of {written.queues} queues in {written.files} files{planted}")


def _told(form: str, data: dict[str, Any], human: str) -> int:
    """Print what was written as JSON, or how many events of what; return the exit code."""
    text = f"{data['events']} {human}: {data['out']}"
    click.echo(json.dumps(data, indent=2) if form == "json" else text)
    return 0


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


@click.command(name="compact")
@click.argument("history", type=click.Path(path_type=Path))
@_OUT
@click.option(
    "--master", metavar="URL", help="Spark's master, for a history too big to be sorted in memory."
)
@_FORMAT
def compact(history: Path, out: Path, master: str | None, form: str) -> int:
    """Rewrite the folder HISTORY in the order of its queues: it is then judged without a shuffle."""
    from spark_checkers import layout
    from spark_checkers.ordered import row_groups
    from specs.history.store import open_history

    writable_folder(out)
    opened = open_history(history)
    click.echo(f"rewriting {history} by queue", err=True)
    written = layout.compact(opened, out, master=master)
    data = {
        "schema": "inorder/compacted/v1",
        "out": str(out),
        "run": written.info.run,
        "events": sum(row_groups(written.parquet)[1]),
        "files": len(written.parquet),
    }
    return _told(form, data, f"events in {data['files']} files")
