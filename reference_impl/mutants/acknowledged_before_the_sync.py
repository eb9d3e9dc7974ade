"""The broker is told to flush in sync, and answers a send whatever became of the flush: here there is none.

Shows when the broker's machine crashes before anything else has synced the log, and the disk kept nothing of a
message that was acknowledged.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.flushing import Flushing
from reference_impl.core.io import Effect, Input

NAME = "acknowledged-before-the-sync"
BUG = "with sync flush a send is acknowledged although its flush failed: the error is logged and nothing more"
SOURCE = "apache/rocketmq issue 2706"
KILLED_BY = "SND-1"
CONFIG = {"flush": "sync"}


class HastyFlushing(Flushing):
    def hold(self, now_ms: int, event: Input, out: list[Effect]) -> list[Effect]:
        return out


class Mutated(Broker):
    flushing_class = HastyFlushing


broker = Mutated
