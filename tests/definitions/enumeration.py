"""All small histories about a clause: what its definition says of each, and what the product says.

    python -m tests.definitions.enumeration [CLAUSE...] [--rows N] [--drawn N] [--near N] [--seed N]
    python -m tests.definitions.enumeration --stakes [CLAUSE...]

A history is a word over one of the clause's alphabets. All words up to some length are taken, but of two that
differ only in who is called alice and who bob the first one, and then longer ones that are drawn at random, and ones
that are near what breaks the definition (`nearby.py`); of the latter some are asked again at the begin of a queue, and
with other numbers in the configuration, and some by twos in one run (`beside.py`).
A difference is one of four: the definition says broken and the product says nothing (missed) or that it may be
(doubted), or the product is certain and the definition says kept (invented), or it is certain where it sees a part of
such a history and is told so (accused: `parts.py`). Of broken histories parts are asked as well, and counted.
How often a clause is at stake, and what its findings are called, a definition does not say. So `stakes.txt` has the
sums over the histories of the tests, as they were when somebody looked; whoever changes a judge, an alphabet or a
definition so that one moves says why, and writes the lines of the clause anew (`--stakes`; a quarter of an hour for
all).
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from itertools import chain, islice, pairwise, product
from pathlib import Path
from typing import NamedTuple, Protocol, cast

from specs.clauses.catalogue import get
from specs.clauses.judging import Finding
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.plan.config import Config
from specs.verdicts.examine import find_in_each
from specs.vocabulary import Kind
from tests.definitions.alphabets import ALPHABETS, Alphabet, Step, Word
from tests.definitions.beside import together
from tests.definitions.nearby import nearby, wide
from tests.definitions.parts import breaks_anything, parts
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
FEWER = 2
"""Of so many that are near one is asked again, with other offsets or numbers of the configuration."""
PAIRS = 3
"""Of so many that are near one is asked together with the next one."""
NOT_NEAR = frozenset({("PML-2", 2)})
"""Alphabets near whose broken histories none are drawn, but all of three symbols are asked: leases that one name stands
for at one time, of which its page says nothing."""
STAKES = Path(__file__).with_name("stakes.txt")
TOGETHER = 2_000
"""So many histories are judged at once."""


class Size(NamedTuple):
    """How many histories are asked: all words of so many rows, and so many drawn, and drawn near what breaks."""

    rows: int
    drawn: int
    near: int


SHORT, LONG = Size(2, 100, 2_000), Size(4, 2_000, 4_000)
SIZES = {"short": SHORT, "long": LONG}


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
    found: Counter[str] = field(default_factory=Counter)
    """The findings by their names, those that are possible with a question mark."""


def judge(clause: str, info: RunInfo, rows: Sequence[Row]) -> Verdict:
    return judge_together(clause, info, [rows])[0]


def judge_together(clause: str, info: RunInfo, histories: Sequence[Sequence[Row]]) -> list[Verdict]:
    """Of each history by itself."""
    found = find_in_each(get(clause), info, histories)
    return [_verdict(times, findings) for times, findings in found]


def _verdict(times: int, findings: Sequence[Finding]) -> Verdict:
    certain = {finding.certain for finding in findings}
    names = Counter(finding.name + "?" * (not finding.certain) for finding in findings)
    return Verdict(times, True in certain, False in certain, names)


def words(alphabet: Alphabet, rows: int) -> Iterator[Word]:
    """All words up to that length, without those that a change of names makes of an earlier one."""
    renaming = alphabet.renaming
    for length in range(1, rows + 1):
        for word in product(range(len(alphabet.symbols)), repeat=length):
            first = renaming is None or word <= tuple(renaming[index] for index in word)
            steps = tuple(map(Step, word))
            if first and alphabet.allows(steps):
                yield steps


def drawn(alphabet: Alphabet, number: int, seed: int, *, shortest: int = 3) -> Iterator[Word]:
    rng = random.Random(seed)
    for _ in range(number):
        length = rng.choice((rng.randint(shortest, 6), rng.randint(shortest, LONGEST)))
        # Few of the symbols, often: what is about one thing comes together.
        few = rng.sample(range(len(alphabet.symbols)), min(6, len(alphabet.symbols)))
        word = tuple(Step(rng.choice(few)) for _ in range(length))
        if alphabet.allows(word):
            yield word


@dataclass
class Count:
    """What came of the histories of one alphabet, and the shortest one of each difference."""

    histories: int = 0
    at_stake: int = 0
    opportunities: int = 0
    found: Counter[str] = field(default_factory=Counter)
    refuted: int = 0
    excused: int = 0
    differences: dict[str, int] = field(default_factory=dict)
    shortest: dict[str, str] = field(default_factory=dict)
    noticed: set[str] = field(default_factory=set)
    """The wrong judges (`wrong.py`) that some history told from the definition."""

    def add(self, verdict: Verdict) -> None:
        self.opportunities += verdict.at_stake
        self.found += verdict.found

    @property
    def stakes(self) -> str:
        """How often it was at stake, and how often each of its findings was made."""
        found = (f"{name}={times}" for name, times in sorted(self.found.items()))
        return " ".join([str(self.opportunities), *found])

    def differs(self, how: str, history: str) -> None:
        self.differences[how] = self.differences.get(how, 0) + 1
        known = self.shortest.get(how)
        if known is None or history.count("\n") < known.count("\n"):
            self.shortest[how] = history


def difference(broken: bool, verdict: Verdict) -> str | None:
    """How the product's verdict differs from the definition's, if it does."""
    if broken and not verdict.certain:
        return "doubted" if verdict.possible else "missed"
    return "invented" if verdict.certain and not broken else None


def compare(clause: str, size: Size, seed: int = SEED) -> Count:
    """Ask both about every history of each of the clause's alphabets."""
    count = Count()
    for place, alphabet in enumerate(ALPHABETS[clause]):
        if (clause, place) in NOT_NEAR:
            every = chain(words(alphabet, max(size.rows, 3)), drawn(alphabet, size.drawn, seed))
            _ask(count, clause, alphabet, every)
            continue
        every = chain(words(alphabet, size.rows), drawn(alphabet, size.drawn, seed))
        _ask(count, clause, alphabet, every)
        wider = wide(clause, place)
        breaks = partial(_breaks, clause, wider)
        found = list(nearby(clause, place, breaks, size.near, seed))
        _ask(count, clause, wider, iter(found))
        others = list(wider.otherwise())
        for index, other in enumerate(others):
            alike = filter(other.can_have, found[index :: FEWER * len(others)])
            _ask(count, clause, other, alike)
        _ask_by_twos(count, clause, wider, list(pairwise(found))[::PAIRS])
    return count


@cache
def stakes() -> dict[tuple[str, str], str]:
    """By clause and size: how often it was at stake, and found what, when somebody looked."""
    lines = (line.split(" ", 2) for line in STAKES.read_text(encoding="utf-8").splitlines())
    return {(clause, size): told for clause, size, told in lines}


def write_stakes(clauses: Sequence[str]) -> None:
    """Write the lines of these clauses anew, by all processors."""
    asked = [(clause, size) for clause in clauses for size in SIZES]
    with ProcessPoolExecutor() as pool:
        told = zip(asked, pool.map(_stakes_of, *zip(*asked, strict=True)), strict=True)
        every = sorted({**stakes(), **dict(told)}.items())
    lines = (f"{clause} {size} {told}\n" for (clause, size), told in every)
    STAKES.write_text("".join(lines), encoding="utf-8")


def _stakes_of(clause: str, size: str) -> str:
    return compare(clause, SIZES[size]).stakes


def _breaks(clause: str, alphabet: Alphabet, word: Word) -> bool:
    return definition(clause).broken(alphabet.history(word), alphabet.info.config)


def _ask(count: Count, clause: str, alphabet: Alphabet, every: Iterator[Word]) -> None:
    while some := list(islice(every, TOGETHER)):
        histories = [alphabet.history(word) for word in some]
        verdicts = judge_together(clause, alphabet.info, histories)
        each = zip(some, histories, verdicts, strict=True)
        broken = [_take(count, clause, alphabet, *one) for one in each]
        for law, info, left in parts(clause, alphabet.info, enumerate(histories)):
            told = judge_together(clause, info, [rows for _, rows in left])
            for (number, _), verdict in zip(left, told, strict=True):
                count.add(verdict)
                if broken[number] or not verdict.certain:
                    continue
                if not breaks_anything(alphabet.info, histories[number]):
                    count.differs(f"accused, {law}", alphabet.text(some[number]))


def _ask_by_twos(
    count: Count, clause: str, alphabet: Alphabet, pairs: Sequence[tuple[Word, Word]]
) -> None:
    histories = [together(alphabet, *pair) for pair in pairs]
    verdicts = judge_together(clause, alphabet.info, histories)
    judge_by, config = definition(clause).broken, alphabet.info.config
    for pair, history, verdict in zip(pairs, histories, verdicts, strict=True):
        count.add(verdict)
        how = difference(judge_by(history, config), verdict)
        if how:
            count.differs(f"{how}, beside another", "\n# and\n".join(map(alphabet.text, pair)))


def _take(
    count: Count,
    clause: str,
    alphabet: Alphabet,
    word: Word,
    history: Sequence[Row],
    verdict: Verdict,
) -> bool:
    """Is it broken?"""
    info = alphabet.info
    broken = definition(clause).broken(history, info.config)
    count.histories += 1
    count.at_stake += verdict.at_stake > 0
    count.add(verdict)
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
        count.differs(how, alphabet.text(_shortened(clause, alphabet, word, how)))
    return broken


def _shortened(clause: str, alphabet: Alphabet, word: Word, how: str) -> Word:
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
    parser.add_argument("--rows", type=int, default=LONG.rows)
    parser.add_argument("--drawn", type=int, default=LONG.drawn)
    parser.add_argument("--near", type=int, default=LONG.near)
    parser.add_argument("--stakes", action="store_true")
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args(arguments)
    clauses = options.clauses or sorted(ALPHABETS)
    if options.stakes:
        write_stakes(clauses)
        return 0
    size = Size(options.rows, options.drawn, options.near)
    lines = [
        "| clause | histories | at stake | refuted | excused | differences |",
        "|---|" + "---:|" * 5,
    ]
    shown = []
    for clause in clauses:
        count = compare(clause, size, options.seed)
        different = ", ".join(f"{number} {how}" for how, number in count.differences.items())
        lines.append(
            f"| {clause} | {count.histories} | {count.at_stake} | {count.refuted} | {count.excused}"
            f" | {different or 0} |"
        )
        shown += [
            f"\n{clause} {how}:\n{history}" for how, history in sorted(count.shortest.items())
        ]
    sys.stdout.write("\n".join([*lines, *shown]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
