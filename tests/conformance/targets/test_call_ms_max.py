"""How long a call may take where nobody renews a message's lease: what the driver leaves of it."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

from conformance.parts.places import beside
from conformance.targets import nats, sqs
from conformance.targets.base import Target


@pytest.mark.parametrize(
    ("driver", "module", "made", "most_ms"),
    [("nats-py", nats, nats.NatsTarget, 1_000), ("boto3", sqs, sqs.SqsTarget, 900)],
)
def test_a_target_counts_as_its_driver_does(
    driver: str, module: ModuleType, made: type[Target], most_ms: int
) -> None:
    """The driver's file stands alone and imports nothing of ours, so both have the numbers."""
    text = (beside("drivers") / driver / "driver.py").read_text(encoding="utf-8")
    told = {
        name: float(seconds) * 1000
        for name, seconds in re.findall(r"^(POLL_S|LEASE_SPARE_S) = ([\d.]+)$", text, re.M)
    }
    assert told == {"POLL_S": module.POLL_MS, "LEASE_SPARE_S": module.SPARE_MS}
    assert made.call_ms_max == most_ms
