"""Which profile a release of Apache RocketMQ is held to, when nobody names one."""

from __future__ import annotations

import pytest

from conformance.targets.rocketmq import local


@pytest.mark.parametrize(
    ("version", "profile"),
    [
        ("4.9.3", "rocketmq-4.0-orderly"),
        ("4.9.7", "rocketmq-4.9-orderly"),
        ("5.0.0", "rocketmq-5.0-orderly"),
        ("5.1.4", "rocketmq-5.0-orderly"),
        ("5.2.0", "rocketmq-5.2-orderly"),
        ("5.4.0", "rocketmq-5.2-orderly"),
    ],
)
def test_a_release_has_the_profile_of_its_line(version: str, profile: str) -> None:
    assert local(version).profile == profile
