"""Which rows tell what befalls a run as a whole: who died, left or stood still, and what was removed on purpose."""

import re

from specs.faults import pause as standstill
from specs.history.row import Row
from specs.vocabulary import Kind

FLUSHED_LATER = "async"
"""The configuration's `flush` of brokers that answer a send before its message is safe from a crash."""


def takes_everything(subscription: str | None) -> bool:
    """Is a subscription, as a JOIN's `view` tells it, one to every message: `*`, or `orders:*` of each topic?

    What is not told is as the configuration says.
    """
    words = re.split(r"[\s,;]+", subscription or "")
    return all(word.rpartition(":")[2] in ("*", "") for word in words)


DISTURBS = frozenset({Kind.CRASH, Kind.LEAVE, Kind.JOIN, Kind.PAUSE, Kind.CLOCK_STEP, Kind.FAULT})
"""What can hold up whoever should take a lane."""
LOOKS = frozenset({Kind.DELIVER, Kind.READ})
"""Kinds of rows by which somebody looks at what lies in a topic."""
CONTEXT_KINDS = frozenset(
    {
        Kind.CRASH,
        Kind.LEAVE,
        Kind.JOIN,
        Kind.PAUSE,
        Kind.CLOCK_STEP,
        Kind.FAULT,
        Kind.ADD,
        Kind.RESET,
        Kind.TRIM,
    }
)


def is_pause_of_another(fault: Row, client_id: str | None, broker: str | None) -> bool:
    """Does the fault say that somebody else than these two stood still? Its columns say who, or its detail.

    Of somebody who is not named nobody knows that.
    """
    word, _, names = (fault.detail or "").partition(" ")
    paused = {fault.client_id, fault.broker, *names.split()}
    if word != standstill.VERB or not client_id or not broker or {client_id, broker} & paused:
        return False
    return fault.client_id is not None or fault.broker is not None
