"""Failures as a trace for Perfetto."""

from __future__ import annotations

import json
from collections.abc import Callable

from conformance.reports.trace import trace
from conformance.reports.view import view
from specs.verdicts.verdict import Verdict

OVERLAP = """
    0ms..1ms    alice  locks     billing/orders/b0/3   ok
    5ms..40ms   alice  delivers  billing/orders/b0/3   offset=17 id=m17 success
    30ms..35ms  bob    delivers  billing/orders/b0/3   offset=17 id=m17 success
"""


def test_each_party_is_a_thread_and_each_call_a_span(make_verdict: Callable[..., Verdict]) -> None:
    """Times are µs; the violation is an instant of the whole process; the lease has no end in the evidence."""
    failures = [each for each in view(make_verdict(OVERLAP)).failures if each.id == "LSE-2"]
    events = json.loads(json.dumps(trace(failures)))["traceEvents"]
    names = {
        (event["name"], event.get("tid")): event["args"]["name"]
        for event in events
        if event["ph"] == "M"
    }
    assert names == {
        ("process_name", None): "LSE-2 one processor at a time",
        ("thread_name", 1): "alice",
        ("thread_name", 2): "bob",
        ("thread_name", 3): "alice, lease",
    }
    found = [
        (event["ph"], event["tid"], event["name"], event["ts"], event.get("dur"))
        for event in events
        if event["ph"] != "M"
    ]
    assert found == [
        ("X", 1, "lock ✓", 0, 1_000),
        ("X", 1, "17 ▶◀ success", 5_000, 35_000),
        ("X", 2, "17 ▶◀ success", 30_000, 5_000),
        ("B", 3, "lease of billing/orders/b0/3", 1_000, None),
        ("i", 1, "✗ LSE-2", 30_000, None),
    ]


def test_what_never_ended_begins_and_does_not_end(make_verdict: Callable[..., Verdict]) -> None:
    """The viewer draws it to the edge."""
    text = OVERLAP.replace("30ms..35ms", "30ms..")
    failures = [each for each in view(make_verdict(text)).failures if each.id == "LSE-2"]
    calls = [event for event in trace(failures)["traceEvents"] if "▶" in event["name"]]
    assert [event["ph"] for event in calls] == ["X", "B"]
