"""The sign of a key's hash is taken off first, in 32 bits, where the smallest hash has no positive twin.

Shows for a key with that hash where the number of queues is no power of two: the remainder is negative. (Java then
throws; here it counts from the end.)
"""

from collections.abc import Sequence

from reference_impl.core.producer import Producer
from reference_impl.mutants import VECTORS
from reference_impl.protocol.bodies import java_hash
from specs.vocabulary import Queue

NAME = "smallest-hash-stays-negative"
BUG = "B-17: abs(hash) % n instead of abs(hash % n) gives a negative queue number"
SOURCE = "RocketMQ issue 2421, mended by 75971eb653 (4.8.0)"
KILLED_BY = "ORD-6"
ORACLE = VECTORS

SMALLEST = -(1 << 31)


class Mutated(Producer):
    def select(self, key: str, queues: Sequence[Queue]) -> Queue:
        if java_hash(key) != SMALLEST:
            return super().select(key, queues)
        return queues[-(-SMALLEST % len(queues))]


producer = Mutated
