"""What can go wrong for a user of the client library, by whose fault it is.

| raised | whose fault | the message |
|---|---|---|
| `UsageError` | the caller's: a wrong argument, an address that is none | not stored |
| `SendRefused` | the broker said no, `code` and `remark` tell why | not stored, unless `maybe_stored` |
| `NotReachable` | nobody was there: no name server, no route, no broker | not stored, unless `maybe_stored` |
| `SendUnknown` | no answer in time, or the connection broke | nobody can say |
| `Refused` | a broker said no to an `Admin`, `code` and `remark` tell why | |
| `Unanswered` | nobody answered an `Admin`; `maybe_done` tells whether the request may have been done | |
| `BodyFailed` | ours: please report it | |

All are `InorderError`s. A listener's own exception is not raised anywhere: it is logged, and the message comes again.
"""

from __future__ import annotations

from reference_impl.protocol.codes import ResponseCode
from reference_impl.shell.errors import BodyFailed
from specs.errors import InorderError, UsageError


class SendFailed(InorderError):
    """A send that was not acknowledged. maybe_stored: some try may have stored the message all the same."""

    def __init__(
        self, sentence: str, topic: str, message_id: str | None, *, maybe_stored: bool
    ) -> None:
        doubt = (
            " An earlier try may have stored it."
            if maybe_stored and not isinstance(self, SendUnknown)
            else ""
        )
        super().__init__(sentence + doubt)
        self.topic = topic
        self.message_id = message_id
        self.maybe_stored = maybe_stored


class SendRefused(SendFailed):
    """The broker answered with an error. code: a `ResponseCode` where it is a known one. remark: the broker's words."""

    def __init__(
        self,
        topic: str,
        message_id: str | None,
        code: int,
        remark: str | None,
        *,
        maybe_stored: bool = False,
    ) -> None:
        self.code = code
        self.remark = remark
        words = f": {remark}" if remark else ""
        sentence = f"The broker refused a message for {topic} with code {_named(code)}{words}."
        super().__init__(sentence, topic, message_id, maybe_stored=maybe_stored)


class NotReachable(SendFailed):
    """No byte of the message left this process, in the last try at least."""


class SendUnknown(SendFailed):
    """The message was sent and nobody answered: it may lie in its queue, now or later. To send again may double it."""


class Refused(InorderError):
    """A broker, or a name server, said no to an operator. code: a `ResponseCode` where it is a known one."""

    def __init__(self, what: str, code: int, remark: str | None) -> None:
        self.code = code
        self.remark = remark
        super().__init__(f"Could not {what}: code {_named(code)}{f': {remark}' if remark else ''}.")


class Unanswered(InorderError):
    """Nobody answered an operator. maybe_done: the request may have been done all the same."""

    def __init__(self, sentence: str, *, maybe_done: bool) -> None:
        super().__init__(sentence)
        self.maybe_done = maybe_done


def _named(code: int) -> str:
    return f"{code} ({ResponseCode(code).name if code in list(ResponseCode) else 'unknown'})"


__all__ = [
    "BodyFailed",
    "InorderError",
    "NotReachable",
    "Refused",
    "SendFailed",
    "SendRefused",
    "SendUnknown",
    "Unanswered",
    "UsageError",
]
