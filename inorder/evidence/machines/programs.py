"""Programs: what a machine did, step by step, as data; how one is found, repeated and made shorter.

A machine's rules draw steps, and a bench carries them out beside the abstract model: `{"do": "lock", "args": ...}`.
A step that does not fit the moment does nothing, so that a program with a step taken out is still a program. Where
system and model disagree, the search ends, the program is shortened, and what is left can be read and repeated.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from hypothesis import event
from hypothesis.stateful import RuleBasedStateMachine

from conformance.machines.drawing import drive
from conformance.reports.schemas import PROGRAM_SCHEMA
from reference_impl.mutants import Mutant

STEPS = 30
SHRINK_RUNS = 300


class Disagreement(AssertionError):
    """System and model disagree; the message says what was seen and what was allowed."""


@dataclass(frozen=True, slots=True)
class Step:
    do: str
    args: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.do} {' '.join(f'{name}={json.dumps(value)}' for name, value in self.args.items())}".rstrip()


@dataclass(frozen=True, slots=True)
class Program:
    """machine: its name. mutant: whose cores ran, None for the reference."""

    machine: str
    steps: tuple[Step, ...]
    mutant: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": PROGRAM_SCHEMA,
            "machine": self.machine,
            "mutant": self.mutant,
            "steps": [{"do": step.do, "args": dict(step.args)} for step in self.steps],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Program:
        """Of what `to_json` gave."""
        steps = tuple(Step(each["do"], each["args"]) for each in data["steps"])
        return cls(data["machine"], steps, data["mutant"])

    def __str__(self) -> str:
        return "\n".join(str(step) for step in self.steps)


class Bench:
    """One run of a system beside its model. Subclasses have a method for each verb; the first step is `begin`."""

    def __init__(self, mutant: Mutant | None) -> None:
        self.mutant = mutant
        self.begun = False

    def do(self, step: Step) -> None:
        """Raises Disagreement. A program that lost its `begin` does nothing."""
        if step.do == "begin":
            self.begun = True
        if self.begun:
            getattr(self, step.do)(**step.args)

    def end(self) -> None:
        """The program is over; whatever can only be said then."""

    def abstract(self) -> Hashable:
        """Where the run stands, with the numbers taken out: what a search should see much of."""
        return None


class Found(BaseException):
    """Ends a search. No Exception, or else Hypothesis would make the run twice more in order to report it."""


class ProgramMachine(RuleBasedStateMachine):
    """A machine that writes a program. Subclassed with a search by `search`."""

    NAME: ClassVar[str]
    bench_class: ClassVar[type[Bench]]
    hunt: ClassVar[Search]

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Step] = []
        self.bench: Any = self.bench_class(self.hunt.mutant)
        self.is_over = False

    def do(self, verb: str, /, **args: Any) -> None:
        step = Step(verb, args)
        self.steps.append(step)
        self._watched(lambda: self.bench.do(step))
        state = self.bench.abstract()
        if state not in self.hunt.states:
            self.hunt.states.add(state)
            event("a new abstract state")

    def _watched(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Disagreement as error:
            self.is_over = True
            self.hunt.broken = Program(self.NAME, tuple(self.steps), _name(self.hunt.mutant))
            self.hunt.why = str(error)
            raise Found from None
        except BaseException:
            self.is_over = True
            raise

    def teardown(self) -> None:
        if not self.is_over:
            self.hunt.runs += 1
            self.hunt.steps += len(self.steps)
            self._watched(self.bench.end)
            self.hunt.growth.append(len(self.hunt.states))


@dataclass
class Search:
    """What a search came to. growth: abstract states known after each run. broken: shortened, or None."""

    mutant: Mutant | None = None
    runs: int = 0
    steps: int = 0
    states: set[Hashable] = field(default_factory=set)
    growth: list[int] = field(default_factory=list)
    broken: Program | None = None
    why: str = ""

    @property
    def report(self) -> str:
        """For people: what disagreed, and the shortest program that shows it."""
        return f"{self.why}\n\n{self.broken}\n\n{json.dumps(self.broken.to_json()) if self.broken else ''}"


def _name(mutant: Mutant | None) -> str | None:
    return None if mutant is None else mutant.name


def search(
    machine: type[ProgramMachine],
    seed: int,
    examples: int,
    steps: int = STEPS,
    mutant: Mutant | None = None,
) -> Search:
    """Up to `examples` runs of the machine, all from the seed; the first disagreement ends it and is shortened."""
    found = Search(mutant)
    with contextlib.suppress(Found):
        drive(type(machine.__name__, (machine,), {"hunt": found}), seed, examples, steps)
    if found.broken is not None:
        found.broken = shorten(found.broken, machine.bench_class, mutant)
        found.why = repeat(found.broken, machine.bench_class, mutant) or found.why
    return found


def repeat(program: Program, bench_class: type[Bench], mutant: Mutant | None) -> str | None:
    """Run the program; how system and model disagree, None when they do not."""
    bench = bench_class(mutant)
    try:
        for step in program.steps:
            bench.do(step)
        bench.end()
    except Disagreement as error:
        return str(error)
    return None


def shorten(
    program: Program, bench_class: type[Bench], mutant: Mutant | None, budget: int = SHRINK_RUNS
) -> Program:
    """The same disagreement (any) with fewer steps: ever smaller pieces are taken out, while it lasts."""
    steps = list(program.steps)
    size = max(1, len(steps) // 2)
    while size and budget > 0:
        at, changed = len(steps) - size, False
        while at >= 0 and budget > 0:
            fewer = steps[:at] + steps[at + size :]
            budget -= 1
            if (
                fewer
                and repeat(Program(program.machine, tuple(fewer)), bench_class, mutant) is not None
            ):
                steps, changed = fewer, True
            at -= size if size > 1 else 1
        if not changed or size > 1:
            size //= 2
    return Program(program.machine, tuple(steps), program.mutant)
