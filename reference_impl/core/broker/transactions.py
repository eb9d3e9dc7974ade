"""Half messages: stored out of sight, and released or dropped when their producer says how its transaction ended.

| event | what becomes of the half message |
|---|---|
| SEND with the property TRAN_MSG | it lies in the half topic, with the topic and queue it is meant for |
| END_TRANSACTION, commit | it moves to its topic; its place there is that of the commit |
| END_TRANSACTION, rollback | it is gone |
| END_TRANSACTION, unknown | nothing, and no answer |
| neither, for longer than the timeout | at each interval a producer of its group is asked, at most `check_max` times |
| asked that often, and still open | it moves to a topic of such messages, which nobody consumes |

How a half message ended is noted in the op topic, and a message that was released names the place of its half: the log
itself says which ones are open. How often each was asked about is kept before the question leaves. So a crash neither
loses nor repeats one, and an end that comes twice has no effect the second time.
Source: docs/sources.md#transactions (TransactionalMessageServiceImpl, EndTransactionProcessor).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from reference_impl.core.broker.log import Draft, StoreFull
from reference_impl.core.broker.parts import Parts, Refused
from reference_impl.core.broker.storing import Storing
from reference_impl.core.broker.topics import CHECKED_TOO_OFTEN_TOPIC, HALF_TOPIC, OP_TOPIC
from reference_impl.core.io import ConnId, Effect, Send, SetTimer
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.protocol.command import FLAG_ONEWAY, Command
from reference_impl.protocol.headers import CheckTransactionHeader, EndTransactionHeader
from reference_impl.protocol.message import (
    PROPERTY_DELAY,
    PROPERTY_PRODUCER_GROUP,
    PROPERTY_REAL_QUEUE_ID,
    PROPERTY_REAL_TOPIC,
    PROPERTY_TAGS,
    PROPERTY_TRANSACTION_CHECK_TIMES,
    PROPERTY_TRANSACTION_PREPARED,
    SYS_COMMIT,
    SYS_ROLLBACK,
    StoredMessage,
    encode,
)

CHECK_TIMER = "transactions"
OP_TAG = "d"


class Transactions:
    def __init__(self, parts: Parts, storing: Storing) -> None:
        self._parts = parts
        self._storing = storing
        self._asked = 0

    # ------------------------------------------------------------ begin and end

    def is_half(self, draft: Draft) -> bool:
        """A retry of a message that was once a half message is none."""
        marked = draft.properties.get(PROPERTY_TRANSACTION_PREPARED, "").lower() == "true"
        return marked and not (draft.reconsume_times > 0 and self._storing.delay_level(draft) > 0)

    def prepare(self, now_ms: int, draft: Draft, out: list[Effect]) -> StoredMessage:
        """Store it out of sight. It has no delay level: a transaction's end decides when it is seen."""
        draft.properties.pop(PROPERTY_DELAY, None)
        draft.properties[PROPERTY_REAL_TOPIC] = draft.topic
        draft.properties[PROPERTY_REAL_QUEUE_ID] = str(draft.queue_id)
        draft.topic, draft.queue_id = HALF_TOPIC, 0
        draft.sys_flag &= ~SYS_ROLLBACK
        stored = self._storing.append(now_ms, draft, out)
        self._parts.store.open_halves[stored.queue_offset] = 0
        return stored

    def end(self, now_ms: int, conn: ConnId, request: Command, out: list[Effect]) -> Command | None:
        header = EndTransactionHeader.from_ext(request.ext)
        if header.commit_or_rollback not in (
            EndTransactionHeader.COMMIT,
            EndTransactionHeader.ROLLBACK,
        ):
            return None
        half = self._parts.store.at(header.commit_log_offset)
        if half is None or half.topic != HALF_TOPIC:
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                f"find prepared transaction message failed, {header.msg_id}",
            )
        if half.properties.get(PROPERTY_PRODUCER_GROUP) != header.producer_group:
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                f"the producer group {header.producer_group} is the wrong one",
            )
        if half.queue_offset != header.tran_state_table_offset:
            raise Refused(ResponseCode.SYSTEM_ERROR, "the transaction state table offset is wrong")
        if half.queue_offset in self._parts.store.open_halves:
            if header.commit_or_rollback == EndTransactionHeader.COMMIT:
                self.commit(now_ms, half, out)
            else:
                self.roll_back(now_ms, half, out)
        return request.reply(ResponseCode.SUCCESS)

    def commit(self, now_ms: int, half: StoredMessage, out: list[Effect]) -> None:
        self._storing.append(now_ms, self.released(half), out)
        self.close(now_ms, half, out)

    def roll_back(self, now_ms: int, half: StoredMessage, out: list[Effect]) -> None:
        self.close(now_ms, half, out)

    def released(self, half: StoredMessage) -> Draft:
        """The message, as it goes to the topic and queue that it was meant for."""
        properties = dict(half.properties)
        topic = properties.pop(PROPERTY_REAL_TOPIC)
        queue_id = int(properties.pop(PROPERTY_REAL_QUEUE_ID))
        properties.pop(PROPERTY_TRANSACTION_PREPARED, None)
        return Draft(
            topic,
            queue_id,
            half.body,
            properties,
            half.flag,
            half.sys_flag | SYS_COMMIT,
            half.born_ms,
            half.born_host,
            half.reconsume_times,
            half.physical_offset,
        )

    def close(self, now_ms: int, half: StoredMessage, out: list[Effect]) -> None:
        """It is open no longer."""
        done = Draft(
            OP_TOPIC, 0, str(half.queue_offset).encode(), {PROPERTY_TAGS: OP_TAG}, born_ms=now_ms
        )
        self._storing.append(now_ms, done, out)
        self._parts.store.open_halves.pop(half.queue_offset, None)

    # ------------------------------------------------------------ asking back

    def start(self, out: list[Effect]) -> None:
        out.append(SetTimer(CHECK_TIMER, self._parts.config.transaction_check_interval_ms))

    def check(self, now_ms: int, out: list[Effect]) -> None:
        """The interval is over: ask about every half message that has been open for too long."""
        store, config = self._parts.store, self._parts.config
        noted = len(out)
        for offset, asked in sorted(store.open_halves.items()):
            half = store.queue(HALF_TOPIC, 0).get(offset)
            if half is None:
                del store.open_halves[offset]
            elif now_ms - half.store_ms >= config.transaction_timeout_ms:
                if self.is_given_up(asked):
                    self.give_up(now_ms, half, out)
                else:
                    store.open_halves[offset] = asked + 1
                    self.ask(half, asked + 1, out)
        if len(out) > noted:
            with suppress(StoreFull):  # then a crash forgets that this turn asked
                store.save_asked()
        self.start(out)

    def is_given_up(self, asked: int) -> bool:
        return asked >= self._parts.config.transaction_check_max

    def give_up(self, now_ms: int, half: StoredMessage, out: list[Effect]) -> None:
        draft = self.released(half)
        draft.topic, draft.queue_id = CHECKED_TOO_OFTEN_TOPIC, 0
        before, noted = self._parts.store.end, len(out)
        try:
            self._storing.append(now_ms, draft, out)
            self.close(now_ms, half, out)
        except StoreFull:  # it stays open, and the next turn tries again
            del out[noted:]
            self._parts.store.undo(before)

    def ask(self, half: StoredMessage, number: int, out: list[Effect]) -> None:
        """Ask a producer of the message's group, each in turn; where there is none, nobody is asked."""
        group = half.properties.get(PROPERTY_PRODUCER_GROUP, "")
        producers = self._parts.members.producers(group)
        if not producers:
            return
        self._asked += 1
        shown = replace(
            half,
            topic=half.properties[PROPERTY_REAL_TOPIC],
            queue_id=int(half.properties[PROPERTY_REAL_QUEUE_ID]),
            properties={**half.properties, PROPERTY_TRANSACTION_CHECK_TIMES: str(number)},
        )
        header = CheckTransactionHeader(
            half.queue_offset,
            half.physical_offset,
            shown.topic,
            half.message_id,
            half.message_id,
            half.offset_id,
        )
        command = Command(
            RequestCode.CHECK_TRANSACTION_STATE,
            header.to_ext(),
            encode(shown),
            opaque=self._asked,
            flag=FLAG_ONEWAY,
        )
        out.append(Send(producers[self._asked % len(producers)], command))
