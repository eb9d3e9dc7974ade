"""Each toxic does on a real connection what its class says, and each change is read back."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.links import Links
from chaos.toxiproxy import (
    Bandwidth,
    Latency,
    LimitData,
    Proxy,
    ResetPeer,
    Slicer,
    SlowClose,
    Stream,
    Timeout,
    Toxic,
    ToxiproxyServer,
)
from conformance.parts import ports, toxiproxy_binary
from specs.errors import TargetMisbehaved, UsageError
from specs.plan.rig import Trouble
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
def toxiproxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToxiproxyServer]:
    with ToxiproxyServer(log=tmp_path_factory.mktemp("toxiproxy") / "server.log", seed=7) as server:
        yield server


@pytest.fixture
def echo() -> Iterator[Echo]:
    server = Echo()
    yield server
    server.close()


@pytest.fixture
def proxy(toxiproxy: ToxiproxyServer, echo: Echo) -> Iterator[Proxy]:
    made = toxiproxy.create("echo", upstream=echo.address)
    yield made
    made.destroy()


def test_without_a_toxic_everything_passes(proxy: Proxy) -> None:
    """A fresh proxy is enabled, has no toxic and passes bytes."""
    assert proxy.enabled
    assert proxy.toxics() == {}
    with connect(proxy) as connection:
        assert exchange(connection) == b"ping"


def test_latency_holds_an_answer_back(proxy: Proxy) -> None:
    """With 1500 ms of latency an answer is not there within 500 ms, and is there later."""
    with connect(proxy) as connection, proxy.having(Latency(latency_ms=1500)):
        connection.settimeout(0.5)
        connection.sendall(b"ping")
        with pytest.raises(TimeoutError):
            connection.recv(4)
        connection.settimeout(20)
        assert connection.recv(4) == b"ping"


def test_reset_peer_resets(proxy: Proxy) -> None:
    """A reset arrives as ECONNRESET, not as an orderly end."""
    with proxy.having(ResetPeer()), connect(proxy) as connection:
        with pytest.raises(ConnectionResetError) as caught:
            exchange(connection)
        assert caught.value.errno == errno.ECONNRESET


def test_timeout_lets_nothing_pass_and_then_ends_the_connection(proxy: Proxy) -> None:
    """With a timeout toxic a client gets no byte, then EOF."""
    with proxy.having(Timeout(timeout_ms=200)), connect(proxy) as connection:
        assert exchange(connection) == b""


def test_a_black_hole_stays_open_and_its_removal_ends_the_connection(proxy: Proxy) -> None:
    """timeout 0 holds the connection for ever; healing closes it rather than resuming it."""
    with connect(proxy) as connection:
        with proxy.having(Timeout(timeout_ms=0)):
            connection.settimeout(0.5)
            connection.sendall(b"ping")
            with pytest.raises(TimeoutError):
                connection.recv(4)
        connection.settimeout(10)
        assert connection.recv(4) == b""


def test_limit_data_passes_exactly_so_many_bytes(proxy: Proxy) -> None:
    """5000 bytes of 8000 arrive, then EOF."""
    with proxy.having(LimitData(limit_bytes=5000)), connect(proxy) as connection:
        assert len(exchange(connection, b"x" * 8000)) == 5000


def test_a_direction_is_a_direction(proxy: Proxy, echo: Echo) -> None:
    """An upstream limit cuts what the client sends."""
    with (
        proxy.having(LimitData(limit_bytes=3, stream=Stream.UPSTREAM)),
        connect(proxy) as connection,
    ):
        exchange(connection, b"abcdef")
        assert echo.got.get(timeout=10) == b"abc"


def test_down_refuses_and_comes_back_on_the_same_port(proxy: Proxy) -> None:
    """Inside `down` living connections end and new ones are refused; afterwards all is as before."""
    with connect(proxy) as living:
        assert exchange(living) == b"ping"
        with proxy.down():
            assert not proxy.enabled
            assert living.recv(1) == b""
            with pytest.raises(ConnectionRefusedError):
                connect(proxy)
    with connect(proxy) as connection:
        assert exchange(connection) == b"ping"


@pytest.mark.parametrize(
    "toxic",
    [
        Latency(latency_ms=3, jitter_ms=1),
        Bandwidth(rate_kb_per_s=100),
        SlowClose(delay_ms=5),
        Timeout(timeout_ms=7),
        ResetPeer(timeout_ms=9),
        Slicer(average_bytes=10, variation_bytes=2, delay_us=3),
        LimitData(limit_bytes=11),
    ],
    ids=lambda toxic: toxic.KIND,
)
def test_every_toxic_is_read_back_as_it_was_given(proxy: Proxy, toxic: Toxic) -> None:
    """What the server says about each kind of toxic is what was asked for, also in the other direction."""
    both = [toxic, replace(toxic, stream=Stream.UPSTREAM, toxicity=0.5)]
    names = [proxy.add(each) for each in both]
    assert proxy.toxics() == dict(zip(names, both, strict=True))
    for name in names:
        proxy.remove(name)
    assert proxy.toxics() == {}


def test_an_update_changes_the_values_only(proxy: Proxy) -> None:
    """A toxic at work takes new values; another kind or direction, or an unknown name, is refused."""
    name = proxy.add(Latency(latency_ms=1))
    proxy.update(name, Latency(latency_ms=2, jitter_ms=1))
    assert proxy.toxics() == {name: Latency(latency_ms=2, jitter_ms=1)}
    with pytest.raises(UsageError, match="can't become"):
        proxy.update(name, Timeout())
    with pytest.raises(UsageError, match="no toxic 'nope'"):
        proxy.update("nope", Latency(latency_ms=2))


def test_a_redirected_proxy_speaks_to_the_other_server(proxy: Proxy) -> None:
    """New connections reach the new upstream."""
    other = socket.create_server(("127.0.0.1", 0))
    with other:
        proxy.redirect(f"127.0.0.1:{other.getsockname()[1]}")
        with connect(proxy) as connection:
            other.settimeout(10)
            accepted, _ = other.accept()
            with accepted:
                accepted.sendall(b"other")
                assert connection.recv(5) == b"other"


def test_a_busy_port_is_an_error_and_not_a_key_error(
    toxiproxy: ToxiproxyServer, echo: Echo
) -> None:
    """A proxy that could not listen is never handed out."""
    with pytest.raises(TargetMisbehaved, match="port busy"):
        toxiproxy.create("busy", upstream=echo.address, listen=echo.address)


def test_enabling_on_a_port_that_was_taken_is_an_error(
    toxiproxy: ToxiproxyServer, echo: Echo
) -> None:
    """The client package says that this worked; the server says that it did not, and is believed."""
    with ports.reserve() as reservation:
        proxy = toxiproxy.create(
            "taken", upstream=echo.address, listen=f"127.0.0.1:{reservation.port}"
        )
        proxy.disable()
        with (
            socket.create_server(("127.0.0.1", reservation.port)),
            pytest.raises(TargetMisbehaved, match="listen again"),
        ):
            proxy.enable()
        proxy.destroy()


def test_names_are_unique_and_known(toxiproxy: ToxiproxyServer, proxy: Proxy) -> None:
    """A second proxy or toxic of one name is refused, and so is the removal of an unknown one."""
    with pytest.raises(UsageError, match="of that name already"):
        toxiproxy.create("echo", upstream=proxy.upstream)
    proxy.add(Latency(latency_ms=1), name="slow")
    with pytest.raises(UsageError, match="of that name already"):
        proxy.add(Latency(latency_ms=2), name="slow")
    with pytest.raises(UsageError, match="none of that name"):
        proxy.remove("nope")


def test_healing_takes_all_away(toxiproxy: ToxiproxyServer, proxy: Proxy) -> None:
    """After `heal` no toxic is left and a disabled proxy listens."""
    proxy.add(Latency(latency_ms=1))
    proxy.disable()
    toxiproxy.heal()
    assert proxy.enabled
    assert proxy.toxics() == {}


def test_two_servers_do_not_mix(toxiproxy: ToxiproxyServer, proxy: Proxy, tmp_path: Path) -> None:
    """The client package shares one address between all its objects; ours do not."""
    with ToxiproxyServer(log=tmp_path / "second.log") as second:
        there = second.create("echo", upstream=proxy.upstream)
        proxy.add(Latency(latency_ms=1))
        assert there.toxics() == {}
        assert [known.listen for known in second.proxies()] == [there.listen]


def test_a_dead_server_is_one_clear_error(tmp_path: Path) -> None:
    """A call to a server that was killed says so, in time."""
    with ToxiproxyServer(log=tmp_path / "server.log") as server:
        proxy = server.create("x", upstream="127.0.0.1:9")
        server.process.kill()
        with pytest.raises(TargetMisbehaved, match="does not answer"):
            proxy.add(Latency(latency_ms=1))


def test_values_are_checked_before_they_are_sent() -> None:
    """A negative number or a share above 1 never reaches the server."""
    with pytest.raises(UsageError, match="negative"):
        Latency(latency_ms=-1)
    with pytest.raises(UsageError, match="from 0 to 1"):
        Latency(latency_ms=1, toxicity=1.5)


@pytest.mark.parametrize("kind", list(Trouble))
def test_a_trouble_that_a_link_has_already_goes_on(proxy: Proxy, kind: Trouble) -> None:
    """Drawn faults overlap: the second one counts, as on a simulated link, and one mending ends both."""
    links = Links({(EVERYBODY, "b0"): proxy})
    for number in (30, 400):
        links.trouble(kind, EVERYBODY, "b0", number)
    if kind is Trouble.DELAY:
        assert {toxic.latency_ms for toxic in latencies(proxy)} == {400}
    links.mend(EVERYBODY, "b0")
    assert not proxy.toxics()
    assert proxy.enabled


def latencies(proxy: Proxy) -> list[Latency]:
    return [toxic for toxic in proxy.toxics().values() if isinstance(toxic, Latency)]
