"""What is asked of a changed module: the transcripts, the laws and the comparison, of the clauses that rest on it.

Questions hold rows and names alone, no judge: they are answered in another process, by the changed code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from random import Random
from typing import TypeVar

from inorder.evidence import laws
from inorder.evidence.operators.helpers import helper
from inorder.evidence.operators.histories import History, Prepared, Valid
from inorder.evidence.operators.pools import Side
from specs.clauses.catalogue import get
from specs.clauses.transcript import Expected
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.history.text import parse_history

FEW = 6
"""So many clauses are held to the laws in as many histories each, more of them in one each."""
AS_IT_IS = "as it is"
NEAR, NEAR_MOST = 100, 1000
"""So many drawn histories near each of a transcript's, and near all of them, besides what is a step away."""
STEPS_MOST = 3000
"""So many that are a step away: of more, some at equal steps."""
FEW_STEP, NEAR_FEW = 4, 3
"""Where many clauses are asked: near every so manieth of their examples, and so many that are drawn."""
STEPS_FEW = 120
"""And so many of a clause that are a step away, none of them looked for at a turn."""
KEPT = 8
"""The histories near the transcripts of so many clauses are kept at a time."""
SHARED_STEP = 4
"""And of many clauses every so manieth drawn history is asked."""
PLANTED_STEP = 4
"""Of what was planted for other clauses every so manieth is asked: it has hardly ever told more."""
_Some = TypeVar("_Some")
MOST = 100
"""Questions of the laws, at equal steps where there are more: of a module that many clauses rest on."""


class Answer(StrEnum):
    """What a law says that must come out."""

    NOTHING_REFUTED = "nothing refuted"
    REFUTED = "refuted"
    NOT_AT_STAKE = "not at stake"


@dataclass(frozen=True, slots=True)
class Example:
    """Of a clause's transcript. expected: the word."""

    clause: str
    number: int
    expected: str
    info: RunInfo
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class LawQuestion:
    """clauses: which ones are asked; each of them has to give the answer."""

    law: str
    name: str
    clauses: tuple[str, ...]
    answer: Answer
    info: RunInfo
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A history of which both engines have to say the same, of these clauses."""

    history: History
    clauses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Questions:
    """side: whose text was changed; the laws are held by its engine. compared: in the order in which they are asked."""

    side: Side
    clauses: tuple[str, ...]
    examples: tuple[Example, ...]
    laws: tuple[LawQuestion, ...]
    compared: tuple[Comparison, ...]


def questions_of(side: Side, clauses: tuple[str, ...], known: Prepared) -> Questions:
    """Of these clauses."""
    return Questions(
        side,
        clauses,
        tuple(each for clause in clauses for each in examples_of(clause)),
        _at_steps(tuple(_laws(clauses, known)), MOST),
        tuple(_compared(clauses, known)),
    )


def _compared(clauses: tuple[str, ...], known: Prepared) -> Iterator[Comparison]:
    """What was planted for the clauses, what is near, what was drawn, and the rest; of many, each what is its own."""
    own = [each for each in known.planted if each.clause in clauses]
    for each in own:
        yield Comparison(each, (each.clause or "",))
    is_shared = len(clauses) > FEW
    for clause in clauses:
        for each in near_few(clause) if is_shared else near(clause):
            yield Comparison(each, (clause,))
    others = [each for each in known.planted if each.clause not in (None, *clauses)]
    whole = [each for each in known.planted if each.clause is None]
    drawn = known.drawn[:: SHARED_STEP if is_shared else 1]
    for each in (*whole, *drawn, *(own if is_shared else others)[::PLANTED_STEP]):
        yield Comparison(each, clauses)


def _at_steps(asked: tuple[_Some, ...], most: int) -> tuple[_Some, ...]:
    return asked[:: -(-len(asked) // most)] if asked else ()


@cache
def examples_of(clause: str) -> tuple[Example, ...]:
    """A clause's transcript, read."""
    return tuple(
        Example(clause, number, each.expected.value, *parse_history(each.text))
        for number, each in enumerate(get(clause).examples, start=1)
    )


@lru_cache(KEPT)
def near(clause: str) -> tuple[History, ...]:
    """Histories near those of a clause's transcript, each of them once: those that are drawn and those at which an
    answer turns, all of them, and as many others as there may be."""
    examples = examples_of(clause)
    turning, drawn = helper("neighbours")["turns"], min(NEAR, NEAR_MOST // len(examples))
    found = list(_drawn(clause, examples, drawn))
    for each in examples:
        words = f"{clause} {each.number}"
        found += (
            History(f"near {words}", info, rows, clause)
            for info, rows in turning(each.info, each.rows, get(clause), words)
        )
    return (*_once(found), *_at_steps(_once(_steps(clause, examples)), STEPS_MOST))


@cache
def near_few(clause: str) -> tuple[History, ...]:
    """Some of them."""
    examples = examples_of(clause)[::FEW_STEP]
    steps = _at_steps(_once(_steps(clause, examples)), STEPS_FEW)
    return (*_once(_drawn(clause, examples, NEAR_FEW)), *steps)


def _drawn(clause: str, examples: Sequence[Example], count: int) -> Iterator[History]:
    """So many near each of these."""
    nearby, settings = helper("nearby")["nearby"], get(clause).settings
    for each in examples:
        words = f"{clause} {each.number}"
        for turn in range(count):
            info, rows = nearby(each.info, each.rows, Random(f"{words} {turn}"), settings)
            yield History(f"near {words}", info, rows, clause)


def _steps(clause: str, examples: Sequence[Example]) -> Iterator[History]:
    """All that are a step from each of these."""
    steps, others = helper("neighbours")["steps"], [each.rows for each in examples_of(clause)]
    for each in examples:
        words = f"{clause} {each.number}"
        for info, rows in steps(each.info, each.rows, get(clause), others, words):
            yield History(f"near {words}", info, rows, clause)


def _once(histories: Iterable[History]) -> tuple[History, ...]:
    """Each of them once, whatever its name."""
    return tuple({(repr(each.info), tuple(each.rows)): each for each in histories}.values())


def _laws(clauses: tuple[str, ...], known: Prepared) -> Iterator[LawQuestion]:
    for clause in clauses:
        yield from _about_broken(clause)
    for valid in _chosen(clauses, known):
        history = valid.history
        asked = tuple(each for each in clauses if each not in valid.against)
        nothing = asked, Answer.NOTHING_REFUTED
        yield LawQuestion(AS_IT_IS, history.name, *nothing, history.info, history.rows)
        for law, changed in valid.changed.items():
            for info, rows in changed:
                yield LawQuestion(law, history.name, *nothing, info, rows)
        for clause in clauses:
            if clause in valid.at_stake:
                both = history.info, list(history.rows)
                for info, rows in laws.without_what_it_needs(both, get(clause)):
                    yield LawQuestion(
                        laws.NEEDS, history.name, (clause,), Answer.NOT_AT_STAKE, info, rows
                    )


@cache
def _about_broken(clause: str) -> tuple[LawQuestion, ...]:
    return tuple(
        LawQuestion(law, f"{clause} {each.number}", (clause,), Answer.REFUTED, info, rows)
        for each in examples_of(clause)
        if each.expected == Expected.BROKEN
        for law, change in laws.LEFT_BROKEN.items()
        for info, rows in change((each.info, list(each.rows)))
    )


def _chosen(clauses: tuple[str, ...], known: Prepared) -> list[Valid]:
    """The shortest histories in which each clause is at stake often enough, and the long ones that no law changes."""
    least = FEW if len(clauses) <= FEW else 1
    missing = dict.fromkeys(clauses, least)
    found: list[Valid] = []
    for valid in sorted(known.valid, key=lambda each: len(each.history.rows)):
        wanted = [each for each in valid.at_stake if missing.get(each, 0)]
        if wanted:
            found.append(valid)
            for each in wanted:
                missing[each] -= 1
    return found
