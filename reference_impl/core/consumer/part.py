"""What every part of a consumer stands on: its consumer, through which it asks, notes, and meets the other parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from reference_impl.protocol.command import Command
from specs.vocabulary import Outcome

if TYPE_CHECKING:
    from reference_impl.core.consumer.consumer import Consumer

OnEnd = Callable[[int, Command | None, str], None]
"""(now_ms, the answer or None, the reason when there is none): how a request ended."""

UNREACHABLE = "unreachable"
GARBLED = "garbled"


def failure_outcome(reason: str) -> Outcome:
    """How a request without an answer ended: only an unreachable server certainly did nothing."""
    return Outcome.REFUSED if reason == UNREACHABLE else Outcome.UNKNOWN


class Part:
    """One rule of a consumer, with the state that this rule alone needs.

    A part is made with its consumer and asks it for everything else: for requests, timers and rows (`Consumer`'s
    own methods), and for the other parts, by the names under which the consumer holds them. The other parts are
    there when the first input comes, and not yet while a part is being made.
    """

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.config = consumer.config

    def start(self, now_ms: int) -> None:
        """The consumer starts: what this part does from time to time begins."""
