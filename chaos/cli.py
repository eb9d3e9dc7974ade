"""`inorder chaos SCENARIO... --target T`: break things on purpose, and judge what happened."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from chaos.runner import run_scenario
from chaos.scenario import Scenario, load
from conformance.cli.options import (
    draw_seed,
    folder_name,
    format_option,
    print_verdict,
    profile_option,
    seed_option,
)
from conformance.cli.people import tell, watching
from conformance.cli.seam import load_profile
from conformance.reports.saving import save
from conformance.reports.view import VerdictView
from conformance.targets.base import Target, find
from specs import profiles
from specs.errors import EXIT_UPHELD, UsageError
from specs.plan.ability import Ability

WORST_FIRST = (70, 1, 2)
"""Of several scenarios the run that says most decides the exit code."""


@dataclass(frozen=True, slots=True)
class Run:
    """A chaos run that is ready to begin."""

    scenario: Scenario
    target: Target
    profile: profiles.Profile
    backend: str
    seed: int
    out: Path

    def go(self) -> VerdictView:
        """Do it, keep it, return its verdict."""
        with watching() as watch:
            verdict, _history = run_scenario(
                self.scenario,
                self.target,
                self.profile,
                backend=self.backend,
                seed=self.seed,
                out=self.out,
                say=watch.say,
            )
        return save(verdict, self.out)


def prepare(
    name: str, target: str, profile: str | None, backend: str, seed: int, out: Path | None
) -> Run:
    """Look at everything that the user can get wrong before anything starts. Raises UsageError."""
    scenario = load(name)
    found = find(target)
    if Ability.WIRE not in found.abilities:
        raise UsageError(
            f"chaos puts our own clients to work on a broker that speaks RocketMQ's protocol on"
            f" sockets, as reference+tcp; the target {target} is none"
        )
    folder = (
        folder_name(f"{scenario.name}-{target}-{backend}", seed)
        if out is None
        else out / scenario.name
    )
    return Run(scenario, found, load_profile(profile or found.profile), backend, seed, folder)


@click.command(name="chaos")
@click.argument("scenarios", nargs=-1, required=True, metavar="SCENARIO...")
@click.option(
    "--target", default="reference+tcp", show_default=True, help="A target on real sockets."
)
@click.option(
    "--backend",
    default="process",
    show_default=True,
    type=click.Choice(["process", "docker"]),
    help="Consumers are processes, or containers.",
)
@profile_option("What it promises. Default: the target's own.")
@seed_option
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Keep the runs in DIR, one folder each.",
)
@format_option()
def command(
    scenarios: tuple[str, ...],
    target: str,
    backend: str,
    profile: str | None,
    seed: int | None,
    out: Path | None,
    form: str,
) -> int:
    """Run chaos scenarios, by name (`inorder list scenarios`) or by file.

    \b
    Exits as `conform`: 0 upheld, 1 refuted, 2 inconclusive (a fault without effect, or the
    scenario did not reach what it must), 64 wrong usage, 70 the suite failed.
    """
    seed = draw_seed() if seed is None else seed
    runs = [prepare(name, target, profile, backend, seed, out) for name in scenarios]
    codes = []
    for run in runs:
        tell(f"scenario {run.scenario.name} on {target} ({backend}), seed {seed}")
        tell(f"  {' '.join(run.scenario.why.split())}")
        verdict = run.go()
        print_verdict(verdict, form)
        tell(f"kept in {run.out}")
        tell(f"again: {verdict.replay}")
        codes.append(verdict.exit_code)
    return next((code for code in WORST_FIRST if code in codes), EXIT_UPHELD)
