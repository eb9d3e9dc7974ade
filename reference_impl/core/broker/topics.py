"""Which topics and groups the broker has, and which it makes on demand.

An unknown topic of a send is made from the template topic that the send names (TBW102), when that exists and
lets its settings be inherited; a retry topic is made from nothing. Topics and groups are written at once.
From its first start a broker has a topic of its cluster's name and one of its own name: producers may send to them,
and they may be named as templates, but nobody may create or delete them.
Source: docs/sources.md#topics (TopicConfigManager, SubscriptionGroupManager).
"""

from __future__ import annotations

import re

from reference_impl.core.broker.config import BrokerConfig
from reference_impl.core.broker.log import BrokerStore, Trimmed
from reference_impl.protocol.bodies import SubscriptionGroup, TopicConfig
from reference_impl.protocol.headers import DEFAULT_TOPIC, PERM_INHERIT, PERM_READ_WRITE
from specs.vocabulary import RETRY_PREFIX, SCHEDULE_TOPIC

HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
CHECKED_TOO_OFTEN_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
SEND_FORBIDDEN = frozenset({SCHEDULE_TOPIC, HALF_TOPIC, OP_TOPIC, CHECKED_TOO_OFTEN_TOPIC})
CLUSTER_TOPIC_QUEUES = 16
"""Of the topic of the cluster's name; that of the broker's name has one."""
TOPIC_LENGTH_MAX = 127
_NAME = re.compile(r"[%|a-zA-Z0-9_-]{1,127}")


class TopicTable:
    """version: counts changes, so that the broker knows when to tell its name servers. reserved: the topics that
    nobody may create or delete.
    """

    def __init__(self, config: BrokerConfig, store: BrokerStore) -> None:
        self.version = 0
        self._config = config
        self._store = store
        named = {config.cluster: CLUSTER_TOPIC_QUEUES, config.name: 1}
        if config.auto_create_topics:
            named[DEFAULT_TOPIC] = config.default_queues
        for name, queues in named.items():
            if name not in store.topics:
                self.put(TopicConfig(name, queues, queues, PERM_READ_WRITE | PERM_INHERIT))
        self.make(SCHEDULE_TOPIC, len(config.delay_ms))
        self.reserved = SEND_FORBIDDEN | {DEFAULT_TOPIC, *named}

    def find(self, topic: str) -> TopicConfig | None:
        return self._store.topics.get(topic)

    def all(self) -> tuple[TopicConfig, ...]:
        return tuple(self._store.topics.values())

    def put(self, topic: TopicConfig) -> None:
        if self._store.topics.get(topic.topic) != topic:
            self._store.put_topic(topic)
            self.version += 1

    def drop(self, name: str) -> list[Trimmed]:
        """Away with it and its messages; what is gone of each queue. Raises StoreFull."""
        gone = self._store.drop_topic(name)
        self.version += 1
        return gone

    def make(self, name: str, queues: int) -> TopicConfig:
        """The topic, made with that many queues, readable and writable, if it does not exist."""
        topic = self.find(name)
        if topic is None:
            topic = TopicConfig(name, queues, queues, PERM_READ_WRITE)
            self.put(topic)
        return topic

    def make_for_send(self, name: str, template: str, queues: int) -> TopicConfig | None:
        """The topic that a send names, made from its template or, for a retry topic, with one queue.

        queues: how many the producer would like; the template's number is the limit. None: it can't be made.
        """
        known = self.find(name)
        if known is not None:
            return known
        base = self.find(template)
        if base is not None and base.perm & PERM_INHERIT:
            count = max(0, min(queues, base.write_queues))
            self.put(TopicConfig(name, count, count, base.perm & ~PERM_INHERIT))
            return self.find(name)
        return self.make(name, 1) if name.startswith(RETRY_PREFIX) else None


class GroupTable:
    """How the broker treats each consumer group."""

    def __init__(self, config: BrokerConfig, store: BrokerStore) -> None:
        self._config = config
        self._store = store

    def find(self, name: str) -> SubscriptionGroup | None:
        """The group, made with the broker's defaults if that is allowed; None if it does not exist."""
        group = self._store.groups.get(name)
        if group is None and self._config.auto_create_groups and is_valid_name(name):
            group = SubscriptionGroup(
                name, retry_queues=self._config.retry_queues, retry_max_times=self._config.retry_max
            )
            self._store.put_group(group)
        return group

    def exists(self, name: str) -> bool:
        return name in self._store.groups

    def put(self, group: SubscriptionGroup) -> None:
        self._store.put_group(group)

    def drop(self, name: str) -> None:
        self._store.drop_group(name)


def is_valid_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None
