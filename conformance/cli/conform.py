"""`inorder conform`: does this system keep the clauses of its profile?"""

from __future__ import annotations

from pathlib import Path

import click

from conformance import again
from conformance.cli import completion, seam
from conformance.cli.options import (
    NeedsTarget,
    OutFolder,
    Reporting,
    baseline_option,
    draw_seed,
    folder_name,
    profile_option,
    reporting_options,
    search_options,
    seed_option,
    target_config_option,
)
from conformance.cli.people import tell, watching
from conformance.stopping import Bounds, Stop
from specs.verdicts.baseline import Baseline
from specs.verdicts.verdict import RunVerdict


@click.command(name="conform", cls=NeedsTarget)
@click.option(
    "--target",
    required=True,
    metavar="NAME[:ARG]",
    shell_complete=completion.target,
    help="What to judge, as `inorder list targets`.",
)
@target_config_option
@profile_option(
    "What it promises, as `inorder list profiles`. Default: what its version was built to keep."
)
@seed_option
@click.option(
    "--examples",
    type=click.IntRange(1),
    metavar="N",
    help="Generated runs; more find more, and take longer.",
)
@click.option(
    "--floor",
    type=click.IntRange(0),
    metavar="N",
    help="At stake less often, a clause is not exercised.",
)
@search_options
@baseline_option
@click.option(
    "--out",
    type=OutFolder(),
    metavar="DIR",
    help="Where to keep it: runs/TARGET-SEED if not given.",
)
@reporting_options
def command(
    target: str,
    profile: str | None,
    seed: int | None,
    examples: int | None,
    floor: int | None,
    out: Path | None,
    bounds: Bounds,
    baseline: Baseline | None,
    reporting: Reporting,
) -> int:
    """Run the conformance suite against a target.

    A simulated target (reference, mutant:NAME) gets further runs where a claimed clause is
    below its floor after those of --examples: at most as many again, drawn from what puts
    the missing clauses at stake. The report says so.

    The first Ctrl-C ends the search: what was searched until then is judged and kept, and is
    inconclusive unless it is refuted. A second one ends at once.

    \b
    Exits with 0 upheld, 1 refuted, 2 inconclusive, 64 wrong usage or a wrong driver, 69 a
    server, a part or a driver that is not there, 70 the suite failed or the run can't be trusted.
    """
    ready = seam.prepare(target, profile, bounds, baseline)
    seed = draw_seed() if seed is None else seed
    out = folder_name(target, seed) if out is None else out
    reporting.tell(f"judging {target} under {ready.profile.name}, seed {seed}")
    with watching(quiet=reporting.quiet) as watch:
        verdict = ready.run(
            seed=seed,
            examples=examples,
            floor=floor,
            out=out,
            watch=watch,
            stop=Stop(bounds),
            name=reporting.name,
        )
    reporting.show(verdict)
    reporting.add_to_allure(verdict)
    if reporting.quiet and verdict.verdict is RunVerdict.UPHELD:
        return verdict.exit_code
    tell(
        f"kept in {out} (report.html, report.txt, report.md, junit.xml, allure-results/, verdict.json)"
    )
    for clause, folder in (verdict.search.kept if verdict.search is not None else {}).items():
        tell(f"{clause} is refuted by the run in {out / folder}")
    tell(f"replay: {verdict.replay or again.command('replay', out)}")
    return verdict.exit_code
