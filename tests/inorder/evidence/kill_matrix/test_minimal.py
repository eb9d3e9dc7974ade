"""A witness is minimal when nothing can be left out of it."""

from __future__ import annotations

from inorder.evidence.kill_matrix.minimal import is_minimal
from specs.clauses.catalogue import get
from specs.history.text import parse_history

TWO_OWNERS = """
    0ms   alice  locks  billing/orders/b0/3   ok
    1ms   alice  locks  billing/orders/b0/3   ok
    10ms  bob    locks  billing/orders/b0/3   ok
"""


def test_a_proof_with_nothing_too_much_is_minimal() -> None:
    """A grant, and another's grant while it lives."""
    info, rows = parse_history(TWO_OWNERS)
    assert is_minimal(get("LSE-1"), rows[1:], info)


def test_one_event_too_much_is_not_minimal() -> None:
    """Either of alice's two grants proves it."""
    info, rows = parse_history(TWO_OWNERS)
    assert not is_minimal(get("LSE-1"), rows, info)


def test_what_proves_nothing_is_not_minimal() -> None:
    """No evidence, or evidence of something else."""
    info, rows = parse_history(TWO_OWNERS)
    assert not is_minimal(get("LSE-1"), rows[:2], info)
    assert not is_minimal(get("LSE-1"), [], info)
