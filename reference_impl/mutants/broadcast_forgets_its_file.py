"""A broadcast consumer does not read its own file when it begins a lane, and starts as if it never had been there.

Shows when it is started again after it has written something down.
"""

from collections.abc import Callable

from reference_impl.core.consumer import BroadcastConsumer
from reference_impl.core.consumer.broadcast import LocalOffsets
from reference_impl.core.consumer.start_offset import NOT_FOUND
from specs.vocabulary import Queue

NAME = "broadcast-forgets-its-file"
BUG = "a broadcast consumer that is started again begins anew"
SOURCE = "hand-made: LocalFileOffsetStore.readOffset without its case READ_FROM_STORE"
KILLED_BY = "CMT-12"
CONFIG = {"mode": "concurrent", "message_model": "broadcasting"}


class MutatedOffsets(LocalOffsets):
    def fetch_stored(self, now_ms: int, queue: Queue, then: Callable[[int, int], None]) -> None:
        then(now_ms, NOT_FOUND)


class Mutated(BroadcastConsumer):
    offsets_class = MutatedOffsets


consumer = Mutated
