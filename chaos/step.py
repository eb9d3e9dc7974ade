"""One fault of a scenario: which one, when it comes, and when it is over.

    [[fault]]
    do = "pause"            # a verb of specs.faults, or another name of it
    client = "c1"           # whom; for a fault of a link or a broker, whose work is waited for
    after_messages = 10     # how many that client has finished first
    for_ms = 3000           # how long it lasts

A fault of a client comes while its listener runs, and lasts until others have its lanes, unless `for_ms` says how long.
A fault of a link is one of all clients' links to all brokers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

from chaos.live import running_call, taken_over, worked
from chaos.rig import EVERYBODY, Rig
from conformance.waiting import pass_time
from specs.errors import UsageError
from specs.faults import FAULTS, named, perform
from specs.history.row import Row
from specs.plan.ability import Ability
from specs.plan.fault import Fault, Subject

_WHOM = frozenset({Subject.CLIENT, Subject.PROCESS})
_LASTS_MS = 3_000
_MS = 150


@dataclass(frozen=True, slots=True)
class Step:
    """after_messages: how many `client` has finished first. for_ms: None until its lanes are taken over.

    broker: whom it befalls; None for the first. ms, percent: the fault's number. restart: does a killed client come
    back? deadline_s: how long each moment is waited for.
    """

    fault: Fault
    client: str
    after_messages: int = 10
    for_ms: int | None = None
    broker: str | None = None
    ms: int = _MS
    percent: int = 50
    restart: bool = True
    deadline_s: float = 90.0

    @classmethod
    def of(cls, name: str, table: Mapping[str, Any], where: str) -> Self:
        """From a scenario's [[fault]] table. Raises UsageError naming what is wrong with it."""
        fault = named(name)
        if fault is None:
            known = sorted(word for fault in FAULTS.values() for word in fault.names)
            raise UsageError(f"{where}: there is no fault {name!r}; known are {', '.join(known)}")
        mine = {each.name for each in fields(cls)} - {"fault"} - _not_of(fault)
        unknown = sorted(set(table) - mine)
        if unknown:
            raise UsageError(
                f"{where}: fault {name} knows no {', '.join(unknown)}; it has {', '.join(sorted(mine))}"
            )
        if "client" not in table:
            raise UsageError(f"{where}: fault {name} needs a client, whose work it waits for")
        if fault.subject not in _WHOM:
            table = {"for_ms": _LASTS_MS, **table}
        return cls(fault, **table)

    @property
    def befalls_client(self) -> bool:
        return self.fault.subject in _WHOM

    @property
    def needs_proxy(self) -> bool:
        return self.fault.subject is Subject.LINK

    @property
    def need(self) -> Ability:
        return self.fault.ability(of_broker=self.fault.subject is Subject.BROKER)

    def nodes(self, rig: Rig) -> list[dict[str, str]]:
        """Whom it befalls, as the arguments of the fault; one after the other."""
        if self.fault.subject is Subject.LINK:
            return [{"a": EVERYBODY, "b": broker} for broker in sorted(rig.brokers)]
        whom = self.client if self.befalls_client else self.broker or min(rig.brokers)
        return [dict.fromkeys(self.fault.nodes, whom)]

    def told(self, rig: Rig) -> dict[str, Any]:
        """The columns of its FAULT row: what it is, and whom it befalls; nobody named is everybody.

        A fault of a link goes by the name that it has for real sockets, if it has one, and without its number: what a
        proxy lets pass may lie in buffers for as long as the fault lasts, which judges have to allow for.
        """
        named = [] if self.fault.subject is Subject.LINK else list(self.nodes(rig)[0].values())
        word = self.fault.names[-1] if self.fault.subject is Subject.LINK else self.fault.verb
        columns: dict[str, Any] = {"detail": " ".join([word, *named])}
        if self.fault.subject is Subject.BROKER:
            columns["broker"] = named[0]
        return columns

    def attest(self, rows: Sequence[Row], told: Row) -> str | None:
        """What shows in the history that it had its effect."""
        number = " ".join(str(value) for value in self._number().values())
        return self.fault.attest(rows, told._replace(detail=f"{told.detail} {number}"))

    def await_moment(self, rig: Rig) -> None:
        """Wait for the fault's moment."""
        rig.live.wait_for(
            f"{self.client} at work", worked(self.client, self.after_messages), self.deadline_s
        )
        if self.befalls_client:
            rig.live.wait_for(
                f"{self.client} in its listener", running_call(self.client), self.deadline_s
            )
        rig.check_nobody_bypasses()

    def inject(self, rig: Rig) -> None:
        for nodes in self.nodes(rig):
            perform(rig, self.fault.verb, {**nodes, **self._number()})

    def heal(self, rig: Rig, since_us: int) -> None:
        """Wait for the end of the fault and mend it. since_us: when it came."""
        try:
            if self.for_ms is not None:
                pass_time(self.for_ms / 1000)
            else:
                rig.live.wait_for(
                    f"somebody to take over from {self.client}",
                    taken_over(self.client, since_us),
                    self.deadline_s,
                )
        finally:
            if self.fault.healed_by is not None and self.restart:
                for nodes in self.nodes(rig):
                    perform(rig, self.fault.healed_by, nodes)

    def _number(self) -> dict[str, int]:
        name = self.fault.number
        return {} if name is None else {name: getattr(self, name)}


def _not_of(fault: Fault) -> set[str]:
    """The words that mean nothing to the fault."""
    numbers = {"ms", "percent"} - {fault.number}
    brokers = set() if fault.subject is Subject.BROKER else {"broker"}
    return numbers | brokers | (set() if fault.subject is Subject.CLIENT else {"restart"})
