"""A server that somebody has started by hand, with its vendor's defaults, is judged as it stands."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.cli.main import root
from conformance.reports.view import open_run
from specs.errors import EXIT_INCONCLUSIVE, EXIT_UNAVAILABLE, EXIT_UPHELD, EXIT_USAGE
from specs.verdicts.verdict import ClauseVerdict
from tests.conformance.targets.vendors_defaults import SERVERS, SYSTEMS, started

AT_STAKE = 10
SENTENCES = {
    "kafka": "no Apache Kafka server answers",
    "nats": "no NATS server answers",
    "redis": "no Redis server answers",
    "rabbitmq": "no RabbitMQ server answers",
    "sqs": "no SQS server answers",
    "rocketmq": "no name server answers",
}


def conform(target: str, out: Path, *more: str) -> tuple[int, str]:
    """Its exit code, and all that it said."""
    words = ["conform", "--target", target, "--seed", "1", "--examples", "1", "--out", str(out)]
    done = CliRunner().invoke(root, [*words, *more])
    return done.exit_code, done.output


@pytest.mark.long
@pytest.mark.parametrize("system", SYSTEMS)
def test_it_gives_its_verdict_with_something_at_stake(system: str, tmp_path: Path) -> None:
    """By one example; RocketMQ's raw questions are too few then to put each wire rule at stake."""
    out = tmp_path / "run"
    with started(system, tmp_path / "server") as target:
        code, said = conform(target, out)
    assert code == (EXIT_INCONCLUSIVE if system == "rocketmq" else EXIT_UPHELD), said
    verdict = open_run(out)
    assert len(verdict.of(ClauseVerdict.UPHELD)) > AT_STAKE
    assert not verdict.of(ClauseVerdict.REFUTED)
    assert "nothing was delivered" not in said


@pytest.mark.long
@pytest.mark.parametrize("system", ["kafka", "nats"])
def test_a_list_of_addresses_needs_one_that_answers(system: str, tmp_path: Path) -> None:
    with started(system, tmp_path / "server") as target:
        name, _, address = target.partition(":")
        code, said = conform(f"{name}:127.0.0.1:1,{address}", tmp_path / "run")
    assert code == EXIT_UPHELD, said


@pytest.mark.long
def test_a_session_that_the_brokers_do_not_allow_is_refused_before_the_run(tmp_path: Path) -> None:
    """A default broker allows none below 6 s."""
    with started("kafka", tmp_path / "server") as target:
        code, said = conform(f"{target},session.timeout.ms=3000", tmp_path / "run")
    assert code == EXIT_USAGE
    assert "allow a session.timeout.ms from 6000 to 1800000, not 3000" in said
    assert not (tmp_path / "run").exists()


@contextmanager
def silent_port() -> Iterator[int]:
    """It takes every connection, and says nothing."""
    held: list[socket.socket] = []

    def take(listener: socket.socket) -> None:
        try:
            while True:
                held.append(listener.accept()[0])
        except OSError:  # it was closed
            return

    with socket.create_server(("127.0.0.1", 0), backlog=200) as listener:
        taking = threading.Thread(target=take, args=(listener,), daemon=True)
        taking.start()
        try:
            yield int(listener.getsockname()[1])
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            taking.join()
            for each in held:
                each.close()


@pytest.mark.long
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_server_that_never_answers_is_one_sentence(system: str, tmp_path: Path) -> None:
    with silent_port() as port:
        scheme = "http://" if system == "sqs" else ""
        code, said = conform(f"{system}:{scheme}127.0.0.1:{port}", tmp_path / "run")
    assert code == EXIT_UNAVAILABLE, said
    last = said.strip().splitlines()[-1]
    assert SENTENCES[system] in last
    assert last.endswith("is it running there?")


@pytest.mark.parametrize("system", [*SERVERS, "rocketmq"])
def test_an_address_with_a_scheme_of_others_is_refused_at_once(system: str, tmp_path: Path) -> None:
    scheme = "ftp" if system == "sqs" else "http"
    code, said = conform(f"{system}:{scheme}://127.0.0.1:1", tmp_path / "run")
    assert code == EXIT_USAGE
    assert len(said.strip().splitlines()) == 1
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("target", "code", "words"),
    [
        ("kafka:127.0.0.1:1,127.0.0.1:2", EXIT_UNAVAILABLE, "at 127.0.0.1:1,127.0.0.1:2 "),
        ("nats:nats://127.0.0.1:1,127.0.0.1:2", EXIT_UNAVAILABLE, "at 127.0.0.1:1,127.0.0.1:2 "),
        ("rocketmq:127.0.0.1:1;127.0.0.1:2", EXIT_UNAVAILABLE, "answers at 127.0.0.1:2 "),
        ("rocketmq:127.0.0.1:1,127.0.0.1:2", EXIT_UNAVAILABLE, "answers at 127.0.0.1:2 "),
        ("redis:redis://127.0.0.1:1", EXIT_UNAVAILABLE, "at 127.0.0.1:1 "),
        ("rabbitmq:amqp://127.0.0.1:1", EXIT_UNAVAILABLE, "at 127.0.0.1:1 "),
        ("redis:127.0.0.1:1,127.0.0.1:2", EXIT_USAGE, "takes the address of one server"),
        ("kafka:127.0.0.1:1,there", EXIT_USAGE, "not 'there'"),
        ("kafka:127.0.0.1:1,acks=all,127.0.0.1:2", EXIT_USAGE, "write KEY=VALUE"),
        ("kafka:127.0.0.1:1,session.timeout.ms=soon", EXIT_USAGE, "is a number of ms"),
        ("kafka:127.0.0.1:1,session.timeout.ms=900", EXIT_USAGE, "too short for a heartbeat"),
    ],
)
def test_a_list_is_taken_where_the_system_has_one(
    target: str, code: int, words: str, tmp_path: Path
) -> None:
    found, said = conform(target, tmp_path / "run")
    assert found == code, said
    assert words in said
