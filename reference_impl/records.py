"""What the reference's own parts write down whenever it happens: the words for a declaration (`RunInfo.records`).

Who puts a history together adds what its harness writes, and declares nothing of which something may happen unseen.
"""

from __future__ import annotations

from specs.vocabulary import Kind

OF_PRODUCERS = frozenset({Kind.SEND, Kind.CHECK, Kind.END_TRANSACTION})
"""What a producer of ours says of its sends, and of its half messages."""

OF_CONSUMERS = frozenset(
    {
        Kind.ASSIGN,
        Kind.ADD,
        Kind.DROP,
        Kind.LOCK,
        Kind.UNLOCK,
        Kind.FETCH_OFFSET,
        Kind.PULL,
        Kind.DELIVER,
        Kind.COMMIT,
        Kind.PERSIST,
        Kind.DEAD_LETTER,
        Kind.SEND_BACK,
    }
)
"""What a consumer of ours says, in whatever mode. PERSIST: of a broadcast consumer, whose offsets are in a file."""

OF_CLIENTS = OF_PRODUCERS | OF_CONSUMERS | {Kind.JOIN, Kind.LEAVE}
"""What clients of ours say. Not an operator's resets: of most of them a client is told nothing."""

OF_PROBERS = frozenset(
    {Kind.JOIN, Kind.LOCK, Kind.UNLOCK, Kind.FETCH_OFFSET, Kind.COMMIT, Kind.RESET}
)
"""What the raw clients of a plan are asked to do."""

OF_BROKERS = frozenset({Kind.APPEND, Kind.PERSIST, Kind.TRIM})
"""What a broker of ours says, where somebody listens to it."""
