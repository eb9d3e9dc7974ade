"""Play a case: what was answered, and where that is not what the file says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import conformance.cases.commands  # noqa: F401  (fills the table)
from conformance.cases.table import Sentence, find, nearest
from conformance.cases.text import Block, Case, CaseError, Line
from conformance.cases.world import Setting, World
from reference_impl.mutants import Mutant, load
from reference_impl.sim.cluster import Cluster
from specs.errors import UsageError
from specs.faults import broker_crash
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.plan.plan import ClientPlan


class Step(NamedTuple):
    """One command, understood."""

    line: Line
    sentence: Sentence
    args: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """A block whose answer is another one."""

    block: Block
    happened: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Played:
    """answers: one for each block. info, rows: the history that came of it."""

    case: Case
    answers: tuple[tuple[str, ...], ...]
    info: RunInfo
    rows: list[Row]

    @property
    def text(self) -> str:
        """The file's text with what happened."""
        return self.case.text_with(self.answers)

    @property
    def differences(self) -> tuple[Difference, ...]:
        """Where something else happened than the file says; empty when all is as expected."""
        pairs = zip(self.case.blocks, self.answers, strict=True)
        return tuple(
            Difference(block, answer) for block, answer in pairs if block.expected != answer
        )


def play(
    case: Case,
    mutant: Mutant | str | None = None,
    make_cluster: Callable[..., Cluster] = Cluster,
    *,
    killed_before: int | None = None,
) -> Played:
    """Play the case on the reference, or on a mutant of it.

    make_cluster: where; see `World`. killed_before: the number of a block before which every running broker is killed
    and started again on its store.
    Raises CaseError, with file and line, for a command that nobody knows or that makes no sense there.
    """
    if isinstance(mutant, str):
        mutant = load(mutant)
    script = [[_understand(case, line) for line in block.commands] for block in case.blocks]
    setting = Setting()
    _set_up(case, script, setting)
    with _at(case, case.blocks[0].commands[0]):
        world = World(setting, mutant, make_cluster)
    with closing(world):
        world.news()  # what the start of everybody brought
        answers = []
        for number, steps in enumerate(script):
            if number == killed_before:
                _kill(world)
            answers.append(tuple(_answer(case, world, steps)))
        info, rows = world.history()
    return Played(case, tuple(answers), info, rows)


def _kill(world: World) -> None:
    """Every broker that runs is gone without a word, and starts again on what it had written."""
    for broker in world.brokers:
        if world.cluster.is_running(broker):
            world.perform(broker_crash.VERB, {"broker": broker})
            world.perform(broker_crash.HEALED_BY, {"broker": broker})


def _understand(case: Case, line: Line) -> Step:
    found = find(line.text)
    if found is None:
        form = nearest(line.text)
        raise CaseError(
            f"{case.at(line.number)}: {line.text!r} is no command; did you mean `{form}`?"
        )
    return Step(line, *found)


def _set_up(case: Case, script: list[list[Step]], setting: Setting) -> None:
    """Do what stands before everything else, and gather who takes part."""
    began: Line | None = None
    for line, sentence, args in (step for steps in script for step in steps):
        with _at(case, line):
            if sentence.setup:
                if began is not None:
                    raise UsageError(
                        f"`{sentence.form}` must stand before line {began.number}, where it all begins"
                    )
                sentence.handler(setting, **args)
                continue
            began = began or line
            if "consumer" in args and "group" in args:
                setting.add(ClientPlan(args["consumer"], "consumer", args["group"], args["words"]))
            elif "producer" in args:
                setting.add(ClientPlan(args["producer"], "producer"))
            elif "client" in args:
                setting.add(ClientPlan(args["client"], "prober"))


def _answer(case: Case, world: World, steps: list[Step]) -> Iterator[str]:
    for line, sentence, args in steps:
        if not sentence.setup:
            with _at(case, line):
                _known(world, args)
                yield from sentence.handler(world, **args)
                yield from world.news()


def _known(world: World, args: dict[str, Any]) -> None:
    """Raises UsageError for a node that the case has nowhere else."""
    known = {client.id for client in world.plan.clients} | {*world.brokers, "ns"}
    for role in ("node", "other", "consumer"):
        name = args.get(role)
        if name is not None and name not in known and "group" not in args:
            raise UsageError(
                f"there is no {name!r} in this case; it has {', '.join(sorted(known))}"
            )


@contextmanager
def _at(case: Case, line: Line) -> Iterator[None]:
    """Errors say where they are."""
    try:
        yield
    except CaseError:
        raise
    except UsageError as error:
        raise CaseError(f"{case.at(line.number)}: {error}") from error
