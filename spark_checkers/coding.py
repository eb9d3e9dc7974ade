"""A table's columns as numbers and as hashes, each made once, for those who count rows and judge none."""

from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from spark_checkers import hashing
from spark_checkers.hashing import Hashes
from specs.facts.columns import Ints, Mask
from specs.facts.groupings import SOURCE
from specs.facts.rows import coded
from specs.facts.together import numbers_of


class Columns:
    """A table's columns: of a text its code, or its hash."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self._texts: dict[str, tuple[Ints, list[str]]] = {}
        self._numbers: dict[str, Ints] = {}
        self._hashes: dict[str, Hashes] = {}

    def texts(self, name: str) -> tuple[Ints, list[str]]:
        if name not in self._texts:
            self._texts[name] = coded(self.table.column(name))
        return self._texts[name]

    def numbers(self, name: str) -> Ints:
        """Equal values have equal numbers, and what is missing one of its own."""
        if not pa.types.is_integer(self.table.schema.field(name).type):
            return self.texts(name)[0]
        if name not in self._numbers:
            self._numbers[name] = numbers_of(self.table.column(name))
        return self._numbers[name]

    def value(self, name: str, at: int) -> Any:
        return self.table.column(name)[at].as_py()

    def has(self, name: str) -> Mask:
        """Which rows have a value?"""
        column = self.table.column(name)
        return (
            np.asarray(column.is_valid()) if column.null_count else np.ones(len(column), np.bool_)
        )

    def are(self, name: str, wanted: Collection[str]) -> Mask:
        """Which rows have one of these texts?"""
        return self.fit(name, lambda word: word in wanted)

    def fit(self, name: str, fits: Callable[[str], bool]) -> Mask:
        """Which rows have a text that fits?"""
        codes, words = self.texts(name)
        found: Mask = np.asarray([*map(fits, words), False], np.bool_)[codes]
        return found

    def keys(self, names: Iterable[str], where: Ints) -> Hashes:
        """The hash of these columns, as of `key_hashes`, of each row at these positions."""
        found = hashing.together(*(self._hashed(name, where) for name in names))
        return np.broadcast_to(found, len(where))

    def _hashed(self, name: str, where: Ints) -> Hashes:
        """A hash for each position, or one where all rows are alike."""
        column = self.table.column(name)
        if name == SOURCE and self.table.column("origin_id").null_count == len(column):
            name = "message_id"  # the same column
        is_told_apart = not pa.types.is_string(column.type)
        if name not in self._hashes:
            if not is_told_apart and 2 * len(where) < len(column):
                return hashing.of_texts(column.take(pa.array(where)))
            self._hashes[name] = self._made(name) if is_told_apart else hashing.of_texts(column)
        found = self._hashes[name]
        return found if len(found) == 1 else found[where]

    def _made(self, name: str) -> Hashes:
        column = self.table.column(name)
        if pa.types.is_integer(column.type):
            return hashing.of_numbers(np.asarray(column.fill_null(-1).combine_chunks(), np.int64))
        codes, words = self.texts(name)
        hashes = hashing.of_texts(pa.array(words, pa.string()))
        if len(words) == 1 and not column.null_count:
            return hashes
        spelt: Hashes = np.append(hashes, hashing.NO_TEXT_HASH)[codes]
        return spelt
