"""What a trouble does to a link on real sockets, and to whose: each client that is broken alone has its own proxies."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from chaos.links import Links, Proxies, Wanted
from chaos.toxiproxy import Bandwidth, Latency, Slicer, Stream, Toxic
from conformance.parts import toxiproxy_binary
from specs.errors import UsageError
from specs.plan.rig import FRAGMENT_GAP_MS, Trouble
from specs.plan.step import EVERYBODY
from tests.chaos.toxiproxy.echo import Echo, connect, exchange

pytestmark = [
    pytest.mark.toxiproxy,
    pytest.mark.skipif(
        not toxiproxy_binary.present(),
        reason="the toxiproxy server is not built; `make setup` builds it",
    ),
]


@pytest.fixture(scope="module")
def echo() -> Iterator[Echo]:
    server = Echo()
    yield server
    server.close()


@pytest.fixture(scope="module")
def proxies(echo: Echo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxies]:
    """Before two brokers, of which both are the echo; c1 has its own."""
    system: Any = SimpleNamespace(
        upstreams={"b0": echo.address, "b1": echo.address},
        brokers={"b0": "127.0.0.1:1", "b1": "127.0.0.1:2"},
    )
    made = Proxies(
        system, tmp_path_factory.mktemp("links") / "server.log", Wanted(frozenset({"c1"}))
    )
    yield made
    made.close()


@pytest.fixture
def links(proxies: Proxies) -> Iterator[Links]:
    made = Links(proxies.by_link)
    yield made
    for broker in made.brokers:
        made.mend(EVERYBODY, broker)


def passes(proxies: Proxies, client: str, broker: str) -> bool:
    """Is what the client sends to the broker sent back?"""
    with contextlib.suppress(OSError), connect(proxies.by_link[client, broker]) as connection:
        return exchange(connection) == b"ping"
    return False


def test_who_is_broken_alone_reaches_each_broker_by_a_proxy_of_its_own(proxies: Proxies) -> None:
    own, others = proxies.via("c1"), proxies.via("c2")
    assert set(own) == set(others) == {"127.0.0.1:1", "127.0.0.1:2"}
    assert len({*own.values(), *others.values()}) == 4
    assert proxies.via("p1") == others


def test_nobody_may_go_to_a_broker_itself_nor_by_the_proxy_of_another(
    proxies: Proxies, echo: Echo
) -> None:
    own, others = set(proxies.via("c1").values()), set(proxies.via("c2").values())
    assert set(proxies.barred("c1")) == {echo.address, *others}
    assert set(proxies.barred("c2")) == {echo.address, *own}


def test_a_link_that_is_cut_alone_is_cut_for_nobody_else(proxies: Proxies, links: Links) -> None:
    links.trouble(Trouble.CUT, "c1", "b0")
    told = {link: passes(proxies, *link) for link in proxies.by_link}
    assert told == {link: link != ("c1", "b0") for link in proxies.by_link}
    links.mend("c1", "b0")
    assert passes(proxies, "c1", "b0")


def test_everybodys_link_to_a_broker_is_also_that_of_who_has_its_own(
    proxies: Proxies, links: Links
) -> None:
    links.trouble(Trouble.CUT, EVERYBODY, "b1")
    told = {link: passes(proxies, *link) for link in proxies.by_link}
    assert told == {link: link[1] != "b1" for link in proxies.by_link}


def test_the_link_of_who_has_no_proxy_is_not_broken_alone(links: Links) -> None:
    with pytest.raises(UsageError, match="c2 has no proxy of its own"):
        links.trouble(Trouble.CUT, "c2", "b0")


@pytest.mark.parametrize(
    ("kind", "number", "toxic"),
    [
        (Trouble.DELAY, 60, Latency(latency_ms=60)),
        (Trouble.JITTER, 60, Latency(latency_ms=30, jitter_ms=30)),
        (Trouble.JITTER, 61, Latency(latency_ms=31, jitter_ms=30)),
        (Trouble.THROTTLE, 3, Bandwidth(rate_kb_per_s=3)),
        (Trouble.FRAGMENT, 10, Slicer(average_bytes=10, delay_us=FRAGMENT_GAP_MS * 1000)),
    ],
)
def test_a_slow_link_is_slow_both_ways_until_it_is_mended(
    proxies: Proxies, links: Links, kind: Trouble, number: int, toxic: Toxic
) -> None:
    proxy = proxies.by_link["c1", "b0"]
    with connect(proxy) as connection:
        links.trouble(kind, "c1", "b0", number)
        assert exchange(connection) == b"ping"
        assert list(proxy.toxics().values()) == [
            replace(toxic, stream=stream) for stream in (Stream.UPSTREAM, Stream.DOWNSTREAM)
        ]
        links.mend("c1", "b0")
        assert proxy.toxics() == {}
        assert exchange(connection) == b"ping"


def test_what_is_fragmented_comes_in_pieces(proxies: Proxies, links: Links) -> None:
    with connect(proxies.by_link["c1", "b0"]) as connection:
        links.trouble(Trouble.FRAGMENT, "c1", "b0", 10)
        connection.sendall(b"x" * 100)
        assert len(connection.recv(100)) <= 10


def test_a_truncated_connection_ends_in_the_middle_and_so_does_the_next(
    proxies: Proxies, links: Links
) -> None:
    links.trouble(Trouble.TRUNCATE, "c1", "b0", 6)
    for _ in range(2):
        with connect(proxies.by_link["c1", "b0"]) as connection:
            assert exchange(connection) == b"ping"
            assert exchange(connection) in (b"", b"pi")


@pytest.mark.parametrize(("answer", "got"), [(False, b""), (True, b"ping")])
def test_a_connection_is_reset_and_what_was_asked_is_done_or_not(
    proxies: Proxies, links: Links, echo: Echo, answer: bool, got: bytes
) -> None:
    while not echo.got.empty():
        echo.got.get()
    links.trouble(Trouble.RESET_PEER, "c1", "b0", 30, answer=answer)
    with connect(proxies.by_link["c1", "b0"]) as connection:
        connection.sendall(b"ping")
        with pytest.raises(ConnectionResetError):
            connection.recv(10)
    assert echo.got.get(timeout=10) == got
