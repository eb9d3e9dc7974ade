"""What the troubles of a link do to the frames of its connections.

The model is the simulated link (`reference_impl.sim.network`), so that a plan means the same on both.

Rules:
- the troubles of a link meet a frame in the order in which they began, and what one takes the next does not see; of
  one that was doubled before, the copy is on its way already;
- LOSE, DUPLICATE and REORDER befall frames of both directions, whatever they say: requests of either side, answers,
  and one-way requests;
- DROP_NEXT takes one request, of either side, or one answer to a client's request, and REFUSE_NEXT one request of the
  client, which then never reaches its broker; each is over with that;
- one that is there already goes on by the new number, but for these two: each of them waits for a frame of its own;
- opaques are numbers of one connection, so an answer is known by the request that this connection has carried.

Unlike a simulated link it can't know when a client has given a request up: an answer that nobody waits for any more
counts as one.

The dice are handed in, a stream for each direction of each connection: what a fault does to the n-th frame that it
meets there does not depend on what comes the other way, or on another's line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from reference_impl.protocol.command import Command
from reference_impl.sim.network import DELAY_MAX_MS
from specs.plan.rig import Trouble

OF_FRAMES = frozenset(
    {
        Trouble.LOSE,
        Trouble.DUPLICATE,
        Trouble.REORDER,
        Trouble.DROP_NEXT,
        Trouble.REFUSE_NEXT,
    }
)
"""What can be wrong with a link that only who reads its frames can do."""
_ONCE = (Trouble.DROP_NEXT, Trouble.REFUSE_NEXT)


@dataclass(frozen=True, slots=True, eq=False)
class Begun:
    """A trouble of a link. verb: the plan's word for it. number, answer, error: as `Rig.trouble` has them."""

    verb: str
    kind: Trouble
    number: int = 0
    answer: bool = False
    error: int = 0


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of a frame. after_ms: how much later each copy is handed on. answer: its sender gets that."""

    after_ms: tuple[int, ...] = (0,)
    answer: Command | None = None


LOST = Fate(())


class FrameLink:
    """One client's link to one broker. met: told of each trouble that a frame meets."""

    def __init__(self, met: Callable[[Begun], None] = lambda _: None) -> None:
        self.met = met
        self.troubles: list[Begun] = []

    def begin(self, trouble: Begun) -> None:
        """It suffers from that too."""
        if trouble.kind not in _ONCE:
            self.troubles = [each for each in self.troubles if each.kind is not trouble.kind]
        self.troubles.append(trouble)

    def mend(self) -> None:
        """It is well again; what is late already arrives when it would have."""
        self.troubles = []

    def is_over(self, trouble: Begun) -> None:
        """It has met what it waited for."""
        self.troubles.remove(trouble)


class Line:
    """One connection of a link. up, down: the dice of its two directions."""

    def __init__(self, link: FrameLink, up: Random, down: Random) -> None:
        self._link = link
        self._up = up
        self._down = down
        self._asked: dict[int, int] = {}  # the codes of the client's open requests, by opaque

    def to_broker(self, frame: Command) -> Fate:
        """What becomes of a frame that the client has sent."""
        fate = self._fate(frame, self._up, asked=None)
        if fate.after_ms and not frame.is_response and not frame.is_oneway:
            self._asked[frame.opaque] = frame.code
        return fate

    def to_client(self, frame: Command) -> Fate:
        """What becomes of a frame that the broker has sent."""
        asked = self._asked.pop(frame.opaque, None) if frame.is_response else None
        return self._fate(frame, self._down, asked, to_broker=False)

    def _fate(
        self, frame: Command, dice: Random, asked: int | None, *, to_broker: bool = True
    ) -> Fate:
        """asked: the code of the client's request that it answers, if it does."""
        link = self._link
        copies: list[int] = []
        late_ms = 0
        for trouble in tuple(link.troubles):
            match trouble.kind:
                case Trouble.LOSE if dice.random() * 100 < trouble.number:
                    link.met(trouble)
                    return Fate(tuple(copies))
                case Trouble.DROP_NEXT if _is_meant(trouble, frame, asked):
                    link.is_over(trouble)
                    link.met(trouble)
                    return Fate(tuple(copies))
                case Trouble.REFUSE_NEXT if to_broker and _is_meant(trouble, frame, asked):
                    link.is_over(trouble)
                    link.met(trouble)
                    answer = None if frame.is_oneway else frame.reply(trouble.error)
                    return Fate(tuple(copies), answer)
                case Trouble.DUPLICATE if dice.random() * 100 < trouble.number:
                    link.met(trouble)
                    copies.append(late_ms)
                case Trouble.REORDER:
                    later_ms = int(dice.random() * (min(trouble.number, DELAY_MAX_MS) + 1))
                    if later_ms:
                        link.met(trouble)
                    late_ms += later_ms
                case _:
                    pass
        return Fate((*copies, late_ms))


def _is_meant(trouble: Begun, frame: Command, asked: int | None) -> bool:
    """Does a trouble that waits for one request, or for the answer to one, wait for this frame?"""
    if trouble.answer:
        return asked == trouble.number
    return frame.code == trouble.number and not frame.is_response
