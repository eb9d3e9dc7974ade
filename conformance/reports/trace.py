"""Incidents in the trace-event format, which Perfetto (ui.perfetto.dev) and chrome://tracing open.

https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU : times are µs. A violation is a
process, a party's track a thread of it; a call or request is a span, a moment an instant; what has no end begins and
does not end. Leases and faults have threads of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conformance.reports.incident import Incident, Lease, Shape, Step, incident_of
from conformance.reports.view import ClauseView
from specs.history.row import Row

Event = dict[str, Any]


def trace(clauses: Sequence[ClauseView], context: Sequence[Row] = ()) -> Mapping[str, Any]:
    """The trace of some clauses' witnesses: an object for JSON."""
    events: list[Event] = []
    for number, clause in enumerate((each for each in clauses if each.witness), start=1):
        events += _events(clause, incident_of(clause.witness, context), number)
    return {"displayTimeUnit": "ms", "traceEvents": events}


def _events(clause: ClauseView, what: Incident, process: int) -> Iterator[Event]:
    base = {"pid": process}
    yield _named("process_name", f"{clause.id} {clause.title}", **base)
    thread = 0
    for track in what.tracks:
        thread += 1
        place = {**base, "tid": thread}
        name = track.party if track.number == 0 else f"{track.party} ({track.number + 1})"
        yield _named("thread_name", name, **place)
        yield from (event | place for step in track.steps for event in _step(step))
    for lease in what.leases:
        thread += 1
        place = {**base, "tid": thread}
        yield _named("thread_name", f"{lease.party}, lease", **place)
        yield _lease(lease, what) | place
    if what.broken is not None:
        moment = what.moments[what.broken]
        told = {"happened": clause.happened}
        broken = {"name": f"✗ {clause.id}", "ph": "i", "s": "p", "ts": moment.at_us, "args": told}
        yield {**broken, **base, "tid": 1}


def _named(kind: str, name: str, **place: int) -> Event:
    return {"name": kind, "ph": "M", **place, "args": {"name": name}}


def _step(step: Step) -> Iterator[Event]:
    row = step.row
    event: Event = {
        "name": step.whole_label,
        "cat": "evidence" if step.evidence else "beside",
        "ts": row.started_us,
        "args": row.to_json(),
    }
    if step.last is None:
        yield {**event, "ph": "B"}
    elif (
        step.first == step.last and step.shape is not Shape.CALL and row.ended_us == row.started_us
    ):
        yield {**event, "ph": "i", "s": "t"}
    else:
        ended = row.started_us if row.ended_us is None else row.ended_us
        yield {**event, "ph": "X", "dur": ended - row.started_us}


def _lease(lease: Lease, what: Incident) -> Event:
    name = f"lease of {lease.lane}"
    event: Event = {"name": name, "cat": "lease", "ts": lease.since_us, "args": {}}
    until = lease.until_us if lease.last is None else what.moments[lease.last].at_us
    if until is None:
        return {**event, "ph": "B"}
    return {**event, "ph": "X", "dur": max(0, until - lease.since_us)}
