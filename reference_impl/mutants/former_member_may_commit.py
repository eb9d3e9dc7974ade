"""Whoever was expelled from a group may commit all the same, as long as it says that it is a member.

Shows when a member stands still for longer than its session, or works for so long, and goes on afterwards.
"""

from reference_impl.core.coordinator import Coordinator

NAME = "former-member-may-commit"
BUG = "hand-made from groups that know no generations: the commit of a member that was expelled counts"
SOURCE = "Kafka, KIP-1251: commits of members whose partitions are another's by then"
KILLED_BY = "GEN-1"


class Mutated(Coordinator):
    def may_commit(self, member: str, epoch: int) -> bool:
        return True


coordinator = Mutated
