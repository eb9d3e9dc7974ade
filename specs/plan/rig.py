"""What faults are made of: the few things that can be done to a party, a link, a disk or a clock.

Whoever runs a plan implements a `Rig` over what he has: the simulated world, clients on sockets, processes and
containers behind a proxy. A fault (`specs.faults`) says which of these things it does, and so works on each of them.
A rig writes down itself what it does: only it knows when a thing began and ended. The FAULT row's detail is `verb`,
then the names of whom it concerns, then its number; judges read it (`specs.clauses.links`).

A call that does not fit the moment (a kill of who is dead, a pause of who is paused) does nothing, so that a plan with
an action taken out is still a plan.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Protocol

from specs.errors import SpecError
from specs.plan.ability import Ability

NAME_SERVER = "ns"
"""The name server's node; one of a plan's, though no plan lists it."""
TURN_MS = 100
"""How long one turn of a starved process is: what it runs of it, and what it stands."""


class Trouble(StrEnum):
    """What can be wrong with a link between two nodes, whichever of them connected, until it is mended."""

    CUT = "cut"  # connections are reset, new ones refused
    HOLD = "hold"  # nothing comes through; the connections live for a while
    ONE_WAY = "one_way"  # what goes to the broker vanishes, or, with `answer`, what comes from it
    DELAY = "delay"  # every frame takes so many ms more
    JITTER = "jitter"  # every frame takes up to so many ms more, and none overtakes another
    THROTTLE = "throttle"  # so many kB a second, each way
    FRAGMENT = "fragment"  # pieces of so many bytes, `FRAGMENT_GAP_MS` apart
    TRUNCATE = "truncate"  # a connection ends once it has carried so many bytes in one direction
    RESET_PEER = (
        "reset_peer"  # a connection is reset so many ms after its first frame, which is lost
    )
    LOSE = "lose"  # so many frames of a hundred vanish
    DUPLICATE = "duplicate"  # so many frames of a hundred come twice
    REORDER = "reorder"  # every frame takes up to so many ms more, and frames overtake each other
    DROP_NEXT = "drop_next"  # the next request of a code, or the answer to it, vanishes, once
    REFUSE_NEXT = "refuse_next"  # the next request of a code gets an error for an answer, once


FRAGMENT_GAP_MS = 10
"""Between two pieces of what is sent over a link that fragments."""


class Rig(Protocol):
    """verb: the plan's word for what is being done just now, set before each call. Nodes go by the plan's names."""

    verb: str

    @property
    def abilities(self) -> Collection[Ability]: ...

    @property
    def brokers(self) -> Collection[str]:
        """Which nodes are brokers."""

    def kill(self, node: str, *, silent: bool = False) -> None:
        """Its process is gone, without a word. silent: no connection is seen to close."""

    def revive(self, node: str) -> None:
        """A new process for a node that is gone; a broker's finds its store."""

    def cut_power(self, broker: str, *, synced: bool = False) -> None:
        """Its machine is gone, and what its disk was not told to keep. synced: everything is on the disk first."""

    def exchange(self, broker: str, *, newer: bool) -> None:
        """Its process ends in good order, and a new one finds its store: of the other version, or of its own.

        newer: of the version that its target names for it; otherwise of the one that it began with.
        """

    def pause(self, node: str) -> None:
        """Its process stops between two instructions."""

    def starve(self, node: str, percent: int) -> None:
        """Its process runs for so much of each `TURN_MS`, and stands still for the rest, until `resume`."""

    def resume(self, node: str) -> None:
        """It goes on as ever."""

    def trouble(
        self,
        kind: Trouble,
        a: str,
        b: str,
        number: int = 0,
        *,
        answer: bool = False,
        error: int = 0,
    ) -> None:
        """The link suffers from now on. number: ms, percent, kB a second, bytes or a request's code.

        answer: of DROP_NEXT, ONE_WAY and RESET_PEER, the answer vanishes. error: of REFUSE_NEXT, the answer's code.
        """

    def mend(self, a: str, b: str) -> None:
        """The link is well again, whatever it suffered from."""

    def fill_disk(self, broker: str) -> None:
        """The broker's disk has no room any more."""

    def make_room(self, broker: str) -> None:
        """And has room again."""

    def slow_disk(self, broker: str, ms: int) -> None:
        """Each sync of the broker's disk takes so much longer."""

    def quicken_disk(self, broker: str) -> None:
        """It takes as long as ever."""

    def step_clock(self, node: str, ms: int) -> None:
        """Its wall clock is set by so much."""


class PartialRig:
    """A rig that can do nothing yet: a child names its abilities, and does what they stand for.

    `specs.faults.perform` asks nobody for what he is not able to; who gets here has named an ability too many.
    """

    verb = ""
    abilities: Collection[Ability] = frozenset()
    brokers: Collection[str] = ()

    def kill(self, node: str, *, silent: bool = False) -> None:
        self._cant()

    def revive(self, node: str) -> None:
        self._cant()

    def cut_power(self, broker: str, *, synced: bool = False) -> None:
        self._cant()

    def exchange(self, broker: str, *, newer: bool) -> None:
        self._cant()

    def pause(self, node: str) -> None:
        self._cant()

    def starve(self, node: str, percent: int) -> None:
        self._cant()

    def resume(self, node: str) -> None:
        self._cant()

    def trouble(
        self,
        kind: Trouble,
        a: str,
        b: str,
        number: int = 0,
        *,
        answer: bool = False,
        error: int = 0,
    ) -> None:
        self._cant()

    def mend(self, a: str, b: str) -> None:
        self._cant()

    def fill_disk(self, broker: str) -> None:
        self._cant()

    def make_room(self, broker: str) -> None:
        self._cant()

    def slow_disk(self, broker: str, ms: int) -> None:
        self._cant()

    def quicken_disk(self, broker: str) -> None:
        self._cant()

    def step_clock(self, node: str, ms: int) -> None:
        self._cant()

    def _cant(self) -> None:
        raise SpecError(
            f"{type(self).__name__} names an ability that {self.verb!r} needs, and has it not"
        )
