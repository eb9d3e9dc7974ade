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

from specs.clauses.clause import Clause
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.verdicts.examine import Examiner
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
    examiner = Examiner(info, clauses)
    begin = trouble.from_us
    before = 0 if begin is None else _first(rows, lambda row: row.started_us >= begin)
    read = _first(rows, lambda row: row.kind is Kind.READ)
    end = trouble.to_us
    after = len(rows) if end is None else _first(rows, lambda row: row.started_us > end)
    counts = []
    done = 0
    for until in (before, max(before, min(after, read)), max(before, read)):
        examiner.feed(rows[done:until])
        done = until
        counts.append(_count(examiner))
    examiner.feed(rows[done:])
    examiner.result()
    counts.append(_count(examiner))
    found = {
        clause: (counts[1].get(clause, 0) - counts[0].get(clause, 0))
        + (total - counts[2].get(clause, 0))
        for clause, total in counts[3].items()
    }
    mine = {
        row.seq_begin
        for row in (*rows[before : max(before, min(after, read))], *rows[max(before, read) :])
    }
    for bench in examiner.benches:
        found[bench.clause.id] += sum(times for seq, times in bench.counted if seq in mine)
    return found


def _first(rows: Sequence[Row], is_it: Callable[[Row], bool]) -> int:
    return next((place for place, row in enumerate(rows) if is_it(row)), len(rows))


def _count(examiner: Examiner) -> Mapping[str, int]:
    return {
        bench.clause.id: sum(judge.opportunities for _, judge in bench.judges)
        for bench in examiner.benches
    }
