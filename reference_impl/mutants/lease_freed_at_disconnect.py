"""A client's leases are freed when its connection closes, although the client may live and work on.

Shows when an owner's connection breaks, or its process dies, while another client asks for the lane before the
broker's limit: the survivor of a crash does so at the change notice.
"""

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.clients import Clients
from reference_impl.core.io import ConnId, Effect

NAME = "lease-freed-at-disconnect"
BUG = "B-16: the lock is released at disconnect"
SOURCE = "a lock table tied to ConsumerManager.doChannelCloseEvent"
KILLED_BY = "LSE-1"


class FreeingClients(Clients):
    def closed(self, conn: ConnId, out: list[Effect]) -> None:
        for group, client_id in self._parts.members.memberships(conn):
            leases = self._parts.locks.leases_of(group)
            for key in [key for key, lease in leases.items() if lease.client_id == client_id]:
                del leases[key]
        super().closed(conn, out)


class Mutated(Broker):
    clients_class = FreeingClients


broker = Mutated
