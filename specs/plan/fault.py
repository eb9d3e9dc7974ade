"""What a fault is made of: the parts of a file in `specs/faults`, and their meaning for whoever reads them.

A file there has these names; those with a default may be left out.

| name | what it says |
|---|---|
| the docstring | its first line: what happens; then why that is nasty |
| `VERB` | the plan's word for it |
| `RANK` | where it stands in lists: the plainer fault first, since a search shrinks towards the first |
| `SUBJECT` | whom it befalls |
| `ARGS` | the arguments of the verb |
| `NEEDS` | the ability that a target lacks who can't have it |
| `NEEDS_OF_BROKER` | the same where it befalls a broker; as `NEEDS` |
| `HEALED_BY` | the verb that ends it, with the fault's nodes as its arguments; None where it is over by itself |
| `REQUESTS` | what becomes of a request on its way, which judges have to know |
| `TWIN` | arguments with which it has no effect: nothing |
| `SAYS`, `HEALING_SAYS` | how a case says it, and its end: nothing |
| `ALSO` | other names by which scenarios and older histories know it: none |
| `LINGERS_MS` | how long after its end what it did may still be felt: 0 |
| `DRAWN` | how a machine draws it that has no story for it: not at all |
| `inject(rig, **args)` | do it |
| `heal(rig, **nodes)` | end it; only with `HEALED_BY` |
| `attest(rows, fault)` | what shows in the history that it had an effect; None when nothing does |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from specs.history.row import Row
from specs.plan.ability import Ability
from specs.plan.arguments import NODE, Arguments


class Subject(StrEnum):
    """Whom a fault befalls."""

    CLIENT = "a client"
    BROKER = "a broker"
    PROCESS = "a client or a broker"
    LINK = "a link"
    NAME_SERVER = "the name server"


class Requests(StrEnum):
    """What a fault does to requests on their way."""

    SPARES = "nothing of its own"
    LOSES = "some are lost, none is held back"
    LATER = "each is as many ms later as the fault's number says, at most"
    HOLDS = "they may be held until the fault ends"


@dataclass(frozen=True, slots=True)
class Saying:
    """A sentence of a case. form: with placeholders (`conformance.cases.table`). meaning: for the page of commands.

    takes: by argument the placeholder that it is told by. fixed: the arguments that the sentence itself tells.
    """

    form: str
    meaning: str
    takes: Mapping[str, str]
    fixed: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Drawn:
    """How a machine draws a fault of a link. times: how often among the others. most: the largest number it draws.

    only_in: the runs that meet it at all, empty for all of them; for what clauses have as a premise not to happen.
    """

    times: int = 1
    most: int | None = None
    only_in: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """A file of `specs/faults`; the names are explained in the module."""

    verb: str
    rank: int
    why: str
    subject: Subject
    arguments: Arguments
    needs: Ability
    needs_of_broker: Ability
    healed_by: str | None
    requests: Requests
    twin: Mapping[str, Any]
    says: Sequence[Saying]
    healing_says: Sequence[Saying]
    also: Sequence[str]
    lingers_ms: int
    drawn: Drawn | None
    inject: Callable[..., None]
    heal: Callable[..., None] | None
    attest: Callable[[Sequence[Row], Row], str | None]

    @property
    def names(self) -> tuple[str, ...]:
        """All words for it."""
        return (self.verb, *self.also)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Its arguments that are nodes: those of the verb that heals it."""
        return tuple(name for name, (kind, _) in self.arguments.items() if kind == NODE)

    @property
    def number(self) -> str | None:
        """Its argument that is a number, if it has one."""
        return next((name for name, (kind, _) in self.arguments.items() if kind == "integer"), None)

    @property
    def healing_arguments(self) -> Arguments:
        return {name: self.arguments[name] for name in self.nodes}

    @property
    def abilities(self) -> tuple[Ability, ...]:
        """All that a target must be able to, to have it done to everybody whom it can befall."""
        first = () if self.subject is Subject.BROKER else (self.needs,)
        return tuple(dict.fromkeys((*first, self.needs_of_broker)))

    def ability(self, *, of_broker: bool) -> Ability:
        """What a target must be able to have done to it."""
        return self.needs_of_broker if of_broker else self.needs

    def fits(self, *, is_broker: bool) -> bool:
        """Can it befall a broker, or a client?"""
        misfit = Subject.CLIENT if is_broker else Subject.BROKER
        return self.subject is not misfit
