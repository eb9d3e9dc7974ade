"""Every case on every body of the reference: a thin slice, and (long) the whole. And that the check can fail."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance.cases.folder import find_case
from conformance.cases.play import play
from conformance.cases.sockets import NotOnSockets, PacedLoop, SocketCluster
from conformance.cases.text import CaseError
from inorder.evidence.profile_grid.cases import (
    A_MOMENT,
    BODIES,
    KILLED,
    OF_A_MOMENT,
    ON_SOCKETS,
    keep_cases,
)
from inorder.evidence.profile_grid.page import CASES, WHY_NOT, marks, whole, with_cases
from specs.verdicts.examine import examine

SOCKETS_CANT = re.compile("sockets choose|sockets of one machine don't|on one machine without its")
PAGE = "\n".join(line for table in (CASES, WHY_NOT) for line in marks(table)) + "\n"
STRANGER = find_case(Path("lease/stranger_cannot_unlock"))
KEPT = find_case(Path("send/crash_loses_no_message"))


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize(
    "topic", ["members/one", "listener/auto_suspend", "lease/restart", "offset/upgraded"]
)
def test_a_few_cases_hold_on_every_body(body: str, topic: str) -> None:
    kept = keep_cases(body, date="", topic=topic)
    assert kept.differs == {}
    assert len(kept.held) == kept.count > 0


def test_what_sockets_cannot_do_is_told_with_its_reason() -> None:
    kept = keep_cases(ON_SOCKETS, date="", topic="start/first_error")
    assert (kept.held, kept.differs) == ([], {})
    assert kept.not_applicable == {
        "sockets of one machine don't drop next": ["start/first_error"],
        "sockets of one machine don't delay": ["start/first_error_before_the_first_pull"],
    }


def test_a_case_that_hangs_on_a_moment_is_none_for_sockets() -> None:
    for name in sorted(OF_A_MOMENT):
        find_case(Path(name))
    kept = keep_cases(KILLED, date="", topic="commit/of_a_lane")
    assert kept.not_applicable == {A_MOMENT: ["commit/of_a_lane_that_comes_back"]}


def test_a_mutant_on_sockets_answers_otherwise_and_is_refuted_in_its_clause() -> None:
    played = play(STRANGER, "unlock-ignores-owner", SocketCluster)
    assert [difference.happened for difference in played.differences] == [("granted 0",)]
    assert "LSE-8" in examine(played.rows, played.info).refuted()
    correct = play(STRANGER, None, SocketCluster)
    assert (correct.differences, examine(correct.rows, correct.info).refuted()) == ((), ())


class Forgetful(SocketCluster):
    """Its brokers' stores lose the last message of a queue when the broker is killed."""

    def revive(self, node: str) -> None:
        if node in self.brokers:
            del self._stores[node].queue("orders", 0).messages[-1:]
        super().revive(node)


def test_a_store_that_loses_an_acknowledged_message_across_a_kill_is_refuted() -> None:
    last = len(KEPT.blocks) - 1
    kept = play(KEPT, None, SocketCluster, killed_before=last)
    assert examine(kept.rows, kept.info).refuted() == ()
    lost = play(KEPT, None, Forgetful, killed_before=last)
    assert "SND-1" in examine(lost.rows, lost.info).refuted()


def test_time_passes_only_when_nothing_is_left_to_do() -> None:
    loop = PacedLoop()
    seen: list[float] = []
    loop.call_later(5, lambda: loop.call_later(3600, lambda: seen.append(loop.time())))
    loop.run_until(10)
    assert (loop.time(), seen) == (10, [])
    loop.run_until(4000)
    assert (loop.time(), seen) == (4000, [3605])
    loop.close()


def test_a_fault_of_the_network_is_refused_by_name() -> None:
    with pytest.raises(CaseError, match="don't drop next") as caught:
        play(find_case(Path("start/first_error")), None, SocketCluster)
    assert isinstance(caught.value.__cause__, NotOnSockets)


def test_the_page_tells_how_many_held_and_why_others_could_not() -> None:
    kept = keep_cases(ON_SOCKETS, date="2026-11-21", topic="start/first_error")
    page = with_cases(PAGE, kept)
    assert f"| `reference+tcp` | 2 | 0 | 0 | 2 | {kept.seconds} | 2026-11-21 |" in page
    assert "| `reference+tcp` | sockets of one machine don't delay | 1 |" in page
    assert with_cases(page, kept) == page
    named = whole([], [kept])
    assert "sockets of one machine don't delay | start/first_error_before_the_first_pull |" in named


@pytest.mark.long
@pytest.mark.parametrize("body", BODIES)
def test_every_case_holds_on_every_body(body: str) -> None:
    kept = keep_cases(body, date="")
    assert kept.differs == {}
    assert all("tcp" in body and SOCKETS_CANT.search(why) for why in kept.not_applicable)
    assert kept.held
