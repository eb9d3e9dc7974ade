"""`inorder chaos SCENARIO... --target T`: break things on purpose, and judge what happened."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from chaos.hosted import hosted, lends_its_system
from chaos.runner import lacks, run_scenario
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

WORST_FIRST = (70, 1, 2)
"""Of several scenarios the run that says most decides the exit code."""
PROCESS, DOCKER = "process", "docker"


@dataclass(frozen=True, slots=True)
class Run:
    """A chaos run that is ready to begin. asked: the target as the user named it."""

    scenario: Scenario
    target: Target
    asked: str
    profile: profiles.Profile
    backend: str
    seed: int
    out: Path

    def go(self) -> VerdictView:
        """Do it, keep it, return its verdict."""
        words = ("chaos", self.scenario.asked_for or self.scenario.name, "--target", self.asked)
        more = ("--profile", self.profile.name, "--backend", self.backend, "--seed", self.seed)
        with watching() as watch:
            verdict, _history = run_scenario(
                self.scenario,
                self.target,
                self.profile,
                seed=self.seed,
                out=self.out,
                asked=(*words, *more),
                say=watch.say,
            )
        return save(verdict, self.out)


def find_target(name: str, backend: str) -> Target:
    """What is broken: a target's own parties, or our consumers on the brokers that it lends. Raises UsageError."""
    found: Any = find(name)
    if lends_its_system(found):
        return hosted(found, in_containers=backend == DOCKER)
    if not isinstance(found, Target):
        raise UsageError(f"chaos can't break anything of the target {name} yet")
    if backend != PROCESS:
        raise UsageError(f"the target {name} hosts its clients itself; leave --backend out")
    return found


def prepare(
    name: str, asked: str, profile: str | None, backend: str, seed: int, out: Path | None
) -> Run:
    """Look at everything that the user can get wrong before anything starts. Raises UsageError."""
    scenario = load(name)
    if backend not in scenario.backends:
        raise UsageError(
            f"scenario {scenario.name} is for the backend {' or '.join(scenario.backends)}"
        )
    target = find_target(asked, backend)
    if missing := lacks(scenario, target):
        needs = " and ".join(need.value for need in missing)
        raise UsageError(
            f"scenario {scenario.name} needs a target that can {needs}; {asked} can't, and"
            " `inorder list faults --target NAME` says what another one can"
        )
    folder = (
        folder_name(f"{scenario.name}-{asked}-{backend}", seed)
        if out is None
        else out / scenario.name
    )
    chosen = load_profile(profile or target.profile)
    return Run(scenario, target, asked, chosen, backend, seed, folder)


@click.command(name="chaos")
@click.argument("scenarios", nargs=-1, required=True, metavar="SCENARIO...")
@click.option(
    "--target", default="reference+tcp", show_default=True, help="A target in real time."
)
@click.option(
    "--backend",
    default=PROCESS,
    show_default=True,
    type=click.Choice([PROCESS, DOCKER]),
    help="Consumers of ours are processes, or containers.",
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
