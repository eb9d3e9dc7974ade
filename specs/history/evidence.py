"""What shows in a history that something had an effect; the faults' `attest` are made of these."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from specs.history.row import Row
from specs.vocabulary import Kind, Outcome

WORK = frozenset(
    {
        Kind.LOCK,
        Kind.UNLOCK,
        Kind.PULL,
        Kind.DELIVER,
        Kind.COMMIT,
        Kind.FETCH_OFFSET,
        Kind.DEAD_LETTER,
        Kind.SEND,
    }
)
"""What a client does."""
QUICK = frozenset({Kind.LOCK, Kind.FETCH_OFFSET, Kind.SEND})
"""Requests that a broker answers at once."""
ASKED = QUICK | {Kind.PULL, Kind.DEAD_LETTER}
"""Requests that end with an answer, or with none."""
IN_VAIN = frozenset({Outcome.UNKNOWN, Outcome.REFUSED})


CHANGED = " → "
"""Between two versions, in the `view` of the row of a broker's end in good order."""


def change_of(before: str, after: str) -> str:
    """What a broker said of its version before its end, and what the next one on its store says."""
    return f"{before}{CHANGED}{after}"


def has_changed(view: str | None) -> bool:
    """Does the view tell of two versions that differ?"""
    before, found, after = (view or "").partition(CHANGED)
    return bool(found) and before != after


def names_of(fault: Row) -> tuple[str, ...]:
    """Whom the fault concerns, as its row's detail says after the verb: nobody named means everybody."""
    return tuple(word for word in (fault.detail or "").split()[1:] if not _is_number(word))


def number_of(fault: Row) -> int | None:
    """The number in the detail of the fault's row: its ms, percent, bytes, kB a second or request code."""
    numbers = [word for word in (fault.detail or "").split()[1:] if _is_number(word)]
    return int(numbers[-1]) if numbers else None


def _is_number(word: str) -> bool:
    return word.lstrip("-").isdecimal()


def is_named(known: str, name: str) -> bool:
    """Is that client id one of the party of that name? It is the name, or begins with it: `alice.2`, `alice@4`."""
    return known == name or (known.startswith(name) and known[len(name)] in ".@#")


def is_of(row: Row, name: str) -> bool:
    """Is the row about the party of that name?"""
    return any(
        known is not None and is_named(known, name) for known in (row.client_id, row.process)
    )


def during(row: Row, fault: Row) -> bool:
    """Did the operation begin while the fault lasted?"""
    end = fault.ended_us if fault.ended_us is not None else row.started_us
    return fault.started_us <= row.started_us <= end


def over_link(row: Row, names: Sequence[str]) -> bool:
    """Is it a request over that link? Two names are its ends, one is everything to and from it, none is all."""
    return all(row.broker == name or is_of(row, name) for name in names)


def asked_during(rows: Sequence[Row], fault: Row) -> list[Row]:
    """The requests over the fault's link that were made while it lasted."""
    names = names_of(fault)
    return [
        row for row in rows if row.kind in ASKED and during(row, fault) and over_link(row, names)
    ]


def under_way(rows: Sequence[Row], fault: Row) -> list[Row]:
    """The requests over the fault's link that waited for their answer when it began."""
    names = names_of(fault)
    return [
        row
        for row in rows
        if row.kind in ASKED
        and row.started_us < fault.started_us
        and (row.ended_us is None or row.ended_us > fault.started_us)
        and over_link(row, names)
    ]


def in_vain(rows: Sequence[Row], fault: Row, what: str) -> str | None:
    """How many of the requests over the link were not answered with success, if any."""
    asked = asked_during(rows, fault)
    lost = [row for row in asked if row.outcome in IN_VAIN]
    if not lost:
        return None
    return f"{len(lost)} of {len(asked)} requests begun while {what} were not answered with success"


def answered_afterwards(rows: Sequence[Row], fault: Row, well: str) -> str | None:
    """That no request over the link was answered before the fault was over, if there was one: clients try again.

    Where nobody asked anything anew, for all of them waited, those count that were under way when it began. well: how
    it is said that the fault was over.
    """
    asked, end_us = asked_during(rows, fault) or under_way(rows, fault), fault.ended_us
    answered = [row for row in asked if row.ended_us is not None]
    if end_us is None or not answered or any((row.ended_us or 0) < end_us for row in answered):
        return None
    return f"all {len(answered)} requests that were answered had to wait until {well}"


def broken_off(rows: Sequence[Row], fault: Row, what: str) -> str | None:
    """How many of the requests over the link nobody knows the fate of, if any: their connections ended too soon.

    A refusal is none of them: it is an answer, or no connection was made at all.
    """
    asked = asked_during(rows, fault)
    torn = [row for row in asked if row.outcome is Outcome.UNKNOWN]
    if not torn:
        return None
    return f"{len(torn)} of {len(asked)} requests begun while {what} were left without an answer"


def took_longer(rows: Sequence[Row], fault: Row, least_us: int) -> str | None:
    """That requests a broker answers at once took at least so much longer than before, in the median."""
    names = names_of(fault)
    slow = quick_during(rows, fault)
    usual = [
        took_us(row)
        for row in rows
        if _is_quick(row) and over_link(row, names) and (row.ended_us or 0) < fault.started_us
    ]
    if not slow:
        return None
    before_us = median(usual) if usual else 0
    if median(slow) - before_us < least_us:
        return None
    return (
        f"the median request took {median(slow) / 1000:.0f} ms instead of {before_us / 1000:.1f} ms"
    )


def quick_during(rows: Sequence[Row], fault: Row) -> list[int]:
    """How long those of them took that were begun while the fault lasted, in µs."""
    return [took_us(row) for row in asked_during(rows, fault) if _is_quick(row)]


def took_us(row: Row) -> int:
    """From the request to its answer."""
    return (row.ended_us or row.started_us) - row.started_us


def _is_quick(row: Row) -> bool:
    return row.kind in QUICK and row.ended_us is not None


def takeover(rows: Sequence[Row], client: str, since_us: int) -> Row | None:
    """The first delivery by another client on a lane on which `client` worked before `since_us`."""
    lanes = {
        row.lane
        for row in rows
        if row.kind is Kind.DELIVER and is_of(row, client) and row.started_us < since_us
    }
    for row in rows:
        if (
            row.kind is Kind.DELIVER
            and not is_of(row, client)
            and row.started_us >= since_us
            and row.lane in lanes
        ):
            return row
    return None
