"""How a listener says what became of its message.

| the listener | then |
|---|---|
| returns nothing, or True, or `Result.SUCCESS` | the message is finished |
| returns False, or `Result.SUSPEND` | it comes again, after the consumer's suspend time |
| returns or raises `Suspend(ms=500)` | it comes again, after that time |
| raises anything else | it comes again, and the error is logged |
| returns `Result.COMMIT` or `Result.ROLLBACK` | only with `auto_commit=False`, see `OrderlyConsumer` |

In a batch the result holds for all of it.
"""

from __future__ import annotations

from enum import Enum

from specs.vocabulary import Outcome

CONSUMER_DEFAULT_MS = -1
DEAD_LETTER_NOW = -1


class Result(Enum):
    """A listener's result, where None, True and False are not enough."""

    SUCCESS = Outcome.SUCCESS
    SUSPEND = Outcome.SUSPEND
    COMMIT = Outcome.COMMIT
    ROLLBACK = Outcome.ROLLBACK


class Suspend(Exception):
    """Not now: deliver it again. To be returned or raised.

    ms: how long an orderly or key-ordered consumer waits, from 10 to 30,000; None for its own default.
    delay_level: after which of the broker's delays a concurrent consumer gets it again; 0 leaves it to the broker,
    below 0 sends it to the dead letters at once.
    """

    def __init__(self, ms: int | None = None, *, delay_level: int = 0) -> None:
        super().__init__("later")
        self.ms = CONSUMER_DEFAULT_MS if ms is None else ms
        self.delay_level = delay_level
