"""`,upgrade=VERSION` behind a local server's version: to which one its broker may be upgraded, and back from.

    rocketmq-local:5.1.0,upgrade=5.4.0
    nats-local:2.10.9,upgrade=2.15.2

Nobody guesses it: what is fetched for it, and what is judged, follows from it. A run is judged by what the older of
the two promises, whichever comes first.
"""

from __future__ import annotations

from collections.abc import Mapping

from specs.faults import upgrade
from specs.plan.ability import Ability

OPTION = upgrade.VERB


def named(version: str, newer: str | None) -> str:
    """How a verdict names the versions of one party."""
    return version if newer is None else f"{version} and {newer}"


def older(version: str, newer: str | None) -> str:
    """The one of lower number."""
    return version if newer is None else min(version, newer, key=_numbers)


def abilities(newer: str | None) -> frozenset[Ability]:
    """What can be done where that version is named."""
    return frozenset() if newer is None else frozenset({Ability.UPGRADE_BROKER})


def hindered(newer: str | None, example: str) -> Mapping[Ability, str]:
    """Why it can't be done where none is."""
    told = f"nobody has said to which version; write {example}"
    return {} if newer is not None else {Ability.UPGRADE_BROKER: told}


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())
