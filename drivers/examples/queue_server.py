"""A server of ordered queues: JSON lines over TCP, `queue_server.py`; its port is the first line that it writes."""

import json
import socketserver
import sys
import threading
import time

DEAD_S = 0.3  # who died is thought to live for a while
LEASE_S = 1.0  # and so long is an owner waited for of whom nothing is heard
queues, stored, owners = {}, {}, {}  # an owner is the connection that holds a lane
asked = {}  # by lane: the connections that want it
lock = threading.RLock()


class Session(socketserver.StreamRequestHandler):
    """A connection; what its client owns is free again some time after its end, or its last word."""

    heard_s = 0.0

    def handle(self):
        for line in self.rfile:
            with lock:
                self.heard_s = time.monotonic()
                answer = self.do(*json.loads(line))
            self.wfile.write(json.dumps(answer).encode() + b"\n")

    def finish(self):
        time.sleep(DEAD_S)
        with lock:
            for wanting in asked.values():
                wanting.discard(self)
            for lane in [lane for lane, owner in owners.items() if owner is self]:
                del owners[lane]

    def is_alive(self):
        return time.monotonic() - self.heard_s <= LEASE_S

    def has_more(self, group, beyond):
        """Does it hold more of the group's lanes than its share, and so many beyond?"""
        lanes = [lane for lane in asked if lane[0] == group]
        members = {each for lane in lanes for each in asked[lane] if each.is_alive()} | {self}
        held = sum(owners.get(lane) is self for lane in lanes)
        return held + beyond > -(-len(lanes) // len(members))

    def do(self, verb, *args):
        lane, place = tuple(args), args[0] if args else None
        match verb:
            case "make":
                queues.update({f"{args[0]} {n}": [] for n in range(args[1])})
            case "places":
                return sorted(each for each in queues if each.split()[0] == args[0])
            case "put":
                queues[place].append(args[1])
                return len(queues[place]) - 1
            case "get":
                return queues[place][args[1]] if args[1] < len(queues[place]) else None
            case "next":
                mine, kept = owners.get(lane[:2]) is self, queues[args[1]]
                if mine and self.has_more(place, 0):
                    del owners[lane[:2]]
                    return False
                return (kept[args[2]] if args[2] < len(kept) else None) if mine else False
            case "take":
                asked.setdefault(lane, set()).add(self)
                owner = owners.get(lane)
                if (owner is None or not owner.is_alive()) and not self.has_more(place, 1):
                    owners[lane] = self
                return owners.get(lane) is self
            case "free":
                if owners.get(lane) is self:
                    del owners[lane]
            case "stored":
                return stored.get(lane, -1)
            case "store":
                if owners.get(lane[:2]) is self:
                    stored[lane[:2]] = args[2]
                return owners.get(lane[:2]) is self


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


with Server(("127.0.0.1", 0), Session) as server:
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()
