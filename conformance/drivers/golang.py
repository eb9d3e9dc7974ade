"""The driver of RocketMQ's Go client, started as a process; its timers are those of a plan's configuration."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from conformance.drivers.process import DriverProcess, Event
from conformance.parts import rocketmq_go
from specs.plan.config import Config


def start_go(
    version: str,
    name: str,
    config: Config,
    folder: Path,
    on_event: Callable[[Event], Any],
) -> DriverProcess:
    """A Go driver, running and not yet greeted; its log goes below `folder`. Raises as `golang.Driver.ensure` does."""
    timers = {
        "INORDER_LOCK_INTERVAL_MS": config.lock_interval_ms,
        "INORDER_CLIENT_LEASE_MS": config.client_lease_ms,
        "INORDER_REBALANCE_MS": config.rebalance_ms,
        "INORDER_HEARTBEAT_MS": config.heartbeat_ms,
        "INORDER_PERSIST_MS": config.persist_ms,
    }
    env = {variable: str(value) for variable, value in timers.items()}
    argv = [rocketmq_go.DRIVER.ensure(version)]
    return DriverProcess(
        f"Go client {version} ({name})", argv, folder / f"{name}.log", on_event, env
    )
