"""`inorder check HISTORY`: judge what was recorded, by whomever, whatever its size."""

from __future__ import annotations

from pathlib import Path

import click

from conformance.cli import seam
from conformance.cli.options import format_option, print_verdict, profile_option
from conformance.cli.people import tell


@click.command(name="check")
@click.argument("history", type=click.Path(path_type=Path))
@click.option(
    "--engine",
    metavar="NAME",
    help="python or spark, which give the same verdict. Default: spark from a million events on.",
)
@profile_option("What was promised, as `inorder list profiles`. Default: the profile that the history names.")
@click.option("--master", metavar="URL", help="Spark's master, for --engine spark.")
@click.option(
    "--floor",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    metavar="N",
    help="At stake less often, a clause is not exercised.",
)
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Keep the verdict and its reports here.")
@format_option()
def command(
    history: Path, engine: str | None, profile: str | None, master: str | None, floor: int, out: Path | None, form: str
) -> int:
    """Judge the folder HISTORY.

    \b
    Exits with 0 upheld, 1 refuted, 2 inconclusive, 64 wrong usage or no history,
    70 the suite failed or the history can't be trusted.
    """
    engine = seam.engine_for(history) if engine is None else engine
    tell(f"judging {history} with the engine {engine}")
    verdict = seam.judge(history, engine_name=engine, profile=profile, master=master, floor=floor, out=out)
    print_verdict(verdict, form)
    if out is not None:
        tell(f"kept in {out} (report.txt, report.md, junit.xml, allure-results/, verdict.json)")
    return verdict.exit_code
