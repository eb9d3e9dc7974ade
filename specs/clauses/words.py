"""How findings are told: times and parties."""

from specs.history.row import Row
from specs.vocabulary import Kind


def ms(value_us: int) -> str:
    """A duration for people: `1200 ms`, or `1.250 s` from 10 s on."""
    return (
        f"{value_us / 1_000_000:.3f} s"
        if abs(value_us) >= 10_000_000
        else f"{value_us / 1000:g} ms"
    )


def at(row: Row) -> str:
    """A row's begin for people, in seconds of its clock."""
    return f"{row.started_us / 1_000_000:.3f} s"


def who(row: Row) -> str:
    return row.party or "somebody"


def saw(row: Row) -> str:
    """Who saw a message, and how: a delivery or a read."""
    return f"{who(row)} {'was given' if row.kind is Kind.DELIVER else 'read'}"


def start_of(row: Row) -> int:
    """Where the row says that an incarnation starts: a look-up that found nothing stored says 0, from the first."""
    return max(row.value or 0, 0)
