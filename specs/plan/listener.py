"""How a listener decides: what a plan's rules say about a call, for whoever hosts consumers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from specs.plan.plan import ListenerRule
from specs.vocabulary import Lane

_DEFAULT = ListenerRule()


class Delivered(Protocol):
    """What a rule looks at."""

    @property
    def message_id(self) -> str | None: ...
    @property
    def sharding_key(self) -> str | None: ...


def number_of(message: Delivered) -> int:
    """The message's number in the plan, 0 when it is none of the plan's: `m17` or `run-m17` is 17."""
    name = (message.message_id or "").rpartition("-")[2]
    return int(name[1:]) if name[:1] == "m" and name[1:].isdecimal() else 0


class Listener:
    """Rules by the message that they name; the last one that matches wins."""

    def __init__(self, rules: Iterable[ListenerRule] = ()) -> None:
        self._by_number: dict[int | None, list[tuple[int, ListenerRule]]] = {}
        self._count = 0
        for rule in rules:
            self.add(rule)

    def add(self, rule: ListenerRule) -> None:
        self._count += 1
        self._by_number.setdefault(rule.number, []).append((self._count, rule))

    def decide(
        self,
        now_ms: int,
        client: str,
        lane: Lane,
        messages: Sequence[Delivered],
        delivery: Sequence[int],
    ) -> ListenerRule:
        """The rule of the first message that has one. now_ms: since the run began. client: the plan's id."""
        for message, times in zip(messages, delivery, strict=True):
            found: tuple[int, ListenerRule] | None = None
            for name in (number_of(message), None):
                for place, rule in reversed(self._by_number.get(name, ())):
                    if found is not None and place < found[0]:
                        break
                    if _matches(rule, now_ms, client, lane, message, times):
                        found = (place, rule)
                        break
            if found is not None:
                return found[1]
        return _DEFAULT


def _matches(
    rule: ListenerRule, now_ms: int, client: str, lane: Lane, message: Delivered, times: int
) -> bool:
    return (
        now_ms >= rule.from_ms
        and times >= rule.delivery_min
        and (rule.delivery_max is None or times <= rule.delivery_max)
        and rule.client in (None, client)
        and rule.group in (None, lane.group)
        and rule.topic in (None, lane.topic)
        and rule.key in (None, message.sharding_key)
    )
