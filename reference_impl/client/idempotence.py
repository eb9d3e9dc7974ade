"""Doing something once although its message may come twice.

    once = OnceOnDisk("done.sqlite3")

    def listen(message: Message) -> None:
        with once.claim(message.id) as is_new:
            if is_new:
                pay(message)

| the block | then |
|---|---|
| ends well | the name is remembered: the next claim of it says False |
| raises (or its process dies) | the name is free again |
| another thread is in it with the same name | the claim waits until that one has ended |

What is promised: of all deliveries whose claim lies in one store, one at most ends well. What is not:

* The name is remembered after the block, not together with what the block did. A process that dies between the two
  does it once more. Only a store that takes part in the same transaction can rule that out: for work that ends in a
  database, write the message's id into that database, in the same transaction.
* Members of a group that run in several processes need one store in common. `OnceInMemory` belongs to one process and
  forgets everything with it; `OnceOnDisk` may be shared by the processes of one machine (SQLite), not over a network.
* Only the newest `capacity` names are kept. A message that comes again after so many others is taken for a new one.
* A message that its producer sent twice (a retry after a lost answer keeps the id; a new call of `send` does not) has
  two ids: claim a name of your own then, such as the number of the order.
"""

from __future__ import annotations

import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from specs.errors import UsageError

CAPACITY = 1_000_000
BUSY_S = 30.0
"""How long a claim waits for another process's write."""


class Once(ABC):
    """Names of what was done. For any thread; `claim` may block, so in an `async` listener it belongs in a thread."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        if capacity < 1:
            raise UsageError("A store of names needs room for at least one.")
        self.capacity = capacity
        self._at_work: set[str] = set()
        self._turn = threading.Condition()

    @contextmanager
    def claim(self, name: str) -> Iterator[bool]:
        """In its block: True for the first, False when the name was done already. See the module."""
        with self._turn:
            self._turn.wait_for(lambda: name not in self._at_work)
            self._at_work.add(name)
        try:
            is_new = not self.is_done(name)
            yield is_new
            if is_new:
                self.remember(name)
        finally:
            with self._turn:
                self._at_work.discard(name)
                self._turn.notify_all()

    @abstractmethod
    def is_done(self, name: str) -> bool:
        """Whether the name is remembered."""

    @abstractmethod
    def remember(self, name: str) -> None:
        """The name is done; the oldest one is forgotten where there are too many."""


class OnceInMemory(Once):
    """For one process, for as long as it lives."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        super().__init__(capacity)
        self._done: dict[str, None] = {}
        self._lock = threading.Lock()

    def is_done(self, name: str) -> bool:
        with self._lock:
            return name in self._done

    def remember(self, name: str) -> None:
        with self._lock:
            self._done.pop(name, None)
            self._done[name] = None
            while len(self._done) > self.capacity:
                del self._done[next(iter(self._done))]


class OnceOnDisk(Once):
    """In an SQLite file, for the processes of one machine. UsageError for a file that is none of ours.

    Two processes that claim one name at the same moment both get True: a queue has one member at a time, so that
    needs a rebalance in between. What was remembered survives a crash of the process and of the machine.
    """

    def __init__(self, path: str | Path, capacity: int = CAPACITY) -> None:
        super().__init__(capacity)
        self._lock = threading.Lock()
        try:
            self._file = sqlite3.connect(
                path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
            )
            self._file.execute("PRAGMA journal_mode=WAL")
            self._file.execute("PRAGMA synchronous=FULL")
            self._file.execute(
                "CREATE TABLE IF NOT EXISTS inorder_done (number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE)"
            )
        except sqlite3.Error as error:
            raise UsageError(f"{path} can't be used to remember what was done: {error}.") from error

    def is_done(self, name: str) -> bool:
        with self._lock:
            found = self._file.execute(
                "SELECT 1 FROM inorder_done WHERE name = ?", (name,)
            ).fetchone()
        return found is not None

    def remember(self, name: str) -> None:
        with self._lock:
            added = self._file.execute(
                "INSERT OR IGNORE INTO inorder_done (name) VALUES (?)", (name,)
            )
            if added.rowcount == 1 and added.lastrowid is not None:
                oldest = added.lastrowid - self.capacity
                self._file.execute("DELETE FROM inorder_done WHERE number <= ?", (oldest,))

    def close(self) -> None:
        with self._lock:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
