"""What can follow what in the lines of one driver: what is asked for is answered once, and what begins ends once.

`TURNS` is the table. A line that it does not allow can't have happened, whatever the system did: it is a mistake of the
driver, told in a sentence with its remedy (WrongLine). What a client is not to do, and can, is for the clauses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from conformance.drivers.protocol import WrongLine

SENDS = ("send", "send_delayed", "send_batch", "send_half")
"""What is asked for and told by `sent`, and answered only where it is refused."""
ANSWERS_WITH: Mapping[str, tuple[str, ...]] = {
    "hello": ("events",),
    "read": ("messages",),
    "query": ("messages",),
    "progress": ("progress",),
    "leader": ("node",),
    "select": ("queue_id",),
}
"""What an answer must hold: without it nothing would be taken for what is there."""


@dataclass(frozen=True, slots=True)
class Turn:
    """begin, end: events. number: the field by which both say that they belong together; what: it counts."""

    begin: str
    end: str
    number: str
    what: str


TURNS = (
    Turn("delivered", "finished", "call", "call"),
    Turn("committing", "committed", "commit", "commit"),
    Turn("looking_up", "looked_up", "look", "look-up"),
    Turn("locking", "locked", "lock", "request for a lease"),
    Turn("receiving", "received", "receive", "request for a message"),
    Turn("acking", "acked", "ack", "acknowledgement"),
    Turn("released", "put_back", "release", "putting back"),
    Turn("ending", "ended", "id", "transaction"),
)
_BEGINS = {turn.begin: turn for turn in TURNS}
_ENDS = {turn.end: turn for turn in TURNS}


@dataclass(slots=True)
class Send:
    """What `sent` is waited for. asked_us: when it was asked for."""

    asked_us: int
    is_told: bool = False


class Turns:
    """The turns of one driver. Requests are taken in before they are written, events as they come.

    hosts: its lines name their clients, and each client counts for itself.
    """

    def __init__(self) -> None:
        self.hosts = False
        self._open: dict[str, dict[tuple[str, int], bool]] = {}  # by client: is it open still?
        self._sends: dict[int, Send] = {}
        self._transactions: set[int] = set()

    def asks(self, request: Mapping[str, Any], now_us: int) -> None:
        """A request is about to be written. Who is started again has nothing open, and counts anew."""
        verb, number = request.get("verb"), request.get("id")
        if verb == "start":
            self._open.pop(str(request.get("client")), None)
        if verb in SENDS and isinstance(number, int):
            for each in _sends_of(request, number):
                self._sends[each] = Send(now_us)
            if verb == "send_half":
                self._transactions.add(number)

    def takes(self, event: Mapping[str, Any]) -> int | None:
        """An event comes: when was it asked for? None where nobody asked for it. Raises WrongLine."""
        name = event["event"]
        if name == "sent":
            return self._sent(event["id"])
        turn = _BEGINS.get(name) or _ENDS.get(name)
        if turn is None or (name == "released" and not event.get("release")):
            return None
        number: int = event[turn.number]
        mine = self._open.setdefault(event.get("client", "") if self.hosts else "", {})
        is_open = mine.get((turn.begin, number))
        if name == turn.begin:
            if name == "ending" and number not in self._transactions:
                raise WrongLine(
                    f"`ending` tells of request {number}, which asked for no transaction"
                )
            if is_open:
                raise WrongLine(
                    f"`{name}` begins {turn.what} {number}, which has not ended yet (`{turn.end}`): each has a "
                    "number of its own"
                )
        elif is_open is None:
            raise WrongLine(
                f"`{name}` ends {turn.what} {number}, which no `{turn.begin}` has begun: tell `{turn.begin}` with "
                "the same number before it"
            )
        elif not is_open:
            raise WrongLine(f"`{name}` ends {turn.what} {number} a second time")
        mine[turn.begin, number] = name == turn.begin
        return None

    def is_send(self, number: int) -> bool:
        """Was a send asked for by this number?"""
        return number in self._sends or number in self._transactions

    def _sent(self, number: int) -> int:
        send = self._sends.get(number)
        if send is None:
            raise WrongLine(
                f"`sent` tells of request {number}, which asked for no send: its id is that of the request to send"
            )
        if send.is_told:
            raise WrongLine(f"`sent` tells of request {number} a second time")
        send.is_told = True
        return send.asked_us


def _sends_of(request: Mapping[str, Any], number: int) -> Iterator[int]:
    """The numbers of the `sent` that a request brings: a transaction's messages have one each."""
    if request["verb"] != "send_half":
        yield number
        return
    for each in request.get("messages", ()):
        yield int(each["number"])
