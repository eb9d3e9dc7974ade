"""Does a broker behind the tap live? What its connections tell, without a word of the protocol.

A process that dies ends all its connections and refuses new ones until it is there again. So a broker has died when
it has ended the last connections to it, several of them at once; or when none is open any more and one is refused: one
of a client's, or one that the tap tries itself (a probe) as soon as the broker has ended the last. That the clients
have gone says nothing, and neither does a broker that ends one connection but takes the next: it closes what has been
idle.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

PROBES_S = (0.0, 0.3, 1.0)
"""So long after the broker has ended its last connection is it tried whether it takes one."""
PROBE_S = 0.2
"""So long has a probe to stay open, before it says that somebody is there: what stands between may take it first."""

AT_ONCE_S = 1.0
"""Connections that a broker ends within this time it ended together."""


class Sign(Enum):
    """What the end of a connection says about the broker."""

    NOTHING = "nothing"
    DOUBT = "it may have died: try it"
    DEATH = "it has died"


@dataclass(slots=True)
class BrokerLife:
    """One broker's. All of it is told in the order in which it happens; times are of any clock, in s."""

    _open: set[int] = field(default_factory=set)
    _lived: bool = False  # since its last death, a connection was open
    _ended_s: float | None = None  # when it last ended a connection

    @property
    def is_alone(self) -> bool:
        """Nobody is connected to it, though somebody was, and it is not known to be dead."""
        return self._lived and not self._open

    def opened(self, number: int) -> None:
        self._open.add(number)
        self._lived = True

    def closed(self, number: int, *, by_broker: bool, at_s: float) -> Sign:
        """A connection has ended."""
        self._open.discard(number)
        if not by_broker:
            return Sign.NOTHING
        at_once = self._ended_s is not None and at_s - self._ended_s <= AT_ONCE_S
        self._ended_s = at_s
        if not self.is_alone:
            return Sign.NOTHING
        if not at_once:
            return Sign.DOUBT
        self._dies()
        return Sign.DEATH

    def refused(self) -> bool:
        """A connection could not be had. Has the broker died, as is known only now?"""
        if not self.is_alone:
            return False
        self._dies()
        return True

    def _dies(self) -> None:
        self._lived, self._ended_s = False, None
