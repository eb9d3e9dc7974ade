"""The faults, one file each: `inject`, `heal`, `applies_to`, and `attest`, which finds the fault's signature.

A fault without effect makes the run inconclusive: a green run of a fault that did not happen is no news.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaos.faults.base import Fault
from chaos.faults.kill_consumer import KillConsumer
from chaos.faults.latency import LinkLatency
from chaos.faults.link_down import LinkDown
from chaos.faults.pause_consumer import PauseConsumer
from specs.errors import UsageError

FAULTS: Mapping[str, type[Fault]] = {
    fault.NAME: fault for fault in (KillConsumer, PauseConsumer, LinkDown, LinkLatency)
}


def make(name: str, arguments: Mapping[str, Any], where: str) -> Fault:
    """A fault from a scenario's table. Raises UsageError naming what is wrong with it."""
    if name not in FAULTS:
        raise UsageError(
            f"{where}: there is no fault {name!r}; known are {', '.join(sorted(FAULTS))}"
        )
    try:
        return FAULTS[name](**arguments)
    except TypeError as error:
        raise UsageError(
            f"{where}: fault {name}: {str(error).rpartition('__init__() ')[2]}"
        ) from error
