"""Two histories beside each other in one run: another group with its own workers, topics, brokers and messages.

What is about one group, topic, worker, lease or broker alone is not about another one of which there are rows as well.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from specs.history.row import Row
from tests.definitions.alphabets import Alphabet, Symbol, Word, place

_NOBODYS = {"net", "admin"}
"""Who acts on whichever group is named."""
_IDS = ("message_id", "origin_id", "lease_id")
"""Fields that are renamed whole. A key stays: which queue it belongs to follows from it."""


def together(alphabet: Alphabet, first: Word, second: Word) -> list[Row]:
    """The rows of both: the second one begins some time later, so that nothing in it is tied with the first."""
    shift_us = alphabet.tick_ms * 1_000 // 3 + 1
    symbols = [alphabet.symbols[step.symbol] for step in first]
    others = _renamed(alphabet)
    shifted = [
        (begin + shift_us, None if end is None else end + shift_us)
        for begin, end in alphabet.spans(second)
    ]
    return place(
        [*symbols, *(others[step.symbol] for step in second)],
        [*alphabet.spans(first), *shifted],
    )


@lru_cache(maxsize=4)
def _renamed(alphabet: Alphabet) -> Sequence[Symbol]:
    rows = [row for symbol in alphabet.symbols for row in symbol.rows]
    said = {
        word
        for row in rows
        for name in (row.client_id, row.group, row.topic, row.broker)
        for word in re.findall(r"\w+", name or "")
    } - {*_NOBODYS, "DLQ", "RETRY"}
    names = re.compile(rf"\b({'|'.join(sorted(said))})\b")

    def renamed(row: Row) -> Row:
        told = {
            field: names.sub(r"\1z", text)
            for field in ("client_id", "group", "topic", "broker", "view", "detail")
            if (text := getattr(row, field)) is not None
        }
        ids = {field: f"z{text}" for field in _IDS if (text := getattr(row, field)) is not None}
        return row._replace(**told, **ids)

    return [
        Symbol(each.text, tuple(map(renamed, each.rows)), each.lasts, each.once)
        for each in alphabet.symbols
    ]
