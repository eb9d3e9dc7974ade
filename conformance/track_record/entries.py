"""What an entry of the track record is, and the list of them.

An entry names a bug, the clause or wire rule that judges it, and two releases. Nothing in an entry knows the bug's
mechanism: a trial is an ordinary run (the wire machine, or a client at work), and the same clause judges both
sides by the same profile, so that a difference is the release's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.track_record.on_the_wire import ask_over_the_wire
from conformance.track_record.with_java import consume_with_java
from specs.verdicts.verdict import Judged

Say = Callable[[str], Any]
Trial = Callable[[str, str, str, Sequence[int], Path, Say], list[Judged]]
"""(target, profile, id of the clause or rule, seeds, a folder for the runs, progress) → one result per seed."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One bug. judged_by: a clause's or wire rule's id. red, green: targets. command: how a user sees it."""

    id: str
    bug: str
    judged_by: str
    red: str
    green: str
    profile: str
    trial: Trial
    command: str


def _conform(target: str, profile: str) -> str:
    return f"inorder conform --target {target} --profile {profile} --seed 1"


ENTRIES: tuple[Entry, ...] = (
    Entry(
        "B-28",
        "an exhausted message circles through the retry topic and never reaches the dead letters",
        "DLQ-1",
        "rocketmq-local:5.1.0+java:5.1.0",
        "rocketmq-local:5.1.1+java:5.1.1",
        "rocketmq-5-orderly",
        consume_with_java,
        "python -m conformance.track_record B-28",
    ),
    Entry(
        "B-29",
        "an exhausted message reaches the dead letters only after a delay level's time",
        "DLQ-7",
        "rocketmq-local:4.9.7",
        "rocketmq-local:5.4.0",
        "rocketmq-5-orderly",
        ask_over_the_wire,
        _conform("rocketmq-local:4.9.7", "rocketmq-5-orderly"),
    ),
    Entry(
        "B-55",
        "a pull beyond the end is sent back to offset 0, so that the whole queue is replayed",
        "WIR-9",
        "rocketmq-local:4.9.3",
        "rocketmq-local:4.9.4",
        "rocketmq-4.9-orderly",
        ask_over_the_wire,
        _conform("rocketmq-local:4.9.3", "rocketmq-4.9-orderly"),
    ),
)


def entry(name: str) -> Entry | None:
    """The entry of that id."""
    return next((each for each in ENTRIES if each.id == name), None)
