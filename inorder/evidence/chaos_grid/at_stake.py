"""How often clauses were at stake while a scenario broke things: from a run's history.

Rules:
- the trouble begins with the first fault and is over when, after the last one, the slowest lane that had something to
  do went on; where nothing is broken (consumers join and leave), it is all of the run;
- what is read back at the end bears on all that happened before, so a clause that is judged by it is at stake there
  for the trouble too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from inorder.evidence.laws import cut_open
from specs.clauses.clause import Clause
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.verdicts.examine import examine
from specs.verdicts.tally import FaultTold
from specs.vocabulary import Kind


@dataclass(frozen=True, slots=True)
class Trouble:
    """From when to when, by the run's clock; None for the run's own begin or end."""

    from_us: int | None = None
    to_us: int | None = None


def trouble_of(faults: Iterable[FaultTold], first_us: int) -> Trouble:
    """first_us: when the run's first row was, from which the faults' times are told."""
    told = list(faults)
    if not told:
        return Trouble()
    ends = [None if f.to_ms is None else f.to_ms + (f.recovered_ms or 0) for f in told]
    last_ms = None if None in ends else max(end for end in ends if end is not None)
    return Trouble(
        first_us + min(f.from_ms for f in told) * 1000,
        None if last_ms is None else first_us + (last_ms + 1) * 1000,
    )


def at_stake(
    rows: Sequence[Row], info: RunInfo, clauses: Sequence[Clause], trouble: Trouble
) -> dict[str, int]:
    """How often each clause that can be judged here was at stake in the trouble, by its id."""
    begin = trouble.from_us
    before = 0 if begin is None else _first(rows, lambda row: row.started_us >= begin)
    read = _first(rows, lambda row: row.kind is Kind.READ)
    end = trouble.to_us
    after = len(rows) if end is None else _first(rows, lambda row: row.started_us > end)
    first, inside, later, whole = (
        _opportunities(_as_far_as(rows, count), info, clauses)
        for count in (before, max(before, min(after, read)), max(before, read), len(rows))
    )
    # Of less of a run a clause may say more: what excuses comes later.
    return {
        id_: max(0, inside[id_] - first[id_]) + max(0, total - later[id_])
        for id_, total in whole.items()
    }


def _first(rows: Sequence[Row], is_it: Callable[[Row], bool]) -> int:
    return next((place for place, row in enumerate(rows) if is_it(row)), len(rows))


def _as_far_as(rows: Sequence[Row], count: int) -> list[Row]:
    """So many rows, and of their ends those that came before the next row began."""
    if count == len(rows):
        return list(rows)
    until = rows[count].seq_begin
    return [
        row if row.seq_end is not None and row.seq_end < until else cut_open(row)
        for row in rows[:count]
    ]


def _opportunities(
    rows: Sequence[Row], info: RunInfo, clauses: Sequence[Clause]
) -> Mapping[str, int]:
    tallies = examine(rows, info, clauses).tallies
    return {id_: tally.opportunities for id_, tally in tallies.items()}
