"""A driver of a queue that keeps the order of each key and nothing beyond: members work on one queue side by side.

Nothing of inorder is imported, and one process is all clients. `by_key.py BUG`: with a bug.
"""

import asyncio
import json
import sys
import time

BUG = sys.argv[1] if len(sys.argv) > 1 else ""  # shares, overtakes, forgets or unfenced
LEASE_S = 1.0  # so long a member has a message; then it is anybody's who asks
EVENTS = ["delivered", "finished", "sent", "added", "dropped", "gave_up", "looked_up"]
HELLO = {"version": 2, "driver": "toy by key", "client": "1", "hosts": True}
HELLO |= {"events": [*EVENTS, "received", "acked", "released"], "modes": ["key_ordered"]}
HELLO |= {"verbs": ["prepare", "read", "crash"], "lease_ms": round(LEASE_S * 1000)}
queues, held, done = {}, {}, {}  # by (topic, number); a group's leases in it, and what it has done
listener, wanted, tasks, tries = {}, {}, {}, {}  # by client
numbers = iter(range(1, 1 << 60))


def tell(client, event, **more):
    line = {"event": event, "client": client, **more, "at_us": time.monotonic_ns() // 1000}
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def decide(client, message, nth):
    """The last rule that matches; a message's number stands at the end of its id."""
    number = int(message["message_id"].rpartition("m")[2])
    for rule in reversed(listener[client]):
        if rule.get("number", number) == number and nth <= (rule.get("delivery_max") or nth):
            return rule
    return {}


def first_free(lane):
    """The first message that is not done whose key nobody holds, or None."""
    messages, leases = queues[lane[1:]], held[lane]
    for offset in [each for each in leases if leases[each][1] <= time.monotonic()]:
        del leases[offset]
    left = [offset for offset in range(len(messages)) if offset not in done[lane]]
    taken = {messages[offset]["key"] for offset in leases if BUG != "shares"}
    for offset in left:
        key = messages[offset]["key"]
        if offset not in leases and key not in taken:
            behind = [each for each in left if each > offset and messages[each]["key"] == key]
            return behind[0] if BUG == "overtakes" and behind and offset % 5 == 2 else offset
    return None


async def consume(client, lane):
    at = {"topic": lane[1], "broker": "b0", "queue_id": lane[2]}
    mine = {**at, "incarnation": next(numbers)}
    tell(client, "added", value=0, **mine)
    while client in wanted:
        number = next(numbers)
        tell(client, "receiving", receive=number, **at)
        while (offset := first_free(lane)) is None and client in wanted:
            await asyncio.sleep(0.005)
        if offset is None:
            tell(client, "received", receive=number, outcome="refused")
            break
        await hold(client, lane, at, mine, number, offset)
    tell(client, "dropped", **mine)


async def hold(client, lane, at, mine, number, offset):
    """A message from its hand-out on until it is done, its member leaves, or its lease is another's."""
    lease, key, leases = str(number), queues[lane[1:]][offset]["key"], held[lane]
    leases[offset] = lease, time.monotonic() + LEASE_S
    until_us = round(leases[offset][1] * 1_000_000)
    told = {"queue_offset": offset, "lease_id": lease}
    tell(client, "received", receive=number, key=key, lease_until_us=until_us, **told)
    while client in wanted and leases.get(offset, ("",))[0] == lease:
        if (BUG == "forgets" and offset % 7 == 3) or await call(client, mine, lane, offset):
            tell(client, "acking", ack=number, **at, **told)
            if is_ours := BUG == "unfenced" or leases.get(offset, ("",))[0] == lease:
                done[lane].add(offset)
                leases.pop(offset, None)
            tell(client, "acked", ack=number, outcome="ok" if is_ours else "refused")
            return
        await asyncio.sleep(0.02)  # and then the same message again
    if leases.get(offset, ("",))[0] == lease:
        tell(client, "released", **at, **told)
        del leases[offset]


async def call(client, mine, lane, offset):
    message, seen = queues[lane[1:]][offset], tries[client]
    nth = seen[message["message_id"]] = seen.get(message["message_id"], 0) + 1
    rule, number = decide(client, message, nth), next(numbers)
    told = {**message, **mine, "queue_offset": offset, "reconsume_times": nth - 1}
    tell(client, "delivered", call=number, messages=[told])
    await asyncio.sleep(rule.get("duration_ms", 1) / 1000)
    outcome, wait_ms = rule.get("outcome", "success"), rule.get("suspend_ms", -1)
    tell(client, "finished", call=number, outcome=outcome, manual=False, suspend_ms=wait_ms)
    return outcome in ("success", "commit", "rollback")


def send(ask):
    message = {"topic": ask["topic"], "message_id": ask["message"], "body": ask["body"]}
    message |= {"key": ask.get("key"), "key_seq": str(ask.get("key_seq") or "")}
    place = min(place for place in queues if place[0] == ask["topic"])  # one queue for all keys
    queues[place].append(message)
    at = {"broker": "b0", "queue_id": place[1], "queue_offset": len(queues[place]) - 1}
    tell(ask["client"], "sent", id=ask["id"], outcome="ok", **at)


def start(ask):
    client = ask["client"]
    listener[client], wanted[client], tries[client] = ask.get("listener", []), True, {}
    places = [place for place in queues if place[0] in ask.get("topics", ())]
    lanes = [(ask["group"], *place) for place in places]
    for lane in lanes:
        held.setdefault(lane, {}), done.setdefault(lane, set())
    tasks[client] = [asyncio.create_task(consume(client, lane)) for lane in lanes]


def read(ask):
    at = {"broker": "b0", "reconsume_times": 0}
    places = [place for place in queues if place[0] == ask["topic"]]
    found = [(place[1], *each) for place in places for each in enumerate(queues[place])]
    return {"messages": [{**m, **at, "queue_id": n, "queue_offset": o} for n, o, m in found]}


async def answer(ask):
    """What an answer says besides."""
    match ask["verb"]:
        case "hello":
            if ask["version"] != HELLO["version"]:
                raise ValueError("only version 2 is spoken here")
            return HELLO
        case "prepare":
            for topic in ask["topics"]:
                queues.update({(topic["name"], n): [] for n in range(topic["queues"])})
        case "start":
            start(ask)
        case "send":
            send(ask)
        case "read":
            return read(ask)
        case "crash":
            for task in tasks.pop(ask["client"]):
                task.cancel()
        case "stop" if "client" in ask:
            del wanted[ask["client"]]
            await asyncio.gather(*tasks.pop(ask["client"]))
        case other if other != "stop":
            raise ValueError(f"there is no verb {other}")
    return {}


async def main():
    lines = asyncio.StreamReader(limit=1 << 21)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        ask = json.loads(line)
        try:
            said = {"ok": True, **await answer(ask)}
        except (ValueError, KeyError) as error:
            said = {"ok": False, "error": f"{type(error).__name__}: {error}"[:200]}
        if ask["verb"] != "send" or not said["ok"]:
            told = {"reply": ask["id"], **said, "at_us": time.monotonic_ns() // 1000}
            sys.stdout.write(json.dumps(told) + "\n")
            sys.stdout.flush()
        if ask["verb"] == "stop" and "client" not in ask:
            break


asyncio.run(main())
