"""Message-level faults by rule: what a tap does to the n-th request of a kind instead of passing it on.

    QUERY_CONSUMER_OFFSET#2=answer:1        the second look-up of each client is answered with code 1
    LOCK_BATCH_MQ=lose-answer               the broker grants, the client never hears of it
    UPDATE_CONSUMER_OFFSET#1-3@c1=delay:500 three commits of client c1 travel half a second longer

A request that is answered by the tap does not reach the broker: so the answer is true. A lost or delayed frame may
be overtaken by later ones of its connection.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from reference_impl.protocol.codes import RequestCode
from specs.errors import UsageError


class Action(StrEnum):
    """What is done to a request or to its answer."""

    LOSE = "lose"
    LOSE_ANSWER = "lose-answer"
    DELAY = "delay"
    DELAY_ANSWER = "delay-answer"
    ANSWER = "answer"


_WITH_NUMBER = (Action.DELAY, Action.DELAY_ANSWER, Action.ANSWER)
_RULE = re.compile(
    r"(?P<code>[A-Z_0-9]+)(?:#(?P<first>\d+)(?:-(?P<last>\d*))?)?(?:@(?P<client>[^=#]+))?"
    r"=(?P<action>[a-z-]+)(?::(?P<number>\d+))?"
)


@dataclass(frozen=True, slots=True)
class Rule:
    """code: of the request. first, last: which requests of a client on one queue, from 1; last None is all later.

    client: whose, None for everybody's. number: ms to wait, or the code of the answer.
    """

    code: int
    action: Action
    first: int = 1
    last: int | None = None
    client: str | None = None
    number: int = 0

    @property
    def text(self) -> str:
        """As it is written; what a fault's row says."""
        last = "-" if self.last is None else "" if self.last == self.first else f"-{self.last}"
        places = "" if (self.first, self.last) == (1, None) else f"#{self.first}{last}"
        client = "" if self.client is None else f"@{self.client}"
        number = f":{self.number}" if self.action in _WITH_NUMBER else ""
        return f"{_name(self.code)}{places}{client}={self.action.value}{number}"


def parse_rule(text: str) -> Rule:
    """A rule as it is written. Raises UsageError."""
    match = _RULE.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is no fault; write it as QUERY_CONSUMER_OFFSET#2=answer:1")
    code = _code(match["code"])
    try:
        action = Action(match["action"])
    except ValueError:
        known = ", ".join(each.value for each in Action)
        raise UsageError(
            f"{match['action']} is nothing that a tap does to a request; known are {known}"
        ) from None
    if (match["number"] is None) is (action in _WITH_NUMBER):
        wants = "needs a number" if action in _WITH_NUMBER else "takes no number"
        raise UsageError(f"{action.value} {wants}, in {text!r}")
    first, last = int(match["first"] or 1), int(match["last"]) if match["last"] else None
    if match["first"] and match["last"] is None:
        last = first
    if first < 1 or (last is not None and last < first):
        raise UsageError(f"requests are counted from 1 upwards, in {text!r}")
    return Rule(code, action, first, last, match["client"], int(match["number"] or 0))


def _code(word: str) -> int:
    if word.isdigit():
        return int(word)
    try:
        return RequestCode[word]
    except KeyError:
        raise UsageError(
            f"{word} is no request of the protocol; write its name, as LOCK_BATCH_MQ, or number"
        ) from None


def _name(code: int) -> str:
    return RequestCode(code).name if code in set(RequestCode) else str(code)


@dataclass(slots=True)
class Faults:
    """The rules of a tap, and how often each kind of request has come. The first rule that matches decides."""

    rules: tuple[Rule, ...] = ()
    used: set[Rule] = field(default_factory=set)
    _seen: dict[tuple[int, str, str], int] = field(default_factory=dict)

    def on_request(self, code: int, client: str, place: str) -> Rule | None:
        """What to do with this request. place: the queue that it is about, as text; requests are counted for each."""
        if all(rule.code != code for rule in self.rules):
            return None
        key = (code, client, place)
        count = self._seen[key] = self._seen.get(key, 0) + 1
        for rule in self.rules:
            last = count if rule.last is None else rule.last
            if rule.code == code and rule.first <= count <= last and rule.client in (None, client):
                self.used.add(rule)
                return rule
        return None

    @property
    def unused(self) -> Iterable[Rule]:
        """Rules that nothing has met yet."""
        return [rule for rule in self.rules if rule not in self.used]
