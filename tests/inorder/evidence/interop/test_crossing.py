"""The matrix at work: a cell off the diagonal, and features of a stranger's client on our broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.drivers import java
from conformance.parts.doctor import why_not
from conformance.parts.processes import living
from conformance.targets.driven import JavaTarget, Paired, pair
from inorder.evidence.interop.cells import all_runs, run_cell
from inorder.evidence.interop.features import NAMES, Seen, check_direction, directions
from inorder.evidence.interop.features import Missing as NotSeen
from inorder.evidence.interop.features import _batch as batch_check
from inorder.evidence.interop.features import _batch_plan as batch_plan
from specs.errors import UsageError
from specs.history.text import parse_history
from specs.verdicts.verdict import ClauseVerdict, RunVerdict


def needs(run: Paired) -> None:
    """Skip, with the reason, where a part is missing."""
    for part in ("java", "maven"):
        if (reason := why_not(part)) is not None:
            pytest.skip(reason)
    broker = run.parties["broker"]
    if (
        not broker.startswith("inorder")
        and (reason := why_not(f"rocketmq-{broker.split()[-1]}")) is not None
    ):
        pytest.skip(reason)
    if isinstance(run, JavaTarget):
        try:
            java.classes(run.version)
        except UsageError as error:
            pytest.skip(str(error))


@pytest.mark.long
def test_our_client_on_our_broker(tmp_path: Path) -> None:
    cell = run_cell(
        pair(None, None), seed=3, folder=tmp_path / "run", date="today", rounds=1, changes=2
    )
    assert [each.seen for each in cell.deviations] == []
    assert cell.verdict is RunVerdict.UPHELD
    assert cell.counts[ClauseVerdict.UPHELD] >= 40


@pytest.mark.apache
@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("run", [pytest.param(run, id=run.name) for run in all_runs()])
def test_no_cell_shows_what_nobody_knew(run: Paired, tmp_path: Path) -> None:
    needs(run)
    cell = run_cell(run, seed=5, folder=tmp_path / "run", date="today")
    assert [(each.clause, each.seen) for each in cell.news] == []
    assert living() == []


@pytest.mark.apache
@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("run", [pytest.param(run, id=run.name) for run in directions()])
def test_what_else_they_do_together(run: Paired, tmp_path: Path) -> None:
    needs(run)
    found = list(check_direction(run, tmp_path, "today"))
    assert [(each.feature, each.seen) for each in found if not each.works] == []
    assert [each.feature for each in found] == list(NAMES)


@pytest.mark.long
@pytest.mark.apache
def test_a_batch_and_a_read_of_the_java_client_on_our_broker(tmp_path: Path) -> None:
    run = pair(None, "5.4.0")
    needs(run)
    found = list(check_direction(run, tmp_path, "today", names=("batch", "pull")))
    assert [(each.feature, each.works, each.seen) for each in found] == [
        ("batch", True, "5 messages in one request, at neighbouring offsets"),
        ("pull", True, "12 of 12 messages, queue by queue"),
    ]


def test_a_batch_that_is_torn_is_seen() -> None:
    """A check must be able to say no."""
    _, rows = parse_history(
        """
        0ms  shop  sends     orders/b0/0          offset=1 id=m1 ok
        1ms  shop  sends     orders/b0/0          offset=3 id=m2 ok
        2ms  c1    delivers  billing/orders/b0/0  offset=1 id=m1 success
        3ms  c1    delivers  billing/orders/b0/0  offset=3 id=m2 success
        """
    )
    with pytest.raises(NotSeen, match="at the offsets"):
        batch_check(Seen(batch_plan("p"), rows))
    with pytest.raises(NotSeen, match="were not consumed"):
        batch_check(Seen(batch_plan("p"), rows[:3]))
