"""Group membership, seen from outside: one entry per connection that sent a heartbeat for the group.

(docs/sources.md#membership)
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Membership:
    """members: group → connection → client id."""

    members: dict[str, dict[str, str]] = field(default_factory=dict)

    def heartbeat(self, group: str, connection: str, client: str) -> bool:
        """A heartbeat on a connection; True when it makes a new member."""
        group_members = self.members.setdefault(group, {})
        new = connection not in group_members
        group_members[connection] = client
        return new

    def gone(self, connection: str) -> None:
        """The connection was closed, or the client unregistered on it."""
        for group_members in self.members.values():
            group_members.pop(connection, None)

    def listed(self, group: str) -> list[str]:
        """What the member list must hold, sorted; one entry per connection."""
        return sorted(self.members.get(group, {}).values())
