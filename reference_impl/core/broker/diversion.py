"""When a message for a group's retry topic goes to the group's dead letters instead.

An orderly consumer gives a message up by sending it to its retry topic; it is the broker that turns it into a
dead letter. 4.9: when the counter has reached the limit; the message keeps its delay level and so becomes
visible only after that delay. 5.x: when the counter is beyond the limit, or the group holds any live lock on
this broker, whoever sends; at once.
Source: docs/sources.md#dead-letters (SendMessageProcessor.handleRetryAndDLQ; issues 6163, 2724).
"""

from __future__ import annotations

from reference_impl.core.broker.log import Draft
from reference_impl.core.broker.parts import Parts, Refused
from reference_impl.protocol.codes import ResponseCode
from reference_impl.protocol.message import PROPERTY_DELAY
from specs.vocabulary import RETRY_PREFIX, dead_letter_topic

LIMIT_IN_REQUEST_SINCE = 121
"""Wire version (3.4.9) from which a request's own limit counts."""
DEAD_LETTER_QUEUES = 1


class Diversion:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def divert(self, now_ms: int, draft: Draft, limit: int | None, version: int) -> None:
        """Turn a draft for a retry topic into a dead letter, if it has to become one.

        limit: the request's own limit of retries, None for the group's. Raises Refused for an unknown group.
        """
        group_name = draft.topic.removeprefix(RETRY_PREFIX)
        group = self._parts.groups.find(group_name)
        if group is None:
            raise Refused(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"group {group_name} does not exist"
            )
        if limit is None or version < LIMIT_IN_REQUEST_SINCE:
            limit = group.retry_max_times
        if self.is_dead(now_ms, group_name, draft.reconsume_times, limit):
            self.bury(group_name, draft)

    def is_dead(self, now_ms: int, group: str, reconsume_times: int, limit: int) -> bool:
        rules = self._parts.config.rules
        exhausted = (
            reconsume_times > limit if rules.exhausted_is_beyond_limit else reconsume_times >= limit
        )
        return exhausted or (
            rules.live_lock_diverts and not self._parts.locks.all_expired(now_ms, group)
        )

    def bury(self, group: str, draft: Draft) -> None:
        """Make the draft a dead letter of the group."""
        draft.topic = dead_letter_topic(group)
        draft.queue_id = self._parts.choose_queue(DEAD_LETTER_QUEUES)
        self._parts.topics.make(draft.topic, DEAD_LETTER_QUEUES)
        if self._parts.config.rules.dead_letters_at_once:
            self.drop_delay(draft)

    def drop_delay(self, draft: Draft) -> None:
        draft.properties[PROPERTY_DELAY] = "-1"
