"""Rows that clauses of another key need, picked while the queues are gone through.

Most of what a clause keyed by message or by group would look at is decided within one queue: a message that is
read where its send was acknowledged was not invented, and a call that succeeded exhausts nothing. The sieve counts
what is so decided and keeps the rest, so that only few rows ever have to be brought together by another key.
Judged with the kept rows alone, a clause finds the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_checkers import hashing
from spark_checkers.clauses.dead_letter import exhausted_message_reaches_dead_letters as dlq_1
from spark_checkers.clauses.order import first_deliveries_follow_the_key as ord_12
from spark_checkers.clauses.send import nothing_is_invented as snd_2
from spark_checkers.clauses.send.acknowledged_is_never_lost import match
from spark_checkers.facts import key_hashes
from spark_checkers.hashing import Hashes
from spark_checkers.keyed import SOURCE
from spark_checkers.lanes import OP_COLUMNS
from spark_checkers.rows import NONE, Findings, Rows
from specs.vocabulary import CommitMode, Kind

COLUMNS = tuple(
    dict.fromkeys(
        [
            *OP_COLUMNS,
            "message_id",
            "origin_id",
            "attempt",
            "delay_level",
            "wall_us",
            "sharding_key",
            "key_seq",
            SOURCE,
        ]
    )
)
"""What the sieve, and the clauses that its rows are for, use."""
KINDS = frozenset({Kind.SEND, Kind.DELIVER, Kind.READ, Kind.DEAD_LETTER, Kind.ADD})


@dataclass(frozen=True)
class Sieve:
    """What is known before: the messages given up, and the keys that lie across queues, as hashes."""

    given_up: Hashes
    cross_keys: Hashes

    def sift(self, rows: Rows) -> tuple[list[Findings], dict[str, pa.Table]]:
        """What whole queues decide by themselves, and the rows kept for each clause."""
        invented, keys = Findings(rows, "SND-2"), Findings(rows, "ORD-12")
        kept = {
            "SND-2": self._invented(rows, invented),
            "ORD-12": self._keys(rows, keys),
            "DLQ-1": dlq_1.relevant(rows),
            "DLQ-2": self._manual(rows),
        }
        return [invented, keys], {
            clause: rows.table.take(pa.array(where)) for clause, where in kept.items() if len(where)
        }

    def without_queue(self, rows: Rows) -> dict[str, pa.Table]:
        """The rows kept for each clause of rows that name no queue: nothing is decided about them here."""
        calls = rows.are(Kind.DELIVER, Kind.ADD)
        kept = {
            "SND-2": snd_2.seen(rows),
            "ORD-12": rows.of(Kind.DELIVER),
            "DLQ-1": np.flatnonzero(calls),
            "DLQ-2": self._manual(rows),
        }
        return {
            clause: rows.table.take(pa.array(where)) for clause, where in kept.items() if len(where)
        }

    def _invented(self, rows: Rows, decided: Findings) -> Any:
        """A message that lies where its send was acknowledged was sent, and that place is known."""
        seen = snd_2.seen(rows)
        sends = np.flatnonzero(snd_2.named(rows))
        sends = sends[np.lexsort((rows.begin[sends], rows.offset[sends], rows.queue[sends]))]
        place, matched = match(rows, sends, seen)
        matched &= rows.offset[seen] != NONE
        sent, other = sends[place[matched]], seen[matched]
        source = rows.table.column(SOURCE)
        same = pc.fill_null(
            pc.equal(source.take(pa.array(sent)), source.take(pa.array(other))), False
        )
        known = np.asarray(same) & (rows.begin[sent] < snd_2.seen_at(rows, other))
        decided.at_stake(other[known])
        left = np.ones(len(seen), np.bool_)
        left[np.flatnonzero(matched)[known]] = False
        left &= np.asarray(source.take(pa.array(seen)).is_valid())
        return seen[left]

    def _keys(self, rows: Rows, decided: Findings) -> Any:
        """A key that lies in one queue alone is judged here."""
        keyed = rows.are(Kind.DELIVER) & (rows.number("key_seq") != NONE) & (rows.group >= 0)
        keyed &= rows.text("sharding_key") >= 0
        where = np.flatnonzero(keyed)
        if not len(self.cross_keys) or not len(where):
            ord_12.judge(rows, decided, where)
            return where[:0]
        crosses = np.isin(key_hashes(rows.table.take(pa.array(where))), self.cross_keys)
        ord_12.judge(rows, decided, where[~crosses])
        return where[crosses]

    def _manual(self, rows: Rows) -> Any:
        """Manual deliveries of messages that were given up, by whomever."""
        manual = rows.text("commit_mode") == rows.code("commit_mode", CommitMode.MANUAL)
        where = np.flatnonzero(rows.are(Kind.DELIVER) & manual)
        if not len(where) or not len(self.given_up):
            return where[:0]
        return where[np.isin(message_hashes(rows.table.take(pa.array(where))), self.given_up)]


def message_hashes(table: pa.Table) -> Hashes:
    """A hash per row of (run, source id)."""
    return hashing.together(
        hashing.of_texts(table.column("run")), hashing.of_texts(table.column(SOURCE))
    )
