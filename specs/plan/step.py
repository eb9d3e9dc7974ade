"""A step: a fault, or a change of who is at work, that comes when something has happened and not at a time.

    {"do": "pause", "args": {"node": "c1"}, "client": "c1", "finished": 10, "at_work": true, "for_ms": 3000}

Steps go on beside a plan's actions. Each waits for its moment, lasts until its end, and is healed then. One comes after
the other: the next waits until all before it are over, or, where it is `beside`, only until the one before it has
begun. A moment or an end that does not come within the deadline ends the steps: what goes on is healed, and the rest is
left out. As long as a step is not over the plan's sends are made again, so that there is something to work on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from specs import faults
from specs.history.row import Row
from specs.plan.ability import Ability
from specs.plan.fault import Fault, Subject
from specs.reading import told

EVERYBODY = "everybody"
"""The other end of a link to a broker that is broken for all clients at once."""
MOVES: Mapping[str, str] = {"start": "stop", "stop": "restart"}
"""What else a step can do, with what ends it: a client joins, or leaves in good order."""
LATEST_MS = 60_000


@dataclass(frozen=True, slots=True)
class Step:
    """do, args: a verb of the plan. client: whose work is waited for, anybody's if it is empty.

    finished: how many messages it has finished since the step's turn came. at_work: its listener runs besides.
    for_ms: how long it lasts; None until others have worked on all lanes of `client`. heals: it is ended then, or left
    to the end of the run. of_broker: whom a fault of a party befalls is a broker. deadline_ms: how long each moment is
    waited for.
    """

    do: str
    args: Mapping[str, Any] = field(default_factory=dict)
    client: str = ""
    finished: int = field(default=10, metadata=told(least=0))
    at_work: bool = False
    for_ms: int | None = field(default=None, metadata=told(least=0))
    heals: bool = True
    beside: bool = False
    of_broker: bool = False
    deadline_ms: int = field(default=LATEST_MS, metadata=told(least=0))

    @property
    def fault(self) -> Fault | None:
        """None of a client that joins or leaves."""
        return faults.FAULTS.get(self.do)

    @property
    def needs(self) -> tuple[Ability, ...]:
        """What a target must be able to have done to it."""
        if self.fault is None:
            return ()
        need = self.fault.ability(of_broker=self.of_broker or "broker" in self.args)
        return (need, Ability.BREAK_ONE_LINK) if self.is_of_one_link else (need,)

    @property
    def is_of_one_link(self) -> bool:
        """Does it befall the link of one client alone?"""
        of_link = self.fault is not None and self.fault.subject is Subject.LINK
        return of_link and EVERYBODY not in self.args.values()

    @property
    def healed_by(self) -> str | None:
        """The verb that ends it, if it is to be ended."""
        ending = MOVES.get(self.do) if self.fault is None else self.fault.healed_by
        return ending if self.heals else None

    @property
    def healing_args(self) -> dict[str, Any]:
        """The arguments of that verb."""
        names = ("client",) if self.fault is None else self.fault.nodes
        return {name: self.args[name] for name in names}

    @property
    def detail(self) -> str:
        """How its row names it: the verb, and whom it befalls; nobody named is everybody.

        A fault of a link of everybody goes by the name that it has for real sockets, if it has one, and without its
        number: what a proxy lets pass may lie in buffers for as long as the fault lasts, which judges have to allow.
        """
        if self.fault is None:
            return " ".join([self.do, *self.healing_args.values()])
        if self.fault.subject is Subject.LINK and EVERYBODY in self.args.values():
            return self.fault.names[-1]
        return " ".join([self.do, *(self.args[name] for name in self.fault.nodes)])

    @property
    def columns(self) -> dict[str, Any]:
        """Of its row."""
        broker = self.args.get("broker")
        return {"detail": self.detail, **({"broker": broker} if broker else {})}

    def nodes(self) -> Iterator[str]:
        """All whom it names, but for everybody."""
        named = [self.client, *self.healing_args.values()]
        return (name for name in named if name and name != EVERYBODY)

    def attest(self, rows: Sequence[Row], told: Row) -> str | None:
        """What shows in the history that it had its effect. told: its row."""
        if self.fault is None:
            return None
        number = str(self.args.get(self.fault.number or "", ""))
        return self.fault.attest(rows, told._replace(detail=f"{told.detail} {number}".strip()))

    def to_json(self) -> dict[str, Any]:
        """What is not the default."""
        usual = Step(self.do)
        named = ((each.name, getattr(self, each.name)) for each in fields(self))
        return {"do": self.do} | {
            name: dict(value) if name == "args" else value
            for name, value in named
            if value != getattr(usual, name)
        }
