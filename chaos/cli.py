"""`inorder chaos SCENARIO... --target T`: break things on purpose, and judge what happened."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import click
from rich import box
from rich.table import Table
from rich.text import Text

from chaos.attach.cli import Attaching, attach, attach_options
from chaos.hosted import hosted, lends_its_system
from chaos.rounds import Bounds, Tried, Try, in_rounds, sentence
from chaos.runner import lacks, run_scenario
from chaos.scenario import BACKENDS, Scenario, load, names
from conformance.cli import completion
from conformance.cli.options import (
    JSON,
    OutFolder,
    Reporting,
    baseline_option,
    budget_option,
    draw_seed,
    folder_name,
    print_human,
    profile_option,
    reporting_options,
    seed_option,
    target_config_option,
)
from conformance.cli.people import tell, watching
from conformance.cli.seam import load_profile, told_by
from conformance.reports.occasion import begin
from conformance.reports.saving import save
from conformance.reports.view import VerdictView
from conformance.targets.base import ClockKind, Target, find
from conformance.targets.base import names as registered
from specs import profiles
from specs.errors import EXIT_UPHELD, InorderError, UsageError
from specs.plan.config import Config
from specs.plan.plan import Plan
from specs.verdicts.baseline import Baseline

PROCESS, DOCKER, SIMULATED = BACKENDS


def find_target(name: str, backend: str) -> Target:
    """What is broken: a target's own parties, or our consumers on the brokers that it lends. Raises UsageError."""
    found = find(name)
    if lends_its_system(found):
        return hosted(found, in_containers=backend == DOCKER)
    if backend != PROCESS:
        raise UsageError(f"the target {name} hosts its clients itself; leave --backend out")
    return found


@dataclass(frozen=True, slots=True)
class Asked:
    """What a user wants to have broken, looked at. named: she named the scenarios."""

    target: Target
    name: str
    profile: profiles.Profile
    backend: str
    scenarios: tuple[Scenario, ...]
    named: bool
    baseline: Baseline | None = None
    reporting: Reporting = field(default_factory=Reporting)

    def go(self, scenario: Scenario) -> Callable[[int, Path], VerdictView]:
        """How a scenario is run, with its seed and its folder. A scenario's rounds are tries of one series."""
        own = self.reporting.name or f"{self.name} under {self.profile.name}"
        round_of = count(1)

        def run(seed: int, out: Path) -> VerdictView:
            number = next(round_of)
            self.reporting.tell(
                f"scenario {scenario.name} on {self.name} ({self.backend}), seed {seed}"
            )
            self.reporting.tell(f"  {' '.join(scenario.why.split())}")
            # A later round is no second try of an earlier one: what that found stays found.
            over = begin(f"{own}: {scenario.name}{'' if number == 1 else f' #{number}'}")
            words = ("chaos", scenario.asked_for or scenario.name, "--target", self.name)
            more = ("--profile", self.profile.name, "--backend", self.backend, "--seed", seed)
            with watching(quiet=self.reporting.quiet) as watch:
                verdict, _history = run_scenario(
                    scenario,
                    self.target,
                    self.profile,
                    seed=seed,
                    out=out,
                    asked=(*words, *more),
                    say=watch.say,
                )
            return save(told_by(self.baseline, verdict), out, occasion=over())

        return run


def prepare(
    asked: Sequence[str],
    target: str,
    profile: str | None,
    backend: str,
    baseline: Baseline | None = None,
) -> tuple[Asked, dict[str, str]]:
    """Look at everything that the user can get wrong before anything starts, and what is left out, each with why.

    asked: scenarios; none stands for all that apply. Raises UsageError where one that she named does not.
    """
    found = find_target(target, backend)
    scenarios, left_out = [], {}
    for scenario in (load(name) for name in asked or names()):
        why = why_not(scenario, found, target, backend)
        if why is None:
            scenarios.append(scenario)
        elif asked:
            raise UsageError(f"scenario {scenario.name} {why}")
        else:
            left_out[scenario.name] = why
    if not scenarios:
        raise UsageError(f"no scenario fits the target {target}: {next(iter(left_out.values()))}")
    chosen = load_profile(profile or found.profile)
    if baseline is not None:
        chosen = baseline.under(chosen)
    hosted_by = SIMULATED if found.clock is ClockKind.VIRTUAL else backend
    return Asked(
        found, target, chosen, hosted_by, tuple(scenarios), bool(asked), baseline
    ), left_out


def why_not(scenario: Scenario, target: Target, name: str, backend: str) -> str | None:
    """Why a target can't have a scenario; None where it can."""
    backend = SIMULATED if target.clock is ClockKind.VIRTUAL else backend
    if backend not in scenario.backends:
        return f"is for the backend {' or '.join(scenario.backends)}"
    if missing := lacks(scenario, target):
        if hindered := [target.hindered[need] for need in missing if need in target.hindered]:
            return f"can't be done here: {'; '.join(hindered)}"
        needs = " and ".join(need.value for need in missing)
        others = ", ".join(_that_can(scenario)) or "none that needs no argument"
        return f"needs a target that can {needs}; {name} can't (of the others can: {others})"
    work_ms, most_ms = scenario.workload.work_ms, target.call_ms_max
    if most_ms is not None and work_ms > most_ms:
        return f"works {work_ms} ms on a message; with {name} it is another's after {most_ms} ms"
    if target.takes_config:
        wanted = Config.from_json({**target.config.to_json(), **scenario.config})
        told = target.suited(Plan(config=wanted)).config.to_json()
        for setting, value in scenario.config.items():
            if told[setting] != value:
                return f"needs {setting} = {value}; with {name} it is {told[setting]}, whatever a plan says"
    return None


def _that_can(scenario: Scenario) -> Iterator[str]:
    """The registered targets that need no argument and can have the scenario."""
    for name in registered():
        try:
            target = find_target(name, PROCESS)
        except (InorderError, ImportError):  # it needs an argument, or a part that is not there
            continue
        if not lacks(scenario, target):
            yield name


F = TypeVar("F", bound=Callable[..., Any])


def bounds_options(command: F) -> F:
    """`--budget`, `--minutes` and `--rounds`, handed on as `bounds`."""

    @budget_option(
        "Rounds with numbers drawn anew until then (90s, 10m, 2h); no run begins after it."
    )
    @click.option(
        "--minutes",
        type=click.FloatRange(min=0, min_open=True),
        metavar="N",
        help="The same in minutes.",
    )
    @click.option(
        "--rounds",
        type=click.IntRange(1),
        metavar="N",
        help="So many rounds; one, where no time is given.",
    )
    @functools.wraps(command)
    def with_bounds(
        *, budget: float | None, minutes: float | None, rounds: int | None, **rest: Any
    ) -> Any:
        budget = budget if minutes is None else minutes * 60
        rounds = 1 if rounds is None and budget is None else rounds
        return command(bounds=Bounds(rounds, budget), **rest)

    return with_bounds  # type: ignore[return-value]


@click.command(name="chaos")
@click.argument("scenarios", nargs=-1, metavar="[SCENARIO]...", shell_complete=completion.scenario)
@click.option(
    "--target",
    default="reference+tcp",
    show_default=True,
    shell_complete=completion.target,
    help="What is broken.",
)
@target_config_option
@click.option(
    "--backend",
    default=PROCESS,
    show_default=True,
    type=click.Choice([PROCESS, DOCKER]),
    help="Consumers of ours are processes, or containers.",
)
@attach_options
@bounds_options
@profile_option("What it promises. Default: the target's own.")
@baseline_option
@seed_option
@click.option(
    "--out",
    type=OutFolder(),
    metavar="DIR",
    help="Keep the runs in DIR, a folder for each scenario.",
)
@reporting_options
def command(
    scenarios: tuple[str, ...],
    target: str,
    backend: str,
    attaching: Attaching | None,
    bounds: Bounds,
    profile: str | None,
    baseline: Baseline | None,
    seed: int | None,
    out: Path | None,
    reporting: Reporting,
) -> int:
    """Run chaos scenarios, by name (`inorder list scenarios`) or by file; all that apply, if none is named.

    A round runs each of them once. Of a scenario's numbers the seed draws those that have a range, and each
    round has the next seed. At the end a table says what held, and what broke in how many tries.

    \b
    Exits as `conform`: 0 upheld, 1 refuted, 2 inconclusive (a fault without effect, or the
    scenario did not reach what it must, or none could be tried), 64 wrong usage, 69 a server
    or a part that is not there, 70 the suite failed.
    """
    if attaching is not None:
        return attach(attaching, bounds, profile, baseline, seed, out, reporting)
    asked, left_out = prepare(scenarios, target, profile, backend, baseline)
    asked = replace(asked, reporting=reporting)
    seed = draw_seed() if seed is None else seed
    bounds = replace(bounds, lenient=not asked.named)
    tried = Tried(left_out=left_out)
    folder = folder_name(f"chaos-{target}-{backend}", seed) if out is None else out
    ready = {scenario.name: asked.go(scenario) for scenario in asked.scenarios}
    alone = asked.named and bounds.rounds is not None
    try:
        for made in in_rounds(ready, tried, seed=seed, out=folder, bounds=bounds):
            _show(made, reporting, whole=alone)
    finally:
        asked.target.release()
        if len(tried.tries) > alone and reporting.form != JSON:
            print_human(_table(tried, whole=reporting.whole))
    return tried.exit_code


def _show(made: Try, reporting: Reporting, *, whole: bool) -> None:
    """whole: the whole verdict is printed, as of a run that somebody named."""
    if made.verdict is not None:
        if whole or reporting.form == JSON:
            reporting.show(made.verdict)
        reporting.add_to_allure(made.verdict)
    if reporting.quiet and made.exit_code == EXIT_UPHELD:
        return
    tell(f"{made.scenario}, seed {made.seed}: {sentence(made)}")
    tell(f"kept in {made.folder}")
    if made.verdict is not None:
        tell(f"again: {made.verdict.replay}")


def _table(tried: Tried, *, whole: bool) -> Table:
    """A row for each scenario; of those that held in every try none, where somebody wants to see the others alone."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for column in ("scenario", "tries", "came to", "what broke, or was not met"):
        table.add_column(column, no_wrap=column == "scenario")
    green = set() if whole else tried.green
    for row in tried.rows():
        if row[0] in green:
            continue
        table.add_row(*(Text(cell) for cell in row))
    return table
