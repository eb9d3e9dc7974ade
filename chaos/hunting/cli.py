"""`inorder hunt --target T --minutes N`: workload and faults drawn together, until something breaks."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import click

from chaos.cli import PROCESS, find_target
from chaos.hosted import HostedClients
from chaos.hunting.draw import Choice, as_toml, choice_of
from chaos.hunting.find import Again, Find, Twin, as_found, real, simulated
from chaos.hunting.reached import states_of
from chaos.hunting.search import Example, Search, hunt
from chaos.kept import KeptSystems
from chaos.runner import run_scenario
from chaos.scenario import Scenario, load
from conformance.cli import completion
from conformance.cli.options import (
    NeedsTarget,
    OutFolder,
    Reporting,
    budget_option,
    draw_seed,
    folder_name,
    profile_option,
    reporting_options,
    seed_option,
    target_config_option,
)
from conformance.cli.people import Watching, tell, watching
from conformance.cli.seam import load_profile, make_room
from conformance.replay import mutant_of
from conformance.reports import plots
from conformance.reports.saving import save
from conformance.reports.schemas import HUNT_SCHEMA
from conformance.reports.view import view
from conformance.stopping import Bounds, Stop, listening
from conformance.targets.base import ClockKind, Target
from specs.errors import (
    EXIT_INCONCLUSIVE,
    EXIT_REFUTED,
    EXIT_SUITE,
    EXIT_UPHELD,
    InorderError,
    Unavailable,
    UsageError,
)
from specs.profiles import Profile
from specs.verdicts.examine import examine
from specs.verdicts.verdict import ClauseVerdict

MINUTES = 5
AT_ONCE = 3
TIMES, TIMES_REAL = 20, 5
SMALL_MINUTES = 5.0
WORKERS = 6
DATA, CURVE, CORPUS, FINDS = "hunt.json", "saturation.svg", "corpus", "finds"
ON_SOCKETS, IN_VIRTUAL_TIME = "mutant+tcp:", "mutant:"


@dataclass(frozen=True, slots=True)
class Quarry:
    """What is hunted, looked at. twin: where the same is done in virtual time; None where nothing stands for it.

    kept: the systems on which examples work side by side, where there are such.
    """

    target: Target
    profile: Profile
    twin: Twin | None
    kept: KeptSystems | None = None

    @property
    def is_simulated(self) -> bool:
        return self.target.clock is ClockKind.VIRTUAL

    @classmethod
    def of(cls, name: str, profile: str | None) -> Quarry:
        """Raises UsageError."""
        target = find_target(name, PROCESS)
        twin = None
        if target.clock is ClockKind.VIRTUAL:
            twin = Twin(mutant_of(target.name), target.suited)
        elif name.startswith(ON_SOCKETS):
            bug = name.removeprefix(ON_SOCKETS).partition(":")[0]
            twin = Twin(mutant_of(f"{IN_VIRTUAL_TIME}{bug}"))
        known = load_profile(profile or target.profile)
        if not isinstance(target, HostedClients):
            return cls(target, known, twin)
        kept = target.keeping()
        return cls(target.beside(kept), known, twin, kept)

    def workers(self, asked: int | None) -> Sequence[Quarry]:
        """One for each example that is made at the same time as others. Raises UsageError."""
        if self.kept is None or not isinstance(self.target, HostedClients):
            if asked is not None and asked > 1:
                raise UsageError(
                    f"examples on {self.target.name} are made one after the other: leave --workers out"
                )
            return [self]
        kept, target = self.kept, self.target
        return [replace(self, target=target.beside(kept)) for _ in range(asked or WORKERS)]

    def release(self) -> None:
        """Nothing is open any more."""
        self.target.release()
        if self.kept is not None:
            self.kept.close()

    def claimed(self, clauses: tuple[str, ...]) -> tuple[str, ...]:
        """Those that are promised."""
        return tuple(name for name in clauses if self.profile.claim(name).status == "claimed")


def in_virtual_time(quarry: Quarry, number: int, scenario: Scenario, seed: int) -> Example:
    """An example on a simulated target."""
    assert quarry.twin is not None, "a simulated target is its own twin"
    made = quarry.twin.run(scenario, seed, look=True)
    refuted = quarry.claimed(examine(made.rows, made.info).refuted())
    return Example(number, scenario, seed, frozenset(made.states), refuted)


def in_real_time(
    quarry: Quarry, out: Path, watch: Watching, number: int, scenario: Scenario, seed: int
) -> Example:
    """An example on real parts; its folder stays where something was broken."""
    folder = out / "examples" / f"{number}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        verdict, history = run_scenario(
            scenario,
            quarry.target,
            quarry.profile,
            seed=seed,
            out=folder,
            say=lambda words: watch.say(f"example {number}: {words}"),
        )
    except (UsageError, Unavailable):
        raise
    except InorderError as error:
        return Example(number, scenario, seed, failed=str(error))
    shown = view(verdict).of(ClauseVerdict.REFUTED)
    refuted = tuple(each.id for each in shown if not each.hidden)
    states = frozenset(states_of(list(history.rows()), history.info.config))
    if not refuted:
        shutil.rmtree(folder)
        return Example(number, scenario, seed, states)
    return Example(number, scenario, seed, states, refuted, kept=(folder, save(verdict, folder)))


@click.command(name="hunt", cls=NeedsTarget)
@click.option(
    "--target",
    required=True,
    metavar="NAME[:ARG]",
    shell_complete=completion.target,
    help="What to break, as `inorder list targets`.",
)
@target_config_option
@profile_option("What it promises. Default: the target's own.")
@seed_option
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    help=f"How long; {MINUTES} if neither this nor --budget nor --examples is given.",
)
@budget_option("The same as a time (90s, 10m, 2h); no example begins after it.")
@click.option("--examples", type=click.IntRange(1), metavar="N", help="So many runs at most.")
@click.option(
    "--faults",
    metavar="A,B",
    shell_complete=completion.faults,
    help="Draw from these only (`inorder list faults`).",
)
@click.option(
    "--at-once",
    type=click.IntRange(0),
    default=AT_ONCE,
    show_default=True,
    metavar="N",
    help="So many faults at the same time, at most.",
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    metavar="N",
    help="So many examples at the same time, each with topics, groups, clients and links of its own: "
    f"{WORKERS} where our clients work on brokers, if not given.",
)
@click.option(
    "--times",
    type=click.IntRange(0),
    metavar="N",
    help=f"Do a find again so often, for its rate: {TIMES}, on real parts {TIMES_REAL}, if not given.",
)
@click.option(
    "--small",
    "small_minutes",
    type=click.FloatRange(min=0),
    default=SMALL_MINUTES,
    show_default=True,
    metavar="N",
    help="On real parts: make a find that comes again smaller for so many minutes at most; 0: as it was found.",
)
@click.option("--keep-going", is_flag=True, help="Go on after a find; each clause gets one.")
@click.option(
    "--corpus",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="Scenarios that are tried first, as an earlier hunt left them.",
)
@click.option(
    "--out",
    type=OutFolder(),
    metavar="DIR",
    help="Where to keep it: runs/hunt-TARGET-SEED if not given.",
)
@reporting_options
def command(  # noqa: PLR0913 - each is an option of the command
    target: str,
    profile: str | None,
    seed: int | None,
    minutes: float | None,
    budget: float | None,
    examples: int | None,
    faults: str | None,
    at_once: int,
    workers: int | None,
    times: int | None,
    small_minutes: float,
    corpus: Path | None,
    out: Path | None,
    reporting: Reporting,
    *,
    keep_going: bool,
) -> int:
    """Hunt for what only trouble shows: draw workload and faults together, run, judge, and go on near to what was new.

    An example has windows of quiet and of trouble, each with another subset of the faults that the target can have.
    The first one that breaks a promise ends it: it is made small, on the simulated twin, where there is one that shows
    it, else on the target by a sequential test, done again on the target, and shown as any failure, with how often it
    comes again and a scenario that does it.

    The first Ctrl-C ends the search, or the making small; what was found until then is shown.

    \b
    Exits with 0: nothing was found; 1: something is broken; 2: cut short, or no example could be
    judged; 64 wrong usage, 70 examples failed.
    """
    quarry = Quarry.of(target, profile)
    able = quarry.target.abilities
    takes = quarry.is_simulated or quarry.target.takes_config
    keeps = quarry.kept is not None
    choice = choice_of(
        able,
        takes_config=takes,
        only=_words(faults),
        at_once=at_once,
        keeps_brokers=keeps,
        in_real_time=not quarry.is_simulated,
    )
    side_by_side = quarry.workers(workers)
    seed = draw_seed() if seed is None else seed
    budget = budget if minutes is None else minutes * 60
    if budget is None and examples is None:
        budget = MINUTES * 60
    out = folder_name(f"hunt-{target}", seed) if out is None else out
    first = [load(str(path)) for path in sorted(corpus.glob("*.toml"))] if corpus else []
    make_room(out)
    stop = Stop(Bounds(budget, keep_going=keep_going))
    search, finds = Search(), list[Find]()
    reporting.tell(f"hunting {target} under {quarry.profile.name}, seed {seed}")
    try:
        with watching(quiet=reporting.quiet) as watch, listening(stop, watch.say):
            _search(search, side_by_side, choice, seed, examples, stop, first, out, watch)
            how = Again(
                [each.target for each in side_by_side],
                quarry.profile,
                TIMES_REAL if times is None else times,
                small_minutes * 60,
                lambda: stop.interrupted,
                watch.say,
            )
            finds += _finds(search, quarry, out, times, how)
    finally:
        quarry.release()
        finds += _as_found(search, finds, quarry, out)
        _write(out, search, finds, seed, target)
    return _tell(search, finds, stop, reporting, out)


def _words(text: str | None) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",")) if text else ()


def _search(
    search: Search,
    side_by_side: Sequence[Quarry],
    choice: Choice,
    seed: int,
    most: int | None,
    stop: Stop,
    first: list[Scenario],
    out: Path,
    watch: Watching,
) -> None:
    def told(quarry: Quarry, number: int, scenario: Scenario, its_seed: int) -> Example:
        budget_s = stop.bounds.budget_s
        if most is None and budget_s is not None:
            words = f"s, {search.examples} examples, {len(search.seen)} states"
            watch.progress(round(min(stop.passed_s, budget_s)), round(budget_s), words)
        else:
            watch.progress(number, most or number, f"examples, {len(search.seen)} states")
        if quarry.is_simulated:
            return in_virtual_time(quarry, number, scenario, its_seed)
        return in_real_time(quarry, out, watch, number, scenario, its_seed)

    stop.breaks_in = True
    try:
        hunt(
            search,
            [partial(told, quarry) for quarry in side_by_side],
            choice,
            seed=seed,
            most=most,
            stop=stop,
            keep_going=stop.bounds.keep_going,
            first=first,
        )
    except KeyboardInterrupt:
        if not stop.interrupted or stop.again:
            raise
    finally:
        stop.breaks_in = False


def _finds(
    search: Search, quarry: Quarry, out: Path, times: int | None, how: Again
) -> Iterator[Find]:
    """Each clause that was broken, where one example broke several the first of them alone."""
    done: set[int] = set()
    for clause, example in search.found.items():
        if example.number in done:
            continue
        done.add(example.number)
        folder = out / FINDS / clause
        folder.mkdir(parents=True)
        if quarry.is_simulated and quarry.twin is not None:
            often = TIMES if times is None else times
            often = 0 if how.is_over() else often
            yield simulated(example, clause, quarry.twin, quarry.profile, folder, often, how.say)
        else:
            yield real(example, clause, quarry.twin, folder, how)


def _as_found(search: Search, finds: Sequence[Find], quarry: Quarry, out: Path) -> Iterator[Find]:
    """What is left where the hunt was ended (SIGTERM, a second Ctrl-C) before a find was small and tried again."""
    done = {find.example for find in finds}
    for clause, example in search.found.items():
        if example.number not in done:
            done.add(example.number)
            yield as_found(example, clause, quarry.twin, quarry.profile, out / FINDS / clause)


def _write(out: Path, search: Search, finds: list[Find], seed: int, target: str) -> None:
    """What the search came to: data, the curve, and the corpus that a later one may begin with."""
    out.mkdir(parents=True, exist_ok=True)
    data = {
        "schema": HUNT_SCHEMA,
        "target": target,
        "seed": seed,
        "examples": search.examples,
        "states": len(search.seen),
        "curve": search.curve,
        "saturation": search.saturation,
        "failed": [example.failed for example in search.failed],
        "finds": [
            {
                "clause": find.clause,
                "folder": str(find.folder),
                "example": find.example,
                "faults": find.faults,
                "rate": find.rate.to_json(),
                "replay": find.verdict.replay,
            }
            for find in finds
        ],
    }
    (out / DATA).write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    (out / CORPUS).mkdir(exist_ok=True)
    breaking = (scenario for scenario in search.corpus if scenario.faults)
    for number, scenario in enumerate(breaking, start=1):
        text = as_toml(scenario, "It reached what nothing before it had.")
        (out / CORPUS / f"{number:04}.toml").write_text(text, encoding="utf-8")
    if search.curve:
        points = [(float(n), float(seen)) for n, seen in enumerate(search.curve, start=1)]
        axes = plots.Axis("examples"), plots.Axis("states of lanes under faults")
        title = f"What a hunt on {target} has reached"
        drawn = plots.lines("hunt", title, {"reached": points}, *axes)
        ElementTree.ElementTree(drawn).write(out / CURVE, encoding="utf-8")


def _tell(search: Search, finds: list[Find], stop: Stop, reporting: Reporting, out: Path) -> int:
    """Show the finds; the exit code."""
    for find in finds:
        reporting.show(find.verdict)
        reporting.add_to_allure(find.verdict)
        tell(
            f"{find.clause}: example {find.example}, {find.faults} faults left; broken in {find.rate}"
        )
        tell(f"kept in {find.folder}; again: {find.verdict.replay}")
    for example in search.failed:
        tell(f"example {example.number} failed: {example.failed}")
    tell(search.growth)
    tell(search.saturation)
    tell(f"kept in {out}")
    if finds:
        return EXIT_REFUTED
    if len(search.failed) == search.examples and search.failed:
        return EXIT_SUITE
    return EXIT_INCONCLUSIVE if stop.interrupted or not search.examples else EXIT_UPHELD
