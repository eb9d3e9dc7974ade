"""What the runs of this project write down whenever it happens, as each declares it in its run.json.

A kind that can't happen unseen is declared too: nobody but the harness kills, pauses or steps anything, breaks a link,
resets an offset or lets a broker remove messages, and the harness writes down what it does (an untold full disk tells
of itself by the sends that it refuses). Whoever lends a broker for a run leaves it alone meanwhile.
"""

from __future__ import annotations

from reference_impl import records
from specs.clauses.certainty import SEEN_BY_A_TAP
from specs.history.runinfo import declared
from specs.vocabulary import Kind

BEFALLS = frozenset({Kind.CRASH, Kind.PAUSE, Kind.CLOCK_STEP, Kind.FAULT, Kind.RESET, Kind.TRIM})
"""What befalls the parties of a run."""

BY_WIRE_CLIENTS = frozenset(
    {
        Kind.SEND,
        Kind.LOCK,
        Kind.UNLOCK,
        Kind.FETCH_OFFSET,
        Kind.PULL,
        Kind.COMMIT,
        Kind.DEAD_LETTER,
        Kind.MEMBER,
        Kind.READ,
    }
)
"""What the suite's raw clients ask (`conformance.wire.client`), the drain included."""

OF_OUR_CLIENTS = declared(
    client=records.OF_CLIENTS | BEFALLS, wire=BY_WIRE_CLIENTS | records.OF_PROBERS
)
"""Of a run in which clients of ours work, and raw ones ask."""

BEHIND_A_TAP = declared(
    client=BEFALLS | {Kind.DELIVER, Kind.SEND, Kind.ASSIGN, Kind.CHECK, Kind.END_TRANSACTION},
    tap=SEEN_BY_A_TAP - {Kind.SEND},
    wire=BY_WIRE_CLIENTS,
)
"""Of a run of driven clients behind a tap: their drivers tell calls and sends, and the tap what they ask. No half
message is sent. A lane that a client drops while it stays is not told; who knows that there is none adds DROP."""
