"""The messages that a client holds of one lane, in the plainest words: two lists and a count for each message.

A message is waiting or taken, never both and never twice. (docs/sources.md#orderly-loop)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(slots=True)
class HeldMessages:
    """Offsets. consuming: somebody works on the lane, or is about to."""

    waiting: list[int] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)
    counted: dict[int, int] = field(default_factory=dict)
    consuming: bool = False

    @property
    def held(self) -> list[int]:
        return sorted(self.waiting + self.taken)

    def put(self, offsets: Iterable[int]) -> bool:
        """What is held already is left alone. True when somebody has to begin to work on the lane."""
        for offset in offsets:
            if offset not in self.held:
                self.waiting = sorted([*self.waiting, offset])
        begins = bool(self.waiting) and not self.consuming
        self.consuming = self.consuming or begins
        return begins

    def take(self, most: int) -> list[int]:
        """The lowest that wait; where none does, nobody works on the lane any more."""
        batch, self.waiting = self.waiting[:most], self.waiting[most:]
        self.taken = sorted(self.taken + batch)
        self.consuming = self.consuming and bool(batch)
        return batch

    def commit(self) -> int:
        """All taken are finished. The offset after the highest of them, -1 when none was taken."""
        finished, self.taken = self.taken, []
        for offset in finished:
            self.counted.pop(offset, None)
        return max(finished) + 1 if finished else -1

    def again(self, batch: Iterable[int]) -> None:
        """The taken ones of the batch wait again."""
        back = [offset for offset in batch if offset in self.taken]
        self.taken = [offset for offset in self.taken if offset not in back]
        self.waiting = sorted(self.waiting + back)

    def roll_back(self) -> None:
        self.again(list(self.taken))

    def count(self, offset: int) -> None:
        self.counted[offset] = self.counted.get(offset, 0) + 1
