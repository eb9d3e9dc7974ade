"""A server of ordered queues: JSON lines over TCP, `queue_server.py`; its port is the first line that it writes."""

import json
import socketserver
import sys
import threading
import time

DEAD_S = 0.3  # who died is thought to live for a while
LEASE_S = 1.0  # and so long is an owner waited for of whom nothing is heard
queues, stored, owners = {}, {}, {}  # an owner is the connection that holds a lane
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
            for lane in [lane for lane, owner in owners.items() if owner is self]:
                del owners[lane]

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
                return (kept[args[2]] if args[2] < len(kept) else None) if mine else False
            case "take":
                owner = owners.get(lane, self)
                if owner is self or time.monotonic() - owner.heard_s > LEASE_S:
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
