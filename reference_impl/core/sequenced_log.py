"""The messages of a queue whose producers number what they send: each number is taken once, and in its turn.

So a producer may have several sends under way, and send again what had no answer: what it is told is where the message
lies, whichever try put it there.
"""

from __future__ import annotations

from typing import Any


class SequencedLog:
    """entries: the messages, by their places."""

    def __init__(self) -> None:
        self.entries: list[Any] = []
        self._places: dict[str, list[int]] = {}

    def take(self, producer: str, number: int, message: Any) -> int | None:
        """Where the producer's message of that number lies, counted from 0; None: those before it are missing."""
        places = self._places.setdefault(producer, [])
        if number < len(places):
            return places[number]
        if number > len(places):
            return None
        places.append(self.store(message))
        return places[number]

    def store(self, message: Any) -> int:
        """Behind all others."""
        self.entries.append(message)
        return len(self.entries) - 1
