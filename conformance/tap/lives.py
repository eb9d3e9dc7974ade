"""Does a broker behind the tap live? What its connections tell, without a word of the protocol.

A process that dies ends all its connections and refuses new ones until it is there again. So a broker has died when
no connection to it is open any more and one is refused: one of a client's, or one that the tap tries itself (a probe)
as soon as the broker has ended the last. That the clients have gone says nothing, and neither does a broker that ends
a connection but takes the next: it closes what has been idle.
"""

from __future__ import annotations

from dataclasses import dataclass, field

PROBES_S = (0.0, 0.3, 1.0)
"""So long after the broker has ended its last connection is it tried whether it takes one."""
PROBE_S = 0.2
"""So long has a probe to stay open, before it says that somebody is there: what stands between may take it first."""


@dataclass(slots=True)
class BrokerLife:
    """One broker's. All of it is told in the order in which it happens."""

    _open: set[int] = field(default_factory=set)
    _lived: bool = False  # since its last death, a connection was open

    @property
    def is_alone(self) -> bool:
        """Nobody is connected to it, though somebody was, and it is not known to be dead."""
        return self._lived and not self._open

    def opened(self, number: int) -> None:
        self._open.add(number)
        self._lived = True

    def closed(self, number: int, *, by_broker: bool) -> bool:
        """A connection has ended. Is it worth a probe?"""
        self._open.discard(number)
        return by_broker and self.is_alone

    def refused(self) -> bool:
        """A connection could not be had. Has the broker died, as is known only now?"""
        if not self.is_alone:
            return False
        self._lived = False
        return True
