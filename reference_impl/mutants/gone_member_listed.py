"""A client whose connection is gone stays a member of its group.

The others take its share of the queues for taken, and nobody reads them: no promise of order is broken, and only
the member list shows it.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.membership import Membership
from reference_impl.core.io import ConnId

NAME = "gone-member-listed"
BUG = "B-24: the member list names clients that are gone"
SOURCE = "RocketMQ issues 1095 and 841"
KILLED_BY = "WIR-18"
ORACLE = "model"


class StaleMembership(Membership):
    def closed(self, conn: ConnId) -> list[str]:
        return []


class Mutated(Broker):
    membership_class = StaleMembership


broker = Mutated
