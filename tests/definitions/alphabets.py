"""The symbols of which the small histories about each clause are made: two alphabets of at most twelve for each.

PML-2 has a third one, since its statement has two parts.

The rule by which they are chosen:

- Each kind of row that the clause needs is in both.
- Each kind that could excuse (the clause's page lists them) is in one of the two at least.
- Two workers (and carol, where one client's requests would overlap) and up to three offsets; who sends, drains or
  watches is somebody else.
- Where the statement speaks of what happens at the same time, some symbols last beyond the next ones.
- Times are multiples of one tick, and limits are numbers of ticks, so that the edge itself is met.

A symbol is a line of the text notation with, in place of the time, how long it lasts: 0 for an instant, 1 for the
half of its own tick, 2 for half of the next one too, and so on; `..` never ends. With a `!` before it, a symbol stands
in a history once at most, as a final drain does. LANE, QUEUE and DEAD stand for a lane, its queue and the lane of its
dead letters, `at=17` for `offset=17 id=m17`, and `at=17+18` for two messages of one call. What stands after a semicolon
lasts just as long, as a message does that a reading finds. `until=` counts from the symbol's own begin.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.history.text import parse_history
from specs.vocabulary import DLQ_PREFIX, Kind

_WORDS = {
    "LANE": "billing/orders/b0/3",
    "QUEUE": "orders/b0/3",
    "DEAD": "billing/%DLQ%billing/b0/0",
}
MOST_SYMBOLS = 12
MOST_ROWS = 10


@dataclass(frozen=True)
class Symbol:
    """One thing that may happen: its rows at time 0, and how many ticks it lasts (None: for ever)."""

    text: str
    rows: tuple[Row, ...]
    lasts: int | None
    once: bool = False


class Step(NamedTuple):
    """A symbol of a history. later_us: how much later than a tick after the one before it begins; longer_us: how much
    longer than its symbol says it lasts."""

    symbol: int
    later_us: int = 0
    longer_us: int = 0


Word = tuple[Step, ...]


@dataclass(frozen=True)
class Alphabet:
    """Symbols, the configuration of the run, and how long a tick is, in ms. lower: how much lower all offsets are."""

    lines: str
    config: str = ""
    tick_ms: int = 10
    lower: int = 0

    @cached_property
    def texts(self) -> tuple[str, ...]:
        return tuple(line.strip() for line in self.lines.strip().splitlines())

    @cached_property
    def symbols(self) -> tuple[Symbol, ...]:
        return tuple(_symbol(text) for text in self.texts)

    @cached_property
    def info(self) -> RunInfo:
        """The run of all its histories."""
        lines = [line for symbol in self.symbols for line in _lines(symbol.text)[1]]
        return parse_history([self.header, *lines])[0]

    @property
    def header(self) -> str:
        return f"config {self.config}" if self.config else ""

    @cached_property
    def renaming(self) -> tuple[int, ...] | None:
        """Where alice and bob may change places: to which symbol each one then turns; None where they may not."""
        swapped = [_swap(text) for text in self.texts]
        if sorted(swapped) != sorted(self.texts):
            return None
        return tuple(self.texts.index(text) for text in swapped)

    def allows(self, word: Word) -> bool:
        """Does each symbol that may come once come once at most?"""
        once = [step.symbol for step in word if self.symbols[step.symbol].once]
        return len(once) == len(set(once))

    def text(self, word: Word) -> str:
        """A history in the text notation."""
        shown = [f"# all offsets are lower by {self.lower}"] if self.lower else []
        shown += [self.header] if self.header else []
        spans = self.spans(word)
        for place, (step, (begin_us, end_us)) in enumerate(zip(word, spans, strict=True)):
            shown += _lines(self.symbols[step.symbol].text, place, begin_us, end_us)[1]
        return "\n".join(shown)

    def history(self, word: Word) -> list[Row]:
        """The rows of a history: one symbol begins at each tick."""
        rows = place([self.symbols[step.symbol] for step in word], self.spans(word))
        return [_lowered(row, self.lower) for row in rows] if self.lower else rows

    def otherwise(self) -> Iterator[Alphabet]:
        """The same where the lowest offset is the first one of a queue, or where one number is configured otherwise."""
        places = [row.queue_offset or 0 for symbol in self.symbols for row in symbol.rows]
        if any(places):
            yield replace(self, lower=min(filter(None, places)))
        words = self.config.split()
        for index, word in enumerate(words):
            if number := re.fullmatch(r"(\w+)=(\d+)", word):
                longer = int(number[2]) + (self.tick_ms if number[1].endswith("_ms") else 1)
                for other in ((), (f"{number[1]}={longer}",)):
                    config = " ".join([*words[:index], *other, *words[index + 1 :]])
                    yield replace(self, config=config)

    def can_have(self, word: Word) -> bool:
        """Is nothing at the first offset of a queue already, where that is another one's here?"""
        rows = [row for step in word for row in self.symbols[step.symbol].rows]
        return not self.lower or all(row.queue_offset != 0 or _is_of_copies(row) for row in rows)

    def spans(self, word: Word) -> list[tuple[int, int | None]]:
        """When each symbol begins and ends, in µs; None: never."""
        tick_us = self.tick_ms * 1_000
        # The first one begins at 0, whatever it says.
        begins = accumulate(
            tick_us + (step.later_us if place else 0) for place, step in enumerate(word)
        )
        return [
            (begin - tick_us, _end(self.symbols[step.symbol], begin - tick_us, tick_us, step))
            for begin, step in zip(begins, word, strict=True)
        ]


_TELLS_A_PLACE = {
    Kind.ADD,
    Kind.COMMIT,
    Kind.FETCH_OFFSET,
    Kind.PERSIST,
    Kind.PROGRESS,
    Kind.PULL,
    Kind.READ,
    Kind.RESET,
    Kind.TRIM,
}
"""Kinds of rows whose value is an offset."""


def _is_of_copies(row: Row) -> bool:
    """Topics of dead letters begin at 0 in each alphabet."""
    return (row.topic or "").startswith(DLQ_PREFIX)


def _lowered(row: Row, by: int) -> Row:
    if _is_of_copies(row):
        return row
    if row.queue_offset:
        row = row._replace(queue_offset=row.queue_offset - by)
    if row.kind in _TELLS_A_PLACE and row.value is not None and row.value > 0:
        row = row._replace(value=max(row.value - by, 0))
    return row


def place(symbols: Sequence[Symbol], spans: Sequence[tuple[int, int | None]]) -> list[Row]:
    """Give each symbol its time, and begins and ends their places in the order; ties go by the order of symbols."""
    marks: list[tuple[int, int, int, int]] = []  # time, symbol, begin or end, row
    for index, (symbol, (began_us, ended_us)) in enumerate(zip(symbols, spans, strict=True)):
        for number in range(len(symbol.rows)):
            marks.append((began_us, index, 0, number))
            if symbol.lasts and ended_us is not None:
                marks.append((ended_us, index, 1, -number))
    seq_of = {mark[1:]: seq for seq, mark in enumerate(sorted(marks), start=1)}
    placed = []
    for index, (symbol, (began_us, ended_us)) in enumerate(zip(symbols, spans, strict=True)):
        for number, row in enumerate(symbol.rows):
            begin, until = seq_of[index, 0, number], row.lease_until_us
            placed.append(
                row._replace(
                    seq_begin=begin,
                    seq_end=begin if symbol.lasts == 0 else seq_of.get((index, 1, -number)),
                    op_id=MOST_ROWS * index + (row.op_id or 1),
                    started_us=began_us,
                    ended_us=ended_us,
                    lease_until_us=None if until is None else until + began_us,
                )
            )
    return placed


def _end(symbol: Symbol, began_us: int, tick_us: int, step: Step) -> int | None:
    if symbol.lasts is None:
        return None
    return began_us + (
        symbol.lasts * tick_us - tick_us // 2 + step.longer_us if symbol.lasts else 0
    )


def _lines(
    text: str, index: int = 0, begin_us: int = 0, end_us: int | None = 0
) -> tuple[str, list[str]]:
    """How long it lasts, and its lines of the notation at that time."""
    lasts, rest = text.removeprefix("!").split(None, 1)
    for word, meaning in _WORDS.items():
        rest = rest.replace(word, meaning)
    time = f"{_ms(begin_us)}"
    if lasts != "0":
        time += ".." if lasts == ".." or end_us is None else f"..{_ms(end_us)}"
    rest = re.sub(
        r"\buntil=(\d+)ms", lambda found: f"until={_ms(int(found[1]) * 1_000 + begin_us)}", rest
    )
    lines: list[str] = []
    for part in rest.split(" ; "):
        batch = re.search(r"\bat=([0-9+]+)", part)
        if batch is None:
            lines.append(f"{time} {part}")
            continue
        call = f" call={index}" if "+" in batch[1] else ""
        messages = [f"offset={offset} id=m{offset}{call}" for offset in batch[1].split("+")]
        lines += [f"{time} {part.replace(batch[0], message)}" for message in messages]
    return lasts, lines


def _ms(us: int) -> str:
    return f"{us // 1_000}{f'.{us % 1_000:03}'.rstrip('0').rstrip('.')}ms"


def _symbol(text: str) -> Symbol:
    lasts, lines = _lines(text)
    rows = tuple(parse_history(lines)[1])
    return Symbol(text, rows, None if lasts == ".." else int(lasts), text.startswith("!"))


def _swap(text: str) -> str:
    return re.sub(
        r"\b(alice|bob)\b", lambda found: {"alice": "bob", "bob": "alice"}[found.group()], text
    )


ALPHABETS: dict[str, tuple[Alphabet, ...]] = {
    "ORD-2": (
        Alphabet("""
            1 alice delivers LANE at=17 success
            1 alice delivers LANE at=18 success
            1 alice delivers LANE at=19 success
            1 alice delivers LANE at=18 suspend
            1 bob   delivers LANE at=17 success
            1 bob   delivers LANE at=18 success
            2 alice delivers LANE at=18 success
            0 alice adds     LANE value=17
            0 bob   adds     LANE value=17
            0 admin resets   LANE value=17
            .. admin resets  LANE value=17
        """),
        Alphabet("""
            1 alice delivers LANE at=17 mode=manual success
            1 alice delivers LANE at=18 mode=manual success
            1 alice delivers LANE at=18 mode=manual rollback
            1 alice delivers LANE at=18 mode=- success
            1 alice delivers LANE at=19 mode=- rollback
            1 alice delivers LANE at=17 success
            1 alice delivers LANE at=17 inc=2 success
            1 alice delivers LANE at=18 inc=2 success
            0 alice adds     LANE value=17
            0 alice adds     LANE value=17 inc=2
            0 alice crashes  -
            1 admin resets   LANE value=17
        """),
    ),
    "ORD-3": (
        Alphabet("""
            1 alice delivers LANE at=17 suspend
            1 alice delivers LANE at=18 suspend
            1 alice delivers LANE at=17+18 suspend
            1 alice delivers LANE at=17 success
            1 alice delivers LANE at=18 success
            2 alice delivers LANE at=17 success
            .. alice delivers LANE at=17
            1 bob   delivers LANE at=18 success
            0 alice adds     LANE value=17
            1 admin resets   LANE value=17
            1 alice dead-letters LANE at=17 ok
            0 alice crashes  -
        """),
        Alphabet(
            """
            1 alice delivers LANE at=17 rt=0 suspend
            1 alice delivers LANE at=17 rt=1 suspend
            1 alice delivers LANE at=17 threw
            1 alice delivers LANE at=18 rt=0 success
            1 alice delivers LANE at=17 rt=0 mode=manual rollback
            1 alice delivers LANE at=18 rt=0 mode=manual rollback
            1 alice dead-letters LANE at=17 ok
            1 alice dead-letters LANE at=17 refused
            1 alice dead-letters LANE at=17 unknown
            2 alice dead-letters LANE at=17 ok
            1 alice dead-letters LANE at=17 inc=- ok
            0 admin resets LANE value=17
            """,
            config="max_reconsume_times=1",
        ),
    ),
    "ORD-16": (
        Alphabet(
            """
            5 alice delivers LANE at=17 success
            3 bob   delivers LANE at=18 success
            1 alice locks    LANE ok
            2 carol delivers LANE at=18 success
            0 alice adds     LANE value=17
            0 bob   adds     LANE value=17
            0 alice unlocks  LANE sent
            !0 b0   persists LANE value=17 broker_epoch=1 ; b0 persists LANE value=17 broker_epoch=2
            2 bob   pauses   -
            1 net   suffers  - detail="partition alice b0" ok
            0 b0    crashes  b0
            0 carol steps-clock - value=5
            """,
            config="broker_lease_ms=1600 client_lease_ms=300 guard_slack_ms=100 delay_bound_ms=100",
            tick_ms=100,
        ),
        Alphabet(
            """
            4 alice delivers LANE at=17+18 success
            .. alice delivers LANE at=17
            4 alice delivers LANE at=17 inc=2 cut
            1 bob   delivers LANE at=18 success
            .. alice delivers LANE at=19 process=p2
            0 alice drops    LANE
            0 alice adds     LANE value=17
            0 bob   adds     LANE value=17
            0 alice crashes  -
            0 alice joins    billing
            2 alice leaves   billing
            2 b1    pauses   b1
            """,
            config="system=kafka mode=orderly message_model=clustering",
            tick_ms=500,
        ),
    ),
    "ORD-17": (
        Alphabet(
            """
            2 shop  sends    QUEUE at=18 ok
            0 shop  sends    QUEUE id=m9 detail=half value=0 ok
            1 alice delivers LANE at=17+19 success
            1 alice delivers LANE at=17 success
            1 alice delivers LANE at=19 success
            1 bob   delivers LANE at=18 success
            1 till  sends    QUEUE at=18 unknown ; dora delivers audit/orders/b0/3 at=18 success
            0 alice adds     LANE value=17
            2 alice fetches  LANE inc=1 value=17 ok
            0 b0    crashes  b0
            !0 b0   persists LANE value=17 broker_epoch=1 ; b0 persists LANE value=17 broker_epoch=2
            1 admin resets   LANE value=18
            """,
            config="keep_ms=30",
        ),
        Alphabet(
            """
            1 shop  sends    QUEUE at=18 key=k1 ok
            1 till  sends    QUEUE id=m20 key=k1 unknown
            1 alice delivers LANE at=17 success
            1 bob   adds     LANE value=19 ; bob delivers LANE at=19 success
            0 bob   adds     LANE value=18
            1 bob   delivers LANE at=19 key=k2 success
            1 carol delivers LANE at=20 key=k1 success
            0 alice commits  LANE value=19 sent
            2 b1    pauses   b1
            0 b0    trims    QUEUE value=19
            1 alice pulls    LANE offset=18 value=19 code=21 refused
            1 alice receives LANE unknown
            """,
            config=(
                "system=kafka mode=orderly message_model=clustering subscription=* consume_from=first"
                " retention.ms=40"
            ),
        ),
    ),
    "LSE-2": (
        Alphabet(
            """
            0 alice locks    LANE ok
            0 bob   locks    LANE ok
            1 alice locks    LANE refused
            1 alice delivers LANE at=17 success
            3 alice delivers LANE at=17 success
            5 alice delivers LANE at=17 success
            1 bob   delivers LANE at=17 success
            2 bob   delivers LANE at=18 success
            0 alice unlocks  LANE sent
            2 net   suffers  - detail="cut alice b0" ok
            0 b0    crashes  b0
            2 alice leaves   billing
            """,
            config="broker_lease_ms=300 client_lease_ms=200 delay_bound_ms=100",
            tick_ms=100,
        ),
        Alphabet(
            """
            0 alice locks    LANE ok
            2 bob   locks    LANE ok
            2 alice locks    LANE unknown
            5 alice delivers LANE at=17 success
            .. alice delivers LANE at=17
            2 alice delivers LANE at=17 process=p2 success
            1 bob   delivers LANE at=17 success
            1 bob   pauses   -
            0 alice steps-clock - value=5
            0 alice crashes  -
            0 alice unlocks  LANE ok
            0 alice joins    billing
            """,
            config="broker_lease_ms=300 client_lease_ms=150 guard_slack_ms=50",
            tick_ms=100,
        ),
    ),
    "RTY-5": (
        Alphabet(
            """
            1 alice delivers LANE at=17 rt=0 suspend
            1 alice delivers LANE at=17 rt=1 suspend
            1 alice delivers LANE at=17 rt=1 success
            1 alice delivers LANE at=17+18 rt=1 suspend
            1 alice delivers LANE at=18 rt=0 suspend
            1 alice dead-letters LANE at=17 ok
            1 alice dead-letters LANE at=17 refused
            1 alice dead-letters LANE at=17 unknown
            1 alice dead-letters LANE at=18 refused
            0 alice adds   LANE value=17
            1 admin resets LANE value=17
            1 bob delivers LANE at=17 rt=1 suspend
            """,
            config="max_reconsume_times=1",
        ),
        Alphabet(
            """
            1 alice delivers LANE at=17 rt=0 suspend
            1 alice delivers LANE at=17 rt=1 threw
            1 alice delivers LANE at=17 rt=1 mode=manual suspend
            1 alice delivers LANE at=18 rt=0 mode=manual rollback
            .. alice delivers LANE at=17 rt=1
            1 alice delivers LANE at=17 rt=1 mode=- unknown
            1 alice delivers LANE at=19 rt=0 success
            1 alice delivers LANE at=17 rt=1 inc=2 suspend
            1 alice dead-letters LANE at=17 ok
            1 alice dead-letters LANE at=17 inc=- ok
            3 alice dead-letters LANE at=17 ok
            0 alice crashes -
            """,
            config="max_reconsume_times=1",
        ),
    ),
    "RTY-3": (
        Alphabet(
            """
            1 alice delivers LANE at=17 rt=0 suspend
            1 alice delivers LANE at=17 rt=1 suspend
            1 alice delivers LANE at=17 rt=2 suspend
            1 alice delivers LANE at=17+18 rt=1 suspend
            1 alice delivers LANE at=17+18 rt=2 suspend
            1 alice delivers LANE at=18 rt=0 success
            1 alice dead-letters LANE at=17 ok
            1 alice dead-letters LANE at=17 refused
            1 alice dead-letters LANE at=17 unknown
            0 alice adds   LANE value=17
            1 admin resets LANE value=17
            1 bob delivers LANE at=17 rt=0 suspend
            """,
            config="max_reconsume_times=1",
        ),
        Alphabet("""
            1 alice delivers LANE at=17 rt=0 suspend
            1 alice delivers LANE at=17 rt=1 null
            1 alice delivers LANE at=17 rt=0 mode=manual suspend
            1 alice delivers LANE at=18 rt=0 mode=manual rollback
            1 alice delivers LANE at=18 rt=0 mode=- unknown
            .. alice delivers LANE at=17 rt=1
            1 alice delivers LANE at=19 rt=0 success
            1 alice delivers LANE at=17 rt=0 inc=2 suspend
            0 alice adds LANE value=17 inc=2
            0 alice adds LANE value=17
            0 alice crashes -
            1 alice leaves billing
        """),
    ),
    "DLQ-1": (
        Alphabet(
            """
            1 alice dead-letters LANE at=17 ok
            1 alice dead-letters LANE at=17 code=10 ok
            1 alice dead-letters LANE at=17 refused
            1 bob   dead-letters LANE at=18 ok
            1 drain reads DEAD value=1 ok
            1 drain reads DEAD value=0 unknown
            1 b0    pauses b0
            0 drain reads DEAD offset=0 id=c1 origin=m17 ok
            0 drain reads DEAD offset=1 id=c2 ok
            0 b0    trims DEAD value=1
            1 drain reads billing/%DLQ%billing/b0/1 value=0 ok
            0 b0    crashes b0
            """,
            config="dead_letter_bound_ms=15 keep_ms=30",
        ),
        Alphabet(
            """
            1 alice delivers LANE at=17 rt=0 suspend
            1 alice delivers LANE at=17 rt=1 suspend
            1 alice delivers LANE at=18 rt=0 success
            1 alice dead-letters LANE at=17 ok
            1 alice dead-letters LANE at=17 refused
            1 drain reads DEAD value=0 ok
            0 drain reads DEAD offset=0 id=m17 ok
            0 alice adds   LANE value=17
            0 alice adds   DEAD value=0
            1 bob delivers DEAD offset=0 id=c1 success
            1 admin resets LANE value=18
            0 alice crashes -
            """,
            config="dead_letter_bound_ms=10 max_reconsume_times=1",
        ),
    ),
    "CMT-1": (
        Alphabet("""
            1 alice delivers LANE at=17 success
            1 alice delivers LANE at=17 suspend
            2 alice delivers LANE at=17 success
            1 alice delivers LANE at=18 success
            1 alice delivers LANE at=17 mode=manual success
            1 alice delivers LANE at=18 mode=manual commit
            0 alice commits  LANE value=18 sent
            0 alice commits  LANE value=19 sent
            0 alice adds     LANE value=17
            1 bob   delivers LANE at=17 success
            1 alice dead-letters LANE at=17 ok
            1 shop  sends    QUEUE at=18 ok
        """),
        Alphabet(
            """
            1 alice delivers LANE at=17 rt=0 suspend
            1 alice delivers LANE at=17 rt=1 suspend
            1 alice delivers LANE at=17 rt=0 mode=manual rollback
            1 alice delivers LANE at=17 rt=0 mode=- success
            1 alice commits  LANE value=18 sent
            1 alice commits  LANE value=18 detail=corrected sent
            1 alice fetches  LANE value=18 inc=1 ok
            .. alice fetches LANE inc=1
            1 alice pulls    LANE offset=17 value=18 code=21 refused
            0 b0    trims    QUEUE value=18
            1 admin resets   LANE value=18
            0 alice drops    LANE
            """,
            config="max_reconsume_times=1",
        ),
    ),
    "SND-1": (
        Alphabet(
            """
            1 shop  sends QUEUE at=17 ok
            1 shop  sends QUEUE at=18 ok
            3 shop  sends QUEUE at=17 ok
            1 shop  sends QUEUE at=17 code=10 ok
            1 shop  sends QUEUE id=m17 unknown
            1 drain reads QUEUE value=18 ok
            3 drain reads QUEUE value=19 ok
            1 drain reads QUEUE value=17 ok
            0 drain reads QUEUE at=17 ok
            0 drain reads QUEUE offset=17 id=m99 ok
            0 b0    trims QUEUE value=18
            1 b0    pauses b0
            """,
            config="delay_bound_ms=15 keep_ms=15",
        ),
        Alphabet(
            """
            1 shop  sends QUEUE at=17 ok
            1 shop  sends QUEUE at=18 delay=1 ok
            1 shop  sends QUEUE at=18 ok
            1 drain reads QUEUE value=18 ok
            1 drain reads QUEUE value=18 unknown
            2 drain reads QUEUE value=17 ok
            0 drain reads QUEUE at=17 ok
            0 b0    crashes b0
            0 b0    trims QUEUE value=18
            0 b0    steps-clock b0 value=5
            2 b0    suffers b0 detail="disk_full b0" ok
            1 shop  sends QUEUE at=17 code=12 ok
            """,
            config="flush=async flush_ms=5 schedule_slack_ms=5 disk_slack_ms=5 delay_bound_ms=10 keep_ms=20",
        ),
    ),
    "LIV-1": (
        Alphabet("""
            0 alice adds     LANE value=17
            0 bob   adds     LANE value=18
            1 alice delivers LANE at=17 success
            1 alice delivers LANE at=17 suspend
            1 bob   delivers LANE at=17 success
            1 alice dead-letters LANE at=17 ok
            0 alice drops    LANE
            0 alice crashes  -
            2 alice leaves   billing
            !1 drain reads   QUEUE value=18 detail=settled ok ; drain reads QUEUE at=17 ok
            !1 drain reads   QUEUE value=19 detail=settled ok ; drain reads QUEUE at=18 ok
        """),
        Alphabet(
            """
            0 alice adds     LANE value=17
            1 alice fetches  LANE value=18 inc=1 ok
            0 alice joins    billing
            2 alice leaves   billing
            2 alice delivers LANE at=17 success
            1 alice delivers LANE at=17 mode=manual success
            0 alice drops    LANE
            1 admin resets   LANE value=18
            !1 drain reads   QUEUE value=18 detail=settled ok ; drain reads QUEUE at=17 ok
            !1 drain reads   QUEUE value=19 ok ; drain reads QUEUE at=17 ok
            0 bob   adds     LANE value=18
            """,
            config="consume_from=last",
        ),
    ),
    "ORD-9": (
        Alphabet("""
            1 shop sends QUEUE at=17 ok
            1 shop sends QUEUE at=18 ok
            1 till sends QUEUE at=18 ok
            2 till sends QUEUE at=17 ok
            1 till sends QUEUE id=m19 offset=17 ok
            1 shop sends orders/b0/4 at=18 ok
            1 shop sends QUEUE at=16 delay=1 ok
            1 shop sends QUEUE at=16 refused
            0 b0   crashes b0
            0 b1   crashes b1
            1 shop sends %RETRY%billing/b0/3 at=17 ok
            0 drain reads QUEUE at=17 ok
        """),
        Alphabet("""
            1 shop sends QUEUE at=18 ok
            1 shop sends QUEUE id=m17 unknown
            1 shop sends QUEUE id=m17 attempt=2 ok
            .. shop sends QUEUE id=m16
            3 till sends QUEUE id=m17 ok
            0 drain reads QUEUE at=17 ok
            0 drain reads QUEUE at=19 ok
            0 drain reads QUEUE offset=15 id=m16 ok
            0 drain reads orders/b0/4 at=17 ok
            0 b0   crashes b0
            1 shop sends QUEUE at=18 refused
        """),
    ),
    "ORD-12": (
        Alphabet("""
            1 alice delivers LANE at=17 key=k1 key_seq=4 success
            1 alice delivers LANE at=18 key=k1 key_seq=5 success
            1 bob   delivers LANE at=17 key=k1 key_seq=4 success
            1 bob   delivers LANE at=18 key=k1 key_seq=5 success
            2 alice delivers LANE at=18 key=k1 key_seq=5 success
            1 alice delivers LANE at=17 key=k2 key_seq=4 success
            1 alice delivers LANE at=19 key=k1 key_seq=3 success
            1 alice delivers LANE at=17 key=k1 suspend
            1 bob   delivers billing/orders/b0/4 at=17 key=k1 key_seq=4 success
            1 admin resets   LANE value=17
            .. admin resets  LANE value=17
            0 b0    trims    QUEUE value=18
        """),
        Alphabet(
            """
            1 alice delivers LANE at=17 key=k1 key_seq=4 success
            1 alice delivers LANE at=18 key=k1 key_seq=5 success
            1 bob   delivers LANE at=17 key=k1 key_seq=4 success
            1 bob   delivers LANE at=18 key=k1 key_seq=5 success
            1 alice delivers LANE at=17 key=k1 key_seq=4 inc=2 success
            0 alice adds     LANE value=17
            0 alice adds     LANE value=17 inc=2
            0 alice crashes  -
            0 b0    trims    QUEUE value=18
            0 b0    trims    QUEUE value=17
            1 admin resets   LANE value=17
            """,
            config="consume_from=last",
        ),
    ),
    "ORD-13": (
        Alphabet("""
            0 alice drops    LANE
            0 bob   drops    LANE
            0 alice adds     LANE value=17
            0 bob   adds     LANE value=17
            1 alice delivers LANE at=17 success
            1 bob   delivers LANE at=17 success
            1 alice delivers LANE at=18 suspend
            2 alice delivers LANE at=17 success
            .. alice delivers LANE at=17
            0 alice drops    LANE refused
            0 alice drops    billing/orders/b0/4
        """),
        Alphabet("""
            0 alice drops    LANE
            0 alice drops    LANE inc=2
            0 alice adds     LANE value=17
            0 alice adds     LANE value=17 inc=2
            0 alice adds     LANE value=17 refused
            1 alice delivers LANE at=17 success
            1 alice delivers LANE at=17 inc=2 success
            3 alice delivers LANE at=18 inc=2 success
            0 alice crashes  -
            0 alice joins    billing
            1 alice leaves   billing
        """),
    ),
    "LSE-1": (
        Alphabet(
            """
            0 alice locks   LANE ok
            0 bob   locks   LANE ok
            2 alice locks   LANE ok
            2 bob   locks   LANE ok
            1 alice locks   LANE refused
            1 bob   locks   LANE unknown
            0 alice unlocks LANE sent
            1 alice unlocks LANE ok
            1 bob   unlocks LANE ok
            .. alice unlocks LANE
            0 b0    crashes b0
            0 alice steps-clock - value=5
            """,
            config="broker_lease_ms=300 delay_bound_ms=100",
            tick_ms=100,
        ),
        Alphabet(
            """
            1 alice locks   LANE ok
            3 bob   locks   LANE ok
            1 bob   locks   LANE ok
            1 alice unlocks LANE refused
            2 alice unlocks LANE ok
            1 alice unlocks LANE unknown
            1 alice locks   billing/orders/b0/4 ok
            1 alice unlocks billing/orders/b0/4 ok
            0 b0    crashes b0
            0 b1    crashes b1
            0 alice crashes -
            """,
            config="broker_lease_ms=250 delay_bound_ms=150",
            tick_ms=100,
        ),
    ),
    "LSE-4": (
        Alphabet(
            """
            0 alice locks   LANE ok
            0 bob   locks   LANE ok
            0 alice locks   LANE refused
            0 bob   locks   LANE refused
            2 carol locks   LANE refused
            1 alice locks   LANE unknown
            1 alice unlocks LANE ok
            0 alice unlocks LANE sent
            0 b0    crashes b0
            0 alice steps-clock - value=5
            2 net   suffers - detail="duplicate alice b0" ok
            0 alice locks   LANE code=1 refused
            """,
            config="broker_lease_ms=200 delay_bound_ms=100",
            tick_ms=100,
        ),
        Alphabet(
            """
            1 alice locks   LANE ok
            1 alice locks   LANE refused
            1 bob   locks   LANE refused
            3 carol locks   LANE ok
            .. carol locks  LANE
            1 bob   joins   billing
            0 alice joins   billing
            1 bob   delivers LANE at=17 success
            0 bob   unlocks LANE sent
            0 b0    crashes b0
            1 bob   locks   billing/orders/b0/4 ok
            """,
            config="broker_lease_ms=150 delay_bound_ms=150",
            tick_ms=100,
        ),
    ),
    "CMT-4": (
        Alphabet(
            """
            0 alice commits LANE value=17 sent
            0 alice commits LANE value=18 sent
            2 alice commits LANE value=18 view=pull ok
            1 alice commits LANE value=17 view=pull ok
            1 alice commits LANE value=17 refused
            1 bob   commits LANE value=17 ok
            0 alice adds    LANE value=17
            1 alice fetches LANE value=17 ok
            .. alice fetches LANE inc=1
            1 admin resets  LANE value=17
            1 alice commits LANE value=16 detail=corrected ok
            1 alice pulls   LANE offset=18 value=17 code=21 refused
            """,
            config="schedule_slack_ms=15",
        ),
        Alphabet("""
            1 alice commits LANE value=17 ok
            1 alice commits LANE value=18 ok
            1 alice commits LANE value=17 inc=2 ok
            1 alice commits LANE value=18 inc=2 ok
            0 alice adds    LANE value=17
            0 alice adds    LANE value=17 inc=2
            0 alice crashes -
            1 alice leaves  billing
            0 alice joins   billing
            1 alice pulls   LANE offset=17 value=18 ok
            1 alice fetches LANE value=17 inc=2 ok
        """),
    ),
    "CMT-5": (
        Alphabet(
            """
            0 alice locks   LANE ok
            0 bob   locks   LANE ok
            2 bob   locks   LANE ok
            0 alice unlocks LANE sent
            2 alice unlocks LANE ok
            0 alice locks   LANE ok ; alice unlocks LANE sent
            0 alice commits LANE value=18 sent
            0 bob   commits LANE value=18 sent
            2 alice leaves  billing
            0 alice crashes -
            0 b0    crashes b0
            0 alice steps-clock - value=5
            """,
            config="broker_lease_ms=600",
            tick_ms=100,
        ),
        Alphabet(
            """
            0 alice locks   LANE ok
            1 bob   locks   LANE ok
            1 alice locks   LANE unknown
            0 alice locks   LANE ok ; alice unlocks LANE inc=1 sent
            0 alice locks   LANE ok ; alice unlocks LANE sent
            0 alice commits LANE value=18 sent
            1 alice commits LANE value=18 refused
            0 alice joins   billing
            1 alice leaves  billing
            0 alice crashes -
            1 alice commits LANE value=18 inc=2 ok
            """,
            config="broker_lease_ms=600",
            tick_ms=100,
        ),
    ),
    "RTY-1": (
        Alphabet(
            """
            1 alice delivers LANE at=17 suspend=20 suspend
            1 alice delivers LANE at=17 threw
            1 alice delivers LANE at=17 success
            1 alice delivers LANE at=18 suspend=5 suspend
            1 alice delivers LANE at=17+18 suspend=20 suspend
            1 bob   delivers LANE at=17 success
            2 alice delivers LANE at=17 success
            0 alice adds     LANE value=17
            1 admin resets   LANE value=17
            1 alice dead-letters LANE at=17 ok
            1 alice dead-letters LANE at=17 refused
            1 alice dead-letters LANE at=17 unknown
            """,
            config="suspend_ms=16",
            tick_ms=11,
        ),
        Alphabet(
            """
            1 alice delivers LANE at=17 rt=0 suspend=26 suspend
            1 alice delivers LANE at=17 rt=1 suspend=26 suspend
            1 alice delivers LANE at=17 rt=1 mode=manual suspend=26 rollback
            1 alice delivers LANE at=18 rt=0 mode=manual rollback
            1 alice delivers LANE at=18 rt=0 mode=- unknown
            .. alice delivers LANE at=18 rt=0
            1 alice delivers LANE at=17 rt=1 inc=2 success
            1 alice dead-letters LANE at=17 ok
            0 alice crashes  -
            0 alice adds     LANE value=17 inc=2
            """,
            config="max_reconsume_times=1",
            tick_ms=10,
        ),
    ),
    "PML-1": (
        Alphabet(
            """
            1 alice receives LANE offset=17 until=30ms ok
            1 bob   receives LANE offset=17 until=30ms ok
            3 bob   receives LANE offset=17 until=30ms ok
            1 alice receives LANE offset=18 until=30ms ok
            1 alice acks     LANE offset=17 ok
            1 alice acks     LANE offset=17 refused
            0 alice releases LANE offset=17 sent
            1 bob   releases LANE offset=17 ok
            2 alice renews   LANE offset=17 until=15ms ok
            1 alice renews   LANE offset=17 until=50ms ok
            0 alice steps-clock - value=5
            0 b0    crashes  b0
            """,
            config="delay_bound_ms=12",
        ),
        Alphabet(
            """
            1 alice receives LANE offset=17 ok
            1 bob   receives LANE offset=17 ok
            1 alice receives LANE offset=17 until=26ms ok
            1 bob   receives LANE unknown
            1 bob   acks     LANE offset=17 unknown
            1 bob   acks     LANE offset=18 ok
            0 alice crashes  -
            0 bob   crashes  -
            1 alice leaves   billing
            1 alice pauses   -
            2 net   suffers  - detail="partition alice b0" ok
            1 admin resets   LANE value=17
            """,
            config="delay_bound_ms=12",
        ),
    ),
    "PML-2": (
        Alphabet(
            """
            1 alice receives LANE offset=17 until=30ms ok
            1 bob   receives LANE offset=17 until=30ms ok
            3 bob   receives LANE offset=17 until=30ms ok
            1 alice receives LANE offset=18 until=30ms ok
            1 alice acks     LANE offset=17 ok
            1 alice acks     LANE offset=17 refused
            0 alice releases LANE offset=17 sent
            1 bob   releases LANE offset=17 ok
            2 alice renews   LANE offset=17 until=15ms ok
            1 alice renews   LANE offset=17 until=50ms ok
            0 alice steps-clock - value=5
            0 b0    crashes  b0
            """,
            config="delay_bound_ms=12",
        ),
        Alphabet(
            """
            1 alice receives LANE offset=17 ok
            1 bob   receives LANE offset=17 ok
            1 alice receives LANE offset=17 until=26ms ok
            1 bob   receives LANE unknown
            1 bob   acks     LANE offset=17 unknown
            1 bob   acks     LANE offset=18 ok
            0 alice crashes  -
            0 bob   crashes  -
            1 alice leaves   billing
            1 alice pauses   -
            2 net   suffers  - detail="partition alice b0" ok
            1 admin resets   LANE value=17
            """,
            config="delay_bound_ms=12",
        ),
        # Releases that ask for a pause; all else that could excuse is above.
        Alphabet(
            """
            1 alice receives LANE offset=17 lease=a1 ok
            1 alice receives LANE offset=17 lease=a1 until=22ms ok
            3 bob   receives LANE offset=17 lease=b1 ok
            1 alice releases LANE offset=17 lease=a1 suspend=16 ok
            1 alice releases LANE offset=17 lease=a1 suspend=37 ok
            2 alice releases LANE offset=17 lease=a1 suspend=37 ok
            0 alice releases LANE offset=17 lease=a1 suspend=40 sent
            1 alice releases LANE lease=a1 suspend=40 ok
            1 bob   releases LANE offset=17 lease=a1 suspend=40 ok
            1 alice acks     LANE lease=a1 unknown
            1 alice renews   LANE offset=17 lease=a1 until=60ms ok
            0 alice crashes  -
            """,
            config="delay_bound_ms=12",
        ),
    ),
    "FLR-1": (
        Alphabet(
            """
            1 alice receives LANE offset=17 rt=0 ok
            1 alice receives LANE offset=17 rt=1 ok
            1 bob   receives LANE offset=18 rt=0 ok
            3 alice receives LANE offset=17 rt=0 ok
            1 alice acks     LANE offset=17 ok
            1 alice acks     LANE offset=17 refused
            1 bob   acks     LANE offset=18 unknown
            1 audit witnesses LANE value=18 ok
            2 audit witnesses LANE value=19 ok
            1 admin resets   LANE value=18
            1 alice dead-letters LANE at=17 ok
            0 b0    trims    QUEUE value=18
            """,
            config="max_reconsume_times=1",
        ),
        Alphabet("""
            1 alice receives LANE offset=17 ok
            1 bob   receives LANE offset=17 ok
            1 alice receives LANE unknown
            .. alice acks    LANE offset=17
            1 bob   acks     LANE offset=17 ok
            1 audit witnesses LANE value=17 ok
            1 audit witnesses LANE value=18 ok
            3 audit witnesses LANE value=18 ok
            1 alice dead-letters LANE at=17 refused
            0 b0    trims    QUEUE value=17
            0 b0    trims    QUEUE value=19
        """),
    ),
    "SND-10": (
        Alphabet("""
            1 shop  sends    QUEUE at=17 body=1 tags=red ok
            1 till  sends    QUEUE at=17 body=2 tags=red ok
            2 shop  sends    QUEUE id=m17 body=1 tags=red unknown
            1 shop  sends    QUEUE at=17 ok
            1 alice delivers LANE at=17 body=1 success
            1 alice delivers LANE at=17 body=1 tags=red success
            1 bob   delivers LANE at=17 success
            1 alice delivers LANE at=17 body=2 tags=red success
            2 drain reads    QUEUE at=17 body=1 tags=blue ok
            1 drain reads    QUEUE at=17 body=1 tags=red ok
            1 drain reads    billing/other/b0/3 at=17 body=3 ok
        """),
        Alphabet("""
            1 shop  sends    QUEUE at=17 body=1 key=k1 props=5 delay_level=1 ok
            1 shop  sends    QUEUE at=17 body=1 key=k1 ok
            1 shop  sends    other/b0/3 at=17 body=9 ok
            1 drain reads    QUEUE at=17 body=1 key=k1 ok
            1 drain reads    QUEUE at=17 body=1 key=k2 ok
            1 drain reads    QUEUE at=17 body=1 key=k1 props=6 ok
            1 drain reads    QUEUE at=17 body=1 key=k1 props=5 delay_level=2 ok
            1 alice delivers LANE at=17 body=1 key=k1 delay_level=1 success
            1 alice delivers LANE at=17 body=1 success
            .. alice delivers LANE at=17 body=2
            1 drain reads    DEAD at=17 body=3 ok
        """),
    ),
    "DLQ-3": (
        Alphabet("""
            1 alice dead-letters LANE at=17 ok
            1 alice dead-letters LANE at=17 refused
            1 alice dead-letters LANE at=17 code=10 ok
            1 alice dead-letters LANE at=18 ok
            1 alice delivers LANE at=17 success
            1 alice delivers LANE at=17+18 suspend
            1 alice delivers LANE at=17+18 success
            1 alice delivers LANE at=18 success
            1 bob   delivers LANE at=17 success
            0 alice adds     LANE value=17
            1 admin resets   LANE value=17
        """),
        Alphabet("""
            1 alice dead-letters LANE at=17 ok
            3 alice dead-letters LANE at=17 ok
            1 alice dead-letters LANE at=17 inc=2 ok
            1 alice delivers LANE at=17 suspend
            1 alice delivers LANE at=17 mode=manual success
            1 alice delivers LANE at=18 mode=- rollback
            1 alice delivers LANE at=18 mode=- success
            1 alice delivers LANE at=17 mode=- success
            1 alice delivers LANE at=17 inc=2 success
            0 alice crashes  -
            0 alice adds     LANE value=17 inc=2
            .. admin resets  LANE value=17
        """),
    ),
    "SND-2": (
        Alphabet("""
            1 shop  sends    QUEUE at=17 attempt=1 ok
            1 shop  sends    QUEUE id=m17 attempt=1 unknown
            1 shop  sends    QUEUE id=m17 attempt=1 code=14 refused
            1 shop  sends    QUEUE id=m17 ok
            2 shop  sends    QUEUE id=m17 attempt=1 ok
            1 alice delivers LANE at=17 success
            1 alice delivers LANE offset=18 id=m17 success
            1 drain reads    QUEUE offset=19 id=m17 ok
            1 drain reads    DEAD offset=0 id=c1 origin=m17 ok
            1 drain reads    DEAD offset=1 id=c2 ok
            0 b0    crashes  b0
            2 net   suffers  - detail="duplicate shop b0" ok
        """),
        Alphabet("""
            1 shop  sends    QUEUE at=17 attempt=1 ok
            1 shop  sends    QUEUE at=17 delay=1 attempt=1 ok
            1 till  sends    orders/b0/4 offset=17 id=m17 attempt=1 ok
            1 shop  sends    other/b0/3 id=m16 attempt=1 ok
            .. shop sends    QUEUE id=m17 attempt=1
            1 alice delivers LANE offset=18 id=m17 success
            2 drain reads    QUEUE at=17 ok
            1 drain reads    other/b0/3 at=16 ok
            0 b0    crashes  b0
            1 bob   delivers billing/orders/b0/4 at=17 success
            1 net   suffers  - detail="cut shop b0" ok
        """),
    ),
    "ORD-1": (
        Alphabet("""
            1 shop sends orders/b0/0 at=17 key=k1 view='java-hash b0/0 b0/1' ok
            1 shop sends orders/b0/0 at=18 key=k1 view='java-hash b0/0 b0/1' ok
            1 shop sends orders/b0/1 at=19 key=k1 view='java-hash b0/0 b0/1' ok
            3 shop sends orders/b0/0 at=16 key=k1 view='java-hash b0/0 b0/1' ok
            1 till sends orders/b0/1 at=17 key=k1 view='java-hash b0/0 b0/1' ok
            1 shop sends orders/b0/1 at=18 key=k2 view='java-hash b0/0 b0/1' ok
            1 shop sends orders/b0/0 at=16 key=k1 view='java-hash b0/0 b0/1 b0/2' ok
            1 shop sends orders/b0/1 at=16 key=k1 view='round-robin b0/0 b0/1' ok
            1 shop sends orders/b0/1 at=17 key=k1 view='java-hash b0/0 b0/1' refused
            1 shop sends orders/b0/0 at=17 attempt=2 key=k1 view='java-hash b0/0 b0/1' ok
            0 b0   crashes b0
            0 b1   crashes b1
        """),
        Alphabet("""
            1 shop sends orders/b0/0 at=17 key=k1 view='java-hash b0/0 b0/1' ok
            1 shop sends orders/b0/0 at=16 key=k1 view='java-hash b0/0 b0/1' ok
            2 shop sends orders/b0/1 at=19 key=k1 view='java-hash b0/0 b0/1' ok
            .. shop sends orders/b0/1 id=m18 key=k1 view='java-hash b0/0 b0/1'
            1 shop sends orders/b0/1 at=18 delay=1 key=k1 view='java-hash b0/0 b0/1' ok
            1 shop sends orders/b0/1 id=m18 key=k1 view='java-hash b0/0 b0/1' ok
            1 shop sends orders/b0/1 at=17 key=k1 ok
            1 shop sends orders/b0/1 at=17 key=k1 view=java-hash ok
            1 shop sends other/b0/1  at=17 key=k1 view='java-hash b0/0 b0/1' ok
            1 shop sends orders/b0/1 at=17 view='java-hash b0/0 b0/1' ok
            0 b0   crashes b0
        """),
    ),
    "ORD-6": (
        Alphabet("""
            1 shop sends orders/b0/0 at=17 key=k1 view='java-hash b0/0 b0/1' ok
            1 shop sends orders/b0/1 at=17 key=k1 view='java-hash b0/0 b0/1' ok
            1 till sends orders/b0/0 at=18 key=k1 view='java-hash b0/0 b0/1' ok
            1 till sends orders/b0/1 at=18 key=k1 view='java-hash b0/0 b0/1' ok
            2 dora sends orders/b0/1 id=m19 key=k1 view='java-hash b0/0 b0/1' unknown
            1 till sends orders/b0/1 at=17 key=k2 view='java-hash b0/0 b0/1' ok
            1 till sends orders/b0/1 at=17 key=k1 view='sip-hash b0/0 b0/1' ok
            1 till sends orders/b0/1 at=17 key=k1 view='random b0/0 b0/1' ok
            1 till sends orders/b0/1 at=17 key=k1 ok
        """),
        Alphabet("""
            1 shop sends orders/b0/0 at=17 key=k1 view='java-hash b0/0 b0/1' ok
            1 till sends orders/b1/0 at=17 key=k1 view='java-hash b0/0 b0/1' ok
            1 till sends orders/b0/1 at=17 key=k1 view='java-hash b0/0 b0/1' refused
            .. till sends orders/b0/0 id=m17 key=k1 view='java-hash b0/0 b0/1'
            1 till sends orders/b0/1 at=18 delay=1 key=k1 view='java-hash b0/0 b0/1' ok
            1 till sends other/b0/1 at=17 key=k1 view='java-hash b0/0 b0/1' ok
            1 till sends orders/b0/1 at=17 key=k1 view='java-hash b0/0 b0/1 b0/2' ok
            1 shop sends orders/b0/0 at=17 key=k1 view=java-hash ok
            1 till sends orders/b0/1 at=17 key=k1 view=java-hash ok
            1 shop sends orders/b0/0 at=17 key=k1 view='random b0/0 b0/1' ok
            1 till sends orders/b0/1 at=17 key=k1 view='random b0/0 b0/1' ok
        """),
    ),
    "ORD-7": (
        Alphabet("""
            1 alice delivers LANE at=17 success
            1 bob   delivers LANE offset=17 id=m99 success
            1 alice delivers LANE at=18 success
            1 shop  sends    QUEUE offset=17 id=m99 ok
            3 shop  sends    QUEUE at=17 ok
            1 drain reads    QUEUE at=17 ok
            2 drain reads    QUEUE offset=17 id=m99 ok
            1 drain reads    QUEUE offset=17 id=m99 unknown
            0 alice adds     LANE value=17
            0 bob   adds     LANE value=17
            0 b0    crashes  b0
            1 bob   delivers billing/orders/b0/4 offset=17 id=m99 success
        """),
        Alphabet("""
            1 alice delivers LANE at=17 success
            2 dora  delivers audit/orders/b0/3 offset=17 id=m99 success
            1 alice delivers LANE offset=17 id=m99 inc=2 success
            1 shop  sends    QUEUE offset=17 id=m99 delay=1 ok
            1 shop  sends    QUEUE offset=17 id=m99 refused
            .. shop sends    QUEUE offset=17 id=m99
            0 dora  adds     audit/orders/b0/3 value=17
            0 alice adds     LANE value=17 inc=2
            0 b0    crashes  b0
            0 b1    crashes  b1
            0 drain reads    QUEUE offset=17 ok
            1 shop  sends    %RETRY%billing/b0/3 at=17 ok
        """),
    ),
    "ORD-8": (
        Alphabet("""
            1 drain reads QUEUE value=20 ok
            3 drain reads QUEUE value=20 ok
            5 drain reads QUEUE value=20 ok
            5 drain reads QUEUE value=20 unknown
            0 drain reads QUEUE at=17 ok
            0 drain reads QUEUE at=18 ok
            0 drain reads QUEUE at=19 ok
            1 drain reads QUEUE at=20 ok
            0 drain reads QUEUE offset=18 unknown
            0 b0    trims QUEUE value=18
            0 b0    trims QUEUE value=19
            0 b0    crashes b0
        """),
        Alphabet("""
            4 drain reads QUEUE value=22 ok
            .. drain reads QUEUE value=22
            0 drain reads QUEUE at=17 ok
            0 drain reads QUEUE at=19 ok
            0 audit reads QUEUE at=21 ok
            .. drain reads QUEUE offset=18
            3 drain reads QUEUE at=18 ok
            1 drain reads QUEUE id=m18 unknown
            1 drain reads QUEUE id=m18 ok
            0 b1    crashes b1
            2 b0    trims QUEUE value=20
            1 audit reads QUEUE value=20 ok
        """),
    ),
    "SND-3": (
        Alphabet("""
            1 shop  sends    QUEUE id=m17 attempt=1 code=14 refused
            1 shop  sends    QUEUE id=m17 attempt=2 code=14 refused
            1 shop  sends    QUEUE id=m17 attempt=2 code=10 refused
            1 shop  sends    QUEUE at=17 attempt=2 ok
            2 shop  sends    QUEUE id=m17 attempt=1 code=1 refused
            1 shop  sends    QUEUE id=m17 attempt=1 unknown
            1 alice delivers LANE at=17 success
            1 bob   delivers LANE offset=18 id=m17 suspend
            1 drain reads    QUEUE at=17 ok
            1 drain reads    QUEUE at=17 unknown
            1 drain reads    DEAD offset=0 id=c1 origin=m17 ok
            1 net   suffers  - detail="duplicate shop b0" ok
        """),
        Alphabet("""
            1 shop  sends    QUEUE id=m17 code=14 refused
            3 shop  sends    QUEUE id=m17 attempt=1 code=14 refused
            1 till  sends    other/b0/3 id=m17 attempt=2 code=14 refused
            1 shop  sends    QUEUE id=m17 attempt=3 code=14 refused
            .. shop sends    QUEUE id=m17 attempt=2
            1 shop  sends    QUEUE id=m17 attempt=1 refused
            1 alice delivers LANE at=17 success
            .. alice delivers LANE at=17
            2 drain reads    QUEUE value=18 ok
            1 drain reads    QUEUE at=18 ok
            2 net   suffers  - detail="cut shop b0" ok
            1 alice delivers billing/%RETRY%billing/b0/0 offset=0 id=c1 origin=m17 success
        """),
    ),
    "SND-4": (
        Alphabet("""
            1 shop sends QUEUE id=m17 key=k1 attempt=1 unknown
            1 shop sends QUEUE id=m17 key=k1 attempt=2 unknown
            3 shop sends QUEUE id=m17 key=k1 attempt=1 unknown
            1 shop sends QUEUE at=17 key=k1 attempt=2 ok
            1 shop sends QUEUE id=m17 key=k1 unknown
            1 till sends QUEUE at=17 key=k1 attempt=2 ok
            1 shop sends QUEUE at=17 attempt=2 ok
            1 shop sends QUEUE id=m18 key=k1 attempt=1 unknown
            1 shop sends QUEUE at=18 key=k1 attempt=2 ok
        """),
        Alphabet("""
            1 shop sends QUEUE id=m17 key=k1 attempt=1 code=14 refused
            1 shop sends QUEUE id=m17 key=k1 attempt=3 unknown
            .. shop sends QUEUE id=m17 key=k1 attempt=1
            1 shop sends QUEUE at=17 key=k1 attempt=1 ok
            1 shop sends orders/b0/4 at=17 key=k1 attempt=2 ok
            1 shop sends QUEUE id=m17 attempt=1 unknown
            1 shop sends QUEUE id=m17 key=k2 attempt=2 unknown
            1 till sends QUEUE id=m17 key=k1 attempt=1 unknown
        """),
    ),
    "GEN-1": (
        Alphabet(
            """
            0 alice adds    LANE
            0 bob   adds    LANE
            0 alice drops   LANE
            1 alice commits LANE value=18 inc=1 ok
            1 bob   commits LANE value=18 inc=1 ok
            3 alice commits LANE value=18 inc=1 ok
            1 alice commits LANE value=18 inc=1 refused
            1 bob   commits LANE value=18 inc=1 refused
            1 bob   commits LANE value=18 inc=1 unknown
            1 admin commits LANE value=20 inc=- ok
            0 b0    crashes b0
            """,
            config="system=kafka generations=1",
        ),
        Alphabet(
            """
            0 alice adds    LANE inc=1
            0 alice adds    LANE inc=2
            0 alice drops   LANE inc=2
            0 alice drops   LANE inc=1 refused
            1 alice commits LANE value=18 inc=1 ok
            1 alice commits LANE value=18 inc=2 ok
            2 bob   commits LANE value=20 inc=1 ok
            3 bob   commits LANE value=20 inc=1 ok
            1 bob   commits billing/orders/b0/4 value=20 inc=1 ok
            0 alice crashes -
            0 b1    crashes b1
            """,
            config="system=kafka generations=1",
        ),
    ),
    "CMT-12": (
        Alphabet(
            """
            0 alice adds     LANE value=17
            0 alice adds     LANE value=18
            0 bob   adds     LANE value=17
            0 alice persists LANE value=17
            0 alice persists LANE value=18
            0 bob   persists LANE value=18
            1 alice commits  LANE value=18 ok
            1 bob   commits  LANE value=18 refused
            1 admin resets   LANE value=17
            .. admin resets  LANE value=17
            0 alice adds     LANE
            """,
            config="mode=concurrent message_model=broadcasting",
        ),
        Alphabet(
            """
            0 alice adds     LANE value=17
            0 alice adds     LANE value=17 inc=2
            0 alice2 adds    LANE value=18 process=alice
            0 alice adds     LANE value=18 refused
            0 alice persists LANE value=18
            0 alice persists LANE
            0 alice persists billing/orders/b0/4 value=19
            0 alice commits  LANE value=18 sent
            2 alice commits  LANE value=18 inc=2 ok
            0 alice2 commits LANE value=18 process=alice sent
            0 alice crashes  -
            0 admin resets   LANE value=18
            """,
            config="mode=concurrent message_model=broadcasting",
        ),
    ),
    "DLQ-4": (
        Alphabet("""
            1 alice dead-letters LANE at=17 ok
            1 alice dead-letters LANE at=18 ok
            3 alice dead-letters LANE at=17 ok
            1 alice dead-letters LANE at=18 refused
            1 bob   dead-letters LANE at=17 ok
            1 alice dead-letters LANE at=17 attempt=2 ok
            !0 drain reads DEAD offset=0 id=c1 origin=m18 ok ; drain reads DEAD offset=1 id=c2 origin=m17 ok
            !0 drain reads DEAD offset=0 id=m17 ok ; drain reads DEAD offset=1 id=m18 ok
            0 drain reads DEAD offset=2 id=c3 origin=m18 ok
        """),
        Alphabet("""
            1 alice dead-letters LANE at=17 ok
            1 alice dead-letters LANE at=18 ok
            1 alice dead-letters LANE at=18 unknown
            2 alice dead-letters billing/orders/b0/4 at=19 ok
            1 alice dead-letters audit/orders/b0/3 at=17 ok
            !0 drain reads DEAD offset=0 id=c1 origin=m18 ok ; drain reads DEAD offset=1 id=c2 origin=m17 ok
            0 drain reads DEAD offset=1 id=c2 origin=m17 ok
            0 drain reads DEAD offset=0 id=c1 origin=m19 ok
            0 drain reads DEAD offset=0 id=c1 origin=m17 unknown
            0 drain reads billing/%DLQ%billing/b0/1 offset=2 id=c3 origin=m17 ok
            0 drain reads audit/%DLQ%audit/b0/0 offset=2 id=c4 origin=m17 ok
        """),
    ),
    "ORD-5": (
        Alphabet("""
            0 alice adds     LANE value=17
            0 bob   adds     LANE value=18
            1 alice delivers LANE at=16 success
            1 alice delivers LANE at=17 success
            1 bob   delivers LANE at=17 success
            1 alice fetches  LANE inc=1 value=16 ok
            1 alice fetches  LANE inc=1 value=18 ok
            3 alice fetches  LANE inc=1 value=18 ok
            1 alice fetches  LANE inc=1 value=-1 refused
            0 alice commits  LANE value=4 detail=corrected sent
            1 alice pulls    LANE offset=18 value=16 refused
            1 admin resets   LANE value=16
        """),
        Alphabet("""
            0 alice adds     LANE value=18
            0 alice adds     LANE value=17 inc=2
            1 alice delivers LANE at=17 success
            1 alice delivers LANE at=16 inc=2 success
            2 alice delivers LANE at=18 success
            1 alice fetches  LANE value=17 ok
            .. alice fetches LANE inc=1
            0 alice commits  LANE value=17 inc=- detail=corrected sent
            3 alice pulls    LANE inc=- offset=18 value=17 refused
            1 alice pulls    LANE offset=17 value=18 ok
            0 alice crashes  -
            .. admin resets  LANE value=17
        """),
    ),
    "ORD-10": (
        Alphabet("""
            0 alice adds     LANE value=17
            1 alice delivers LANE at=17 success
            1 alice delivers LANE at=17 suspend
            2 alice delivers LANE at=17 success
            1 bob   delivers LANE at=17 success
            1 alice delivers LANE at=18 success
            2 alice fetches  LANE inc=1 value=17 ok
            2 alice pulls    LANE inc=- offset=18 code=21 value=17 refused
            1 alice pulls    LANE offset=18 code=20 value=17 refused
            0 alice commits  LANE value=17 sent
            0 alice commits  LANE value=17 detail=corrected sent
            1 admin resets   LANE value=17
        """),
        Alphabet("""
            0 alice adds     LANE value=17
            0 alice adds     LANE value=17 inc=2
            1 alice delivers LANE at=17 mode=manual success
            1 alice delivers LANE at=17 mode=- success
            1 alice delivers LANE at=17 mode=- unknown
            1 alice delivers LANE at=17 inc=2 success
            1 alice delivers LANE at=18 mode=manual rollback
            1 alice delivers LANE at=18 mode=- rollback
            1 alice delivers LANE at=18 mode=- commit
            2 alice delivers LANE at=18 success
            .. alice delivers LANE at=19 mode=manual
            1 alice delivers LANE at=17+18 mode=manual success
        """),
    ),
    "RTY-8": (
        Alphabet("""
            1 alice delivers LANE at=17 suspend
            1 alice delivers LANE at=17 success
            1 alice delivers LANE at=17+18 threw
            1 alice delivers LANE at=18 success
            2 alice delivers LANE at=18 suspend
            1 bob   delivers LANE at=17 success
            1 alice dead-letters LANE at=17 ok
            1 alice dead-letters LANE at=17 inc=- unknown
            2 bob   dead-letters LANE at=17 refused
            1 alice dead-letters LANE at=18 refused
            0 alice adds     LANE value=17
            0 alice crashes  -
        """),
        Alphabet("""
            1 alice delivers LANE at=17 mode=manual success
            1 alice delivers LANE at=17 mode=- success
            1 alice delivers LANE at=17 mode=manual rollback
            1 alice delivers LANE at=18 mode=manual commit
            1 alice delivers LANE at=18 mode=manual success
            1 alice delivers LANE at=18 mode=- commit
            1 alice delivers LANE at=17 inc=2 suspend
            .. alice delivers LANE at=17
            1 alice dead-letters LANE at=17 ok
            1 alice dead-letters LANE at=18 inc=- ok
            2 alice dead-letters LANE at=17 inc=2 ok
            0 alice adds     LANE value=17 inc=2
        """),
    ),
    "RTY-4": (
        Alphabet(
            """
            1 alice delivers LANE at=17 suspend
            1 alice delivers LANE at=17+18 suspend
            1 alice delivers LANE at=17 success
            1 alice delivers LANE at=18 success
            2 alice delivers LANE at=18 threw
            1 alice delivers LANE at=19 success
            1 bob   delivers LANE at=18 success
            1 alice dead-letters LANE at=17 ok
            1 alice dead-letters LANE at=17 refused
            3 alice dead-letters LANE at=18 ok
            0 alice adds     LANE value=17
            1 admin resets   LANE value=17
            """,
            config="batch=2",
        ),
        Alphabet(
            """
            1 alice delivers LANE at=17 rt=0 suspend
            1 alice delivers LANE at=17 rt=1 suspend
            1 alice delivers LANE at=17+18 rt=1 suspend
            1 alice delivers LANE at=18 rt=0 mode=manual rollback
            1 alice delivers LANE at=18+19 rt=0 success
            .. alice delivers LANE at=19 rt=0
            1 alice delivers LANE at=18 inc=2 rt=0 success
            1 alice dead-letters LANE at=17 ok
            1 alice dead-letters LANE at=17 inc=- unknown
            1 alice dead-letters LANE at=18 ok
            0 alice adds     LANE value=18 inc=2
            .. admin resets  LANE value=17
            """,
            config="batch=2 max_reconsume_times=1",
        ),
    ),
    "DLQ-2": (
        Alphabet("""
            1 alice dead-letters LANE at=17 ok
            1 alice dead-letters LANE at=17 code=11 ok
            2 alice dead-letters LANE at=17 unknown
            1 alice dead-letters LANE at=17 attempt=2 ok
            1 bob   dead-letters LANE at=17 ok
            1 alice dead-letters LANE at=18 ok
            1 alice delivers LANE at=17 mode=manual success
            1 bob   delivers LANE at=17 success
            1 drain reads DEAD offset=0 id=c1 origin=m17 ok
            1 drain reads DEAD offset=1 id=c2 origin=m17 ok
            1 net suffers - detail="duplicate alice b0" ok
        """),
        Alphabet("""
            1 alice dead-letters LANE at=17 ok
            1 alice dead-letters LANE at=17 refused
            1 alice dead-letters LANE offset=18 id=m17 ok
            1 alice dead-letters audit/orders/b0/3 at=17 ok
            1 alice dead-letters LANE at=17 inc=2 ok
            1 alice delivers LANE at=17 mode=- suspend
            0 drain reads DEAD offset=0 id=c1 origin=m17 ok
            0 drain reads DEAD offset=1 id=m17 ok
            0 drain reads billing/%DLQ%billing/b0/1 offset=0 id=c3 origin=m17 unknown
            0 drain reads audit/%DLQ%audit/b0/0 offset=2 id=c4 origin=m17 ok
            0 alice crashes -
            1 net suffers - detail="cut alice b0" ok
        """),
    ),
    "DLQ-5": (
        Alphabet("""
            1 shop  sends    QUEUE at=17 body=1 key=k1 ok
            1 till  sends    QUEUE at=17 body=2 key=k1 unknown
            2 alice delivers LANE at=17 body=1 key=k1 suspend
            1 bob   delivers LANE at=17 suspend
            1 alice delivers billing/%RETRY%billing/b0/0 offset=0 id=m17 body=3 suspend
            1 drain reads DEAD offset=0 id=c1 origin=m17 body=1 key=k1 ok
            1 drain reads DEAD offset=0 id=c1 origin=m17 body=1 ok
            1 drain reads DEAD offset=0 id=c1 origin=m17 body=1 key=k1 view=stock ok
            1 drain reads DEAD offset=0 id=c1 origin=m17 body=2 key=k1 unknown
            1 drain reads DEAD offset=0 id=c1 origin=m17 ok
            1 drain reads QUEUE at=17 body=2 ok
        """),
        Alphabet("""
            1 shop  sends    QUEUE at=17 body=1 tags=red ok
            1 alice dead-letters LANE at=17 ok
            1 alice dead-letters LANE at=17 unknown
            1 bob   dead-letters LANE at=17 ok
            1 alice dead-letters audit/orders/b0/3 at=17 ok
            1 drain reads DEAD offset=0 id=m17 body=1 tags=red view=orders ok
            1 drain reads DEAD offset=0 id=m17 body=1 tags=red ok
            1 drain reads DEAD offset=1 id=c2 origin=m4 body=2 view=orders ok
            1 drain reads DEAD offset=1 id=c3 origin=m17 body=1 tags=blue view=orders ok
            1 alice delivers LANE at=17 body=1 tags=red suspend
        """),
    ),
    "RTY-7": (
        Alphabet(
            """
            1 alice delivers LANE at=17 threw
            1 alice delivers LANE at=17 null
            1 alice delivers LANE at=17+18 suspend=20 threw
            1 alice delivers LANE at=17 success
            1 alice delivers LANE at=18 suspend
            2 alice delivers LANE at=18 success
            1 bob   delivers LANE at=18 success
            1 alice dead-letters LANE at=17 ok
            1 alice dead-letters LANE at=17 refused
            0 alice adds     LANE value=17
            1 admin resets   LANE value=17
            """,
            config="suspend_ms=16",
        ),
        Alphabet(
            """
            1 alice delivers LANE at=17 rt=0 suspend=26 threw
            1 alice delivers LANE at=17 rt=1 suspend=26 null
            1 alice delivers LANE at=17 rt=1 mode=manual suspend=26 threw
            1 alice delivers LANE at=18 rt=0 mode=manual rollback
            1 alice delivers LANE at=18 rt=0 mode=- unknown
            1 alice delivers LANE at=18 rt=0 success
            .. alice delivers LANE at=18 rt=0
            1 alice delivers LANE at=17 rt=1 inc=2 success
            1 alice dead-letters LANE at=17 ok
            1 alice dead-letters LANE at=17 unknown
            0 alice crashes  -
            0 alice adds     LANE value=17 inc=2
            """,
            config="max_reconsume_times=1",
        ),
    ),
    "CMT-10": (
        Alphabet(
            """
            1 alice delivers LANE at=17 success
            1 alice delivers LANE at=17 suspend
            3 alice delivers LANE at=17 success
            1 alice delivers LANE at=18 success
            0 alice commits  LANE value=18 sent
            0 alice commits  LANE value=19 sent
            1 bob   delivers LANE at=17 success
            1 alice sends-back LANE at=17 delay=3 ok
            1 bob   sends-back LANE at=17 delay=3 unknown
            0 alice adds     LANE value=17
            1 shop  sends    QUEUE at=18 ok
            0 alice drops    LANE
            """,
            config="mode=concurrent",
        ),
        Alphabet(
            """
            1 alice delivers LANE at=17 rt=0 key=k1 suspend
            1 alice delivers LANE at=17 rt=1 key=k1 suspend
            1 alice delivers LANE at=18 rt=0 key=k2 success
            1 alice dead-letters LANE at=17 ok
            1 alice dead-letters LANE at=17 refused
            1 alice commits  LANE value=19 sent
            1 alice commits  LANE value=19 detail=corrected sent
            0 alice adds     LANE value=17
            1 alice fetches  LANE value=18 inc=1 ok
            .. alice fetches LANE inc=1
            1 alice pulls    LANE offset=17 value=18 code=21 refused
            1 admin resets   LANE value=18
            """,
            config="mode=key_ordered max_reconsume_times=1",
        ),
    ),
    "CMT-3": (
        Alphabet("""
            1 alice delivers LANE at=17 mode=manual success
            1 alice delivers LANE at=17 mode=manual suspend
            1 alice delivers LANE at=18 mode=manual commit
            1 alice delivers LANE at=18 success
            1 alice delivers LANE at=18 mode=manual success
            1 bob   delivers LANE at=17 mode=manual commit
            0 alice commits  LANE value=17 sent
            0 alice commits  LANE value=19 sent
            1 alice commits  LANE value=18 refused
            0 alice adds     LANE value=17
            0 alice drops    LANE
            1 alice pulls    LANE offset=17 value=19 code=21 refused
        """),
        Alphabet(
            """
            1 alice delivers LANE at=17 rt=0 mode=manual success
            1 alice delivers LANE at=18 rt=1 suspend
            1 alice delivers LANE at=18 rt=1 mode=manual suspend
            1 alice delivers LANE at=18 rt=0 mode=- success
            1 alice delivers LANE at=18 rt=0 mode=- commit
            1 alice delivers LANE at=17 rt=0 mode=manual rollback
            1 alice dead-letters LANE at=18 ok
            1 alice dead-letters LANE at=18 refused
            2 alice commits  LANE value=19 ok
            0 alice commits  LANE value=19 detail=corrected sent
            0 alice adds     LANE value=17
            1 admin resets   LANE value=18
            """,
            config="max_reconsume_times=1",
        ),
    ),
    "LSE-15": (
        Alphabet(
            """
            1 alice delivers LANE at=17 success
            3 alice delivers LANE at=17 success
            5 alice delivers LANE at=18 cut
            2 alice delivers LANE at=17 cut
            3 bob   delivers LANE at=17 success
            0 alice unlocks  LANE sent
            0 alice unlocks  LANE inc=1 sent
            1 alice unlocks  LANE refused
            2 bob   unlocks  LANE ok
            1 alice leaves   billing
            4 alice leaves   billing
            0 alice drops    LANE
            """,
            config="shutdown_wait_ms=200",
            tick_ms=100,
        ),
        Alphabet(
            """
            .. alice delivers LANE at=17
            3 alice delivers LANE at=17 success
            3 alice delivers LANE at=17 inc=2 success
            2 alice delivers LANE at=18 inc=2 cut
            0 alice unlocks  LANE sent
            0 alice unlocks  LANE inc=2 sent
            1 alice unlocks  billing/orders/b0/4 sent
            0 alice crashes  -
            .. alice leaves  billing
            4 alice leaves   audit
            1 alice locks    LANE ok
            0 alice drops    LANE inc=2
            """,
            config="shutdown_wait_ms=201",
            tick_ms=100,
        ),
    ),
    "ORD-11": (
        Alphabet(
            """
            1 alice delivers LANE at=17 key=k1 success
            1 alice delivers LANE at=17 key=k1 suspend
            1 alice delivers LANE at=18 key=k1 success
            3 alice delivers LANE at=18 key=k2 success
            1 alice delivers LANE at=19 key=k1 threw
            2 alice delivers LANE at=19 key=k1 success
            1 alice delivers LANE at=19 success
            1 bob   delivers LANE at=18 key=k1 success
            0 alice adds     LANE value=17
            0 alice drops    LANE
            1 alice dead-letters LANE at=17 ok
            1 admin resets   LANE value=17
            """,
            config="mode=key_ordered schedule_slack_ms=15",
        ),
        Alphabet(
            """
            1 alice delivers LANE at=17 key=k1 rt=0 suspend
            1 alice delivers LANE at=17 key=k1 rt=1 suspend
            1 alice delivers LANE at=17+18 key=k1 rt=0 suspend
            1 alice delivers LANE at=17 key=k1 rt=0 mode=manual rollback
            1 alice delivers LANE at=18 key=k1 rt=0 success
            .. alice delivers LANE at=19 key=k1 rt=0
            1 alice delivers LANE at=19 key=k1 rt=0 success
            1 alice delivers LANE at=19 key=k1 inc=2 rt=0 success
            1 alice dead-letters LANE at=17 inc=- ok
            1 alice dead-letters LANE at=17 refused
            1 alice dead-letters LANE at=17 key=k1 unknown
            2 alice dead-letters LANE at=17 ok
            """,
            config="mode=key_ordered max_reconsume_times=1",
        ),
    ),
    "KEY-1": (
        Alphabet(
            """
            1 alice receives LANE offset=17 key=k1 until=30ms ok
            1 bob   receives LANE offset=18 key=k1 until=30ms ok
            3 bob   receives LANE offset=18 key=k1 until=30ms ok
            1 bob   receives LANE offset=19 key=k2 until=30ms ok
            1 alice receives LANE offset=18 key=k1 until=50ms ok
            1 alice acks     LANE offset=17 ok
            1 alice acks     LANE offset=17 refused
            0 alice releases LANE offset=17 sent
            1 alice renews   LANE offset=17 until=50ms ok
            0 alice steps-clock - value=5
            0 b0    crashes  b0
            0 b0    trims    QUEUE value=18
            """,
            config="delay_bound_ms=12",
        ),
        Alphabet(
            """
            1 alice receives LANE offset=17 key=k1 ok
            1 bob   receives LANE offset=18 key=k1 ok
            1 bob   receives LANE offset=19 ok
            1 bob   receives LANE unknown
            3 alice receives LANE offset=18 key=k1 until=26ms ok
            1 bob   acks     LANE offset=18 unknown
            0 alice crashes  -
            1 alice leaves   billing
            1 alice pauses   -
            2 net   suffers  - detail="partition alice b0" ok
            2 alice renews   LANE offset=17 until=15ms ok
            0 b0    trims    QUEUE value=19
            """,
            config="delay_bound_ms=12",
        ),
    ),
    "ORD-4": (
        Alphabet("""
            1 alice fetches  LANE value=17 ok
            1 bob   fetches  LANE value=18 ok
            1 bob   fetches  LANE value=-1 refused
            1 alice delivers LANE at=17 suspend
            1 alice delivers LANE at=17 success
            3 alice delivers LANE at=17 success
            1 bob   delivers LANE at=18 success
            1 shop  sends    QUEUE at=17 ok
            0 bob   adds     LANE value=18
            0 alice drops    LANE
            1 alice commits  LANE value=17 ok
            0 b0    crashes  b0
        """),
        Alphabet(
            """
            1 alice commits  LANE value=17 ok
            1 alice commits  LANE value=18 unknown
            2 bob   commits  LANE value=18 ok
            1 bob   fetches  LANE value=18 ok
            1 alice delivers LANE at=17 rt=0 suspend
            1 alice delivers LANE at=17 rt=1 suspend
            1 bob   delivers LANE at=18 rt=0 success
            1 bob   delivers LANE at=19 inc=2 rt=0 success
            1 alice dead-letters LANE at=17 ok
            1 dora  delivers audit/orders/b0/3 at=17 suspend
            1 admin resets   LANE value=17
            0 b0    trims    QUEUE value=18
            """,
            config="max_reconsume_times=1",
        ),
    ),
    "LSE-6": (
        Alphabet(
            """
            0 alice locks   LANE ok
            0 bob   locks   LANE ok
            2 carol locks   LANE ok
            1 alice locks   LANE unknown
            1 bob   locks   LANE refused
            1 carol locks   LANE refused
            1 alice unlocks LANE ok
            3 alice unlocks LANE ok
            0 alice unlocks LANE sent
            0 b0    crashes b0
            0 alice steps-clock - value=5
            2 net   suffers - detail="partition alice b0" ok
            """,
            config="broker_lease_ms=300 delay_bound_ms=100",
            tick_ms=100,
        ),
        Alphabet(
            """
            1 alice locks   LANE ok
            1 bob   locks   LANE unknown
            1 bob   locks   LANE code=1 refused
            1 carol locks   LANE refused
            0 alice unlocks LANE sent
            1 alice unlocks LANE ok
            1 alice unlocks LANE unknown
            1 bob   unlocks LANE ok
            0 alice crashes -
            1 net   suffers - detail="cut alice b0" ok
            2 net   suffers - detail="delay bob b0 200" ok
            1 net   suffers - detail="duplicate carol b0" ok
            """,
            config="broker_lease_ms=150 delay_bound_ms=150",
            tick_ms=100,
        ),
    ),
    "LSE-13": (
        Alphabet(
            """
            0 alice adds     LANE value=17
            0 alice locks    LANE incarnation=alice#1 ok
            3 alice locks    LANE incarnation=alice#1 unknown
            1 alice delivers LANE at=17 success
            0 alice commits  LANE value=18 sent
            1 bob   locks    LANE incarnation=bob#1 ok
            0 bob   adds     LANE value=17
            0 alice adds     billing/orders/b1/3 inc=2 value=17
            0 alice drops    LANE
            1 b0    pauses   b0
            0 alice crashes  -
            1 net   suffers  - detail="cut alice b0" ok
            """,
            config="lock_interval_ms=100 schedule_slack_ms=40 delay_bound_ms=60",
            tick_ms=100,
        ),
        Alphabet(
            """
            0 alice adds     LANE value=17
            0 alice adds     LANE inc=2 value=17
            1 alice locks    LANE ok
            1 alice locks    LANE incarnation=alice#1 refused
            1 alice pulls    LANE offset=17 value=18 ok
            0 alice commits  LANE value=18 sent
            0 alice commits  LANE value=18 inc=2 sent
            2 alice leaves   billing
            1 alice pauses   -
            0 b0    crashes  b0
            0 alice steps-clock - value=5
            1 net   suffers  - detail="partition bob b0" ok
            """,
            config="lock_interval_ms=150 schedule_slack_ms=25 delay_bound_ms=25",
            tick_ms=100,
        ),
    ),
    "LSE-16": (
        Alphabet(
            """
            0 alice locks    LANE ok
            0 bob   locks    LANE ok
            0 alice drops    LANE
            1 bob   locks    LANE refused
            0 carol locks    LANE refused
            0 alice unlocks  LANE sent
            2 alice unlocks  LANE refused
            0 alice adds     LANE value=17 inc=2
            3 alice delivers LANE at=17 success
            1 alice pauses   -
            0 b0    crashes  b0
            """,
            config="broker_lease_ms=400 schedule_slack_ms=100",
            tick_ms=100,
        ),
        Alphabet(
            """
            2 alice locks    LANE ok
            1 alice locks    LANE unknown
            1 bob   locks    LANE ok
            0 alice drops    LANE
            0 bob   drops    LANE
            0 bob   locks    LANE refused
            0 alice locks    LANE refused
            1 alice unlocks  LANE ok
            3 alice dead-letters LANE at=17 ok
            0 alice crashes  -
            0 alice steps-clock - value=5
            1 net   suffers  - detail="partition alice b0" ok
            """,
            config="broker_lease_ms=600 schedule_slack_ms=150",
            tick_ms=100,
        ),
    ),
    "LSE-3": (
        Alphabet(
            """
            0 alice locks    LANE ok
            3 alice locks    LANE ok
            1 alice locks    LANE refused
            1 alice locks    LANE code=1 refused
            1 alice delivers LANE at=17 success
            1 bob   delivers LANE at=17 success
            0 alice adds     LANE value=17
            0 alice unlocks  LANE sent
            1 alice pauses   -
            0 alice crashes  -
            0 alice steps-clock - value=5
            0 alice drops    LANE
            """,
            config="client_lease_ms=150 guard_slack_ms=50",
            tick_ms=100,
        ),
        Alphabet(
            """
            1 alice locks    LANE ok
            3 alice locks    LANE refused
            .. alice locks   LANE
            1 bob   locks    LANE ok
            1 alice delivers LANE at=17 success
            1 alice delivers LANE at=17 inc=2 success
            0 alice adds     LANE value=17 inc=2
            1 alice leaves   billing
            1 alice unlocks  LANE refused
            2 alice unlocks  LANE ok
            0 alice joins    billing
            0 bob   adds     LANE value=17
            """,
            config="client_lease_ms=250 guard_slack_ms=0",
            tick_ms=100,
        ),
    ),
    "CMT-13": (
        Alphabet(
            """
            0 alice adds     LANE value=17
            1 alice adds     LANE value=17 ; alice delivers LANE at=17 success
            1 alice delivers LANE at=17 success
            2 alice delivers LANE at=18 success
            1 alice delivers LANE at=17 suspend
            0 alice commits  LANE value=18 sent
            1 alice commits  LANE value=19 refused
            0 alice unlocks  LANE inc=1 sent
            0 alice unlocks  LANE sent
            0 bob   commits  LANE value=18 sent
            0 alice drops    LANE
            1 admin resets   LANE value=17
            """,
            config="guard_slack_ms=0",
        ),
        Alphabet(
            """
            0 alice adds     LANE value=17
            0 alice adds     LANE value=17 inc=2
            1 alice delivers LANE at=17 mode=- commit
            1 alice delivers LANE at=18 mode=- success
            1 alice delivers LANE at=17 inc=2 success
            0 alice commits  LANE value=18 inc=- sent
            1 alice pulls    LANE offset=17 value=18 code=21 refused
            0 alice unlocks  LANE inc=1 sent
            1 alice unlocks  LANE inc=2 ok
            0 alice unlocks  LANE sent
            0 alice drops    LANE
            0 alice crashes  -
            """,
            config="guard_slack_ms=10",
        ),
    ),
    "CMT-6": (
        Alphabet("""
            0 alice adds     LANE value=17
            0 alice drops    LANE
            1 alice delivers LANE at=17 success
            3 alice delivers LANE at=17 success
            1 alice delivers LANE at=18 mode=manual success
            0 alice drops    LANE ; alice commits LANE value=18 sent
            0 alice commits  LANE value=19 sent
            1 bob   delivers LANE at=17 success
            1 alice fetches  LANE inc=1 value=18 ok
            .. alice fetches LANE inc=1
            1 alice pulls    LANE offset=17 value=19 code=21 refused
            1 admin resets   LANE value=17
        """),
        Alphabet(
            """
            0 alice adds     LANE value=17
            0 alice drops    LANE
            1 alice delivers LANE at=17 rt=1 suspend
            1 alice delivers LANE at=17 rt=0 mode=- success
            2 alice dead-letters LANE at=17 ok
            1 alice dead-letters LANE at=17 refused
            0 alice drops    LANE ; alice commits LANE value=18 sent
            1 alice commits  LANE value=18 ok
            0 alice commits  LANE value=18 detail=corrected sent
            1 alice fetches  LANE value=18 ok
            1 alice fetches  LANE inc=1 value=-1 refused
            0 bob   joins    billing view=red
            """,
            config="max_reconsume_times=1 consume_from=last",
        ),
    ),
    "CMT-7": (
        Alphabet(
            """
            1 alice commits LANE value=18 ok
            1 alice commits LANE value=17 ok
            0 alice commits LANE value=17 sent
            3 alice commits LANE value=18 ok
            0 b0    crashes b0
            1 bob   fetches LANE value=17 ok
            1 bob   fetches LANE value=18 ok
            1 bob   fetches LANE value=-1 refused
            1 b0    pauses  b0
            !1 admin resets LANE value=5
            0 b0    trims   QUEUE value=18
            """,
            config="persist_first_ms=30 persist_ms=20 schedule_slack_ms=10 delay_bound_ms=150",
            tick_ms=100,
        ),
        Alphabet(
            """
            1 alice commits LANE value=18 ok
            1 alice commits LANE value=18 refused
            1 bob   commits LANE value=17 unknown
            .. alice commits LANE value=19
            0 b0    crashes b0
            0 b1    crashes b1
            1 bob   fetches LANE value=17 ok
            1 bob   fetches LANE value=5 ok
            2 bob   fetches LANE value=18 ok
            1 bob   fetches LANE value=17 unknown
            1 b0    suffers b0 detail="disk_full b0" ok
            .. admin resets LANE value=5
            """,
            config="persist_first_ms=60 persist_ms=20 schedule_slack_ms=10 delay_bound_ms=60",
            tick_ms=100,
        ),
    ),
    "CMT-2": (
        Alphabet(
            """
            0 alice adds     LANE value=17
            1 alice delivers LANE at=17 success
            1 alice delivers LANE at=17 suspend
            1 alice delivers LANE at=17+18 success
            3 alice delivers LANE at=18 success
            0 alice commits  LANE value=18 sent
            1 alice commits  LANE value=18 refused
            0 alice commits  LANE value=19 sent
            1 alice pulls    LANE offset=19 value=19 ok
            0 alice drops    LANE
            0 b0    crashes  b0
            1 bob   pauses   -
            """,
            config="persist_first_ms=5 persist_ms=5 schedule_slack_ms=10",
        ),
        Alphabet(
            """
            0 alice adds     LANE value=17
            1 alice delivers LANE at=17 rt=1 suspend
            1 alice delivers LANE at=17 rt=0 mode=manual success
            1 alice delivers LANE at=17 rt=0 mode=- commit
            1 alice dead-letters LANE at=17 ok
            0 alice commits  LANE value=18 sent
            0 alice commits  LANE value=18 detail=corrected sent
            1 alice fetches  LANE value=18 inc=1 ok
            .. alice fetches LANE inc=1
            1 alice pulls    LANE offset=17 value=18 code=21 refused
            1 alice pauses   -
            1 admin resets   LANE value=17
            """,
            config="max_reconsume_times=1 persist_first_ms=5 persist_ms=5 schedule_slack_ms=15",
        ),
    ),
}
