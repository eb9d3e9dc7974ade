"""The simulated network behaves like TCP between processes that can die, pause and be cut off."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import pytest

from reference_impl.core import io
from reference_impl.protocol.command import Command
from reference_impl.protocol.frame import encode_frame
from reference_impl.sim.network import DELAY_MAX_MS, HOLD_MAX_MS, Fault, Network
from reference_impl.sim.node import CoreFailed, Node
from reference_impl.sim.time import Timeline
from specs.history.journal import MemoryRecorder
from specs.plan.rig import Trouble

SERVER = "10.0.0.9:1"


class Scripted:
    """A core that writes down what it gets, and does what it was told to do at the next input."""

    def __init__(self, clock: Timeline) -> None:
        self.seen: list[tuple[int, Any]] = []
        self.todo: list[io.Effect] = []
        self._clock = clock

    def handle(self, now_ms: int, event: Any) -> Iterable[io.Effect]:
        self.seen.append((self._clock.now_ms, event))
        todo, self.todo = self.todo, []
        return todo

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for _, event in self.seen if isinstance(event, kind)]


class Echo(Scripted):
    """Answers every request at once with its own code."""

    def handle(self, now_ms: int, event: Any) -> Iterable[io.Effect]:
        super().handle(now_ms, event)
        if isinstance(event, io.Received) and not event.command.is_oneway:
            return [io.Send(event.conn, event.command.reply(event.command.code))]
        return []


class World:
    """A client and an echo server."""

    def __init__(self, seed: int = 1) -> None:
        self.time = Timeline()
        self.ended: list[Fault] = []
        self.network = Network(
            self.time, Random(seed), lambda link, number: link, self.ended.append
        )
        recorder = MemoryRecorder("test", self.time.now_us)
        self.client = Node("alice", "10.0.2.1:5", self.time, self.network, recorder, {})
        self.server = Node("b0", SERVER, self.time, self.network, recorder, {})
        self.network.listen(SERVER, self.server)
        self.echo, self.core = Echo(self.time), Scripted(self.time)
        self.server.boot(self.echo)
        self.client.boot(self.core)

    def request(self, token: object, code: int = 1, timeout_ms: int = 5_000) -> None:
        self.network.request(self.client, token, SERVER, Command(code), timeout_ms)

    def run(self, ms: int) -> None:
        self.time.run_until(self.time.now_ms + ms)

    def ends(self) -> list[tuple[object, str]]:
        """How the client's requests ended, in order."""
        return [
            (event.token, "answered" if isinstance(event, io.Answered) else event.reason)
            for _, event in self.core.seen
            if isinstance(event, io.Answered | io.Failed)
        ]


def test_requests_are_answered_in_order_over_one_connection() -> None:
    world = World()
    for token in range(20):
        world.request(token)
    world.run(100)
    assert world.ends() == [(token, "answered") for token in range(20)]
    assert len(world.echo.of(io.Opened)) == 1


def test_a_dead_server_is_unreachable_and_a_request_to_it_certainly_did_not_happen() -> None:
    world = World()
    world.server.halt()
    world.request("a")
    world.run(100)
    assert world.ends() == [("a", "unreachable")]
    assert world.echo.of(io.Received) == []


def test_a_server_that_dies_closes_what_it_owes() -> None:
    world = World()
    world.server.pause()
    world.request("a")
    world.run(100)
    world.server.halt()
    world.run(100)
    assert world.ends() == [("a", "closed")]


def test_a_client_that_dies_is_seen_to_go_after_its_last_frame() -> None:
    world = World()
    world.request("a")
    world.run(100)
    world.network.oneway(world.client, SERVER, Command(7))
    world.client.halt()
    world.run(100)
    last = [event for _, event in world.echo.seen][-2:]
    assert isinstance(last[0], io.Received)
    assert last[0].command.code == 7
    assert isinstance(last[1], io.Closed)


def test_a_silent_death_is_not_seen() -> None:
    world = World()
    world.request("a")
    world.run(100)
    world.client.halt(silent=True)
    world.run(1_000)
    assert world.echo.of(io.Closed) == []


def test_a_connection_to_an_earlier_process_is_reset() -> None:
    world = World()
    world.request("a")
    world.run(100)
    world.server.halt(silent=True)
    world.server.boot(world.echo)
    world.request("b")
    world.run(100)
    world.request("c")
    world.run(100)
    assert world.ends() == [("a", "answered"), ("b", "closed"), ("c", "answered")]


def test_an_unanswered_request_times_out_at_its_time() -> None:
    world = World()
    world.server.pause()
    world.request("a", timeout_ms=700)
    world.run(699)
    assert world.ends() == []
    world.run(1)
    assert world.ends() == [("a", "timeout")]
    world.server.resume()
    world.run(100)
    assert world.ends() == [("a", "timeout")], "the late answer is nobody's"


def test_a_paused_process_handles_what_waited_in_its_order_when_it_goes_on() -> None:
    world = World()
    world.core.todo = [io.SetTimer("early", 10), io.SetTimer("late", 50)]
    world.client.post("go")
    world.client.pause()
    world.run(40)
    world.client.post("between")
    world.run(40)
    assert world.core.seen[2:] == []
    world.client.resume()
    assert [event for _, event in world.core.seen[2:]] == [
        io.TimerFired("early"),
        "between",
        io.TimerFired("late"),
    ]


def test_a_timer_that_is_set_again_or_cancelled_fires_once_or_not() -> None:
    world = World()
    world.core.todo = [
        io.SetTimer("a", 10),
        io.SetTimer("b", 10),
        io.SetTimer("a", 30),
        io.CancelTimer("b"),
    ]
    world.client.post("go")
    world.run(100)
    assert [(at, event) for at, event in world.core.seen[2:]] == [(30, io.TimerFired("a"))]


def test_timers_die_with_their_process() -> None:
    world = World()
    world.core.todo = [io.SetTimer("a", 10)]
    world.client.post("go")
    world.client.halt()
    world.client.boot(world.core)
    world.run(100)
    assert world.core.of(io.TimerFired) == []


def test_the_server_closes_a_connection() -> None:
    world = World()
    world.server.pause()
    world.request("a")
    world.run(10)
    world.network.close(world.server, 1)  # not yet accepted by the core, but by its machine
    world.run(10)
    assert world.ends() == [("a", "closed")]


# ---------------------------------------------------------------- faults


def test_a_cut_link_resets_and_refuses_until_it_is_healed() -> None:
    world = World()
    world.server.pause()
    world.request("a")
    world.run(10)
    world.network.inject(Trouble.CUT, "b0", "alice")
    world.run(10)
    world.request("b")
    world.run(10)
    world.network.heal("alice", "b0")
    world.server.resume()
    world.request("c")
    world.run(10)
    assert world.ends() == [("a", "closed"), ("b", "unreachable"), ("c", "answered")]
    assert [(fault.kind, fault.seen) for fault in world.ended] == [("cut", True)]


def test_a_held_frame_comes_when_the_link_is_healed_in_time() -> None:
    world = World()
    world.request("a")
    world.run(10)
    world.network.inject(Trouble.HOLD, "alice", "b0")
    world.request("b")
    world.run(HOLD_MAX_MS - 1)
    assert world.ends() == [("a", "answered")]
    world.network.heal("alice", "b0")
    world.run(10)
    assert world.ends() == [("a", "answered"), ("b", "answered")]


def test_a_connection_that_is_held_too_long_breaks_and_its_frames_never_come() -> None:
    world = World()
    world.request("a")
    world.run(10)
    world.network.inject(Trouble.HOLD, "alice", "b0")
    world.request("b")
    world.run(HOLD_MAX_MS + 1)
    world.network.heal("alice", "b0")
    world.run(5_000)
    assert world.ends() == [("a", "answered"), ("b", "closed")]
    assert len(world.echo.of(io.Received)) == 1


def test_one_frame_is_dropped_by_its_code_and_the_fault_is_over() -> None:
    world = World()
    world.network.inject(Trouble.DROP_NEXT, "alice", "b0", 5)
    for token, code in (("a", 4), ("b", 5), ("c", 5)):
        world.request(token, code, timeout_ms=100)
    world.run(200)
    assert sorted(world.ends()) == [("a", "answered"), ("b", "timeout"), ("c", "answered")]
    assert [event.command.code for event in world.echo.of(io.Received)] == [4, 5]
    assert [(fault.kind, fault.seen) for fault in world.ended] == [("drop_next", True)]


def test_one_answer_is_dropped_by_the_code_of_its_request() -> None:
    world = World()
    world.network.inject(Trouble.DROP_NEXT, "alice", "b0", 5, answer=True)
    world.request("a", 5, timeout_ms=100)
    world.run(200)
    assert world.ends() == [("a", "timeout")]
    assert len(world.echo.of(io.Received)) == 1


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        ("lose", 50),
        ("duplicate", 50),
        ("delay", 300),
        ("jitter", 100),
        ("throttle", 2),
        ("fragment", 20),
        ("truncate", 500),
        ("reset_peer", 30),
        ("reorder", 100),
    ],
)
def test_a_fault_is_effective_only_when_a_frame_met_it(kind: str, number: int) -> None:
    idle, busy = World(), World()
    for world in (idle, busy):
        world.network.inject(Trouble(kind), "alice", "b0", number)
    for token in range(30):
        busy.request(token, timeout_ms=2_000)
    for world in (idle, busy):
        world.run(3_000)
        world.network.heal_all()
    assert [(fault.kind, fault.seen) for world in (idle, busy) for fault in world.ended] == [
        (kind, False),
        (kind, True),
    ]


def test_lost_frames_time_out_and_duplicates_are_answered_once() -> None:
    world = World()
    world.network.inject(Trouble.LOSE, "alice", "b0", 50)
    for token in range(40):
        world.request(token, timeout_ms=500)
    world.run(1_000)
    outcomes = {how for _, how in world.ends()}
    assert outcomes == {"answered", "timeout"}

    world = World()
    world.network.inject(Trouble.DUPLICATE, "alice", "b0", 100)
    for token in range(5):
        world.request(token)
    world.run(100)
    assert world.ends() == [(token, "answered") for token in range(5)]
    assert len(world.echo.of(io.Received)) == 10


def test_reordered_frames_overtake_each_other() -> None:
    world = World()
    world.network.inject(Trouble.REORDER, "alice", "b0", 100)
    for code in range(1, 20):
        world.network.oneway(world.client, SERVER, Command(code))
        world.run(1)
    world.run(500)
    codes = [event.command.code for event in world.echo.of(io.Received)]
    assert sorted(codes) != codes


def test_delayed_frames_are_late_and_in_order() -> None:
    world = World()
    world.network.inject(Trouble.DELAY, "alice", "b0", 300)
    world.request("a")
    world.request("b")
    world.run(599)
    assert world.ends() == []
    world.run(20)
    assert world.ends() == [("a", "answered"), ("b", "answered")]


def test_frames_that_jitter_are_later_by_different_times_and_in_order() -> None:
    world = World()
    world.network.inject(Trouble.JITTER, "alice", "b0", 100)
    for code in range(1, 20):
        world.network.oneway(world.client, SERVER, Command(code))
        world.run(5)
    world.run(500)
    codes = [event.command.code for event in world.echo.of(io.Received)]
    assert codes == list(range(1, 20))
    world.request("a")
    world.run(210)
    assert world.ends() == [("a", "answered")]


@pytest.mark.parametrize(
    ("kind", "number"), [(Trouble.THROTTLE, 1), (Trouble.FRAGMENT, 10)], ids=["slow", "in pieces"]
)
def test_a_frame_on_a_slow_line_waits_for_those_before_it(kind: Trouble, number: int) -> None:
    """Of a kilobyte a second, and of ten bytes each 10 ms: a byte a millisecond."""
    size_ms = len(encode_frame(Command(5)))
    world = World()
    world.network.inject(kind, "alice", "b0", number)
    for _ in range(2):
        world.network.oneway(world.client, SERVER, Command(5))
    world.run(size_ms - 20)
    assert not world.echo.of(io.Received)
    world.run(40)
    assert len(world.echo.of(io.Received)) == 1
    world.run(size_ms - 40)
    assert len(world.echo.of(io.Received)) == 1
    world.run(60)
    assert len(world.echo.of(io.Received)) == 2


def test_nothing_waits_for_a_slow_line_for_longer_than_it_may() -> None:
    world = World()
    world.network.inject(Trouble.THROTTLE, "alice", "b0", 1)
    for _ in range(100):
        world.network.oneway(world.client, SERVER, Command(5))
    world.run(DELAY_MAX_MS + 10)
    assert len(world.echo.of(io.Received)) == 100


def test_a_truncated_connection_ends_with_the_frame_that_is_too_much_and_the_next_one_begins_anew() -> (
    None
):
    size = len(encode_frame(Command(5)))
    world = World()
    world.network.inject(Trouble.TRUNCATE, "alice", "b0", 2 * size)
    for _ in range(2):
        for token in ("a", "b", "c"):
            world.request(token, code=5)
        world.run(50)
    got = [event.conn for event in world.echo.of(io.Received)]
    assert len(got) == 4
    assert len(set(got)) == 2
    assert [how for token, how in world.ends() if token == "c"] == ["closed", "closed"]
    world.network.heal("alice", "b0")
    for token in ("d", "e", "f"):
        world.request(token, code=5)
        world.run(50)
    assert world.ends()[-3:] == [("d", "answered"), ("e", "answered"), ("f", "answered")]


@pytest.mark.parametrize(("answer", "done"), [(False, 0), (True, 2)])
def test_a_connection_is_reset_after_its_first_frame_which_is_lost(answer: bool, done: int) -> None:
    """With `answer` it is the first answer, and what was asked until the reset is done."""
    world = World()
    world.network.inject(Trouble.RESET_PEER, "alice", "b0", 100, answer=answer)
    for token in ("a", "b"):
        world.request(token)
    world.run(90)
    assert world.ends() == []
    world.run(30)
    assert world.ends() == [("a", "closed"), ("b", "closed")]
    assert len(world.echo.of(io.Received)) == done
    world.network.heal("alice", "b0")
    world.request("c")
    world.run(20)
    assert world.ends()[-1] == ("c", "answered")


def test_a_core_that_raises_is_named() -> None:
    class Broken:
        def handle(self, now_ms: int, event: Any) -> Iterable[io.Effect]:
            raise IndexError("oh")

    world = World()
    with pytest.raises(CoreFailed, match="Broken of alice failed at Start"):
        world.client.boot(Broken())


def test_the_next_request_of_a_code_is_answered_with_an_error_and_never_arrives() -> None:
    world = World()
    world.network.inject(Trouble.REFUSE_NEXT, "alice", "b0", 5, error=2)
    world.request("a", code=4)
    world.request("b", code=5)
    world.request("c", code=5)
    world.run(100)
    answers = {event.token: event.command.code for event in world.core.of(io.Answered)}
    assert answers == {"a": 4, "b": 2, "c": 5}
    arrived = [event.command.code for event in world.echo.of(io.Received)]
    assert sorted(arrived) == [4, 5]
    assert [(fault.kind, fault.seen) for fault in world.ended] == [(Trouble.REFUSE_NEXT, True)]


def test_nobody_answers_in_the_place_of_a_dead_server() -> None:
    world = World()
    world.server.halt()
    world.network.inject(Trouble.REFUSE_NEXT, "alice", "b0", 5, error=2)
    world.request("a", code=5)
    world.run(100)
    assert world.ends() == [("a", "unreachable")]
    world.network.heal("alice", "b0")
    assert [fault.seen for fault in world.ended] == [False]


def test_what_was_held_back_may_end_another_fault_of_a_link_that_is_healed() -> None:
    """The request that waits is the next one of its code: it is refused, and nothing is ended twice."""
    world = World()
    world.request("a")
    world.run(10)
    world.network.inject(Trouble.HOLD, "alice", "b0")
    world.network.inject(Trouble.REFUSE_NEXT, "alice", "b0", 5, error=2)
    world.request("b", code=5)
    world.network.heal("alice", "b0")
    world.run(100)
    answers = {event.token: event.command.code for event in world.core.of(io.Answered)}
    assert answers["b"] == 2
    assert [(fault.kind, fault.seen) for fault in world.ended] == [
        (Trouble.HOLD, True),
        (Trouble.REFUSE_NEXT, True),
    ]
    assert world.network.faults_between("alice", "b0") == []
