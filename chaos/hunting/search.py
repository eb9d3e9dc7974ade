"""The search itself: examples, each drawn anew or near to one that reached something, until it is over.

What an example reached that none before it had makes it worth varying. Half of the examples are drawn anew all the
same: what nobody has thought of is not near to anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from chaos.hunting.draw import Choice, drawn, varied
from chaos.scenario import Scenario
from conformance.reports.view import VerdictView
from conformance.stopping import Stop

ANEW = 0.5
"""How many of the examples are drawn anew, once there is something to vary."""


@dataclass(frozen=True, slots=True)
class Example:
    """One run of a search. seed: of the run. states: what it reached. refuted: the claimed clauses that it breaks.

    failed: why it could not be judged, if it could not. kept: of a run on real parts that breaks something its folder
    and its verdict; a simulated one is made again.
    """

    number: int
    scenario: Scenario
    seed: int
    states: frozenset[Hashable] = frozenset()
    refuted: tuple[str, ...] = ()
    failed: str = ""
    kept: tuple[Path, VerdictView] | None = None


Try = Callable[[int, Scenario, int], Example]
"""(number, scenario, seed): make an example."""


@dataclass(slots=True)
class Search:
    """found: by clause the first example that breaks it. corpus: the scenarios that reached something new.

    curve: after each example how many states were reached by then. seen: by state how many examples reached it.
    """

    corpus: list[Scenario] = field(default_factory=list)
    found: dict[str, Example] = field(default_factory=dict)
    curve: list[int] = field(default_factory=list)
    seen: Counter[Hashable] = field(default_factory=Counter)
    failed: list[Example] = field(default_factory=list)

    @property
    def examples(self) -> int:
        return len(self.curve)

    def take(self, example: Example) -> None:
        """Note what the example came to."""
        if any(state not in self.seen for state in example.states):
            self.corpus.append(example.scenario)
        self.seen.update(example.states)
        self.curve.append(len(self.seen))
        for clause in example.refuted:
            self.found.setdefault(clause, example)
        if example.failed:
            self.failed.append(example)

    @property
    def saturation(self) -> str:
        """How much there may be left to see, in a sentence.

        Of the states that only one example has reached there are as many as further examples will find new ones, each
        divided by the number of examples (Good and Turing's estimate).
        """
        if not self.curve:
            return "no example was made"
        last = (
            self.curve[-1] - self.curve[-1 - max(1, self.examples // 4)] if self.examples > 1 else 0
        )
        once = sum(times == 1 for times in self.seen.values())
        each = once / self.examples
        return (
            f"{self.examples} examples reached {len(self.seen)} states of lanes under faults, {last} of them in the"
            f" last quarter; a further one would show about {each:.2g} new ones"
        )


def hunt(
    search: Search,
    make: Try,
    choice: Choice,
    *,
    seed: int,
    most: int | None,
    stop: Stop,
    keep_going: bool,
    first: Sequence[Scenario] = (),
    anew: float = ANEW,
) -> None:
    """Make examples until the time is over, there are `most`, or one is refuted.

    first: what is tried first of all. anew: how many of the others are drawn anew; 1 for a search that learns nothing.
    """
    dice = Random(f"hunt {seed}")
    waiting = list(first)
    while stop.why is None and (most is None or search.examples < most):
        number = search.examples + 1
        scenario = waiting.pop(0) if waiting else _next(dice, choice, search.corpus, number, anew)
        search.take(make(number, scenario, dice.randrange(2**31)))
        if search.found and not keep_going:
            return


def _next(
    dice: Random, choice: Choice, corpus: Sequence[Scenario], number: int, anew: float
) -> Scenario:
    name = f"drawn-{number}"
    if not corpus or dice.random() < anew:
        return drawn(dice, choice, name)
    return varied(dice, choice, dice.choice(corpus), dice.choice(corpus), name)
