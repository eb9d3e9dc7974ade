"""A raw client that asks a broker for leases and gives them back, whoever owns them, looks stored offsets up, commits
and, as an operator does, resets them.

It belongs to no group's members and listens to nothing: it is the stranger whom the broker has to withstand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reference_impl.core.consumer.start_offset import NOT_FOUND
from reference_impl.core.io import (
    Address,
    Answered,
    Begin,
    Effect,
    End,
    Failed,
    Note,
    Request,
    Start,
)
from reference_impl.protocol.bodies import LockBatch, decode_lock_answer, decode_reset_offsets
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import (
    OffsetResponse,
    QueryConsumerOffsetHeader,
    ResetOffsetHeader,
    UpdateConsumerOffsetHeader,
)
from specs.vocabulary import Kind, Level, Outcome, Queue

TIMEOUT_MS = 1_000


@dataclass(frozen=True, slots=True)
class Ask:
    """Lock or unlock these queues of one broker, for the group, or ask for the offset stored for each of them.

    value: the offset of a commit or a reset; a reset below 0 goes to the end, whatever it skips.
    """

    kind: Kind
    group: str
    address: Address
    queues: tuple[Queue, ...]
    value: int = 0


class Prober:
    """Takes `Ask`, one request each; what comes of it is in the history only (level wire)."""

    def __init__(self, client_id: str) -> None:
        self.client_id = client_id
        self._asked: dict[int, Ask] = {}  # a question for an offset is one request for each queue
        self._number = 0

    def handle(self, now_ms: int, event: Any) -> list[Effect]:
        match event:
            case Start():
                return [
                    Note(Kind.JOIN, Outcome.OK, {"client_id": self.client_id, "level": Level.WIRE})
                ]
            case Ask(Kind.FETCH_OFFSET):
                return [
                    effect for queue in event.queues for effect in self._ask_offset(event, queue)
                ]
            case Ask(Kind.COMMIT | Kind.RESET):
                return [
                    effect for queue in event.queues for effect in self._move_offset(event, queue)
                ]
            case Ask():
                return self._ask(event)
            case Answered(token, answer) if token in self._asked:
                return [self._answered(token, self._asked.pop(token), answer)]
            case Failed(token, reason) if token in self._asked:
                # A refused LOCK means that the broker said no; one that never reached it says nothing.
                is_no_lock = self._asked.pop(token).kind is not Kind.LOCK
                never = is_no_lock and reason == "unreachable"
                return [
                    End(token, Outcome.REFUSED if never else Outcome.UNKNOWN, {"detail": reason})
                ]
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

    def _ask_offset(self, ask: Ask, queue: Queue) -> list[Effect]:
        self._number += 1
        self._asked[self._number] = ask
        fields = {
            "client_id": self.client_id,
            "group": ask.group,
            "level": Level.WIRE,
            **queue._asdict(),
        }
        header = QueryConsumerOffsetHeader(ask.group, queue.topic, queue.queue_id)
        command = Command(RequestCode.QUERY_CONSUMER_OFFSET, header.to_ext())
        return [
            Begin(self._number, Kind.FETCH_OFFSET, fields),
            Request(self._number, ask.address, command, TIMEOUT_MS),
        ]

    def _move_offset(self, ask: Ask, queue: Queue) -> list[Effect]:
        self._number += 1
        self._asked[self._number] = ask
        fields = {
            "client_id": self.client_id,
            "group": ask.group,
            "level": Level.WIRE,
            **queue._asdict(),
        }
        if ask.kind is Kind.COMMIT:
            code = RequestCode.UPDATE_CONSUMER_OFFSET
            ext = UpdateConsumerOffsetHeader(
                ask.group, queue.topic, queue.queue_id, ask.value
            ).to_ext()
        else:
            code = RequestCode.INVOKE_BROKER_TO_RESET_OFFSET
            header = ResetOffsetHeader(
                queue.topic, ask.group, -1, ask.value < 0, queue.queue_id, ask.value
            )
            ext = header.to_ext()
        return [
            Begin(self._number, ask.kind, {**fields, "value": ask.value}),
            Request(self._number, ask.address, Command(code, ext), TIMEOUT_MS),
        ]

    def _answered(self, token: int, ask: Ask, answer: Command) -> Effect:
        if ask.kind is Kind.FETCH_OFFSET:
            if answer.code == ResponseCode.SUCCESS:
                stored = OffsetResponse.from_ext(answer.ext).offset
                return End(token, Outcome.OK, {"code": answer.code, "value": stored})
            nothing = {"value": NOT_FOUND} if answer.code == ResponseCode.QUERY_NOT_FOUND else {}
            return End(token, Outcome.REFUSED, {"code": answer.code, **nothing})
        if ask.kind in (Kind.COMMIT, Kind.RESET):
            done = answer.code == ResponseCode.SUCCESS
            if done and ask.kind is Kind.RESET:
                return End(token, Outcome.OK, {"code": answer.code, **self._moved(ask, answer)})
            return End(
                token,
                Outcome.OK if done else Outcome.REFUSED,
                {"code": answer.code, "detail": answer.remark},
            )
        if answer.code != ResponseCode.SUCCESS:
            return End(token, Outcome.UNKNOWN, {"code": answer.code, "detail": answer.remark})
        if ask.kind is Kind.UNLOCK:
            return End(token, Outcome.OK, {"code": answer.code})
        granted = decode_lock_answer(answer.body)
        rows = [
            {"outcome": Outcome.OK if queue in granted else Outcome.REFUSED} for queue in ask.queues
        ]
        return End(token, Outcome.OK, {"code": answer.code}, rows)

    def _moved(self, ask: Ask, answer: Command) -> dict[str, int]:
        """A broker that leaves resets to its clients goes by the time alone: its answer says where to."""
        moved = decode_reset_offsets(answer.body).get(ask.queues[0], ask.value)
        return {} if moved == ask.value else {"value": moved}
