"""The words that the reference, the recorder and the judges share.

Every name here is the field's own term. The reference and the judges share these words and nothing else:
no rule is decided in this file.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

RETRY_PREFIX = "%RETRY%"
DLQ_PREFIX = "%DLQ%"
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
"""Where a broker keeps delayed messages until their time comes."""
STOOD_STILL = "the process stood still"
"""The detail of a PAUSE that nobody made: its machine was busy, as the process itself has noticed."""


class Kind(StrEnum):
    """What an operation is. One history row is one operation (or one message of a batch operation)."""

    APPEND = "append"  # a broker stored a message (level `store`)
    SEND = "send"  # a producer sends a message
    LOCK = "lock"  # a client asks for the lease of a lane, or renews it
    UNLOCK = "unlock"  # a client gives a lease back
    RENEW = "renew"  # a holder asks that its lease, of a lane or of a message, last longer
    RECEIVE = "receive"  # a member is handed one message under a lease of its own
    ACK = "ack"  # a member acknowledges one message under its lease
    RELEASE = "release"  # a member puts one message back before its lease ends
    PULL = "pull"  # a client asks for messages from an offset
    DELIVER = "deliver"  # a listener call, one row per message of the call
    COMMIT = "commit"  # a client reports a consumed offset to the broker
    FETCH_OFFSET = "fetch_offset"  # a client asks which offset is stored
    PERSIST = "persist"  # a broker wrote its offsets to disk
    PROGRESS = (
        "progress"  # what the store says a group has reached, read by somebody else (level `store`)
    )
    TRIM = "trim"  # a broker removed the oldest messages of a queue
    RESET = "reset"  # an operator moves a group's offset
    DEAD_LETTER = (
        "dead_letter"  # a client gives a message up: it is sent to the group's dead letters
    )
    SEND_BACK = "send_back"  # a concurrent consumer returns a message for a later retry
    END_TRANSACTION = "end_transaction"
    CHECK = "check"
    ASSIGN = "assign"  # a client computed its share of the lanes
    ADD = "add"  # a client begins to work on a lane: an incarnation begins
    DROP = "drop"  # a client stops working on a lane: the incarnation ends
    JOIN = "join"  # a client starts
    LEAVE = "leave"  # a client shuts down in good order
    MEMBER = "member"  # a client asks who else is in the group
    ROUTE = "route"  # a client asks which queues a topic has
    READ = "read"  # the final drain, or anybody who reads a queue outside of a group
    CRASH = "crash"  # a process dies without a word
    PAUSE = "pause"  # a process is stopped and later goes on
    CLOCK_STEP = "clock_step"  # a wall clock jumps
    FAULT = "fault"  # the harness injects a fault (begin) and heals it (end)


SERVER_CONSUMER = "server-consumer"
"""The client of a lane's work where a server keeps one consumer for it, from which all members of the group are handed
its messages; the process of such a row is the member."""
OF_A_CLIENT = frozenset(
    {
        Kind.LOCK,
        Kind.UNLOCK,
        Kind.RENEW,
        Kind.RECEIVE,
        Kind.ACK,
        Kind.RELEASE,
        Kind.PULL,
        Kind.DELIVER,
        Kind.COMMIT,
        Kind.FETCH_OFFSET,
        Kind.DEAD_LETTER,
        Kind.SEND_BACK,
        Kind.ASSIGN,
        Kind.DROP,
        Kind.JOIN,
        Kind.LEAVE,
        Kind.MEMBER,
    }
)
"""Kinds whose rows must name their client, but for what a store shows: of two rows by nobody none can tell whether one
client did both. An ADD without one begins the work of a server's own consumer, which calls several clients."""


class Outcome(StrEnum):
    """How an operation ended. A call ends in three ways: it happened, it did not, or nobody can say."""

    OK = "ok"
    REFUSED = "refused"
    UNKNOWN = "unknown"  # no answer: it may have happened, now or later
    SENT = "sent"  # one way: handed to the network, no answer is expected
    SUCCESS = "success"
    SUSPEND = "suspend"
    COMMIT = "commit"
    ROLLBACK = "rollback"
    NULL = "null"
    THREW = "threw"
    CUT = "cut"  # a listener call that a shutdown or a crash ended


LISTENER_SUSPENDS = frozenset({Outcome.SUSPEND, Outcome.NULL, Outcome.THREW})
"""Listener results that ask for the same batch again: a null or a throw counts as SUSPEND."""
LISTENER_RESULTS = LISTENER_SUSPENDS | {Outcome.SUCCESS, Outcome.COMMIT, Outcome.ROLLBACK}
"""How a listener call ends that is neither cut off nor still running."""


class Level(StrEnum):
    """Where an operation was seen. One commit seen at two levels is not two commits."""

    CLIENT = "client"  # by the client library that did it
    WIRE = "wire"  # by a raw protocol client of the suite
    TAP = "tap"  # by a proxy between client and broker
    STORE = "store"  # by the broker, or in its files


class Party(StrEnum):
    """Who keeps a promise."""

    BROKER = "broker"
    CLIENT = "client"
    PRODUCER = "producer"
    PAIR = "pair"  # client and broker together
    RUN = "run"  # the run itself: a check, not a promise


class Key(StrEnum):
    """What a clause's state belongs to; clauses of one key share one shuffle on Spark."""

    LANE = "lane"  # group, topic, broker, queue
    QUEUE = "queue"  # topic, broker, queue
    MESSAGE = "message"  # message id
    PRODUCER_KEY = "producer_key"  # client, topic, sharding key
    TOPIC_KEY = "topic_key"  # topic, sharding key
    GROUP_KEY = "group_key"  # group, topic, sharding key
    GROUP = "group"
    RUN = "run"


class CommitMode(StrEnum):
    AUTO = "auto"
    MANUAL = "manual"


class Queue(NamedTuple):
    """One queue of a topic on one broker."""

    topic: str
    broker: str
    queue_id: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.broker}/{self.queue_id}"


class Lane(NamedTuple):
    """One queue as one consumer group sees it."""

    group: str
    topic: str
    broker: str
    queue_id: int

    @property
    def queue(self) -> Queue:
        return Queue(self.topic, self.broker, self.queue_id)

    def __str__(self) -> str:
        return f"{self.group}/{self.topic}/{self.broker}/{self.queue_id}"


def group_of(topic: str) -> str | None:
    """The group whose retry or dead-letter topic it is; None of any other topic."""
    for prefix in (RETRY_PREFIX, DLQ_PREFIX):
        if topic.startswith(prefix):
            return topic.removeprefix(prefix)
    return None


def retry_topic(group: str) -> str:
    """The topic through which a group's messages return: `%RETRY%` + group."""
    return RETRY_PREFIX + group


def dead_letter_topic(group: str) -> str:
    """The group's dead-letter topic: `%DLQ%` + group."""
    return DLQ_PREFIX + group
