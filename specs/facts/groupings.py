"""Which rows are brought together: those that are alike in the columns of their key."""

from dataclasses import dataclass

from specs.vocabulary import Key

SOURCE = "source_id"
"""The id of the message as it was first sent; made from origin_id and message_id."""


@dataclass(frozen=True, slots=True, order=True)
class Grouping:
    """Which rows a judge needs together: those that are alike in these columns. must_have: none of these is null."""

    columns: tuple[str, ...]
    must_have: tuple[str, ...] = ()


QUEUES = Grouping(("run", "topic", "broker", "queue_id"), ("queue_id",))
CLIENTS = Grouping(("run", "group", "client_id"), ("group",))
"""The clients of a group, each with its own rows: of what grows with the messages a group may hold too much."""
GROUPINGS: dict[Key, Grouping] = {
    Key.QUEUE: QUEUES,
    Key.LANE: QUEUES,  # a lane lies within its queue
    Key.MESSAGE: Grouping(("run", SOURCE), (SOURCE,)),
    Key.GROUP: Grouping(("run", "group"), ("group",)),
    Key.GROUP_KEY: Grouping(
        ("run", "group", "topic", "sharding_key"), ("group", "sharding_key", "key_seq")
    ),
    Key.PRODUCER_KEY: Grouping(("run", "client_id", "topic", "sharding_key"), ("sharding_key",)),
    Key.TOPIC_KEY: Grouping(("run", "topic", "sharding_key"), ("sharding_key",)),
    Key.RUN: Grouping(("run",)),
}
