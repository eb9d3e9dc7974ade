"""Histories worth keeping, written to a folder by the code of one day, for the judges of later days.

Of every kind that the tests make: the run that kills each mutant (whole, and its witness alone), the written cases,
runs of the cluster machine, recordings, planted defects and their lookalikes, the clauses' examples. What later
judges say of them, `inorder.evidence.corpus` compares.

`python -m inorder.evidence.freezing FOLDER` takes some minutes; run as a script, with another checkout as
PYTHONPATH, it freezes what that one makes.
"""

from __future__ import annotations

import json
import runpy
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from specs.clauses.catalogue import all_clauses, get
from specs.errors import InorderError, UsageError
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.history.store import open_history, write_history
from specs.history.text import parse_history
from specs.plan.plan import Plan
from specs.verdicts.examine import examine

SEED = 1
EXAMPLES = 300
"""The budget of the kill matrix: generated runs for one mutant."""
DRAWN = {
    "reference": 40,
    "reference-concurrent": 15,
    "reference-key-ordered": 15,
    "reference-broadcast": 10,
}
"""How many of the cluster machine's runs on the correct reference are kept, by profile."""
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "plain": {},
    "batches": {"batch": 4},
    "no-limit": {"max_reconsume_times": -1},
    "one-thread": {"threads": 1},
}
"""How the recordings are varied: what their configuration says instead."""
GENERATED_EVENTS = (4_000, 16_000, 40_000)
"""Sizes of a generated history: the next where the one before has no place for the defect."""
Told = tuple[str, RunInfo, Sequence[Row]]
"""(name, what a judge must know, rows by seq_begin)."""


def killed() -> Iterator[Told]:
    """The run that kills each mutant, whole, and its witness alone."""
    from conformance.machines.cluster import Collector
    from conformance.runner import run_machine
    from reference_impl.mutants import all_mutants

    for mutant in all_mutants():
        clause = get(mutant.killed_by)
        # Judged by the named clause alone: the search is the same, and several times as fast.
        collector = Collector(
            lambda refuted: refuted, mutant, judge=partial(examine, clauses=(clause,))
        )
        run_machine(collector, SEED, EXAMPLES)
        run = collector.broken
        if run is not None:
            yield f"mutants/{mutant.name}", run.info, run.rows
            yield f"witnesses/{mutant.name}", run.info, run.examination.tallies[clause.id].witness


def played() -> Iterator[Told]:
    """Every written case on the simulated reference."""
    from conformance.cases.folder import all_cases
    from conformance.cases.play import play

    for case in all_cases():
        done = play(case)
        yield f"cases/{case.name.replace('/', '.')}", done.info, done.rows


def drawn() -> Iterator[Told]:
    """Runs of the cluster machine on the correct reference: members die, brokers restart, links fail."""
    from conformance.machines.cluster import Collector, Run
    from conformance.runner import run_machine
    from specs import profiles

    for profile, count in DRAWN.items():
        runs: list[Run] = []
        run_machine(
            Collector(lambda refuted: (), on_run=runs.append, config=profiles.load(profile).config),
            SEED,
            count,
        )
        yield from (
            (f"drawn/{profile}.{number}", run.info, run.rows) for number, run in enumerate(runs)
        )


def recorded() -> Iterator[Told]:
    """The recordings of the Spark checkers' tests, in every mode, and each with some other configurations."""
    from spark_checkers.trace_mutants import DEFECTS

    modes = sorted({mutant.consumed for mutant in DEFECTS.values()})
    for consumed, tagged, variant in product(modes, (False, True), VARIANTS):
        yield f"recorded/{_name(consumed, tagged, variant)}", *_record(consumed, tagged, variant)


def _name(consumed: tuple[str, str], tagged: bool, variant: str) -> str:
    return ".".join((*consumed, "tagged" if tagged else "untagged", variant))


@cache
def _record(consumed: tuple[str, str], tagged: bool, variant: str) -> tuple[RunInfo, list[Row]]:
    import spark_checkers
    from reference_impl.sim.simulate import simulate

    # It lies with the tests, which a checkout has; nobody freezes a corpus from an installed wheel.
    record = runpy.run_path(
        str(Path(spark_checkers.__file__).parents[1] / "tests/spark_checkers/recorded.py")
    )
    plan = Plan.from_json(record["recorded"](*consumed, tagged=tagged)[0].plan)
    return simulate(replace(plan, config=replace(plan.config, **VARIANTS[variant])))


def planted() -> Iterator[Told]:
    """Every planted defect and lookalike, in those recordings of its mode that have a place for it."""
    from spark_checkers.trace_mutants import DEFECTS, LOOKALIKES, plant, spread

    for mutant in (*DEFECTS.values(), *LOOKALIKES.values()):
        for tagged, variant in product((False, True), ("plain", "batches")):
            info, rows = _record(mutant.consumed, tagged, variant)
            with suppress(UsageError):  # raised where there is no place for it
                changed = plant(mutant, spread(rows), info, seed=SEED).rows
                name = f"planted-recorded/{mutant.name}@{_name(mutant.consumed, tagged, variant)}"
                yield name, mutant.under(info), changed


def generated() -> Iterator[Told]:
    """A valid generated history, and one for each planted defect and lookalike that such a history has a place for."""
    from spark_checkers.generate import generate, plan_defect
    from spark_checkers.trace_mutants import DEFECTS, LOOKALIKES

    mutants = [
        mutant
        for mutant in (*DEFECTS.values(), *LOOKALIKES.values())
        if mutant.generated and not mutant.tagged
    ]
    for name in ("nothing", *(mutant.name for mutant in mutants)):
        for events in GENERATED_EVENTS:
            with (
                TemporaryDirectory() as folder,
                suppress(UsageError),
            ):  # raised where there is no place for it
                change = None if name == "nothing" else plan_defect(name, events, SEED)
                info = generate(Path(folder), events, SEED, change=change).info
                yield f"planted-generated/{name}", info, list(open_history(folder).rows())
                break


def examples() -> Iterator[Told]:
    """Every clause's shortest violation and allowed lookalike."""
    for clause in all_clauses():
        for name, text in (
            ("violation", clause.shortest_violation),
            ("lookalike", clause.lookalike),
        ):
            yield f"examples/{clause.id}.{name}", *parse_history(text)


SOURCES: Mapping[str, Callable[[], Iterator[Told]]] = {
    each.__name__: each for each in (killed, played, drawn, recorded, planted, generated, examples)
}


def freeze(folder: Path, sources: Sequence[str]) -> dict[str, int]:
    """Write the histories as `folder/kind/name`; how many there are of each kind."""
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(
            f"{folder} is not empty: a corpus is frozen once, into a folder of its own"
        )
    counts: Counter[str] = Counter()
    for source in sources:
        for name, info, rows in SOURCES[source]():
            write_history(folder / name, info, rows)
            # Whoever reads it later may take silence about this for another answer.
            assert "closed_world" in json.loads(
                (folder / name / "run.json").read_text(encoding="utf-8")
            )
            counts[name.partition("/")[0]] += 1
    return dict(counts)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--only",
    "sources",
    multiple=True,
    type=click.Choice(list(SOURCES)),
    help="Some sources; default: all.",
)
def main(folder: Path, sources: tuple[str, ...]) -> None:
    """Write the histories to FOLDER, with the code that is imported."""
    for kind, count in freeze(folder, sources or tuple(SOURCES)).items():
        click.echo(f"{kind}\t{count}")


if __name__ == "__main__":
    try:
        main()
    except InorderError as error:
        click.echo(error, err=True)
        raise SystemExit(error.exit_code) from None
