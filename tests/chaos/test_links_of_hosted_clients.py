"""Links of clients that we host: broken and mended one after the other, whoever has been killed meanwhile."""

from __future__ import annotations

import subprocess
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from chaos import hosted
from chaos.cli import PROCESS, find_target
from specs.plan.plan import Action

TOGETHER_S = 0.2
"""So long a link is being mended while the other one could begin."""


def test_two_ends_of_faults_never_mend_a_link_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each lists what ails a link and takes it away: of two at once one found nothing to take, and ended the run."""
    target = find_target("reference+tcp", PROCESS)
    assert isinstance(target, hosted.HostedClients)
    inside, met = threading.Semaphore(1), []
    release = threading.Event()

    def perform(*_: Any) -> bool:
        alone = inside.acquire(blocking=False)
        met.append(alone)
        release.wait(TOGETHER_S)
        if alone:
            inside.release()
        return True

    monkeypatch.setattr(hosted, "perform", perform)
    monkeypatch.setattr(target, "_brokers", SimpleNamespace(act=lambda action: False))
    monkeypatch.setattr(target, "_proxies", SimpleNamespace(by_link={}, frames=None))
    monkeypatch.setattr(target, "_check_nobody_bypasses", lambda proxies: None)
    heal = Action(0, "heal", {"a": "c1", "b": "b0"})
    threads = [threading.Thread(target=target._break, args=[heal]) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert met == [True, True]


def test_a_consumer_that_was_just_killed_has_no_connections() -> None:
    """Another step may have killed it since its number was asked for; that ended a hunt."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert hosted._connections(ended.pid) == []
    assert hosted._connections(None) == []
