"""All small histories about a clause: what its definition says of each, and what the product says.

    python -m tests.definitions.enumeration [CLAUSE...] [--rows N] [--drawn N] [--seed N]

A history is a word over one of the clause's two alphabets. All words up to some length are taken, but of two that
differ only in who is called alice and who bob the first one, and then longer ones that are drawn at random.
A difference is one of three: the definition says broken and the product says nothing (missed) or that it may be
(doubted), or the product is certain and the definition says kept (invented).
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from itertools import chain, islice, product
from pathlib import Path
from typing import Protocol, cast

from specs.clauses.catalogue import get
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.plan.config import Config
from specs.verdicts.examine import Examiner
from specs.vocabulary import Kind
from tests.definitions.alphabets import ALPHABETS, Alphabet
from tests.definitions.known import is_known
from tests.definitions.wrong import rules_of

PAGES = Path(__file__).parents[2] / "docs" / "clauses"
SEED = 20240917
LONGEST = 12
EXCUSES_OF = {
    "SND-10": frozenset({Kind.SEND}),
    "ORD-6": frozenset({Kind.SEND}),
    "DLQ-4": frozenset({Kind.DEAD_LETTER, Kind.READ}),
}
"""Where no other row than those that a clause needs can excuse: a second send of the id with another content, a send
that chose first, a second dead letter of a message or a second place of it."""
ROWS, DRAWN = 4, 2_000
TOGETHER = 2_000
"""So many histories are judged at once."""


class Definition(Protocol):
    """A module that says what breaks one clause."""

    def broken(self, rows: Sequence[Row], config: Config) -> bool: ...


def definition(clause: str) -> Definition:
    name = clause.lower().replace("-", "_")
    return cast(Definition, import_module(f"tests.definitions.{name}"))


@cache
def named_on_page(clause: str, sentence: str) -> frozenset[Kind]:
    """The kinds that the clause's page names in the line that begins so."""
    for line in (PAGES / f"{clause}.md").read_text(encoding="utf-8").splitlines():
        if line.startswith(f"- {sentence}"):
            return frozenset(Kind(kind) for kind in re.findall(r"`(\w+)`", line))
    return frozenset()


def needs(clause: str) -> frozenset[Kind]:
    return named_on_page(clause, "Needs rows of")


def excuses(clause: str) -> frozenset[Kind]:
    return EXCUSES_OF.get(clause) or named_on_page(clause, "Could be excused by rows of")


@dataclass(frozen=True)
class Verdict:
    """What the product says of a history: how often the clause was at stake, and whether it was broken."""

    at_stake: int
    certain: bool
    possible: bool


def judge(clause: str, info: RunInfo, rows: Sequence[Row]) -> Verdict:
    return judge_together(clause, info, [rows])[0]


def judge_together(clause: str, info: RunInfo, histories: Sequence[Sequence[Row]]) -> list[Verdict]:
    """Of each history by itself; many are judged at once, as the runs of one history."""
    examiner = Examiner(info, [get(clause)])
    if not examiner.benches:  # the clause does not apply
        return [Verdict(0, False, False)] * len(histories)
    (bench,) = examiner.benches
    bench.kept = []
    for number, rows in enumerate(histories):
        examiner.feed(row._replace(run=str(number)) for row in rows)
    examiner.result()
    found = [{True: False, False: False} for _ in histories]
    for finding in bench.kept:
        found[int(finding.rows[0].run)][finding.certain] = True
    return [
        Verdict(bench.times.get(str(number), 0), each[True], each[False])
        for number, each in enumerate(found)
    ]


def words(alphabet: Alphabet, rows: int) -> Iterator[tuple[int, ...]]:
    """All words up to that length, without those that a change of names makes of an earlier one."""
    renaming = alphabet.renaming
    for length in range(1, rows + 1):
        for word in product(range(len(alphabet.symbols)), repeat=length):
            first = renaming is None or word <= tuple(renaming[index] for index in word)
            if first and alphabet.allows(word):
                yield word


def drawn(
    alphabet: Alphabet, number: int, seed: int, *, shortest: int = 3
) -> Iterator[tuple[int, ...]]:
    rng = random.Random(seed)
    for _ in range(number):
        length = rng.choice((rng.randint(shortest, 6), rng.randint(shortest, LONGEST)))
        # Few of the symbols, often: what is about one thing comes together.
        few = rng.sample(range(len(alphabet.symbols)), min(6, len(alphabet.symbols)))
        word = tuple(rng.choice(few) for _ in range(length))
        if alphabet.allows(word):
            yield word


@dataclass
class Count:
    """What came of the histories of one alphabet, and the shortest one of each difference."""

    histories: int = 0
    at_stake: int = 0
    refuted: int = 0
    excused: int = 0
    differences: dict[str, int] = field(default_factory=dict)
    shortest: dict[str, tuple[Alphabet, tuple[int, ...]]] = field(default_factory=dict)
    noticed: set[str] = field(default_factory=set)
    """The wrong judges (`wrong.py`) that some history told from the definition."""

    def differs(self, how: str, alphabet: Alphabet, word: tuple[int, ...]) -> None:
        self.differences[how] = self.differences.get(how, 0) + 1
        if how not in self.shortest or len(word) < len(self.shortest[how][1]):
            self.shortest[how] = (alphabet, word)


def difference(broken: bool, verdict: Verdict) -> str | None:
    """How the product's verdict differs from the definition's, if it does."""
    if broken and not verdict.certain:
        return "doubted" if verdict.possible else "missed"
    return "invented" if verdict.certain and not broken else None


def compare(clause: str, rows: int, number: int, seed: int = SEED) -> Count:
    """Ask both about every history: the enumerated ones and as many drawn ones, of either alphabet."""
    count = Count()
    for alphabet in ALPHABETS[clause]:
        every = chain(words(alphabet, rows), drawn(alphabet, number, seed))
        while some := list(islice(every, TOGETHER)):
            histories = [alphabet.history(word) for word in some]
            verdicts = judge_together(clause, alphabet.info, histories)
            for word, history, verdict in zip(some, histories, verdicts, strict=True):
                _take(count, clause, alphabet, word, history, verdict)
    return count


def _take(
    count: Count,
    clause: str,
    alphabet: Alphabet,
    word: tuple[int, ...],
    history: Sequence[Row],
    verdict: Verdict,
) -> None:
    info = alphabet.info
    broken = definition(clause).broken(history, info.config)
    count.histories += 1
    count.at_stake += verdict.at_stake > 0
    count.refuted += broken and verdict.certain
    count.excused += not broken and _excused(clause, info, history)
    for rule in rules_of(clause):
        name = rule.__name__
        if name not in count.noticed:
            shown = rule(history, info.config, excuses(clause))
            if definition(clause).broken(*shown) != broken:
                count.noticed.add(name)
    how = difference(broken, verdict)
    if how:
        shortest = _shortened(clause, alphabet, word, how)
        known = is_known(clause, how, alphabet.history(shortest))
        count.differs(f"{how}, as known" if known else how, alphabet, shortest)


def _shortened(clause: str, alphabet: Alphabet, word: tuple[int, ...], how: str) -> tuple[int, ...]:
    """The history without the symbols that the difference does not need."""
    for index in range(len(word)):
        shorter = (*word[:index], *word[index + 1 :])
        history = alphabet.history(shorter)
        broken = definition(clause).broken(history, alphabet.info.config)
        if shorter and difference(broken, judge(clause, alphabet.info, history)) == how:
            return _shortened(clause, alphabet, shorter, how)
    return word


def _excused(clause: str, info: RunInfo, history: Sequence[Row]) -> bool:
    """Does one row alone, of a kind that may excuse, keep the history from breaking the clause?"""
    judge_by = definition(clause).broken
    return any(
        row.kind in excuses(clause)
        and judge_by([*history[:index], *history[index + 1 :]], info.config)
        for index, row in enumerate(history)
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.definitions.enumeration")
    parser.add_argument("clauses", nargs="*", metavar="CLAUSE")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--drawn", type=int, default=DRAWN)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args(arguments)
    lines = [
        "| clause | histories | at stake | refuted | excused | differences |",
        "|---|" + "---:|" * 5,
    ]
    shown = []
    for clause in options.clauses or sorted(ALPHABETS):
        count = compare(clause, options.rows, options.drawn, options.seed)
        different = ", ".join(f"{number} {how}" for how, number in count.differences.items())
        lines.append(
            f"| {clause} | {count.histories} | {count.at_stake} | {count.refuted} | {count.excused}"
            f" | {different or 0} |"
        )
        shown += [
            f"\n{clause} {how}:\n{where[0].text(where[1])}"
            for how, where in sorted(count.shortest.items())
        ]
    sys.stdout.write("\n".join([*lines, *shown]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
