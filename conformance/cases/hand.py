"""A raw client, played by hand: asks what the case says, shows what it is told, keeps no rules.

It owns connections and an id and nothing else: no cache, no heartbeat of its own, no retry. Everything that it
does is recorded at the level `wire`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reference_impl.core.io import (
    Address,
    Answered,
    Begin,
    Effect,
    End,
    Failed,
    Note,
    Pushed,
    Request,
    Start,
)
from reference_impl.protocol.codes import STORED
from reference_impl.protocol.command import Command
from specs.vocabulary import Kind, Level, Outcome

TIMEOUT_MS = 30_000


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer, read. text: for the case. fields, rows: columns of the recorded operation's end."""

    text: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    rows: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """One request. kind: what is recorded, with its columns; None for nothing. read: how an answer reads. along: the
    columns of the commit that travels with it."""

    address: Address
    command: Command
    read: Callable[[Command], Reading]
    kind: Kind | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    rows: Sequence[Mapping[str, Any]] = ()
    along: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Heard:
    """Something that came in. now_ms: the client's wall clock. token: of the question; None for a push."""

    now_ms: int
    token: int | None
    text: str


class Hand:
    """heard: what came in, oldest first; the world takes it away."""

    def __init__(self, client_id: str) -> None:
        self.client_id = client_id
        self.heard: list[Heard] = []
        self._asked: dict[int, Question] = {}
        self.last = 0

    def handle(self, now_ms: int, event: Any) -> list[Effect]:
        match event:
            case Start():
                return [
                    Note(Kind.JOIN, Outcome.OK, {"client_id": self.client_id, "level": Level.WIRE})
                ]
            case Question():
                return self._ask(event)
            case Answered(int(token), answer) if token in self._asked:
                return self._answered(now_ms, token, self._asked.pop(token), answer)
            case Failed(int(token), reason) if token in self._asked:
                self.heard.append(Heard(now_ms, token, f"no answer ({reason})"))
                asked = self._asked.pop(token)
                return (
                    [] if asked.kind is None else [End(token, Outcome.UNKNOWN, {"detail": reason})]
                )
            case Pushed(_, command):
                group = command.ext.get("consumerGroup", "?")
                self.heard.append(Heard(now_ms, None, f"is told that {group} has changed"))
                return []
            case _:
                return []

    def _ask(self, question: Question) -> list[Effect]:
        self.last += 1
        self._asked[self.last] = question
        effects: list[Effect] = []
        if question.kind is not None:
            fields = {"client_id": self.client_id, "level": Level.WIRE, **question.fields}
            effects.append(Begin(self.last, question.kind, fields, question.rows))
            if question.along is not None:
                effects.append(Begin(-self.last, Kind.COMMIT, {**fields, **question.along}))
        effects.append(Request(self.last, question.address, question.command, TIMEOUT_MS))
        return effects

    def _answered(
        self, now_ms: int, token: int, question: Question, answer: Command
    ) -> list[Effect]:
        reading = question.read(answer)
        self.heard.append(Heard(now_ms, token, reading.text))
        if question.kind is None:
            return []
        outcome = Outcome.OK if answer.code in STORED else Outcome.REFUSED
        ends: list[Effect] = [
            End(token, outcome, {"code": answer.code, **reading.fields}, reading.rows)
        ]
        if question.along is not None:  # stored before the read, whatever that finds
            ends.append(End(-token, Outcome.OK, {"code": answer.code}))
        return ends
