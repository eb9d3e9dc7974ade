"""What a stepped wall clock let happen: no promise was broken by it, since none holds then, yet somebody should know.

Leases are measured by wall clocks. That nobody steps one is a premise of every clause that rests on them: after a
recorded step they claim nothing. What they would have found, had there been none, is an *exposure*: a stranger who was
granted a lane while its owner's lease still ran, a client that worked on long after its own had ended. It shows what
such a step costs on this system, with the events as evidence, and changes neither the verdict nor the exit code.

How it is found: the same judges look at the same history once more, with the steps left out of it. A clause that the
profile does not promise exposes nothing; what ended before the first step is a violation, and told as one. What one
event does to several clauses is told once, by the first of them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from specs.clauses.catalogue import all_clauses
from specs.clauses.premises import NO_WALL_CLOCK_STEP
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.verdicts.examine import examine
from specs.vocabulary import Kind


@dataclass(frozen=True, slots=True)
class Exposure:
    """clause, title: of the promise that was not claimed. step: the last one before it; its row and the others are the
    evidence. after_ms: from the step to what broke the promise. times: how often it was found.
    """

    clause: str
    title: str
    step: Row
    rows: tuple[Row, ...]
    after_ms: int
    explanation: str
    times: int

    @property
    def stepped(self) -> str:
        """Whose clock was set, and by how much, in words."""
        party = self.step.broker or self.step.client_id or self.step.process
        return f"{party}'s clock was set by {self.step.value or 0:+d} ms"

    def to_json(self) -> dict[str, Any]:
        rows = sorted((self.step, *self.rows), key=lambda row: row.seq_begin)
        return {
            "clause": self.clause,
            "title": self.title,
            "stepped": self.stepped,
            "after_ms": self.after_ms,
            "explanation": self.explanation,
            "times": self.times,
            "rows": [row.to_json() for row in rows],
        }


def exposed(rows: Iterable[Row], info: RunInfo, claimed: frozenset[str]) -> tuple[Exposure, ...]:
    """What the clauses of these ids would have found but for the steps, in their order. None without a step."""
    rows = list(rows)
    steps = [row for row in rows if row.kind is Kind.CLOCK_STEP and row.value]
    if not steps:
        return ()
    clauses = [
        clause
        for clause in all_clauses()
        if clause.id in claimed and NO_WALL_CLOCK_STEP in clause.premise
    ]
    rest = (row for row in rows if row.kind is not Kind.CLOCK_STEP)
    tallies = examine(rest, info, clauses).tallies
    found: dict[tuple[str, int], Exposure] = {}
    for clause in clauses:
        for told in tallies[clause.id].found.values():
            step = _before(steps, told.witness)
            if told.violations and step is not None:
                last = told.witness[-1]
                after_us = _last_us(told.witness) - step.started_us
                found.setdefault(
                    (last.run, last.seq_begin),
                    Exposure(
                        clause.id,
                        clause.title,
                        step,
                        told.witness,
                        after_us // 1000,
                        told.explanation,
                        told.violations,
                    ),
                )
    return tuple(found.values())


def _before(steps: Sequence[Row], witness: Sequence[Row]) -> Row | None:
    """The last step that came before the last event of the evidence."""
    if not witness:
        return None
    last_us, run = _last_us(witness), witness[-1].run
    earlier = [step for step in steps if step.run == run and step.started_us <= last_us]
    return max(earlier, key=lambda step: step.started_us, default=None)


def _last_us(rows: Sequence[Row]) -> int:
    return max(row.started_us if row.ended_us is None else row.ended_us for row in rows)
