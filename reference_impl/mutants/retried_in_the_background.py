"""A send that was refused is reported as failed, and tried once more a moment later, when others have gone ahead.

Shows when a message is refused and a later one of its key is stored before the second try.
"""

from typing import Any

from reference_impl.core.io import SetTimer, TimerFired
from reference_impl.core.producer import RETRIED_CODES, Producer, ProducerConfig, Sending
from specs.vocabulary import Outcome

NAME = "retried-in-the-background"
BUG = "hand-made from producers with several requests in flight: a refused one is tried again behind its successors"
SOURCE = (
    "Kafka's producer with several requests in flight, retries and without idempotence (KAFKA-5494)"
)
KILLED_BY = "SND-9"
LATER_MS = 300


class Mutated(Producer):
    def __init__(self, config: ProducerConfig) -> None:
        super().__init__(config)
        self._later: dict[object, Sending] = {}

    def _done(
        self,
        now_ms: int,
        sending: Sending,
        outcome: Outcome,
        code: int | None,
        *place: Any,
        **more: Any,
    ) -> None:
        super()._done(now_ms, sending, outcome, code, *place, **more)
        if (
            outcome is Outcome.REFUSED
            and code in RETRIED_CODES
            and sending.attempt == 1
            and not self.stopping
        ):
            token = ("later", sending.message_id)
            self._later[token] = sending
            self._out.append(SetTimer(token, LATER_MS))

    def _on_timer(self, now_ms: int, input: TimerFired) -> None:
        sending = self._later.pop(input.token, None)
        if sending is None:
            super()._on_timer(now_ms, input)
        elif not self.stopping:
            self._open.add(sending)
            self._try(now_ms, sending)


producer = Mutated
