"""The offset table: an unconditional put, and what a crash leaves of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_impl.core.broker.offset_table import OffsetTable


@pytest.mark.parametrize(
    ("commits", "fetched"),
    [
        ([], None),
        ([5], 5),
        ([120, 7], 7),  # back
        ([7, 99_999], 99_999),  # beyond any end
        ([0], 0),
        ([5, -5], None),  # negative counts as none
    ],
)
def test_the_last_commit_counts(commits: list[int], fetched: int | None) -> None:
    """No commit is refused; a negative one reads as nothing stored."""
    table = OffsetTable({})
    for offset in commits:
        table.commit(0, "g", "t", 0, offset)
    assert table.fetch(0, "g", "t", 0) == fetched


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["g", "h"]),
            st.sampled_from(["t", "u"]),
            st.integers(0, 2),
            st.integers(0, 9),
        )
    )
)
def test_lanes_do_not_mix(commits: list[tuple[str, str, int, int]]) -> None:
    """Each lane has its own last commit, also after a snapshot was written and read."""
    table = OffsetTable({})
    for group, topic, queue_id, offset in commits:
        table.commit(0, group, topic, queue_id, offset)
    restarted = OffsetTable(table.snapshot())
    for group, topic, queue_id, offset in {c[:3]: c for c in commits}.values():
        assert table.fetch(0, group, topic, queue_id) == offset
        assert restarted.fetch(0, group, topic, queue_id) == offset


def test_a_snapshot_does_not_change_later() -> None:
    table = OffsetTable({})
    table.commit(0, "g", "t", 0, 1)
    snapshot = table.snapshot()
    table.commit(0, "g", "t", 0, 2)
    assert list(snapshot.values()) == [{0: 1}]
