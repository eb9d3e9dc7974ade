"""How often each clause was at stake while a simulated run's faults lasted.

A fault lasts from its moment to its end and a broker's lease longer: by then a grant of its time has run out. So does
who joins or leaves by a step. Judges count what is at stake when they can tell; those that can't before the final
reads, as whether an acknowledged message is there, count for the whole run.
"""

from __future__ import annotations

from collections.abc import Iterator

from chaos.twin import Twin
from specs.plan.step import MOVES
from specs.verdicts.examine import Examiner
from specs.vocabulary import Kind

Times = tuple[int, int]


def at_stake(twin: Twin) -> dict[str, int]:
    """By clause, of those that the run is judged by."""
    examiner = Examiner(twin.info)
    first_read = [row.started_us for row in twin.rows if row.kind is Kind.READ][:1]
    bands = [*troubles(twin), *((us, us) for us in first_read)]
    rows, fed = twin.rows, 0
    inside: dict[str, int] = {}
    told: dict[str, int] = {}
    for band in bands:
        for us in band:
            upto = next((n for n in range(fed, len(rows)) if rows[n].started_us >= us), len(rows))
            examiner.feed(rows[fed:upto])
            fed, before, told = upto, told, _counted(examiner)
        for clause, number in told.items():
            inside[clause] = inside.get(clause, 0) + number - before.get(clause, 0)
    examiner.feed(rows[fed:])
    tallies = examiner.result().tallies
    return {
        clause: inside.get(clause, 0) if told.get(clause) else tally.opportunities
        for clause, tally in tallies.items()
    }


def troubles(twin: Twin) -> Iterator[Times]:
    """From when to when something was broken, or a member came or went, without overlaps."""
    lease_us = twin.plan.config.broker_lease_ms * 1000
    moved = [
        (action.at_ms * 1000, action.at_ms * 1000)
        for action in twin.plan.actions
        if action.at_ms > 0 and action.do in {*MOVES, *MOVES.values()}
    ]
    last: Times | None = None
    for begins, ends in sorted([*((f.from_us, f.to_us) for f in twin.faults), *moved]):
        if last is not None and begins <= last[1]:
            last = (last[0], max(last[1], ends + lease_us))
            continue
        if last is not None:
            yield last
        last = (begins, ends + lease_us)
    if last is not None:
        yield last


def _counted(examiner: Examiner) -> dict[str, int]:
    return {
        bench.clause.id: sum(judge.opportunities for _group, judge in bench.judges)
        for bench in examiner.benches
    }
