"""What follows from a listener's result, as one table, and the suspend time.

Source: `ConsumeMessageOrderlyService.processConsumeResult` of apache/rocketmq. Two rows surprise: in auto mode a
ROLLBACK *acknowledges*, and in manual mode a SUCCESS commits nothing and goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from specs.vocabulary import CommitMode, Outcome

SUSPEND_MS_MIN = 10
SUSPEND_MS_MAX = 30_000
CONSUMER_DEFAULT = -1


class Back(StrEnum):
    """Which messages go back to be delivered again."""

    NONE = "none"
    BATCH = "batch"
    TAKEN = "taken"


class Rule(NamedTuple):
    """commit: all taken messages are finished. back: what is put back. go_on: at once, or after the suspend time."""

    commit: bool
    back: Back
    go_on: bool


AUTO, MANUAL = CommitMode.AUTO, CommitMode.MANUAL

_FINISHED = Rule(commit=True, back=Back.NONE, go_on=True)
_KEPT = Rule(commit=False, back=Back.NONE, go_on=True)
_BATCH_AGAIN = Rule(commit=False, back=Back.BATCH, go_on=False)
_ALL_AGAIN = Rule(commit=False, back=Back.TAKEN, go_on=False)

RESULTS: Mapping[tuple[Outcome, CommitMode, bool], Rule] = {
    # (result, mode, the whole batch was exhausted and its dead letters were acknowledged)
    (Outcome.SUCCESS, AUTO, False): _FINISHED,
    (Outcome.SUCCESS, MANUAL, False): _KEPT,
    (Outcome.COMMIT, AUTO, False): _FINISHED,
    (Outcome.COMMIT, MANUAL, False): _FINISHED,
    (Outcome.ROLLBACK, AUTO, False): _FINISHED,
    (Outcome.ROLLBACK, MANUAL, False): _ALL_AGAIN,
    (Outcome.SUSPEND, AUTO, False): _BATCH_AGAIN,
    (Outcome.SUSPEND, MANUAL, False): _BATCH_AGAIN,
    (Outcome.SUSPEND, AUTO, True): _FINISHED,
    (Outcome.SUSPEND, MANUAL, True): _KEPT,
    (Outcome.NULL, AUTO, False): _BATCH_AGAIN,
    (Outcome.NULL, MANUAL, False): _BATCH_AGAIN,
    (Outcome.NULL, AUTO, True): _FINISHED,
    (Outcome.NULL, MANUAL, True): _KEPT,
    (Outcome.THREW, AUTO, False): _BATCH_AGAIN,
    (Outcome.THREW, MANUAL, False): _BATCH_AGAIN,
    (Outcome.THREW, AUTO, True): _FINISHED,
    (Outcome.THREW, MANUAL, True): _KEPT,
}


def clamp_suspend(asked_ms: int, default_ms: int) -> int:
    """The pause before the next try: what the listener asked for (-1: the default), within 10..30000 ms."""
    wanted = default_ms if asked_ms == CONSUMER_DEFAULT else asked_ms
    return min(max(wanted, SUSPEND_MS_MIN), SUSPEND_MS_MAX)
