"""A raw client that asks a broker for leases and gives them back, whoever owns them.

It belongs to no group's members and listens to nothing: it is the stranger whom the broker has to withstand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reference_impl.core.io import Address, Answered, Begin, Effect, End, Failed, Note, Request, Start
from reference_impl.protocol.bodies import LockBatch, decode_lock_answer
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.protocol.command import Command
from specs.vocabulary import Kind, Level, Outcome, Queue

TIMEOUT_MS = 1_000


@dataclass(frozen=True, slots=True)
class Ask:
    """Lock or unlock these queues of one broker, for the group."""

    kind: Kind
    group: str
    address: Address
    queues: tuple[Queue, ...]


class Prober:
    """Takes `Ask`, one request each; what comes of it is in the history only (level wire)."""

    def __init__(self, client_id: str) -> None:
        self.client_id = client_id
        self._asked: dict[int, Ask] = {}
        self._number = 0

    def handle(self, now_ms: int, event: Any) -> list[Effect]:
        match event:
            case Start():
                return [Note(Kind.JOIN, Outcome.OK, {"client_id": self.client_id, "level": Level.WIRE})]
            case Ask():
                return self._ask(event)
            case Answered(token, answer) if token in self._asked:
                return [self._answered(token, self._asked.pop(token), answer)]
            case Failed(token, reason) if token in self._asked:
                # A refused LOCK means that the broker said no; one that never reached it says nothing.
                is_unlock = self._asked.pop(token).kind is Kind.UNLOCK
                never = is_unlock and reason == "unreachable"
                return [End(token, Outcome.REFUSED if never else Outcome.UNKNOWN, {"detail": reason})]
            case _:
                return []

    def _ask(self, ask: Ask) -> list[Effect]:
        self._number += 1
        self._asked[self._number] = ask
        fields = {"client_id": self.client_id, "group": ask.group, "level": Level.WIRE}
        rows = [{"topic": q.topic, "broker": q.broker, "queue_id": q.queue_id} for q in ask.queues]
        code = RequestCode.LOCK_BATCH_MQ if ask.kind is Kind.LOCK else RequestCode.UNLOCK_BATCH_MQ
        body = LockBatch(ask.group, self.client_id, ask.queues).encode()
        return [
            Begin(self._number, ask.kind, fields, rows),
            Request(self._number, ask.address, Command(code, body=body), TIMEOUT_MS),
        ]

    def _answered(self, token: int, ask: Ask, answer: Command) -> Effect:
        if answer.code != ResponseCode.SUCCESS:
            return End(token, Outcome.UNKNOWN, {"code": answer.code, "detail": answer.remark})
        if ask.kind is Kind.UNLOCK:
            return End(token, Outcome.OK, {"code": answer.code})
        granted = decode_lock_answer(answer.body)
        rows = [{"outcome": Outcome.OK if queue in granted else Outcome.REFUSED} for queue in ask.queues]
        return End(token, Outcome.OK, {"code": answer.code}, rows)
