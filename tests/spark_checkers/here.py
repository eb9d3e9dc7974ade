"""A stand-in for a Spark session that carries out the engine's jobs in this process, one task after the other."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle

TASKS = 3


class Here:
    """Knows `range(...).mapInArrow(...).toArrow()`: all that a history which lies by queue needs."""

    sparkContext = SimpleNamespace(defaultParallelism=TASKS)

    def range(self, start: int, stop: int, step: int, partitions: int) -> Numbers:
        assert step == 1
        assert partitions == stop - start
        return Numbers(list(range(start, stop)))


class Numbers:
    def __init__(self, numbers: list[int]) -> None:
        self.numbers = numbers

    def mapInArrow(
        self, work: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: str
    ) -> Done:
        sent = cloudpickle.dumps(work)  # a task's work has to travel
        batches = []
        for number in self.numbers:
            given = pa.RecordBatch.from_arrays([pa.array([number], pa.int64())], names=["id"])
            batches.extend(pickle.loads(sent)(iter([given])))
        return Done(batches)


class Done:
    def __init__(self, batches: list[Any]) -> None:
        self.batches = batches

    def toArrow(self) -> pa.Table:
        return pa.Table.from_batches(self.batches)
