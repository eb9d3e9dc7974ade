"""The client body: listeners of every kind, sends, timers, the recorder, and a clean end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from reference_impl.core import io
from reference_impl.protocol.command import Command
from reference_impl.protocol.message import StoredMessage
from reference_impl.shell.clock import WallClock
from reference_impl.shell.errors import BodyFailed
from reference_impl.shell.node import ClientNode, Listener, ListenerContext
from specs.vocabulary import Kind, Lane, Outcome

LANE = Lane("G", "T", "b0", 0)
MESSAGE = StoredMessage("T", 0, 0, 0, b"x")


class Caller:
    """Calls the listener when it starts and again at each timer; answers sends; stops when told."""

    def __init__(self) -> None:
        self.returned: list[io.ListenerReturned] = []
        self.came: list[io.Input] = []

    def handle(self, now_ms: int, event: io.Input) -> Iterator[io.Effect]:
        self.came.append(event)
        match event:
            case io.Start():
                yield io.SetTimer("never", 10_000_000)
                yield io.SetTimer("replaced", 10_000_000)
                yield io.SetTimer("replaced", 1)
                yield io.SetTimer("cancelled", 1)
                yield io.CancelTimer("cancelled")
                yield io.Begin(1, Kind.DELIVER, {"client_id": "A"})
                yield io.CallListener(1, LANE, (MESSAGE,), (1,))
            case io.ListenerReturned(_, outcome):
                self.returned.append(event)
                yield io.End(1, outcome)
            case io.SendMessage(token):
                yield io.SendDone(token, Outcome.OK, 0, 2, 5, "ID")
            case io.Shutdown():
                yield io.Note(Kind.LEAVE, Outcome.OK, {"client_id": "A"})
                yield io.Stopped()


class Notebook:
    def __init__(self) -> None:
        self.lines: list[tuple[Any, ...]] = []

    def begin(
        self, op: Hashable, kind: Kind, fields: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
    ) -> None:
        self.lines.append(("begin", op, kind, dict(fields)))

    def end(
        self,
        op: Hashable,
        outcome: Outcome,
        fields: Mapping[str, Any],
        rows: Sequence[Mapping[str, Any]],
    ) -> None:
        self.lines.append(("end", op, outcome))

    def note(self, kind: Kind, outcome: Outcome, fields: Mapping[str, Any]) -> None:
        self.lines.append(("note", kind, outcome))


async def wait_until(condition: Any) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)


def run_listener(listener: Listener) -> io.ListenerReturned:
    async def run() -> io.ListenerReturned:
        core = Caller()
        node = ClientNode(core, listener)
        node.start()
        await wait_until(lambda: core.returned)
        assert await node.shutdown()
        return core.returned[0]

    return asyncio.run(run())


def suspends(messages: Sequence[StoredMessage], context: ListenerContext) -> Outcome:
    assert messages == (MESSAGE,)
    assert (context.lane, context.delivery) == (LANE, (1,))
    context.suspend_ms = 50
    return Outcome.SUSPEND


def rolls_back_by_hand(messages: Sequence[StoredMessage], context: ListenerContext) -> Outcome:
    context.auto_commit = False
    return Outcome.ROLLBACK


def says_nothing(messages: Sequence[StoredMessage], context: ListenerContext) -> None:
    return None


def raises(messages: Sequence[StoredMessage], context: ListenerContext) -> Outcome:
    context.auto_commit = False
    raise ValueError("a bug of the user's")


def says_nonsense(messages: Sequence[StoredMessage], context: ListenerContext) -> object:
    return Outcome.CUT


async def succeeds_later(messages: Sequence[StoredMessage], context: ListenerContext) -> Outcome:
    await asyncio.sleep(0)
    return Outcome.SUCCESS


class Callable:
    async def __call__(
        self, messages: Sequence[StoredMessage], context: ListenerContext
    ) -> Outcome:
        return Outcome.COMMIT


@pytest.mark.parametrize(
    ("listener", "returned"),
    [
        (suspends, io.ListenerReturned(1, Outcome.SUSPEND, False, 50)),
        (rolls_back_by_hand, io.ListenerReturned(1, Outcome.ROLLBACK, True, -1)),
        (says_nothing, io.ListenerReturned(1, Outcome.NULL)),
        (raises, io.ListenerReturned(1, Outcome.THREW, True, -1)),
        (says_nonsense, io.ListenerReturned(1, Outcome.THREW)),
        (succeeds_later, io.ListenerReturned(1, Outcome.SUCCESS)),
        (Callable(), io.ListenerReturned(1, Outcome.COMMIT)),
    ],
)
def test_what_a_listener_says_reaches_the_core(
    listener: Listener, returned: io.ListenerReturned
) -> None:
    assert run_listener(listener) == returned


def test_plain_listeners_run_outside_of_the_loop() -> None:
    threads: list[threading.Thread] = []

    def listener(messages: Sequence[StoredMessage], context: ListenerContext) -> Outcome:
        threads.append(threading.current_thread())
        return Outcome.SUCCESS

    run_listener(listener)
    assert threads[0] is not threading.current_thread()
    assert threads[0].daemon


def test_timers_sends_and_the_recorder() -> None:
    async def run() -> None:
        core, notebook = Caller(), Notebook()
        node = ClientNode(core, succeeds_later, recorder=notebook, clock=WallClock(5))
        node.start()
        done = await node.send(io.SendMessage("s1", "T", b"x"))
        assert (done.outcome, done.queue_id, done.queue_offset) == (Outcome.OK, 2, 5)
        await wait_until(lambda: io.TimerFired("replaced") in core.came and core.returned)
        assert await node.shutdown()
        fired = [event.token for event in core.came if isinstance(event, io.TimerFired)]
        assert fired == ["replaced"]
        assert notebook.lines == [
            ("begin", 1, Kind.DELIVER, {"client_id": "A"}),
            ("end", 1, Outcome.SUCCESS),
            ("note", Kind.LEAVE, Outcome.OK),
        ]

    asyncio.run(run())


def test_a_killed_node_says_nothing_more() -> None:
    async def run() -> None:
        core = Caller()
        started = asyncio.Event()

        async def hangs(messages: Sequence[StoredMessage], context: ListenerContext) -> Outcome:
            started.set()
            await asyncio.sleep(3600)
            return Outcome.SUCCESS

        node = ClientNode(core, hangs)
        node.start()
        await started.wait()
        await node.kill()
        node.post(io.Shutdown())
        assert core.returned == []
        assert io.Shutdown() not in core.came

    asyncio.run(run())


def test_a_core_that_never_stops_is_given_up() -> None:
    class Deaf(Caller):
        def handle(self, now_ms: int, event: io.Input) -> Iterator[io.Effect]:
            return iter(())

    async def run() -> bool:
        node = ClientNode(Deaf())
        node.start()
        return await node.shutdown(0.01)

    assert asyncio.run(run()) is False


def test_a_bug_of_a_core_is_raised_at_the_end() -> None:
    class Broken(Caller):
        def handle(self, now_ms: int, event: io.Input) -> Iterator[io.Effect]:
            if isinstance(event, io.Start):
                yield io.Send(1, Command(code=0))  # a client has no connections to send on
            elif isinstance(event, io.Shutdown):
                yield io.Stopped()

    async def run() -> None:
        node = ClientNode(Broken())
        node.start()
        with pytest.raises(BodyFailed, match="can't carry out Send"):
            await node.shutdown()

    asyncio.run(run())


def test_a_wall_clock_can_be_made_wrong() -> None:
    right, wrong = WallClock(), WallClock()
    wrong.step(-3_600_000)
    assert right.now_ms() - wrong.now_ms() >= 3_599_000
