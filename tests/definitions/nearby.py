"""Histories near what breaks a definition: one thing more, less or other than a shortest history that does.

Of all small histories most say nothing: a slip of a judge shows where one thing more excuses, where one less does not,
and where a time meets its limit. So these histories are found by the definition alone: the shortest ones that break it
(cores) among the small ones, and among what grew of others; and what one to three changes make of a core. A change
takes a symbol in, out or for another one (also of the clause's other alphabet), lets something else be of another lane
or another worker, or moves a time to just where the definition changes its mind.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import product

from specs.history.text import VERBS
from specs.vocabulary import Kind, Outcome
from tests.definitions.alphabets import ALPHABETS, Alphabet, Step, Word
from tests.definitions.words import end_of

STEADY = (Kind.ADD, Kind.DROP, Kind.CRASH, Kind.CLOCK_STEP, Kind.READ)
"""Kinds that last as long as their symbol says: instants, and readings, which an alphabet fits to what they find."""
Breaks = Callable[[Word], bool]
LONGEST = 9
SMALL = 3
GROWN = 600
"""So many longer words are tried for cores."""


NARROW = frozenset({"ORD-4", "PML-2"})
"""Histories of the other alphabets' symbols, or of other lanes, are not drawn for these, whose pages leave open what
they say: what a new owner may know of messages after a reset, or with other groups at work; and which leases a renewal
is about where only some name theirs."""


OF_OVERLAPS = frozenset({"ORD-3"})
"""The clause that says that calls of an incarnation do not overlap: other pages leave open what such calls say."""


@cache
def wide(clause: str, number: int) -> Alphabet:
    """One of the clause's alphabets, with the symbols of the other one and what could be confused with a symbol."""
    alphabet = ALPHABETS[clause][number]
    own, borrowed = alphabet.texts, _borrowed(clause, number)
    twins = [twin for text in (*own, *borrowed) for twin in _twins(text)]
    return replace(alphabet, lines="\n".join(dict.fromkeys((*own, *borrowed, *twins))))


def _borrowed(clause: str, number: int) -> list[str]:
    """The symbols of the clause's other alphabets."""
    own, others = ALPHABETS[clause][number].texts, ALPHABETS[clause]
    return list(dict.fromkeys(text for each in others for text in each.texts if text not in own))


def _twins(text: str) -> Iterator[str]:
    """What differs from a symbol in one thing alone."""
    for pattern, others in _CONFUSED:
        for other in others:
            twin = re.sub(pattern, other, text)
            if twin != text:
                yield twin
    for word in re.finditer(r" (\w+)=(\d+)(?![+\w.])", text):
        least = 1 if word[1] in ("attempt", "code") else 0
        for number in (int(word[2]) + 1, int(word[2]) - 1):
            if word[1] in _COUNTS and number >= least:
                yield text[: word.start(2)] + str(number) + text[word.end() :]
    for word in re.finditer(r""" (\w+)=("[^"]*"|'[^']*'|\S+)""", text):
        if word[1] in _MAY_LACK and not re.search(_NEEDED.get(word[1], "^$"), text):
            yield text[: word.start()] + text[word.end() :]
    yield from _without_an_end(text)
    for verb, others in _MAY_SAY.items():
        for other in others:
            if f" {verb} " in text and f" {other.partition('=')[0]}=" not in text:
                yield re.sub(r"( (?:at|id|value)=\S+)", rf"\1 {other}", text, count=1)


def _without_an_end(text: str) -> Iterator[str]:
    """The same of which no end is seen, without what only its answer tells."""
    known = re.match(rf"[1-9]\d*( \S+ +(\w+) .*?)(?: (?:{'|'.join(Outcome)}))?$", text)
    if known is None or ";" in text or VERBS[known[2]] in {*STEADY, *_OF_ITS_END}:
        return
    rest = known[1]
    if known[2] in _ANSWERED:
        rest = re.sub(r" value=\d+", "", rest)
    if known[2] == "sends":
        rest = re.sub(r"\bat=(\d+)\b", r"id=m\1", rest)
    yield f"..{rest}"


_OF_ITS_END = (Kind.RECEIVE, Kind.PROGRESS, Kind.PERSIST, Kind.TRIM)
"""Kinds of rows that are there when something has come."""
_ANSWERED = ("sends", "fetches", "pulls")
"""Verbs of which the answer tells a value, or where a message lies."""
_CONFUSED: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"\bLANE\b", ("audit/orders/b0/3", "billing/orders/b0/4")),
    (r"\bQUEUE\b", ("orders/b0/4",)),
    (r"\balice\b", ("bob",)),
    (r"\bbob\b", ("alice",)),
    (r"^((?!.* sends ).*) ok$", (r"\1 unknown", r"\1 refused")),
    (r"\bsuccess$", ("suspend", "unknown")),
    (r"\bsuspend$", ("success", "unknown")),
    # An answer that nobody has tells no place.
    (r"^(.* sends .*)\bat=(\d+)(.*) ok$", (r"\1id=m\2\3 unknown", r"\1id=m\2\3 refused")),
    # Some rows tell the place of their message alone, requests its id alone, and a queue begins with 0.
    (r"\bat=(\d+)(?= )", (r"offset=\1", "at=0")),
    (r"( (?:acks|releases|renews) .*)\bat=(\d+)(?= )", (r"\1id=m\2",)),
    (r"\blease=r1\b", ("lease=r2",)),
)


_COUNTS = {
    "attempt",
    "broker_epoch",
    "code",
    "delay",
    "delay_level",
    "generation",
    "rt",
    "suspend",
    "value",
}
"""Columns of numbers of which one more or one less is another thing that may be."""
_TEXTS = {
    "body",
    "detail",
    "id",
    "inc",
    "key",
    "key_seq",
    "lease",
    "mode",
    "origin",
    "props",
    "tags",
    "until",
    "view",
}
_MAY_LACK = _COUNTS | _TEXTS
"""Columns that nobody has to tell, but in rows of these verbs."""
_NEEDED = {"value": " (?:commits|trims) ", "detail": " suffers "}
_MAY_SAY = {
    "delivers": ("inc=2", "mode=manual", "rt=0", "rt=1", "attempt=2"),
    "dead-letters": ("inc=-", "inc=2", "attempt=2", "mode=manual"),
    "commits": ("inc=-", "inc=2"),
    "sends": ("attempt=2",),
}
"""By verb what a row may say besides. What `process` says is not tried: two processes under one client id are another
world, of which most pages say nothing."""


def nearby(clause: str, number: int, breaks: Breaks, many: int, seed: int) -> Iterator[Word]:
    """So many words of the wide alphabet, each once."""
    return _Search(clause, number, breaks, seed).found(many)


class _Search:
    def __init__(self, clause: str, number: int, breaks: Breaks, seed: int) -> None:
        self.clause, self.alphabet = clause, wide(clause, number)
        self.own = len(ALPHABETS[clause][number].symbols)
        self.near = self.own + len(_borrowed(clause, number))
        self.all = len(self.alphabet.symbols)
        if clause in NARROW:
            self.near = self.all = self.own
        self.tick_us = self.alphabet.tick_ms * 1_000
        self.rng = random.Random(seed)
        self.breaks = cache(breaks)
        self.cores: dict[tuple[int, ...], Word] = {}

    def found(self, many: int) -> Iterator[Word]:
        self._find_cores()
        told: set[Word] = set()
        for _ in range(20 * many):
            if len(told) >= many or not self.cores:
                return
            for word in self._one_more():
                if word not in told:
                    told.add(word)
                    yield word

    def _find_cores(self) -> None:
        for later_us in (0, self.tick_us):  # some limits are longer than a few ticks
            for length in range(1, SMALL + 1):
                for symbols in product(range(self.own), repeat=length):
                    self._learn(tuple(Step(symbol, later_us) for symbol in symbols))
            if self.cores:
                break
        for turn in range(GROWN):
            most = self.own if turn % 2 else self.near
            few = self.rng.sample(range(most), min(6, most))
            length = self.rng.randint(SMALL + 1, LONGEST)
            waits = self.rng.choices((0, self.tick_us, 3 * self.tick_us), (6, 2, 1), k=length)
            self._learn(tuple(Step(self.rng.choice(few), later_us=us) for us in waits))

    def _learn(self, word: Word) -> None:
        """Keep the shortest part of it that breaks the definition."""
        if self.alphabet.allows(word) and self.breaks(word):
            core = self._shortest(word)
            self.cores.setdefault(tuple(step.symbol for step in core), core)

    def _shortest(self, word: Word) -> Word:
        for index in range(len(word)):
            shorter = _without(word, index)
            if shorter and self.breaks(shorter):
                return self._shortest(shorter)
        return word

    def _one_more(self) -> Iterator[Word]:
        """A core, and what some changes make of it; whatever breaks the definition is a new place to begin."""
        word = self.rng.choice(list(self.cores.values()))
        for _ in range(self.rng.choice((1, 1, 2, 3))):
            before = word
            word = self.rng.choice(self._CHANGES)(self, word)
            if word == before or not word or not self.alphabet.allows(word) or len(word) > LONGEST:
                return
        if self._is_tied(word) or self._is_odd(word):
            return
        if self.breaks(word):
            self._learn(word)
        yield word
        if self.rng.random() < 0.3:
            yield from self._edge(word)

    # ---------------------------------------------------------------------------------- changes

    def _symbol(self) -> int:
        most = self.rng.choice((self.own, self.near, self.all, self.all))
        return self.rng.randrange(most)

    def _more(self, word: Word) -> Word:
        place = self.rng.randint(0, len(word))
        return (*word[:place], Step(self._symbol()), *word[place:])

    def _less(self, word: Word) -> Word:
        return _without(word, self.rng.randrange(len(word)))

    def _other(self, word: Word) -> Word:
        return self._with(word, lambda step: step._replace(symbol=self._symbol()))

    def _swapped(self, word: Word) -> Word:
        place = self.rng.randrange(len(word))
        return (*word[:place], *word[place : place + 2][::-1], *word[place + 2 :])

    def _timed(self, word: Word) -> Word:
        half_us = self.tick_us // 2
        if self.rng.random() < 0.5:
            moved = self.rng.choice((-2, -1, 1, 2, 3, 4, 6, 10)) * half_us
            return self._with(word, lambda step: step._replace(later_us=moved))
        longer = self.rng.choice((1, 2, 3, 4, 8)) * half_us
        return self._with(
            word, lambda step: step._replace(longer_us=longer * self._may_be_longer(step))
        )

    def _may_be_longer(self, step: Step) -> bool:
        symbol = self.alphabet.symbols[step.symbol]
        return bool(symbol.lasts) and not any(row.kind in STEADY for row in symbol.rows)

    def _with(self, word: Word, change: Callable[[Step], Step]) -> Word:
        place = self.rng.randrange(len(word))
        return (*word[:place], change(word[place]), *word[place + 1 :])

    _CHANGES = (_more, _more, _more, _less, _other, _other, _swapped, _timed)

    def _edge(self, word: Word) -> Iterator[Word]:
        """A time of the word moved to where the definition changes its mind: the last moment before, and that one."""
        place = self.rng.randrange(len(word))
        name = self.rng.choice(("later_us", "longer_us"))
        if name == "longer_us" and not self._may_be_longer(word[place]):
            return

        def moved(us: int) -> Word:
            return (*word[:place], word[place]._replace(**{name: us}), *word[place + 1 :])

        low = -self.tick_us if name == "later_us" else 0
        high = self.rng.choice((4, 12)) * self.tick_us
        was = self.breaks(moved(low))
        if was == self.breaks(moved(high)):
            return
        while high - low > 1_000:
            middle = (low + high) // 2_000 * 1_000
            low, high = (middle, high) if self.breaks(moved(middle)) == was else (low, middle)
        yield from (
            each
            for each in (moved(low), moved(high))
            if not self._is_tied(each) and not self._is_odd(each)
        )

    def _is_tied(self, word: Word) -> bool:
        """Does something begin or end just when something else does? What came first nobody can tell from times."""
        marks = [mark for span in self.alphabet.spans(word) for mark in {*span} - {None}]
        return len(marks) != len({*marks})

    def _is_odd(self, word: Word) -> bool:
        """Do two calls of one incarnation overlap, of which another clause says that they may not?"""
        if self.clause in OF_OVERLAPS or self.alphabet.info.config.mode != "orderly":
            return False
        calls = [row for row in self.alphabet.history(word) if row.kind is Kind.DELIVER]
        return any(
            first.seq_begin < second.seq_begin < end_of(first)
            and first.op_id != second.op_id
            and (first.lane, first.client_id, first.process, first.incarnation)
            == (second.lane, second.client_id, second.process, second.incarnation)
            for first in calls
            for second in calls
        )


def _without(word: Word, index: int) -> Word:
    return (*word[:index], *word[index + 1 :])
