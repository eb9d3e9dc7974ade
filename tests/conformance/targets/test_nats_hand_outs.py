"""Since when a consumer of nats-py may have what came: by the question that can have brought it, not by the last."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from conformance.parts import nats
from conformance.parts.places import beside

LEASE_US = 1_500_000
POLL_US = 400_000


@pytest.fixture(scope="module")
def driver() -> Iterator[ModuleType]:
    wheel = nats.client(nats.DEFAULT_CLIENT)
    if not wheel.present:
        pytest.skip("needs the wheel of nats-py; `python -m conformance.parts.nats` fetches it")
    path = beside("drivers") / "nats-py" / "driver.py"
    before, known = list(sys.path), set(sys.modules)
    sys.path[:0] = [str(wheel.ensure()), str(beside("drivers"))]
    spec = importlib.util.spec_from_file_location("nats_driver_for_a_test", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.path[:] = before
    for name in set(sys.modules) - known:
        del sys.modules[name]


class Consumer:
    """One that asks each poll. What comes is taken in its order; a sign of life comes as long as `lives`."""

    lease_s = LEASE_US / 1_000_000

    def __init__(self, driver: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_us = self.delivered = self.pending_msgs = 0
        self.lives = True
        self.numbers = iter(range(1, 1_000))
        monkeypatch.setattr(driver, "now_us", lambda: self.now_us)
        self.handed = driver.HandOuts(self, ("orders", 0), self)
        self._taken = driver.taken

    def say(self, **_told: Any) -> None:
        pass

    async def come(self, _wait_s: float) -> bool:
        return self.lives

    def asks(self, at_us: int) -> None:
        self.now_us = at_us
        asyncio.run(self.handed.asks(self, 0.4))

    def comes(self) -> None:
        self.delivered += 1
        self.pending_msgs += 1

    def takes(self) -> int:
        """Since when it may have what it takes now."""
        self.pending_msgs -= 1
        self.handed.is_about(self._taken(self))
        until_us: int = self.handed.until_us
        return until_us - LEASE_US


@pytest.fixture
def consumer(driver: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Consumer:
    return Consumer(driver, monkeypatch)


def test_what_comes_behind_a_question_was_handed_out_since(consumer: Consumer) -> None:
    for at_us in (POLL_US, 2 * POLL_US):
        consumer.asks(at_us)
        consumer.comes()
        assert consumer.takes() == at_us


def test_what_lay_there_while_it_stood_still_is_as_old_as_the_question_before(
    consumer: Consumer,
) -> None:
    consumer.asks(POLL_US)
    consumer.comes()  # unread: the process stands still, and its wait is over when it goes on
    consumer.asks(POLL_US + 5_000_000)
    assert consumer.takes() == POLL_US


def test_the_answer_to_the_second_question_is_not_that_to_the_third(consumer: Consumer) -> None:
    """The second one took the answer to the first, so its own is still to come."""
    consumer.asks(1)
    consumer.comes()
    consumer.asks(2)
    assert consumer.takes() == 1
    consumer.comes()
    consumer.asks(3)
    assert consumer.takes() == 2


def test_answers_that_there_is_nothing_make_nothing_old(consumer: Consumer) -> None:
    consumer.asks(0)
    for turn in range(1, 20):
        consumer.comes()  # "no messages", behind the time: the next question finds it and throws it away
        consumer.asks(turn * POLL_US)
        consumer.takes()
    consumer.comes()
    assert consumer.takes() == 19 * POLL_US


def test_a_question_without_a_sign_of_life_tells_nothing_new(consumer: Consumer) -> None:
    consumer.asks(1)
    consumer.lives = False
    consumer.asks(2)
    consumer.comes()
    assert consumer.takes() == 1
