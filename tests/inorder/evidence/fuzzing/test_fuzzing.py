"""Bad input: every reader bears it, and a server goes on for everybody else."""

from __future__ import annotations

import asyncio
import logging
import struct
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inorder.evidence.fuzzing.corpus import BOMB, FRAMES, REQUESTS, Bad
from inorder.evidence.fuzzing.mutate import mutate, mutate_framed
from inorder.evidence.fuzzing.readers import (
    BROKER_REQUESTS,
    COMPRESSED,
    Misbehaved,
    Reader,
    accepts,
    readers,
)
from inorder.evidence.fuzzing.run import Found, fuzz, fuzz_all, largest_mib, try_input
from reference_impl.client import Producer
from reference_impl.protocol.command import Command
from reference_impl.protocol.errors import ProtocolError
from reference_impl.protocol.frame import FrameDecoder, encode_frame
from reference_impl.protocol.message import (
    BatchPart,
    decode_all,
    decode_readable,
    encode,
    encode_batch,
)
from reference_impl.shell.cluster import LocalCluster

EVERY = {reader.name: reader for reader in readers()}
INPUTS = 12_000
MILLION = 1_000_000
GROWTH_MIB_MAX = 300


# ---------------------------------------------------------------- the readers


@pytest.mark.parametrize("name", EVERY)
def test_good_inputs_are_taken(name: str) -> None:
    reader = EVERY[name]
    refused = [seed for seed in reader.seeds if not accepts(reader, seed)]
    if name in (
        "broker",
        "name-server",
    ):  # some requests need others before them, and are refused with a code
        assert len(refused) < len(reader.seeds) / 2
    else:
        assert refused == []


def test_some_thousand_bad_inputs_find_nothing() -> None:
    tallies = fuzz_all(readers(), INPUTS, seed=1)
    assert [str(found) for tally in tallies for found in tally.found] == []
    assert sum(tally.inputs for tally in tallies) == INPUTS
    assert all(tally.taken for tally in tallies), (
        "inputs that are all refused at the door say little"
    )


@pytest.mark.long
@pytest.mark.timeout(3_000)
def test_a_million_bad_inputs_find_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    before = largest_mib()
    tallies = fuzz_all(readers(), MILLION, seed=2)
    seconds = sum(tally.seconds for tally in tallies)
    with capsys.disabled():
        print(f"\n{MILLION:,} bad inputs, {MILLION / seconds:,.0f} inputs/s")  # noqa: T201 (the long test's figure)
    assert [str(found) for tally in tallies for found in tally.found] == []
    assert sum(tally.inputs for tally in tallies) == MILLION
    assert largest_mib() - before < GROWTH_MIB_MAX


def test_the_same_seed_makes_the_same_inputs() -> None:
    reader = EVERY["broker"]
    first, again = (
        [mutate_framed(reader.seeds, Random(seed)) for _ in range(50)] for seed in (5, 5)
    )
    assert first == again
    choices = Random(6)
    assert len({mutate(reader.seeds, choices) for _ in range(200)}) > 150


@pytest.mark.parametrize(
    ("read", "why"),
    [
        (lambda data: bool(1 // (len(data) % 2)), "ZeroDivisionError"),
        (lambda data: (_ for _ in ()).throw(Misbehaved("It answered twice.")), "It answered twice"),
    ],
)
def test_a_reader_that_can_not_bear_it_is_found(read: object, why: str) -> None:
    reader = Reader("weak", (b"abc", b"ab"), read)  # type: ignore[arg-type]
    tally = fuzz(reader, 1_000, Random(1), found_max=2)
    assert len(tally.found) == 2
    assert why in str(tally.found[0])


def test_a_reader_that_hangs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inorder.evidence.fuzzing.run.INPUT_S_MAX", 0.05)

    def hang(data: bytes) -> bool:
        while True:
            pass

    found = try_input(Reader("slow", (b"x",), hang), b"x")
    assert isinstance(found, Found)
    assert "did not end" in found.why


def test_a_body_that_grows_too_far_is_refused_and_those_before_it_are_given() -> None:
    (good,) = decode_all(EVERY["messages"].seeds[0])
    with pytest.raises(ProtocolError, match="larger than 64 MiB"):
        decode_all(BOMB)
    assert decode_readable(EVERY["messages"].seeds[0] + BOMB) == ([good], False)
    with pytest.raises(ProtocolError):
        decode_readable(BOMB)


def test_bodies_of_one_answer_grow_only_so_far_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The third of three does not fit any more; who asks again behind the second gets it."""
    monkeypatch.setattr("reference_impl.protocol.message.MAX_INFLATED_BYTES_IN_ALL", 12_000)
    packed = encode(COMPRESSED)
    messages, is_whole = decode_readable(packed * 3)
    assert ([len(message.body) for message in messages], is_whole) == ([5_000, 5_000], False)
    assert decode_readable(packed)[1]


# ---------------------------------------------------------------- with a structure


words = st.text(st.characters(codec="utf-8"), max_size=20)
numbers = st.one_of(st.integers(-(2**63), 2**64).map(str), words)
codes = st.sampled_from([int(code) for code in BROKER_REQUESTS]) | st.integers(-(2**15), 2**15 - 1)


BODIES = [body for _, body in BROKER_REQUESTS.values()]


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """A whole frame of a broker's request, some of whose fields are missing, strange or of another request."""
    code = draw(st.sampled_from(list(BROKER_REQUESTS)))
    ext, body = BROKER_REQUESTS[code]
    changed = dict(ext)
    for name in draw(st.lists(st.sampled_from(sorted(ext)), max_size=3) if ext else st.just([])):
        if draw(st.booleans()):
            changed.pop(name, None)
        else:
            changed[name] = draw(numbers)
    changed |= draw(st.dictionaries(words, words, max_size=2))
    body = draw(st.one_of(st.just(body), st.binary(max_size=50), st.sampled_from(BODIES)))
    code_sent, flag = draw(st.just(int(code)) | codes), draw(st.sampled_from([0, 0, 0, 1, 2, 3]))
    return encode_frame(
        Command(
            code_sent, changed, body, 7, flag, draw(st.none() | words), binary=draw(st.booleans())
        )
    )


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(requests(), min_size=1, max_size=4), st.data())
def test_a_broker_answers_every_whole_frame(frames: list[bytes], data: st.DataObject) -> None:
    EVERY["broker"].read(b"".join(frames))
    EVERY["name-server"].read(b"".join(frames))


batches = st.lists(st.builds(BatchPart, st.binary(max_size=20)), max_size=4)


@settings(max_examples=300)
@given(batches, st.integers(0, 200), st.integers(-9, 2**31 - 1))
def test_a_batch_with_one_wrong_number_is_read_or_refused(
    parts: list[BatchPart], at: int, number: int
) -> None:
    data = bytearray(encode_batch(parts))
    if len(data) >= 4:
        struct.pack_into(">i", data, min(at, len(data) - 4), number)
    assert accepts(EVERY["batch"], bytes(data)) in (True, False)


# ---------------------------------------------------------------- over sockets


async def answer_to(bad: Bad, address: str) -> int | None:
    """The code of the answer, or None when the server closed the connection instead."""
    host, port = address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    decoder = FrameDecoder()
    try:
        async with asyncio.timeout(30):
            writer.write(bad.data)
            await writer.drain()
            while (command := decoder.next_command()) is None:
                piece = await reader.read(65_536)
                if not piece:
                    return None
                decoder.feed(piece)
            return command.code
    except ConnectionError:
        return None
    finally:
        writer.transport.abort()


def test_a_broker_answers_or_closes_and_everybody_else_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def go() -> None:
        async with (
            LocalCluster(topics=("orders",)) as cluster,
            Producer(cluster.namesrv) as producer,
        ):
            for bad in (*FRAMES, *REQUESTS):
                assert (bad.name, await answer_to(bad, cluster.brokers["b0"])) == (
                    bad.name,
                    bad.code,
                )
                assert (await producer.send("orders", bad.name, key="k")).is_safe
            for bad in FRAMES:
                assert (bad.name, await answer_to(bad, cluster.namesrv)) == (bad.name, None)
            cluster.check()

    with caplog.at_level(logging.WARNING, "inorder.reference"):
        asyncio.run(go())
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2 * len(FRAMES)
    assert all(line.startswith("closed the connection of 127.0.0.1:") for line in said)
    assert not any(record.exc_info for record in caplog.records)


def test_a_server_bears_a_thousand_mutants_on_many_connections() -> None:
    """Each on a connection of its own, cut off in the middle as often as not; a producer works beside them."""

    async def one(choices: Random, address: str, seeds: tuple[bytes, ...]) -> None:
        host, port = address.split(":")
        _, writer = await asyncio.open_connection(host, int(port))
        for _ in range(5):
            writer.write(mutate_framed(seeds, choices))
        writer.transport.abort() if choices.random() < 0.5 else writer.close()

    async def go() -> None:
        choices = Random(11)
        async with (
            LocalCluster(topics=("orders",)) as cluster,
            Producer(cluster.namesrv) as producer,
        ):
            for number in range(20):
                for address, name in (
                    (cluster.brokers["b0"], "broker"),
                    (cluster.namesrv, "name-server"),
                ):
                    await asyncio.gather(
                        *(one(choices, address, EVERY[name].seeds) for _ in range(5))
                    )
                assert (await producer.send("orders", f"{number}", key="k")).is_safe
            cluster.check()

    asyncio.run(go())
