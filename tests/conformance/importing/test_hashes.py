"""With --hash-keys no word of the log is anywhere in what is written, and the verdict is the same."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import Result

from conformance.importing.hashing import Hasher
from specs.history.store import open_history
from specs.vocabulary import Kind

from .conftest import KAFKA

Run = Callable[..., Result]
Write = Callable[[str, "str | Sequence[str]"], Path]

MORE = """
columns.process = "host"
columns.message_id = "id"
columns.sharding_key = "customer"
columns.tags = "tag"
columns.detail = "note"
columns.body_hash = { field = "body", crc32 = true }
columns.topic = "topic"
columns.group = "team"
columns.lease_id = "lease"
"""
MAP = (
    KAFKA.replace(
        'group = "billing", topic = "orders", broker = "kafka"', 'broker = "kafka-prod-7"'
    )
    .replace('order = "lines"', 'order = "times"\nclock = "host"')
    .replace("config.mode", 'config."bootstrap.servers" = "kafka-prod-7:9092"\nconfig.mode')
    .replace("\n[[event]]", MORE + "\n[[event]]")
)
SECRETS = (
    "pod-kfz-7.internal",
    "id-Xy123",
    "customer-4711-Mueller",
    "vip-tag",
    "called back by Eve",
    "Dear Mr Mueller",
    "invoices-topic",
    "team-rocket",
    "lease-99",
    "consumer-secret-1",
    "kafka-prod-7",
)
LOG = [
    "ts,who,part,off,host,id,customer,tag,note,body,topic,team,lease",
    *(
        f"2026-03-02T09:00:0{n}Z,consumer-secret-1,0,{offset},pod-kfz-7.internal,id-Xy123-{offset},"
        f"customer-4711-Mueller,vip-tag,called back by Eve,Dear Mr Mueller,{topic},team-rocket,lease-99"
        for n, (offset, topic) in enumerate(
            [
                (1, "invoices-topic"),
                (3, "invoices-topic"),
                (2, "invoices-topic"),
                (9, "%RETRY%team-rocket"),
            ]
        )
    ),
]


def everything_in(folder: Path) -> bytes:
    """All bytes of all files, and all values of all columns as text."""
    found = b""
    for path in sorted(folder.rglob("*")):
        found += str(path.relative_to(folder)).encode()
        if path.is_file():
            found += path.read_bytes()
        if path.suffix == ".parquet":
            found += json.dumps(pq.read_table(path).to_pylist()).encode()
            found += str(pq.read_metadata(path).metadata).encode()
    return found


@pytest.fixture
def asked(write: Write, tmp_path: Path) -> tuple[object, ...]:
    log, map_file = write("log.csv", LOG), write("map.toml", MAP)
    return ("import", "csv", "--map", map_file, log, "--out", tmp_path / "history")


def test_no_word_of_the_log_is_written_down(
    run: Run, asked: tuple[object, ...], tmp_path: Path
) -> None:
    """Neither in a row, nor in run.json, nor in the report beside; while without the option each of them is."""
    plain = run(*asked[:-1], tmp_path / "plain")
    assert plain.exit_code == 0, plain.stderr
    there = everything_in(tmp_path / "plain")
    assert [each for each in SECRETS if each.encode() not in there] == ["Dear Mr Mueller"]
    result = run(*asked, "--hash-keys")
    assert result.exit_code == 0, result.stderr
    there = everything_in(tmp_path / "history") + result.stdout.encode()
    words = {word for each in SECRETS for word in (each, *each.split())} - {"by", "back"}
    assert [each for each in sorted(words) if each.encode() in there] == []
    kept = next(iter(open_history(tmp_path / "plain").rows())).body_hash
    assert str(kept).encode() not in there


def test_the_verdict_is_the_same(run: Run, asked: tuple[object, ...], tmp_path: Path) -> None:
    """The same clauses refuted and upheld, as often at stake."""
    run(*asked[:-1], tmp_path / "plain")
    run(*asked, "--hash-keys")
    found = []
    for name in ("plain", "history"):
        verdict = json.loads(run("check", tmp_path / name, "--format", "json").stdout)
        found.append([(c["id"], c["verdict"], c["opportunities"]) for c in verdict["clauses"]])
    assert found[0] == found[1]
    assert ("ORD-2", "refuted") in [each[:2] for each in found[0]]


def test_the_secret_lies_beside_and_hashes_by_it_are_the_same(
    run: Run, asked: tuple[object, ...], tmp_path: Path
) -> None:
    """Drawn anew for each history, readable by its owner alone, never inside; given, two logs can be put together."""
    run(*asked, "--hash-keys")
    secret = tmp_path / "history.secret"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert secret.read_bytes().strip() not in everything_in(tmp_path / "history")
    run(*asked[:-1], tmp_path / "second", "--hash-keys", "--hash-secret-file", secret)
    run(*asked[:-1], tmp_path / "third", "--hash-keys")
    first, second, third = (
        [row.client_id for row in open_history(tmp_path / name).rows()]
        for name in ("history", "second", "third")
    )
    assert first == second
    assert first != third


def test_a_secret_that_is_none_and_one_that_would_be_lost(
    run: Run, asked: tuple[object, ...], tmp_path: Path
) -> None:
    """A short one is refused; one that lies there already is not written over; a failed import leaves none."""
    short = tmp_path / "short"
    short.write_text("abc")
    result = run(*asked, "--hash-keys", "--hash-secret-file", short)
    assert (result.exit_code, "it needs 16 or more" in result.stderr) == (64, True)
    (tmp_path / "history.secret").write_text("mine")
    result = run(*asked, "--hash-keys")
    assert (result.exit_code, "--hash-secret-file" in result.stderr) == (64, True)
    assert (tmp_path / "history.secret").read_text() == "mine"
    (tmp_path / "history.secret").unlink()
    broken = tmp_path / "broken.csv"
    broken.write_text(LOG[0] + "\nnever," + "x," * 11 + "x\n")
    result = run(*asked[:4], broken, *asked[5:], "--hash-keys")
    assert result.exit_code == 64
    assert "'never'" not in result.stderr
    assert not (tmp_path / "history.secret").exists()


def test_what_a_judge_reads_in_a_text_keeps_its_shape() -> None:
    """A retry topic is one of its group; a list keeps its queues; words of the vocabulary stay."""
    hasher = Hasher(b"0123456789abcdef")
    group = hasher.column(Kind.ADD, "group", "billing")
    assert hasher.column(Kind.ADD, "topic", "%DLQ%billing") == f"%DLQ%{group}"
    view = hasher.column(Kind.ASSIGN, "view", "alice bob | b0/0 b0/1")
    b0 = hasher.name("b0")
    assert view == f"{hasher.name('alice')} {hasher.name('bob')} | {b0}/0 {b0}/1"
    assert hasher.column(Kind.COMMIT, "view", "pull") == "pull"
    assert hasher.column(Kind.JOIN, "view", "*") == "*"
    assert hasher.column(Kind.DELIVER, "detail", "about Mr Mueller") is None
    assert hasher.column(Kind.DELIVER, "queue_offset", 17) == 17
