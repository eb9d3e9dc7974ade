"""`TARGET+java:VERSION`: a system, with Apache's Java client of that version on the other side."""

from __future__ import annotations

from conformance.parts import jars
from conformance.targets.base import Target, find
from specs.errors import UsageError
from specs.plan.ability import Ability

MARK = "+java:"


def find_driven(text: str) -> tuple[Target, str]:
    """The system that `TARGET+java:VERSION` names, and the client's version. Raises UsageError."""
    system, mark, version = text.rpartition(MARK)
    if not mark:
        raise UsageError(f"{text} names no driver; write it as rocketmq-local:5.4.0{MARK}5.4.0")
    jars.check_client_version(version)
    run = find("reference+tcp" if system == "reference" else system)
    if Ability.WIRE not in run.abilities:
        raise UsageError(f"{system} is not on sockets, so that no Java client can speak to it")
    return run, version
