"""Releases: which hold of a lane an UNLOCK gives back.

A client holds a lane from an ADD on, or, where none was seen, as its DROP tells, until it gives it back. An unlock that
names an incarnation gives back what that one holds. One that names none gives back what its client has dropped, or
gives up in a shutdown, in the same life; where it holds more than that, nobody knows any more which of them it holds.
"""

from collections.abc import Iterator

from specs.facts.presence import may_be_leaving
from specs.facts.rows import Rows
from specs.facts.segments import by_time
from specs.facts.tenures import Tenures
from specs.vocabulary import Kind


def given_back(rows: Rows) -> Iterator[tuple[int, int]]:
    """Each ADD of which it is known which UNLOCK gave it back, and that one."""
    named, who = rows.shared(Tenures).named, rows.incarnation
    adds, drops = rows.are(Kind.ADD), rows.are(Kind.DROP)
    events = rows.of(Kind.ADD, Kind.DROP, Kind.UNLOCK)
    held: dict[int, list[int]] = {}
    dropped: set[int] = set()
    unclear: set[int] = set()
    for row in events[by_time(rows.lane[events], rows.begin[events])].tolist():
        mine = held.setdefault(int(rows.lane[row]), [])
        of_client = [
            each
            for each in mine
            if rows.client[each] == rows.client[row] and rows.life[each] == rows.life[row]
        ]
        meant = [each for each in mine if who[each] == who[row]] if named[row] else of_client
        if adds[row]:
            mine[:] = [each for each in mine if not (named[row] and each in meant)] + [row]
        elif drops[row]:
            dropped.update(meant or [row])
            mine += [] if meant else [row]
        elif len(meant) > 1:
            unclear.update(meant)
            mine.remove(meant[0])  # one of them it is
        elif meant and (named[row] or meant[0] in dropped or may_be_leaving(rows, row)):
            mine.remove(meant[0])
            if adds[meant[0]] and meant[0] not in unclear:
                yield meant[0], row
