"""What is asked of a changed module: transcripts, definitions and laws of the clauses that rest on it.

Questions hold rows and names alone, no judge: they are answered in another process, by the changed code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from inorder.evidence import laws
from inorder.evidence.operators.histories import Prepared, Valid
from inorder.evidence.operators.pools import source_of
from specs.clauses.catalogue import all_clauses, get
from specs.clauses.transcript import Expected
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.history.text import parse_history

FEW = 6
"""So many clauses are held to the laws in as many histories each, more of them in one each."""
AS_IT_IS, PLANTED = "as it is", "planted"
MOST = 100
"""Questions of the laws, at equal steps where there are more: of a module that many clauses rest on."""


class Answer(StrEnum):
    """What a law says that must come out."""

    NOTHING_REFUTED = "nothing refuted"
    REFUTED = "refuted"
    NOT_AT_STAKE = "not at stake"


@dataclass(frozen=True, slots=True)
class Example:
    """Of a clause's transcript. expected: the word; at_stake: how often, where that is written down."""

    clause: str
    number: int
    expected: str
    at_stake: int | None
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
class Questions:
    """defined: those of the clauses that have a definition."""

    clauses: tuple[str, ...]
    defined: tuple[str, ...]
    examples: tuple[Example, ...]
    laws: tuple[LawQuestion, ...]


def questions_of(clauses: tuple[str, ...], known: Prepared) -> Questions:
    """Of these clauses."""
    return Questions(
        clauses,
        tuple(clause for clause in clauses if clause in defined()),
        tuple(each for clause in clauses for each in examples_of(clause)),
        (
            *_at_steps(tuple(_planted(clauses, known)), MOST),
            *_at_steps(tuple(_laws(clauses, known)), MOST),
        ),
    )


@cache
def defined() -> frozenset[str]:
    """The clauses that have a definition: a checkout has them."""
    files = (source_of("specs").parents[1] / "tests" / "definitions").glob("*_*.py")
    known = {clause.id for clause in all_clauses()}
    return frozenset(known) & {each.stem.upper().replace("_", "-") for each in files}


def _planted(clauses: tuple[str, ...], known: Prepared) -> Iterator[LawQuestion]:
    for each in known.planted:
        if each.clause is None:
            nothing = clauses, Answer.NOTHING_REFUTED
            yield LawQuestion(PLANTED, each.name, *nothing, each.info, each.rows)
        elif each.clause in clauses:
            refuted = (each.clause,), Answer.REFUTED
            yield LawQuestion(PLANTED, each.name, *refuted, each.info, each.rows)


def _at_steps(asked: tuple[LawQuestion, ...], most: int) -> tuple[LawQuestion, ...]:
    return asked[:: -(-len(asked) // most)] if asked else ()


@cache
def examples_of(clause: str) -> tuple[Example, ...]:
    """A clause's transcript, read."""
    examples = get(clause).examples
    told = at_stake().get(clause, ())
    stakes = told if len(told) == len(examples) else [None] * len(examples)
    return tuple(
        Example(clause, number, each.expected.value, times, *parse_history(each.text))
        for number, (each, times) in enumerate(zip(examples, stakes, strict=True), start=1)
    )


@cache
def at_stake() -> dict[str, tuple[int, ...]]:
    """How often each clause is at stake in each example of its transcript, as the tests have it."""
    file = source_of("specs").parents[1] / "tests" / "spark_checkers" / "at_stake.txt"
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return {
        clause: tuple(int(each) for each in times)
        for clause, *times in (line.split() for line in lines)
    }


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
