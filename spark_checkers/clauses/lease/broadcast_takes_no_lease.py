"""What breaks LSE-12, planted in a history."""

from __future__ import annotations

from functools import partial
from typing import Any

from spark_checkers.planting import BROADCASTING, STRANGER, Changes, Mutant, Trace
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome

CLAUSE = "LSE-12"


def lease_in_broadcasting(trace: Trace) -> Changes:
    for add in trace.of(Kind.ADD):
        yield partial(lambda a: trace.with_more([_asks(trace, a, a.client_id)], [a.seq_begin]), add)


def strangers_lease_in_broadcasting(trace: Trace) -> Changes:
    for add in trace.of(Kind.ADD):
        yield partial(lambda a: trace.with_more([_asks(trace, a, STRANGER)], [a.seq_begin]), add)


def _asks(trace: Trace, add: Row, client: str | None) -> Row:
    fields: dict[str, Any] = {
        "client_id": client,
        "incarnation": None,
        "value": None,
        "outcome": Outcome.REFUSED,
    }
    return trace.another(add, add, 1, kind=Kind.LOCK, **fields)


DEFECTS = (
    Mutant(
        "lease-in-broadcasting",
        "LSE-12",
        "a broadcast client asks for a lease",
        lease_in_broadcasting,
        generated=False,
        consumed=BROADCASTING,
    ),
)

LOOKALIKES = (
    Mutant(
        "stranger-leases-in-broadcasting",
        None,
        "a stranger asks for a lease",
        strangers_lease_in_broadcasting,
        generated=False,
        consumed=BROADCASTING,
    ),
)
