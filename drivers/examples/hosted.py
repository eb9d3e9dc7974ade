"""A driver that is one process for all clients: ordered queues in memory, worked on by coroutines.

Nothing of inorder is imported: a driver may be written in any language. `hosted.py BUG`: with a bug.
"""

import asyncio
import json
import sys
import time

BUG = sys.argv[1] if len(sys.argv) > 1 else ""  # skips, twice or loses
DEAD_S = 0.3  # so long a dead consumer's queues wait for the next
EVENTS = ["delivered", "finished", "sent", "added", "dropped", "committed", "looked_up", "gave_up"]
HELLO = {"version": 1, "driver": "hosted toy", "client": "1", "events": EVENTS, "hosts": True}
HELLO["verbs"] = ["prepare", "read", "crash"]
queues, stored, locks = {}, {}, {}  # by (topic, number), by (group, topic, number)
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


async def consume(client, group, place):
    lane = (group, *place)
    lock = locks.setdefault(lane, asyncio.Lock())
    while lock.locked():
        if client not in wanted:
            return
        await asyncio.sleep(0.005)
    await lock.acquire()
    try:
        at = {"topic": place[0], "broker": "b0", "queue_id": place[1], "incarnation": next(numbers)}
        tell(client, "added", **at)
        offset = stored.get(lane, 0) + (BUG == "skips" and lane in stored)
        while client in wanted:
            if offset < len(queues[place]):
                if await call(client, at, place, offset):
                    offset += 1
                    number = next(numbers)
                    tell(client, "committing", commit=number, value=offset, **at)
                    stored[lane] = offset
                    tell(client, "committed", commit=number, outcome="ok")
                elif BUG == "twice":
                    await asyncio.sleep(0.1)
                    if offset + 1 < len(queues[place]):
                        await call(client, at, place, offset + 1)
            await asyncio.sleep(0.005)
        tell(client, "dropped", **at)
    finally:
        asyncio.get_running_loop().call_later(DEAD_S if client in wanted else 0, lock.release)


async def call(client, at, place, offset):
    message = queues[place][offset]
    nth = tries[client][message["message_id"]] = tries[client].get(message["message_id"], 0) + 1
    rule, number = decide(client, message, nth), next(numbers)
    told = {**message, **at, "queue_offset": offset, "reconsume_times": nth - 1}
    tell(client, "delivered", call=number, messages=[told])
    await asyncio.sleep(rule.get("duration_ms", 1) / 1000)
    outcome, wait_ms = rule.get("outcome", "success"), rule.get("suspend_ms", -1)
    tell(client, "finished", call=number, outcome=outcome, manual=False, suspend_ms=wait_ms)
    return outcome in ("success", "commit", "rollback")


def send(ask):
    message = {"topic": ask["topic"], "message_id": ask["message"], "body": ask["body"]}
    message |= {"key": ask.get("key"), "key_seq": str(ask.get("key_seq") or "")}
    places = sorted(place for place in queues if place[0] == ask["topic"])
    place = places[sum(map(ord, ask.get("key", ""))) % len(places)]
    at = {"broker": "b0", "queue_id": place[1], "queue_offset": len(queues[place])}
    if BUG != "loses" or len(queues[place]) != 9 or message in queues[place]:
        queues[place].append(message)
    tell(ask["client"], "sent", id=ask["id"], outcome="ok", **at)


def read(topic):
    found = [
        (place, *each) for place in queues if place[0] == topic for each in enumerate(queues[place])
    ]
    at = {"broker": "b0", "reconsume_times": 0}
    return [{**m, **at, "queue_id": place[1], "queue_offset": n} for place, n, m in found]


async def start(ask):
    client = ask["client"]
    listener[client], wanted[client], tries[client] = ask.get("listener", []), True, {}
    places = [place for place in queues if place[0] in ask.get("topics", ())]
    work = [consume(client, ask["group"], place) for place in places]
    tasks[client] = [asyncio.create_task(each) for each in work]


async def answer(ask):
    """What an answer says besides."""
    match ask["verb"]:
        case "hello":
            if ask["version"] != 1:
                raise ValueError("only version 1 is spoken here")
            return HELLO
        case "prepare":
            for topic in ask["topics"]:
                queues.update({(topic["name"], n): [] for n in range(topic["queues"])})
        case "start":
            await start(ask)
        case "send":
            send(ask)
        case "read":
            return {"messages": read(ask["topic"])}
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
