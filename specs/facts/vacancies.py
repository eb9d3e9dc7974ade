"""Vacancies: lanes that nobody has, though a member of their group lives.

An incarnation is over once its DROP began, or its client's death, or its departure, since its ADD. A lane is nobody's
where that is so of the last ADD of each client: since the last of these ends.
"""

from typing import NamedTuple

from specs.clauses.rows import over_us
from specs.facts.columns import NONE, Mask
from specs.facts.leases import over_us as when_over_us
from specs.facts.moments import Line
from specs.facts.rows import Rows
from specs.facts.segments import positions
from specs.facts.tenures import Tenures
from specs.vocabulary import Kind


def takings(rows: Rows) -> Mask:
    """Rows that show that their group has had the lane: an ADD, or a delivery that names its incarnation; and a RESET,
    by which somebody takes it for had."""
    calls = rows.are(Kind.DELIVER) & rows.names_incarnation & (rows.offset != NONE)
    found: Mask = calls | rows.are(Kind.ADD, Kind.RESET)
    return found


class Vacancy(NamedTuple):
    """A lane that nobody has: who let it go last, by positions and by seqs, and when that was (µs)."""

    roles: dict[str, int]
    of_context: dict[str, int]
    over_us: int


class Vacancies:
    """Lanes that nobody has, as of a moment: by ADDs and DROPs, and by the deaths and departures of clients."""

    def __init__(self, rows: Rows) -> None:
        named, self.rows = rows.shared(Tenures).named, rows
        self.adds = Line(rows.lane, rows.begin, positions(named & rows.are(Kind.ADD)))
        self.drops = Line(rows.incarnation, rows.begin, positions(named & rows.are(Kind.DROP)))

    def of(self, add: int, now: int) -> Vacancy | None:
        """That of the lane whose last ADD this is: if nobody has the lane, though a member of its group lives."""
        rows, context = self.rows, self.rows.context_of(add)
        join = context.newest_member(rows.name_of("group", add), now)
        adds = self.adds.within(int(rows.lane[add]), NONE, now).tolist()
        ends: list[Vacancy] = []
        for each in {int(rows.client[each]): each for each in adds}.values():
            end = self._end_of(each, now)
            if end is None or join is None:
                return None
            ends.append(end._replace(of_context={"join": join, **end.of_context}))
        return max(ends, key=lambda end: (end.over_us, end.roles["add"]))

    def _end_of(self, add: int, now: int) -> Vacancy | None:
        """Why the incarnation of this ADD is over, if it is."""
        rows, context, since = self.rows, self.rows.context_of(add), int(self.rows.begin[add])
        client, group = rows.member_of(add)
        for drop in self.drops.within(int(rows.incarnation[add]), since, now)[:1]:
            return Vacancy({"add": add, "end": int(drop)}, {}, int(when_over_us(rows, drop)))
        death = context.death_after(client, since)
        if death <= now:
            return Vacancy({"add": add}, {"end": death}, context.died_us[death])
        for seq, left, row in context.work.get(client, ()):
            if since < seq <= now and row.kind is Kind.LEAVE and left in (group, None):
                return Vacancy({"add": add}, {"end": seq}, over_us(row))
        return None
