"""The pages about the cores say what the cores do."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType

from reference_impl import document
from reference_impl.sim.cluster import Cluster
from specs.plan.config import Config
from specs.plan.plan import Action, ClientPlan, ListenerRule, Plan, TopicPlan, Topology
from specs.vocabulary import Outcome

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "one-message.md"
NAMED = re.compile(r"\[`([\w.]+)`\]\(\.\./([\w/]+\.py)\)")
STORY = Plan(
    topology=Topology(("b0",), (TopicPlan("orders", 2),), ("billing",)),
    config=Config(max_reconsume_times=1, suspend_ms=50),
    clients=(
        ClientPlan("alice", "consumer", "billing", ("orders",)),
        ClientPlan("p", "producer", topics=("orders",)),
    ),
    actions=(
        Action(0, "start", {"client": "alice"}),
        Action(0, "start", {"client": "p"}),
        Action(2_000, "send", {"client": "p", "topic": "orders", "key": "k1", "count": 1}),
    ),
    listener=(ListenerRule(outcome=Outcome.SUSPEND),),
    until_ms=2_100,
)
"""One message is sent while its consumer waits for it; its listener suspends it until it is a dead letter."""


def passed() -> list[tuple[str, str]]:
    """Every function that is called from the send on, in order: (its qualified name, its file)."""
    calls: list[tuple[str, str]] = []

    def note(frame: FrameType, event: str, arg: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(ROOT):
            calls.append((frame.f_code.co_qualname, path.relative_to(ROOT).as_posix()))

    cluster = Cluster(STORY)
    *starts, send = STORY.actions
    for action in starts:
        cluster.perform(action.do, action.args)
    cluster.run_until(send.at_ms)
    outer = sys.getprofile()
    sys.setprofile(note)
    try:
        cluster.perform(send.do, send.args)
        cluster.run_until(STORY.until_ms)
    finally:
        sys.setprofile(outer)
    return calls


def test_the_guide_names_the_functions_that_the_message_passes() -> None:
    """In the order in which it passes them."""
    named = NAMED.findall(GUIDE.read_text(encoding="utf-8"))
    assert len(named) > 30
    calls = iter(passed())
    assert [name for name in named if name not in calls] == []


def test_the_page_of_tables_is_fresh() -> None:
    """`python -m reference_impl.document` was run after the last change of a table."""
    assert document.DOCUMENT.read_text(encoding="utf-8") == document.page()
