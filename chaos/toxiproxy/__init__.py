"""Faults of a network, by toxiproxy: its server as a child process, and a typed layer over its client package."""

from chaos.toxiproxy.proxy import Proxy
from chaos.toxiproxy.server import ToxiproxyServer
from chaos.toxiproxy.toxics import (
    Bandwidth,
    Latency,
    LimitData,
    ResetPeer,
    Slicer,
    SlowClose,
    Stream,
    Timeout,
    Toxic,
)

__all__ = [
    "Bandwidth",
    "Latency",
    "LimitData",
    "Proxy",
    "ResetPeer",
    "Slicer",
    "SlowClose",
    "Stream",
    "Timeout",
    "Toxic",
    "ToxiproxyServer",
]
