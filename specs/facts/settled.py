"""What a settled drain shows of each group: the lowest message that it still owes, and who has its lane.

A drain is settled (`detail=settled` on its markers) when before it all faults were healed, who had died was started
again, and nothing happened for longer than anything waits in a healthy system. What is not finished then never will be.
Only messages that the drain itself finds count, at or after the start of the lane's last incarnation. Nothing is
concluded of a group whose listener chose the manual mode (it may leave messages open), of one that does not subscribe
to every message, as the start of a member tells (JOIN, `view`), of a lane whose offset was reset, of one whose listener
call has not returned, of one whose last incarnation looked its start up where nobody saw the answer, and of a message
that may have been given up where nobody told, or that may be finished: nobody saw how its dead letter was answered, or
how a call of it ended (`unknown`; one that was cut finished nothing), or a call of it ends later, and it was not
delivered since. Nothing is sent while a queue is read so: that is part of what settled says.
"""

import numpy as np

from specs.facts.calls import CALL_COLUMNS
from specs.facts.columns import NONE, Ints
from specs.facts.rows import Rows
from specs.facts.segments import by_time, positions
from specs.vocabulary import Kind, Outcome

SETTLED = "settled"
LEASE = "broker_lease_ms"
"""The setting without which nobody knows for how long a client that died keeps its lanes."""
SETTLED_KINDS = frozenset(
    {Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD, Kind.DROP, Kind.FETCH_OFFSET, Kind.RESET, Kind.READ}
)
SETTLED_COLUMNS = (*CALL_COLUMNS, "detail", "message_id", "delay_level")


def readings(rows: Rows) -> list[Ints]:
    """Of each queue its settled markers, and all messages that were read there, by their begins."""
    settled = rows.text("detail") == rows.code("detail", SETTLED)
    shown = rows.are(Kind.READ) & rows.ended_as(Outcome.OK) & (settled | (rows.offset != NONE))
    where = positions(shown)
    where = where[by_time(rows.queue[where], rows.begin[where])]
    starts = positions(np.diff(rows.queue[where], prepend=-1) != 0)
    return np.split(where, starts[1:]) if len(where) else []
