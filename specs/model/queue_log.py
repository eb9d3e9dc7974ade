"""A queue, seen from outside by its only writer: dense offsets, and the same message at an offset for ever.

A send without an answer may have been stored or not: from then on the next offset is one of several, until a
read tells. (docs/sources.md#store)
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class QueueLog:
    """ids: what is known to lie at each offset. ends: the offsets that the next message may get."""

    ids: dict[int, str] = field(default_factory=dict)
    ends: frozenset[int] = frozenset({0})

    @property
    def end(self) -> int | None:
        """The next offset, when it is certain."""
        return next(iter(self.ends)) if len(self.ends) == 1 else None

    def sent(self, message_id: str, offset: int | None) -> bool:
        """Take in a send: answered with an offset, or None for no answer. False when the offset is not dense."""
        if offset is None:
            self.ends = self.ends | {end + 1 for end in self.ends}
            return True
        dense = offset in self.ends
        self.ids[offset] = message_id
        self.ends = frozenset({offset + 1})
        return dense
