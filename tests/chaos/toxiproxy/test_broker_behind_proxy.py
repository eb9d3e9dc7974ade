"""A real broker is advertised through its proxy, so that whoever follows the route passes through it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from chaos.toxiproxy import ToxiproxyServer
from conformance.parts import jars, toxiproxy_binary
from conformance.parts.apache import ApacheCluster
from conformance.parts.java import find_java

VERSION = "5.4.0"

pytestmark = [
    pytest.mark.apache,
    pytest.mark.toxiproxy,
    pytest.mark.skipif(
        not toxiproxy_binary.present() or not jars.present(VERSION) or find_java() is None,
        reason=f"needs Java, the jars of RocketMQ {VERSION} and the toxiproxy server; `make setup` gets them",
    ),
]


def answers(address: str) -> bool:
    """Whether a connection there stays open when a whole frame of an unknown request is sent: it is answered."""
    host, port = address.split(":")
    header = b'{"code":99999,"language":"OTHER","version":399,"opaque":1,"flag":0,"extFields":{}}'
    frame = (4 + len(header)).to_bytes(4, "big") + len(header).to_bytes(4, "big") + header
    try:
        with socket.create_connection((host, int(port)), 10) as connection:
            connection.sendall(frame)
            return connection.recv(4) != b""
    except ConnectionRefusedError:
        return False


@pytest.mark.long
def test_the_advertised_address_is_the_proxy(tmp_path: Path) -> None:
    """The broker listens on 127.0.0.1, the proxy on 127.0.0.2 and the same port, which is what clients are told."""
    with (
        ApacheCluster(VERSION, workdir=tmp_path / "cluster", broker_ip1="127.0.0.2") as cluster,
        ToxiproxyServer(log=tmp_path / "toxiproxy.log") as toxiproxy,
    ):
        assert not answers(cluster.advertised)
        proxy = toxiproxy.create("broker", upstream=cluster.broker, listen=cluster.advertised)
        assert cluster.advertised.startswith("127.0.0.2:")
        assert answers(cluster.advertised)
        with proxy.down():
            assert not answers(cluster.advertised)
            assert answers(cluster.broker)
        assert answers(cluster.advertised)
