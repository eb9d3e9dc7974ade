"""The broker filters by the first tag that a subscription names, as if the group's older subscription still held.

Shows when a message with another one of the tags lies between two that are delivered.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.pull import Pulling, Wanted
from reference_impl.protocol.headers import PullHeader

NAME = "first-tag-only"
BUG = "B-68: messages were lost to a subscription that was out of date"
SOURCE = "Jira ROCKETMQ-175"
KILLED_BY = "SND-8"
CONFIG = {"subscription": "Aa || red"}


class ForgetfulPulling(Pulling):
    def filter(self, header: PullHeader) -> Wanted | None:
        wanted = super().filter(header)
        subscription = self._parts.members.subscription(header.consumer_group, header.topic)
        if wanted is None or subscription is None:
            return wanted
        return frozenset(subscription.codes[:1]).__contains__


class Mutated(Broker):
    pulling_class = ForgetfulPulling


broker = Mutated
