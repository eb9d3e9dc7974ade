"""Which connections belong to which consumer group.

A member is a connection, not a client id: a client with two connections is listed twice. Whoever joins, leaves
or changes its subscription causes a change notice to every connection of the group, the new one included;
broadcasting groups get none. A connection that has not been heard of for the expiry time is dropped.
Source: docs/sources.md#membership (ConsumerManager).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from reference_impl.core.io import ConnId
from reference_impl.protocol.bodies import BROADCASTING, CLUSTERING, Subscription


@dataclass(slots=True)
class Member:
    client_id: str
    heard_ms: int


@dataclass(slots=True)
class Group:
    """members by connection, in the order in which they joined."""

    members: dict[ConnId, Member] = field(default_factory=dict)
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    broadcasting: bool = False


class Membership:
    """The consumer groups of one broker. expiry_ms: silence after which a connection is dropped."""

    def __init__(self, expiry_ms: int) -> None:
        self.expiry_ms = expiry_ms
        self._groups: dict[str, Group] = {}
        self._producers: dict[ConnId, int] = {}
        self._producer_groups: dict[str, dict[ConnId, None]] = {}

    def heartbeat(
        self,
        now_ms: int,
        conn: ConnId,
        client_id: str,
        group_name: str,
        subscriptions: Iterable[Subscription] | None,
        message_model: str = CLUSTERING,
    ) -> bool:
        """A consumer says that it lives; whether the group has changed by it.

        subscriptions: None when the heartbeat leaves them out because nothing changed.
        """
        group = self._groups.setdefault(group_name, Group())
        group.broadcasting = message_model == BROADCASTING
        member = group.members.get(conn)
        is_new = member is None or member.client_id != client_id
        group.members[conn] = Member(client_id, now_ms)
        changed = subscriptions is not None and self._subscribe(group, subscriptions)
        return is_new or changed

    def producer_heartbeat(self, now_ms: int, conn: ConnId, groups: Iterable[str] = ()) -> None:
        self._producers[conn] = now_ms
        for group in groups:
            self._producer_groups.setdefault(group, {})[conn] = None

    def producers(self, group: str) -> list[ConnId]:
        """The connections of the group's producers, in the order in which they joined."""
        return list(self._producer_groups.get(group, ()))

    def producer_left(self, conn: ConnId, group: str) -> None:
        self._producer_groups.get(group, {}).pop(conn, None)

    def unregister(self, conn: ConnId, client_id: str, group_name: str) -> bool:
        """A consumer leaves the group; whether it was in it."""
        group = self._groups.get(group_name)
        member = group.members.get(conn) if group else None
        if group is None or member is None or member.client_id != client_id:
            return False
        self._remove(group_name, group, conn)
        return True

    def closed(self, conn: ConnId) -> list[str]:
        """The connection is gone; the groups that lost a member by it."""
        self._producers.pop(conn, None)
        for producers in self._producer_groups.values():
            producers.pop(conn, None)
        left = [name for name, group in self._groups.items() if conn in group.members]
        for name in left:
            self._remove(name, self._groups[name], conn)
        return left

    def silent(self, now_ms: int) -> list[ConnId]:
        """Connections whose last heartbeat is older than the expiry time."""
        heard: dict[ConnId, int] = dict(self._producers)
        for group in self._groups.values():
            for conn, member in group.members.items():
                heard[conn] = max(member.heard_ms, heard.get(conn, member.heard_ms))
        return [conn for conn, heard_ms in heard.items() if now_ms - heard_ms > self.expiry_ms]

    def client_ids(self, group_name: str) -> list[str]:
        """The clients of the group, one for each connection, in the order in which they joined."""
        group = self._groups.get(group_name)
        return [member.client_id for member in group.members.values()] if group else []

    def connections(self, group_name: str) -> list[ConnId]:
        """Whom a change notice goes to."""
        group = self._groups.get(group_name)
        return list(group.members) if group and not group.broadcasting else []

    def names(self) -> list[str]:
        """The groups that have a member."""
        return list(self._groups)

    def all_connections(self, group_name: str) -> list[ConnId]:
        """Every connection of the group, whatever its model."""
        group = self._groups.get(group_name)
        return list(group.members) if group else []

    def memberships(self, conn: ConnId) -> list[tuple[str, str]]:
        """The groups that the connection is in, each with the client id under which."""
        return [
            (name, group.members[conn].client_id)
            for name, group in self._groups.items()
            if conn in group.members
        ]

    def subscription(self, group_name: str, topic: str) -> Subscription | None:
        group = self._groups.get(group_name)
        return group.subscriptions.get(topic) if group else None

    def _subscribe(self, group: Group, subscriptions: Iterable[Subscription]) -> bool:
        """Adopt the newer of each subscription and forget topics no longer named.

        A newer version alone is no change of the group: only another topic set is (as in ConsumerGroupInfo).
        """
        wanted: Mapping[str, Subscription] = {sub.topic: sub for sub in subscriptions}
        changed = wanted.keys() != group.subscriptions.keys()
        group.subscriptions = {
            topic: max(sub, group.subscriptions.get(topic, sub), key=lambda s: s.sub_version)
            for topic, sub in wanted.items()
        }
        return changed

    def _remove(self, name: str, group: Group, conn: ConnId) -> None:
        del group.members[conn]
        if not group.members:
            del self._groups[name]
