"""Scenarios in rounds: each run with numbers drawn anew, and at the end what held, and what broke in how many tries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from conformance.reports.view import VerdictView
from conformance.waiting import now_s
from specs.errors import (
    EXIT_INCONCLUSIVE,
    EXIT_REFUTED,
    EXIT_SUITE,
    EXIT_UNAVAILABLE,
    EXIT_UPHELD,
    EXIT_USAGE,
    DriverBug,
    InorderError,
    Unavailable,
    UsageError,
)
from specs.verdicts.verdict import ClauseVerdict

WORST_FIRST = (EXIT_SUITE, EXIT_REFUTED, EXIT_USAGE, EXIT_UNAVAILABLE, EXIT_INCONCLUSIVE)
"""Of several runs the one that says most decides the exit code."""


@dataclass(frozen=True, slots=True)
class Try:
    """One run of a scenario. verdict: None where it failed; why: the sentence that says why it did; failed: what a
    command then exits with."""

    scenario: str
    number: int
    seed: int
    folder: Path
    verdict: VerdictView | None
    why: str = ""
    failed: int = EXIT_SUITE

    @property
    def word(self) -> str:
        """What it came to."""
        return "failed" if self.verdict is None else self.verdict.verdict.value

    @property
    def exit_code(self) -> int:
        """As a command that runs this one only would have it."""
        return self.failed if self.verdict is None else self.verdict.exit_code

    @property
    def refuted(self) -> list[str]:
        """The clauses that it breaks; of two by the same event the more specific one."""
        found = () if self.verdict is None else self.verdict.of(ClauseVerdict.REFUTED)
        return [each.id for each in found if not each.hidden]

    @property
    def missed(self) -> list[str]:
        """What makes it inconclusive, or fail."""
        if self.verdict is None:
            return [self.why]
        failed = (check for check in self.verdict.met if check.ok is False)
        return [f"not met: {check.title}: {check.detail}" for check in failed]


@dataclass(frozen=True, slots=True)
class Bounds:
    """rounds: None for as many as the budget allows. budget_s: no run begins after it, but the first.

    lenient: a scenario that does not fit the target is left out, since nobody named it.
    """

    rounds: int | None = 1
    budget_s: float | None = None
    lenient: bool = False


@dataclass(slots=True)
class Tried:
    """All tries of a search. left_out: the scenarios that the target can't have, each with the reason."""

    tries: list[Try] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """That of the try that says most; where there was none, nothing can be said."""
        if not self.tries:
            return EXIT_INCONCLUSIVE
        codes = {each.exit_code for each in self.tries}
        return next((code for code in WORST_FIRST if code in codes), EXIT_UPHELD)

    @property
    def green(self) -> set[str]:
        """The scenarios that held in every try, and those that nobody could try."""
        bad = {each.scenario for each in self.tries if each.exit_code != EXIT_UPHELD}
        return {each.scenario for each in self.tries if each.scenario not in bad} | set(
            self.left_out
        )

    def rows(self) -> Iterator[tuple[str, str, str, str]]:
        """A table: the scenario, how many tries, what they came to, what broke in how many of them."""
        for name in dict.fromkeys(each.scenario for each in self.tries):
            tries = [each for each in self.tries if each.scenario == name]
            words = Counter(each.word for each in tries)
            broken = Counter(clause for each in tries for clause in each.refuted)
            missed = Counter(why for each in tries if not each.refuted for why in each.missed)
            told = [f"{clause} in {times} of {len(tries)}" for clause, times in broken.items()]
            told += [f"{why} ({times} of {len(tries)})" for why, times in missed.items()]
            came_to = ", ".join(f"{times} {word}" for word, times in words.most_common())
            yield name, str(len(tries)), came_to, "; ".join(told)
        for name, why in self.left_out.items():
            yield name, "0", "left out", why


Scenarios = Mapping[str, Callable[[int, Path], VerdictView]]
"""By name how one is run, with its seed and its folder."""


def in_rounds(
    scenarios: Scenarios, tried: Tried, *, seed: int, out: Path, bounds: Bounds
) -> Iterator[Try]:
    """Run every scenario, round after round, each round with a seed of its own; each try when it is over.

    A run that fails is told, and no end. Raises UsageError for what a user can mend, where she named the scenarios; a
    scenario that turns out not to fit the target is left out otherwise. Raises Unavailable where the
    target's server is gone, and DriverBug for a driver that is wrong: it would be in every scenario.
    """
    until_s = None if bounds.budget_s is None else now_s() + bounds.budget_s
    for number in count(1) if bounds.rounds is None else range(1, bounds.rounds + 1):
        for name, go in scenarios.items():
            if until_s is not None and now_s() >= until_s and tried.tries:
                return
            if name in tried.left_out:
                continue
            folder = out / name if bounds.rounds == 1 else out / name / str(number)
            its_seed = seed + number - 1
            try:
                made = Try(name, number, its_seed, folder, go(its_seed, folder))
            except UsageError as error:
                if not bounds.lenient or isinstance(error, Unavailable):
                    raise
                tried.left_out[name] = str(error)
                continue
            except DriverBug:
                raise
            except InorderError as error:
                code = error.exit_code
                made = Try(name, number, its_seed, folder, None, str(error), code)
            tried.tries.append(made)
            yield made
        if not tried.tries:
            return


def sentence(made: Try) -> str:
    """A try in a line."""
    told = [*made.refuted] or made.missed
    return " ".join([made.word, *([f"({'; '.join(told)})"] if told else [])])
