"""The search itself: examples, each drawn anew or near to one that reached something, until it is over.

What an example reached that none before it had makes it worth varying. Half of the examples are drawn anew all the
same: what nobody has thought of is not near to anything.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from chaos.hunting.draw import Choice, drawn, varied
from chaos.scenario import Scenario
from conformance.parts.processes import kill_all, nobody_starts_after
from conformance.reports.view import VerdictView
from conformance.stopping import Stop
from conformance.waiting import now_s

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
LAST_WORDS_S = 2.0
"""How long examples may take to come to their end whose parts were killed."""


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
    def growth(self) -> str:
        """The curve in a line, at its quarters."""
        quarters = sorted({max(1, self.examples * part // 4) for part in range(1, 5)})
        told = [f"{number}: {self.curve[number - 1]}" for number in quarters if self.curve]
        return f"states reached by example {', '.join(told)}" if told else "no state was reached"

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
    makes: Sequence[Try],
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

    makes: each makes one at a time, all of them at the same time; what has begun when the search is over is taken too.
    first: what is tried first of all. anew: how many of the others are drawn anew; 1 for a search that learns nothing.
    """
    dice = Random(f"hunt {seed}")
    waiting, begun = list(first), 0

    def draw() -> tuple[int, Scenario, int] | None:
        nonlocal begun
        enough = bool(search.found) and not keep_going
        if stop.why is not None or enough or (most is not None and begun >= most):
            return None
        begun += 1
        scenario = waiting.pop(0) if waiting else _next(dice, choice, search.corpus, begun, anew)
        return begun, scenario, dice.randrange(2**31)

    if len(makes) == 1:
        while (next_one := draw()) is not None:
            search.take(makes[0](*next_one))
    else:
        _SideBySide(search, draw).make(makes)


class _SideBySide:
    """Examples at the same time, a thread for each maker."""

    def __init__(
        self, search: Search, draw: Callable[[], tuple[int, Scenario, int] | None]
    ) -> None:
        self._search = search
        self._draw = draw
        self._one_at_a_time = threading.Lock()
        self._errors: list[BaseException] = []
        self._over = threading.Event()

    def make(self, makes: Sequence[Try]) -> None:
        """Raises what one of them raises. Interrupted, all that they have started is killed."""
        threads = [
            threading.Thread(target=self._work, args=[make], name="example", daemon=True)
            for make in makes
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(LAST_WORDS_S)
        except BaseException:
            self._over.set()
            kill_all()
            until_s = now_s() + LAST_WORDS_S
            for thread in threads:
                thread.join(max(0.0, until_s - now_s()))
            raise
        for error in self._errors:
            raise error

    def _work(self, make: Try) -> None:
        with nobody_starts_after(self._over):
            while True:
                with self._one_at_a_time:
                    next_one = None if self._over.is_set() else self._draw()
                if next_one is None:
                    return
                try:
                    made = make(*next_one)
                except BaseException as error:
                    self._over.set()
                    self._errors.append(error)
                    return
                with self._one_at_a_time:
                    if not self._over.is_set():
                        self._search.take(made)


def _next(
    dice: Random, choice: Choice, corpus: Sequence[Scenario], number: int, anew: float
) -> Scenario:
    name = f"drawn-{number}"
    if not corpus or dice.random() < anew:
        return drawn(dice, choice, name)
    return varied(dice, choice, dice.choice(corpus), dice.choice(corpus), name)
