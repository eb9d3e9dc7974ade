"""A fault of frames means the same on real sockets as on a simulated link: who hears what, and what was done."""

from __future__ import annotations

from contextlib import closing

import pytest

from chaos.frames.link import Begun
from chaos.frames.proxy import FrameProxies
from reference_impl.core import io
from reference_impl.protocol.command import Command
from reference_impl.shell.client import SyncClient
from reference_impl.shell.errors import RequestFailed
from specs.plan.rig import Trouble
from tests.chaos.frames.answering import Answering
from tests.reference_impl.sim.test_network import SERVER, World

LINK = "alice", "b0"
ASKED = (4, 5, 5, 6, 5)
"""The codes of the client's requests, one after the other."""
TOLD = 9
"""And of a one-way request behind them."""
BUSY = 13
SHORT_S, LONG_S = 0.3, 30.0

LOST = Begun("drop_next", Trouble.DROP_NEXT, 5)
ANSWER_LOST = Begun("drop_next", Trouble.DROP_NEXT, 5, answer=True)
REFUSED = Begun("request_error", Trouble.REFUSE_NEXT, 5, error=BUSY)
Seen = tuple[list[str], list[int]]


def simulated(troubles: tuple[Begun, ...]) -> Seen:
    world = World()
    for each in troubles:
        world.network.inject(each.kind, *LINK, each.number, answer=each.answer, error=each.error)
    heard = []
    for token, code in enumerate(ASKED):
        world.request(token, code, timeout_ms=500)
        world.run(500)
        _, event = world.core.seen[-1]
        heard.append(word(event.command.code) if isinstance(event, io.Answered) else event.reason)
    world.network.oneway(world.client, SERVER, Command(TOLD))
    world.run(500)
    return heard, [event.command.code for event in world.echo.of(io.Received)]


def on_sockets(troubles: tuple[Begun, ...], expected: Seen) -> Seen:
    """expected: who waits in vain waits less long, and so much arrives at least."""
    broker, heard = Answering(), []
    with closing(broker), closing(FrameProxies(seed=1)) as proxies, SyncClient() as alice:
        address = proxies.create(*LINK, broker.address)
        for each in troubles:
            proxies.begin(each, *LINK)
        for code, likely in zip(ASKED, expected[0], strict=True):
            try:
                patience_s = SHORT_S if likely == "timeout" else LONG_S
                heard.append(word(alice.call(address, Command(code), patience_s).code))
            except RequestFailed as error:
                heard.append(error.reason)
        alice.oneway(address, Command(TOLD))
        arrived = broker.take(len(expected[1]))
        alice.disconnect(address)  # nothing is under way by now, so all that came has been seen
        arrived += list(iter(lambda: broker.got.get(timeout=LONG_S), None))
    return heard, [code for code in arrived if code is not None]


def word(code: int) -> str:
    return "refused" if code == BUSY else "done"


@pytest.mark.parametrize(
    ("troubles", "heard"),
    [
        ((), "done done done done done"),
        ((LOST,), "done timeout done done done"),
        ((ANSWER_LOST,), "done timeout done done done"),
        ((REFUSED,), "done refused done done done"),
        ((LOST, LOST), "done timeout timeout done done"),
        ((LOST, ANSWER_LOST), "done timeout timeout done done"),
        ((ANSWER_LOST, REFUSED), "done refused timeout done done"),
        ((REFUSED, LOST, ANSWER_LOST), "done refused timeout done timeout"),
        ((Begun("drop_next", Trouble.DROP_NEXT, TOLD),), "done done done done done"),
        ((Begun("request_error", Trouble.REFUSE_NEXT, TOLD),), "done done done done done"),
        ((Begun("drop_next", Trouble.DROP_NEXT, TOLD, answer=True),), "done done done done done"),
        ((Begun("lose", Trouble.LOSE, 0),), "done done done done done"),
        ((Begun("lose", Trouble.LOSE, 100),), "timeout timeout timeout timeout timeout"),
        ((Begun("duplicate", Trouble.DUPLICATE, 100),), "done done done done done"),
        ((Begun("duplicate", Trouble.DUPLICATE, 100), LOST), "done done done done done"),
        ((Begun("reorder", Trouble.REORDER, 30),), "done done done done done"),
    ],
)
def test_a_plan_means_the_same_on_both(troubles: tuple[Begun, ...], heard: str) -> None:
    expected = simulated(troubles)
    assert expected[0] == heard.split()
    assert on_sockets(troubles, expected) == expected
