"""`inorder tap` as its user has it: an address to give to clients, and a folder to judge."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.cli.main import root
from conformance.cli.tap import command
from conformance.targets.systems import ReferenceOnSockets, broker_addresses
from conformance.waiting import pass_time
from conformance.wire.client import WireClient
from specs.errors import UsageError
from specs.history.journal import Journal
from specs.history.store import open_history
from specs.plan.config import Config
from specs.vocabulary import Kind, Queue

TAP = (sys.executable, "-c", "from conformance.cli.tap import command; command()")


def test_two_owners_are_seen_and_refuted(tmp_path: Path) -> None:
    """The clients' world says 60 s leases; the broker behind the tap gives them up after 1 ms."""
    out, queue = tmp_path / "seen", Queue("orders", "b0", 0)
    with ReferenceOnSockets(Config(broker_lease_ms=1)) as system:
        argv = [*TAP, "--upstream", system.namesrv, "--out", str(out), "--format", "json"]
        with subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ)
        ) as process:
            assert process.stdout is not None
            address = json.loads(process.stdout.readline())["namesrv"]
            with Journal(tmp_path, "own") as journal:
                setup = WireClient("setup", system.brokers["b0"], "b0", journal)
                setup.create_topic("orders", 1)
                setup.close()
                clients = [
                    WireClient(name, broker_addresses(address)["b0"], "b0", journal)
                    for name in ("a", "b")
                ]
                for client in clients * 2:  # each of them asks while the other's lease should live
                    client.lock("billing", [queue])
                    pass_time(0.02)  # the broker's lease runs out
                for client in clients:
                    client.close()
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=30)
            assert process.returncode == 0
    rows = list(open_history(out).rows())
    assert [(row.client_id, row.kind) for row in rows] == [
        (name, Kind.LOCK) for name in ("a", "b", "a", "b")
    ]
    assert f"4 events in {out}; judge them with: inorder check {out}" in said.decode()
    judged = CliRunner().invoke(
        root, ["check", str(out), "--profile", "rocketmq-5-orderly", "--format", "json"]
    )
    refuted = [
        each["id"] for each in json.loads(judged.stdout)["clauses"] if each["verdict"] == "refuted"
    ]
    assert "LSE-1" in refuted


@pytest.mark.parametrize(
    ("config", "why"),
    [("[]", "must hold an object"), ("{", "is not JSON"), ('{"lease": 1}', "lease")],
)
def test_a_configuration_that_is_none(config: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(config)
    argv = [
        "--upstream",
        "127.0.0.1:1",
        "--out",
        str(tmp_path / "out"),
        "--config",
        str(tmp_path / "config.json"),
    ]
    with pytest.raises(UsageError, match=why):
        command.main(argv, standalone_mode=False)
    with pytest.raises(UsageError, match="a folder of its own"):
        command.main(["--upstream", "127.0.0.1:1", "--out", str(tmp_path)], standalone_mode=False)
