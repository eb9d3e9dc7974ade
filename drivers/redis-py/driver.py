"""The driver protocol over Redis Streams through redis-py: one process is one client of a plan (../speaking.py).

A queue is a stream, TOPIC:N; a producer chooses it by the hash of the key. With its entry it counts the stream's
messages, in one script, so that each entry says its number: an id is wider than a place may be.

A group of a stream hands out entries in their order, but to several consumers side by side, and hands out beyond one
that is still pending. So the application has one consumer at work on a stream at a time, as who needs the order does:

- A lease (`SET NX PX`, renewed) says whose a stream is. Members register, and each takes its share of the streams.
- Whoever has the lease takes the lowest pending entry, if there is one (`XAUTOCLAIM` from the start, whoever had it),
  and only else the next one (`XREADGROUP >`). So a takeover begins with what the former owner left, and what failed
  comes again before its successors.
- `app.fence` script: taking and acknowledging look at the lease in the same script, so that nobody takes or
  acknowledges without it. `none`: plain commands, which a member that stood still sends all the same.
- After an acknowledgement whose fate nobody knows it gives the stream back, and begins anew.
- `app.states` true: each message is followed by the queue's state, and the one before is deleted (`XDEL`). A consumer
  then takes two entries at a time. States are the application's own affair, and nothing is told of them.
- `app.retries` none: the library sends nothing twice by itself. `default`: as it comes.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import time
import uuid
import zlib

from redis import __version__ as library_version
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, AuthorizationError, RedisError, ResponseError
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import TimeoutError as Slow
from speaking import BROKER, DONE, Listener, Wrong, meta_of, note, place, run

POLL_S = 0.04
ANSWER_S = 3.0
CONNECT_S = 30.0
"""A server that is gone may come again: so long it is waited for at a start."""
AGAIN_S = 0.05
"""After a request that could not be made, as while the server is gone."""
LEASE_SPARE_S = 0.1
"""So long before its end a lease counts as over: a call takes a moment to begin."""
RENEWALS = 4
"""In the time of a lease."""
TOLD = ["delivered", "finished", "sent", "gave_up", "added", "dropped", "committed", "looked_up"]
"""Nobody gives a message up: it can't happen."""

ADD = """
local number = redis.call('INCR', KEYS[2]) - 1
redis.call('XADD', KEYS[1], '*', 'n', number, 'meta', ARGV[1], 'body', ARGV[2])
return number
"""
"""An entry that says the how-manieth message of its stream it is, from 0."""
STATE = """
local old = redis.call('GET', KEYS[3])
local id = redis.call('XADD', KEYS[1], '*', 'n', redis.call('GET', KEYS[2]), 'state', 'now')
redis.call('SET', KEYS[3], id)
if old then redis.call('XDEL', KEYS[1], old) end
return id
"""
OURS = """
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return -1 end
redis.call('PEXPIRE', KEYS[2], ARGV[2])
"""
"""What a script begins with that needs the lease."""
TAKE = """
local stream, group, me, count = KEYS[1], ARGV[3], ARGV[4], ARGV[5]
local left = redis.call('XAUTOCLAIM', stream, group, me, 0, '0-0', 'COUNT', count)[2]
if #left > 0 then return left end
local read = redis.call('XREADGROUP', 'GROUP', group, me, 'COUNT', count, 'STREAMS', stream, '>')
return read and read[1][2] or {}
"""
ACKNOWLEDGE = """
return redis.call('XACK', KEYS[1], ARGV[3], ARGV[4])
"""
RENEW = """
return 1
"""
GIVE_BACK = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
"""
FLOOR = """
local stream, group = KEYS[1], ARGV[1]
local pending = redis.call('XPENDING', stream, group)
if pending[1] > 0 then
  local first = redis.call('XRANGE', stream, pending[2], '+', 'COUNT', 1)[1]
  return first and first[2][2] or redis.call('GET', KEYS[2])
end
local last = '0-0'
for _, each in ipairs(redis.call('XINFO', 'GROUPS', stream)) do
  local named = {}
  for at = 1, #each, 2 do named[each[at]] = each[at + 1] end
  if named['name'] == group then last = named['last-delivered-id'] end
end
local done = redis.call('XREVRANGE', stream, last, '-', 'COUNT', 1)[1]
if not done then return '0' end
return tostring(tonumber(done[2][2]) + (done[2][3] == 'state' and 0 or 1))
"""
"""The number below which the group has nothing unfinished: of the lowest pending entry, or behind what was handed out.
A state's number is that of the message behind it."""
MEMBERS = """
local now = redis.call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ms)
redis.call('ZADD', KEYS[1], ms + ARGV[1], ARGV[2])
return redis.call('ZRANGE', KEYS[1], 0, -1)
"""


class Lost(Exception):
    """The lease is another's, or nobody's."""


class Client:
    """Of a plan: its settings and its connections, and how it tells what happens."""

    def __init__(self, say, options):
        self.say, self.options = say, options
        self.numbers = itertools.count(1)
        self.lease_ms = int(self.options["lease_ms"])
        host, _, port = self.options["server"].rpartition(":")
        own = {name: self.options[name] for name in ("username", "password") if name in options}
        if "tls_ca" in options:
            own |= {"ssl": True, "ssl_ca_certs": options["tls_ca"]}
        if options.get("app.retries", "none") == "none":
            own["retry"] = Retry(NoBackoff(), 0)
        self.server = Redis(
            host=host,
            port=int(port),
            protocol=2,
            decode_responses=True,
            socket_timeout=ANSWER_S,
            socket_connect_timeout=ANSWER_S,
            **own,
        )

    async def stop(self):
        await self.close()

    async def close(self):
        with contextlib.suppress(RedisError, OSError):
            await self.server.aclose()

    async def lanes_of(self, topic):
        queues = await self.patient(topic)
        if queues is None:
            raise Wrong(f"no topic {topic}")
        return [(topic, number) for number in range(int(queues))]

    async def patient(self, key):
        """The value of a key, also where the server comes only in a while. Raises RedisError."""
        until = time.monotonic() + CONNECT_S
        while True:
            try:
                return await self.server.get(key)
            except (AuthenticationError, AuthorizationError):
                raise
            except (NoConnection, Slow):
                if time.monotonic() > until:
                    raise
                await asyncio.sleep(AGAIN_S)

    async def floor(self, group, at):
        """The number of the first message that the group has not finished; 0 where that is the first one."""
        return int(await self.server.eval(FLOOR, 2, stream(at), count_of(at), group))

    @property
    def states(self):
        return self.options.get("app.states") == "true"


class Sender(Client):
    """A producer: one message after the other, each once the one before is answered."""

    async def start(self, asked):
        self.queues, self.turn = {}, itertools.count()

    async def send(self, asked):
        at = await self.choose(asked["topic"], asked.get("key"))
        meta = meta_of(asked)
        told = {"event": "sent", "id": asked["id"], "broker": BROKER, "queue_id": at[1]}
        try:
            told.update(outcome="ok", queue_offset=await self.put(at, meta, asked["body"]))
        except Exception as error:
            why = f"{type(error).__name__}: {error}"[:200]
            told.update(outcome=refused_or_unknown(error), why=why)
        self.say(**told)
        if self.states:
            try:
                keys = (stream(at), count_of(at), f"{stream(at)}:state")
                await self.server.eval(STATE, 3, *keys)
            except RedisError as error:  # the next one takes its place
                note(f"state: {type(error).__name__}: {error}")

    async def put(self, at, meta, body):
        """Append it; the how-manieth message of its stream it is."""
        return await self.server.eval(ADD, 2, stream(at), count_of(at), json.dumps(meta), body)

    async def choose(self, topic, key):
        if topic not in self.queues:
            self.queues[topic] = len(await self.lanes_of(topic))
        hashed = next(self.turn) if key is None else zlib.crc32(key.encode())
        return topic, hashed % self.queues[topic]


class Lane:
    """A stream that is ours. until: by our clock, as long as the lease certainly lasts."""

    def __init__(self, at, token, number, until):
        self.at, self.token, self.number, self.until = at, token, number, until


class Worker(Listener, Client):
    """A consumer: for each stream one task, which has the stream when it is our turn, and works."""

    async def start(self, asked):
        self.listen(asked)
        self.count = 2 if self.states else 1
        self.shares = frozenset()
        self.at_work = True
        self.places = [at for topic in asked["topics"] for at in await self.lanes_of(topic)]
        self.me = f"{self.client}.{uuid.uuid4().hex[:8]}"
        self.members = f"{asked['topics'][0]}:{self.group}:members"
        self.tasks = [
            asyncio.create_task(self.share()),
            *(asyncio.create_task(self.work(at)) for at in self.places),
        ]

    # ------------------------------------------------------------ whose a stream is

    async def share(self):
        """Which streams are to be ours: the members in the order of their names take turns."""
        while self.at_work:
            try:
                args = (self.members, self.lease_ms, self.me)
                members = sorted(await self.server.eval(MEMBERS, 1, *args))
                turn = members.index(self.me)
                self.shares = frozenset(self.places[turn :: len(members)])
            except RedisError as error:
                note(f"members: {type(error).__name__}: {error}")
            await asyncio.sleep(int(self.options["balance_ms"]) / 1000)
        with contextlib.suppress(RedisError):
            await self.server.zrem(self.members, self.me)

    async def work(self, at):
        while self.at_work:
            try:
                lane = await self.acquire(at) if at in self.shares else None
            except RedisError as error:
                note(f"lease: {type(error).__name__}: {error}")
                lane = None
            if lane is None:
                await asyncio.sleep(AGAIN_S)
                continue
            keeps = asyncio.create_task(self.renew(lane))
            try:
                await self.own(lane)
            except Lost as why:
                note(f"{stream(at)}: {why}")
            finally:
                keeps.cancel()
            self.say(event="dropped", **place(at), incarnation=lane.number)
            with contextlib.suppress(RedisError):
                await self.server.eval(GIVE_BACK, 1, self.lease_of(at), lane.token)

    async def acquire(self, at):
        """The stream, if its lease was free; what of it is finished is looked up at once."""
        token, asked_at = uuid.uuid4().hex, time.monotonic()
        if not await self.server.set(self.lease_of(at), token, nx=True, px=self.lease_ms):
            return None
        lane = Lane(at, token, next(self.numbers), asked_at + self.lease_ms / 1000 - LEASE_SPARE_S)
        told = {**place(at), "incarnation": lane.number}
        self.say(event="added", **told)
        look = next(self.numbers)
        self.say(event="looking_up", look=look, **told)
        found = {"outcome": "unknown", "value": -1}
        try:
            floor = await self.floor(self.group, at)
            found = {"outcome": "ok", "value": floor} if floor else {**found, "outcome": "refused"}
        except RedisError as error:
            note(f"look: {type(error).__name__}: {error}")
        self.say(event="looked_up", look=look, **found)
        return lane

    async def renew(self, lane):
        while True:
            await asyncio.sleep(self.lease_ms / 1000 / RENEWALS)
            with contextlib.suppress(RedisError, Lost):
                await self.with_lease(lane, RENEW)

    async def with_lease(self, lane, script, *args):
        """The script's answer. Raises Lost where the lease is not ours."""
        asked_at = time.monotonic()
        keys = (stream(lane.at), self.lease_of(lane.at))
        told = (lane.token, self.lease_ms, *args)
        answer = await self.server.eval(OURS + script, 2, *keys, *told)
        if answer == -1:
            lane.until = 0
            raise Lost("the lease is another's")
        until = asked_at + self.lease_ms / 1000 - LEASE_SPARE_S
        lane.until = max(lane.until, until) if lane.until else 0
        return answer

    def check(self, lane):
        """Raises Lost where the lease may be over."""
        if time.monotonic() > lane.until:
            raise Lost("the lease may be over")

    def lease_of(self, at):
        return f"{stream(at)}:{self.group}:lease"

    # ------------------------------------------------------------ the loop

    async def own(self, lane):
        """Work on the stream until it is not to be ours any more. Raises Lost."""
        while self.at_work and lane.at in self.shares:
            try:
                entries = await self.take(lane)
            except RedisError as error:
                note(f"take: {type(error).__name__}: {error}")
                await asyncio.sleep(AGAIN_S)
                continue
            if not entries:
                await asyncio.sleep(POLL_S)
            for entry in entries:
                self.check(lane)
                if not await self.handle(lane, entry):
                    break

    async def take(self, lane):
        """The lowest pending entries, or else the next ones."""
        if self.options.get("app.fence", "script") == "script":
            return await self.with_lease(lane, TAKE, self.group, self.me, self.count)
        own = (self.group, self.me)
        left = await self.server.xautoclaim(stream(lane.at), *own, 0, "0-0", count=self.count)
        if left[1]:
            return left[1]
        read = await self.server.xreadgroup(*own, {stream(lane.at): ">"}, count=self.count)
        return read[0][1] if read else []

    async def handle(self, lane, entry):
        """An entry, worked on and acknowledged; False where it is to be taken again."""
        if (
            entry is None or entry[0] is None
        ):  # pending, and without an id that one could acknowledge
            note(f"{stream(lane.at)}: an entry that is none")
            await asyncio.sleep(POLL_S)
            return False
        entry_id, fields = entry[0], as_dict(entry[1])
        if "state" in fields:
            with contextlib.suppress(NoConnection):
                await self.acknowledge(lane, entry_id)
            return True
        end = await self.call(lane, fields)
        if end["outcome"] in DONE:
            await self.done(lane, entry_id, int(fields["n"]) + 1)
            return True
        await self.again(lane, entry_id, end["suspend_ms"])
        return False

    async def done(self, lane, entry_id, value):
        """Acknowledge it. Raises Lost where nobody knows whether that was heard."""
        number = next(self.numbers)
        told = {**place(lane.at), "incarnation": lane.number}
        self.say(event="committing", commit=number, value=value, **told)
        outcome, why = "ok", None
        try:
            if not await self.acknowledge(lane, entry_id):
                outcome = "refused"
        except Lost as error:
            outcome, why = "refused", error
        except RedisError as error:
            outcome, why = refused_or_unknown(error), error
        self.say(event="committed", commit=number, outcome=outcome)
        if why is not None:
            raise Lost(f"ack: {type(why).__name__}: {why}")

    async def acknowledge(self, lane, entry_id):
        if self.options.get("app.fence", "script") == "script":
            return await self.with_lease(lane, ACKNOWLEDGE, self.group, entry_id)
        return await self.server.xack(stream(lane.at), self.group, entry_id)

    async def again(self, lane, entry_id, wait_ms):
        """It stays pending, and so it is what is taken next."""
        await asyncio.sleep(self.wait_s(wait_ms))

    async def call(self, lane, fields):
        """The listener's work; how it ended."""
        return await self.hear(self.told(lane, fields))

    def told(self, lane, fields):
        found = shown(lane.at, fields)
        times = self.times(lane.at, found["queue_offset"])
        return {**found, "reconsume_times": times, "incarnation": lane.number}

    async def stop(self):
        self.at_work = False
        await asyncio.gather(*self.tasks)
        await self.close()


class Keeper(Client):
    """Nobody's client: prepares streams and groups, reads streams, and says what the server has of a group."""

    async def prepare(self, asked):
        for topic in asked["topics"]:
            name, queues = topic["name"], topic["queues"]
            for number in range(queues):
                for group in asked["groups"]:
                    await self.server.xgroup_create(
                        stream((name, number)), group, "0", mkstream=True
                    )
            await self.server.set(name, queues)

    async def read(self, asked):
        """Each entry, past all groups."""
        found = []
        for at in await self.lanes_of(asked["topic"]):
            for _, fields in await self.server.xrange(stream(at)):
                if "state" not in fields:
                    found.append({**shown(at, fields), "reconsume_times": 0})
        return found

    async def progress(self, asked):
        """Behind what the group has acknowledged without a gap; -1 where that is nothing."""
        return [
            {**place(at), "value": await self.floor(asked["group"], at) or -1}
            for at in await self.lanes_of(asked["topic"])
        ]


def refused_or_unknown(error):
    """What becomes of a request that failed: what the server answered with an error was not done."""
    return "refused" if isinstance(error, ResponseError) else "unknown"


def stream(at):
    return f"{at[0]}:{at[1]}"


def count_of(at):
    return f"{stream(at)}:count"


def as_dict(fields):
    """Fields and values, which a script's answer has in a row."""
    return fields if isinstance(fields, dict) else dict(zip(fields[::2], fields[1::2], strict=True))


def shown(at, fields):
    """A message, as it is told."""
    return {
        "message_id": None,
        "key": None,
        "key_seq": None,
        **json.loads(fields["meta"]),
        **place(at),
        "queue_offset": int(fields["n"]),
        "body": fields["body"],
    }


def hello(options):
    """What the greeting says."""
    return {
        "driver": "redis-py",
        "client": library_version,
        "events": TOLD,
        "verbs": ["prepare", "read", "progress"],
    }


def main():
    run(hello, Sender, Worker, Keeper)


if __name__ == "__main__":
    main()
