"""One cell of the table: so many queues, so many clients, one broker.

| phase | what happens | what is measured |
|---|---|---|
| sends | each client sends, one message after the other, for so many seconds | sends per second; how long each took |
| deliveries | as many orderly consumers wait at a gate while messages pile up; it opens | deliveries per second |
| one by one | one producer, one message at a time, the same consumers | from the send to the listener's call |
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from statistics import median

import psutil

from inorder.evidence.load.systems import Loaded
from reference_impl.client import Message, OrderlyConsumer, Producer, Tuning
from reference_impl.shell.clock import monotonic_s
from specs.errors import TargetMisbehaved

BODY_BYTES = 200
BATCH = 100
PHASE_S_MAX = 120.0
TUNING = Tuning(
    rebalance_interval_ms=1_000,
    rebalance_min_ms=100,
    rebalance_retry_ms=100,
    pull_threshold=100,
    lock_first_ms=200,
    pull_retry_ms=200,
    pull_flow_control_ms=5,
)
"""Little is fetched while the gate is closed, and no queue waits long for its next pull: with RocketMQ's 50 ms one
queue would give no more than 2,600 messages a second, whatever the broker."""


@dataclass(frozen=True, slots=True)
class Latency:
    """In ms."""

    p50: float
    p99: float
    p999: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Latency:
        """The nearest rank. Needs at least one value."""
        ordered = sorted(seconds)

        def at(share: float) -> float:
            return 1_000 * ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]

        return cls(at(0.5), at(0.99), at(0.999))


@dataclass(frozen=True, slots=True)
class Cost:
    """Whose time a phase took. broker_us: CPU time of the broker for each message. client: share of one core that
    the clients' process took. others: share of the whole machine that neither of the two took."""

    broker_us: float
    client: float
    others: float


@dataclass(frozen=True, slots=True)
class Cell:
    """memory_mib: what the broker held at the end."""

    system: str
    queues: int
    clients: int
    sends_per_s: float
    send: Latency
    send_cost: Cost
    deliveries_per_s: float
    delivery: Latency
    delivery_cost: Cost
    memory_mib: float


@dataclass(frozen=True, slots=True)
class Amount:
    """How much work a cell is. send_s: for how long sends go on. backlog: messages behind the gate. singles: messages
    sent one by one."""

    send_s: float = 3.0
    backlog: int = 20_000
    singles: int = 300


class Meter:
    """Looks at the clocks when it is made, and says what was used since."""

    def __init__(self, system: Loaded) -> None:
        self._system = system
        self._began = monotonic_s(), *self._used()

    def _used(self) -> tuple[float, float, float]:
        """CPU seconds of the broker, of the clients' process, and of the whole machine."""
        times = psutil.cpu_times()
        mine = psutil.Process().cpu_times()
        idle = times.idle + getattr(times, "iowait", 0.0)
        return self._system.cpu_s(), mine.user + mine.system, sum(times[:8]) - idle

    def cost(self, messages: int) -> Cost:
        began, broker, client, machine = self._began
        wall = max(monotonic_s() - began, 1e-6)
        broker, client, machine = (
            now - before for now, before in zip(self._used(), self._began[1:], strict=True)
        )
        others = max(0.0, machine - broker - client) / wall / (psutil.cpu_count() or 1)
        return Cost(1e6 * broker / max(messages, 1), client / wall, others)


async def measure(system: Loaded, queues: int, clients: int, amount: Amount, turn: int = 0) -> Cell:
    """One cell, on topics of its own. turn: so that it can be measured more than once."""
    topic = f"load-{queues}-{clients}-{turn}"
    await asyncio.to_thread(system.create_topic, f"{topic}-sends", queues)
    await asyncio.to_thread(system.create_topic, topic, queues)
    async with asyncio.timeout(PHASE_S_MAX):
        sends = await measure_sends(system, f"{topic}-sends", clients, amount.send_s)
    async with asyncio.timeout(PHASE_S_MAX):
        deliveries = await measure_deliveries(system, topic, queues, clients, amount)
    return Cell(system.name, queues, clients, *sends, *deliveries, system.memory_mib())


async def measure_sends(
    system: Loaded, topic: str, clients: int, send_s: float
) -> tuple[float, Latency, Cost]:
    """Sends per second of all clients together, how long a send takes, and what that cost."""
    body = bytes(BODY_BYTES)
    async with producers(system, topic, clients) as each:
        taken: list[float] = []
        meter, began = Meter(system), monotonic_s()

        async def work(producer: Producer) -> None:
            while (now := monotonic_s()) < began + send_s:
                await producer.send(topic, body)
                taken.append(monotonic_s() - now)

        await asyncio.gather(*map(work, each))
        rate = len(taken) / (monotonic_s() - began)
        return rate, Latency.of(taken), meter.cost(len(taken))


@asynccontextmanager
async def producers(system: Loaded, topic: str, count: int) -> AsyncIterator[list[Producer]]:
    """Started, and each has sent a message, so that routes and connections are there."""
    async with AsyncExitStack() as stack:
        each = [
            await stack.enter_async_context(Producer(system.namesrv, retries=0))
            for _ in range(count)
        ]
        await asyncio.gather(*(producer.send(topic, b"warm") for producer in each))
        yield each


async def measure_deliveries(
    system: Loaded, topic: str, queues: int, clients: int, amount: Amount
) -> tuple[float, Latency, Cost]:
    """Ordered deliveries per second of a backlog, the time from a send to its delivery when nothing waits, and what
    the backlog cost."""
    gate, seen = asyncio.Event(), Seen()

    async def listen(message: Message) -> None:
        await gate.wait()
        seen.add(message)

    async with (
        consumers(system, topic, queues, clients, listen),
        producers(system, topic, 1) as (producer,),
    ):
        body, sent = bytes(BODY_BYTES), 1
        while sent <= amount.backlog:
            await producer.send_batch(topic, [body] * BATCH)
            sent += BATCH
        meter, began = Meter(system), monotonic_s()
        gate.set()
        await seen.reaches(sent)
        rate = sent / (monotonic_s() - began)
        cost = meter.cost(sent)
        late = []
        for _ in range(amount.singles):
            began = monotonic_s()
            await producer.send(topic, body)
            sent += 1
            await seen.reaches(sent)
            late.append(seen.last_s - began)
        return rate, Latency.of(late), cost


class Seen:
    """Counts distinct messages by their places. last_s: when the latest came."""

    def __init__(self) -> None:
        self.places: set[tuple[int, int]] = set()
        self.last_s = 0.0
        self._wanted = 0
        self._reached = asyncio.Event()

    def add(self, message: Message) -> None:
        self.last_s = monotonic_s()
        self.places.add((message.queue.queue_id, message.offset))
        if len(self.places) >= self._wanted:
            self._reached.set()

    async def reaches(self, count: int) -> None:
        self._wanted = count
        if len(self.places) < count:
            self._reached.clear()
            await self._reached.wait()


@asynccontextmanager
async def consumers(
    system: Loaded, topic: str, queues: int, count: int, listen: object
) -> AsyncIterator[list[OrderlyConsumer]]:
    """A group of so many members, which have shared out all the queues among them."""
    async with AsyncExitStack() as stack:
        group = f"{topic}-group"
        members = [
            await stack.enter_async_context(
                OrderlyConsumer(
                    system.namesrv,
                    group=group,
                    topics=topic,
                    listener=listen,  # type: ignore[arg-type]
                    start="first",
                    **TUNING,
                )
            )
            for _ in range(count)
        ]
        async with asyncio.timeout(PHASE_S_MAX):
            while not all_shared(members, queues):
                await asyncio.sleep(0.05)
        yield members


def all_shared(members: Sequence[OrderlyConsumer], queues: int) -> bool:
    """Each queue has one member, and no member has more than its share."""
    held = [queue for member in members for queue in member.queues]
    share = math.ceil(queues / len(members))
    return len(held) == queues == len(set(held)) and all(
        len(member.queues) <= share for member in members
    )


# ---------------------------------------------------------------- for long


@dataclass(frozen=True, slots=True)
class Soak:
    """A long run. lost: acknowledged and never delivered. memory_mib: the broker's, as the median of each fifth of the
    run."""

    seconds: float
    rate: float
    sent: int
    lost: int
    memory_mib: tuple[float, ...]

    @property
    def grew_mib(self) -> float:
        """From the second fifth to the last; in the first one all is new."""
        return self.memory_mib[-1] - self.memory_mib[min(1, len(self.memory_mib) - 1)]


async def soak(
    system: Loaded, seconds: float, peak_per_s: float, clients: int = 8, queues: int = 4
) -> Soak:
    """Sends at half of the peak, and ordered deliveries beside them, for so long."""
    topic = "soak"
    await asyncio.to_thread(system.create_topic, topic, queues)
    seen = Seen()
    acknowledged: set[tuple[int, int]] = set()
    memory: list[float] = []
    every_s = clients / max(peak_per_s / 2, 1.0)

    async def listen(message: Message) -> None:
        seen.add(message)

    async def work(producer: Producer, began: float) -> None:
        due = began
        while due < began + seconds:
            await asyncio.sleep(max(0.0, due - monotonic_s()))
            result = await producer.send(topic, bytes(BODY_BYTES))
            if result.offset is None:
                raise TargetMisbehaved(f"{system.name} acknowledged a message without a place")
            acknowledged.add((result.queue.queue_id, result.offset))
            due = max(
                due + every_s, monotonic_s() - 1.0
            )  # what a pause made late is not caught up with for ever

    async def watch(began: float) -> None:
        while monotonic_s() < began + seconds:
            memory.append(system.memory_mib())
            await asyncio.sleep(min(1.0, seconds / 20))

    async with (
        consumers(system, topic, queues, 2, listen),
        producers(system, topic, clients) as each,
    ):
        began = monotonic_s()
        await asyncio.gather(watch(began), *(work(producer, began) for producer in each))
        took = monotonic_s() - began
        with suppress(TimeoutError):  # what is missing then is lost
            async with asyncio.timeout(PHASE_S_MAX):
                while acknowledged - seen.places:
                    await asyncio.sleep(0.05)
    fifth = max(1, len(memory) // 5)
    fifths = tuple(
        median(memory[first : first + fifth])
        for first in range(0, min(len(memory), 5 * fifth), fifth)
    )
    lost = len(acknowledged - seen.places)
    return Soak(took, len(acknowledged) / took, len(acknowledged), lost, fifths)
