"""A client that consumes every queue for itself asks for no lease.

A lease says who of a group may work on a queue; where everybody works on every queue it keeps all members but one
from their messages. Decided for clients that were seen to begin with the lane: whoever else asks for it (an
operator, a stranger) is none of the group's members.
"""

import numpy as np

from specs.clauses.premises import BROADCASTING
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, who
from specs.facts.columns import NEVER, NOWHERE
from specs.facts.leases import named
from specs.facts.segments import is_first, positions
from specs.vocabulary import Key, Kind, Party

ID = "LSE-12"
TITLE = "broadcast takes no lease"
STATEMENT = "A client that consumes every queue for itself asks for no lease."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (BROADCASTING,)
SOURCES = ("docs/sources.md#broadcast",)
KINDS = frozenset({Kind.ADD, Kind.LOCK})
NEEDS = frozenset({Kind.ADD, Kind.LOCK})


class LeaseAsked(Finding):
    add: Row
    lock: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Each request for a lease beside its client's first ADD of the lane; of those before that only the first."""
    client = rows.lane_client
    adds, lock = (positions(rows.are(kind) & rows.shared(named)) for kind in (Kind.ADD, Kind.LOCK))
    findings.at_stake(adds)
    add = Line(client, rows.begin, adds).first_after(client[lock], np.full(len(lock), -NEVER))
    shares = (add != NOWHERE) & ((rows.begin[lock] > rows.begin[add]) | is_first(client[lock]))
    findings.broken(LeaseAsked, add=add[shares], lock=lock[shares])


def explain(found: LeaseAsked) -> str:
    add, lock = found.add, found.lock
    return (
        f"{who(lock)} asked for the lease of {lock.lane} at {at(lock)}, though in broadcasting it shares the lane, "
        f"which it added at {at(add)}, with nobody"
    )
