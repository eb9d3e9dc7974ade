"""The reference's functions held against the tables of `specs/vectors/`, for the clauses that a table decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from reference_impl.core.allocation import Strategy, by_config, by_machine_room, nearby, strategy
from reference_impl.core.consumer import OrderlyConsumer
from reference_impl.core.producer import Producer, ProducerConfig
from reference_impl.mutants import Mutant
from reference_impl.protocol.bodies import java_hash
from specs import vectors
from specs.clauses.catalogue import catalogue
from specs.errors import SpecError
from specs.vocabulary import Queue


def differences(clause_id: str, mutant: Mutant | None = None) -> list[str]:
    """Where the reference, or a mutant of it, gives something else than the clause's table; a line each.

    Raises SpecError for a clause that no table decides.
    """
    table = next((each.vectors for each in catalogue() if each.id == clause_id), None)
    if table is None or clause_id not in _CHECKS:
        raise SpecError(f"no table of vectors decides {clause_id}")
    return list(_CHECKS[clause_id](vectors.load(table), mutant))


def wrong_queues(clause_id: str, choose: Callable[[str, int], int | str]) -> tuple[int, list[str]]:
    """Hold anybody's choice of a queue against the table that decides the clause: how many rows, and what differs.

    choose: (key, number of queues) → the place of the queue, or in words why there is none.
    """
    table = next(each.vectors for each in catalogue() if each.id == clause_id and each.vectors)
    rows = vectors.load(table)
    wrong = []
    for row in rows:
        found = choose(row["key"], row["queues"])
        if found != row["queue"]:
            got = f"gets queue {found}" if isinstance(found, int) else f"gets none ({found})"
            wrong.append(
                f"{row['why']}: key {row['key']!r} {got} of {row['queues']} instead of queue {row['queue']}"
            )
    return len(rows), wrong


def allocation(rows: Sequence[Mapping[str, Any]], mutant: Mutant | None) -> Iterator[str]:
    """Every member's share, by the strategies of the mutant's consumer or the reference's own."""
    consumer = OrderlyConsumer if mutant is None or mutant.consumer is None else mutant.consumer
    known = consumer.rebalance_class.strategies
    for row in rows:
        share = _strategy(row["strategy"], row["settings"], known)
        queues = [_queue(text) for text in row["queues"]]
        for member, expected in row["shares"].items():
            found = [str(queue) for queue in share(member, queues, row["members"])]
            if found != expected:
                words = " ".join(expected) or "nothing"
                yield (
                    f"{row['strategy']}, {row['why']}: {member} of {' '.join(row['members'])} takes "
                    f"{' '.join(found) or 'nothing'} of {len(queues)} queues instead of {words}"
                )


def key_to_queue(rows: Sequence[Mapping[str, Any]], mutant: Mutant | None) -> Iterator[str]:
    """The queue that a producer chooses for each key, and the hash that it chooses by."""
    producer = Producer if mutant is None or mutant.producer is None else mutant.producer
    select = producer(ProducerConfig("p1", "producers", ())).select
    for row in rows:
        key, count = row["key"], row["queues"]
        queue = select(key, [Queue("orders", "b0", number) for number in range(count)])
        if (java_hash(key), queue.queue_id) != (row["hash"], row["queue"]):
            yield (
                f"{row['why']}: key {key!r} has hash {java_hash(key)} and queue {queue.queue_id} of {count} instead of "
                f"{row['hash']} and {row['queue']}"
            )


def _strategy(name: str, settings: Mapping[str, Any], known: Mapping[str, Strategy]) -> Strategy:
    match name:
        case "CONFIG":
            return by_config([_queue(text) for text in settings["fixed"]])
        case "MACHINE_ROOM":
            return by_machine_room(settings["rooms"])
        case "NEARBY":
            return nearby(
                strategy(settings["inner"], known), lambda queue: _room(queue.broker), _room
            )
        case _:
            return strategy(name, known)


def _room(name: str) -> str:
    """The machine room of a broker or a member, as the table names them: `room-name`."""
    return name.partition("-")[0]


def _queue(text: str) -> Queue:
    topic, broker, number = text.split("/")
    return Queue(topic, broker, int(number))


_CHECKS: Mapping[str, Callable[[Sequence[Mapping[str, Any]], Mutant | None], Iterator[str]]] = {
    "ASG-3": allocation,
    "ORD-6": key_to_queue,
}
