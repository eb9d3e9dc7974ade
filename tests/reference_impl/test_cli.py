"""`inorder serve` as a process: it says where it is, serves, and ends by signal or with its parent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

from reference_impl.cli import serve
from reference_impl.protocol.bodies import ClusterInfo, TopicRoute
from reference_impl.protocol.codes import RequestCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import GetRouteHeader
from reference_impl.shell.client import SyncClient
from reference_impl.shell.errors import UNREACHABLE, RequestFailed
from specs.errors import UsageError

SERVE = [sys.executable, "-c", "from reference_impl.cli import serve; serve()"]
ANY_PORTS = ["--namesrv-port", "0", "--broker-port", "0"]


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*SERVE, *ANY_PORTS, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_and_ends_by_signal(number: signal.Signals) -> None:
    with (
        running("--topic", "orders", "--queues", "3", "--format", "json") as process,
        SyncClient() as client,
    ):
        assert process.stdout is not None
        where = json.loads(process.stdout.readline())
        ask = Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteHeader("orders").to_ext())
        route = TopicRoute.decode(client.call(where["namesrv"], ask).body)
        assert route.queues[0].write_queues == 3
        assert route.brokers[0].master == where["brokers"]["b0"]
        process.send_signal(number)
        _, errors = process.communicate(timeout=20)
        assert (process.returncode, errors) == (0, "")
        with pytest.raises(RequestFailed, match=UNREACHABLE):
            SyncClient().call(where["namesrv"], ask)


def test_it_says_its_addresses_in_words() -> None:
    with running("--broker-name", "b7") as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        assert lines[0].startswith("name server 127.0.0.1:")
        assert lines[1].startswith("broker b7 127.0.0.1:")
        assert lines[2] == "ready; stop with Ctrl-C\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=20)[0] == "stopped\n"


@pytest.mark.parametrize(
    ("asked", "name"), [((), "DefaultCluster"), (("--cluster", "ours"), "ours")]
)
def test_its_cluster_is_called_as_asked_and_else_as_its_vendor_calls_one(
    asked: tuple[str, ...], name: str
) -> None:
    """RocketMQ's tools and its clients' tests name the cluster DefaultCluster where nobody says another."""
    with running("--format", "json", *asked) as process, SyncClient() as client:
        assert process.stdout is not None
        where = json.loads(process.stdout.readline())
        answer = client.call(where["namesrv"], Command(RequestCode.GET_BROKER_CLUSTER_INFO))
        assert ClusterInfo.decode(answer.body).clusters == {name: ("b0",)}


def test_it_ends_when_its_parent_is_gone() -> None:
    """The parent is killed; the pipe that the server inherited closes only when the server has ended too."""
    served = [*SERVE, *ANY_PORTS, "--with-parent"]
    script = f"import subprocess, sys\nchild = subprocess.Popen({served!r})\nchild.wait()\n"
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    try:
        while not parent.stdout.readline().startswith("ready"):
            assert parent.poll() is None
    finally:
        os.kill(parent.pid, signal.SIGKILL)
    rest, _ = parent.communicate(timeout=20)
    assert rest in ("", "stopped\n")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--host", "0.0.0.0"], "--advertise"),
        (["--advertise", "nowhere"], "host:port"),
        (["--delay-levels", "soon"], "no duration"),
        (["--namesrv-port", "99999"], "Port 99999 of 127.0.0.1 can't be had"),
        (["--host", "203.0.113.1", "--namesrv-port", "0"], "of 203.0.113.1 can't be had"),
    ],
)
def test_wrong_use_is_one_clear_sentence(arguments: list[str], why: str) -> None:
    result = CliRunner().invoke(serve, arguments)
    assert isinstance(result.exception, UsageError)
    assert why in str(result.exception)
