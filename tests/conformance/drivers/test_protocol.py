"""The driver protocol: its schema's file, and what the harness makes of a driver's lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import specs
from conformance.drivers.process import DriverProcess
from conformance.drivers.protocol import (
    Line,
    Sent,
    WrongLine,
    driver_schema,
    read_request,
    read_said,
    schema_text,
)
from conformance.parts.processes import wait_until
from specs.errors import DriverBug, DriverFailed, TargetMisbehaved, UsageError

FILE = Path(specs.__file__).parent / "schemas" / "driver.v2.json"

LINES = 500
"""So many fit into a pipe."""
MESSAGE = {
    "topic": "orders",
    "broker": "b0",
    "queue_id": 0,
    "queue_offset": 7,
    "message_id": "m1",
    "reconsume_times": 0,
    "body": "m1",
    "key": None,
}

GOOD: list[dict[str, Any]] = [
    {"verb": "hello", "id": 1, "version": 1},
    {
        "verb": "start",
        "id": 2,
        "role": "consumer",
        "client": "c1",
        "group": "g",
        "namesrv": "h:1",
        "topics": ["t"],
    },
    {"verb": "send", "id": 3, "topic": "t", "message": "m1", "body": "m1", "key": "k"},
    {
        "verb": "send_delayed",
        "id": 6,
        "topic": "t",
        "message": "m2",
        "body": "m2",
        "delay_level": 3,
        "delay_ms": 10_000,
    },
    {"verb": "select", "id": 5, "key": "k", "queues": 3},
    {"verb": "stop", "id": 4},
    {
        "reply": 1,
        "ok": True,
        "version": 1,
        "driver": "java",
        "client": "5.4.0",
        "events": ["sent"],
        "at_us": 1,
    },
    {"reply": None, "ok": False, "error": "not JSON", "at_us": 1},
    {"event": "delivered", "call": 1, "messages": [MESSAGE], "at_us": 2},
    {
        "event": "delivered",
        "call": 1,
        "messages": [{**MESSAGE, "properties": {"number": "1"}}],
        "at_us": 2,
    },
    {
        "event": "finished",
        "call": 1,
        "outcome": "null",
        "manual": False,
        "suspend_ms": -1,
        "at_us": 3,
    },
    {
        "event": "gave_up",
        "topic": "orders",
        "broker": "b0",
        "queue_id": 0,
        "queue_offset": 7,
        "message_id": "m1",
        "incarnation": 2,
        "at_us": 3,
    },
    {"event": "sent", "id": 3, "outcome": "unknown", "why": "a time-out", "at_us": 3},
]

BAD: list[dict[str, Any]] = [
    {"verb": "dance", "id": 1},
    {"verb": "hello", "id": 1, "version": 3},
    {"verb": "stop", "id": 1, "properties": {}},
    {"event": "delivered", "call": 1, "messages": [{**MESSAGE, "properties": 3}], "at_us": 2},
    {"reply": 1, "ok": True},
    {"event": "delivered", "call": 1, "messages": [], "at_us": 2},
    {
        "event": "finished",
        "call": 1,
        "outcome": "maybe",
        "manual": False,
        "suspend_ms": -1,
        "at_us": 3,
    },
    {"event": "sent", "id": 3, "outcome": "ok", "at_us": 1.5},
]


def test_the_file_is_the_schema() -> None:
    assert FILE.read_text(encoding="utf-8") == schema_text()


def read(line: dict[str, Any]) -> Line:
    return read_request(line) if "verb" in line else read_said(line)


@pytest.mark.parametrize("line", GOOD, ids=lambda line: next(iter(line.values())))
def test_lines_of_the_protocol(line: dict[str, Any]) -> None:
    """What the schema allows the reader takes: both come from one model."""
    jsonschema.Draft202012Validator(driver_schema()).validate(line)
    assert set(line) <= {*vars(read(line)), "verb", "event", "ok"}


@pytest.mark.parametrize("line", BAD, ids=json.dumps)
def test_lines_that_are_none(line: dict[str, Any]) -> None:
    assert not jsonschema.Draft202012Validator(driver_schema()).is_valid(line)
    with pytest.raises(WrongLine):
        read(line)


def test_a_line_is_read_as_its_model_says() -> None:
    """What it leaves out has its usual value."""
    read_line = read_said({"event": "sent", "id": 3, "outcome": "unknown", "at_us": 3})
    assert read_line == Sent(id=3, outcome="unknown", at_us=3)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ([], "the line must be a JSON object"),
        ({"event": "delivred"}, "there is no event 'delivred'; did you mean 'delivered'?"),
        ({"event": ["sent"]}, "there is no event ['sent']"),
        (
            {"event": "sent", "id": 3, "at_us": 3},
            "the event sent: the field 'outcome' is missing",
        ),
        (
            {"event": "sent", "id": 3, "outcome": "okay", "at_us": 3},
            "the event sent: outcome must be one of ok, refused, unknown, not 'okay'",
        ),
        (
            {"event": "sent", "id": 3, "outcome": "ok", "at_us": 3, "queue": 1},
            "the event sent: unknown field 'queue'; did you mean 'queue_id'?",
        ),
        (
            {"event": "sent", "id": 3, "outcome": "ok", "at_us": 1.5},
            "the event sent: 'at_us' must be a whole number",
        ),
        (
            {"event": "delivered", "call": 1, "messages": [], "at_us": 2},
            "the event delivered: 'messages' must hold at least one",
        ),
        (
            {
                "event": "delivered",
                "call": 1,
                "messages": [{**MESSAGE, "queue_id": "0"}],
                "at_us": 2,
            },
            "the event delivered, messages[0]: 'queue_id' must be a whole number",
        ),
        ({"ok": True, "at_us": 1}, "the answer: the field 'reply' is missing"),
        ({"reply": 1, "ok": "no", "error": "", "at_us": 1}, "'ok' must be true or false, not 'no'"),
        ({"reply": 1, "at_us": 1}, "it is neither an event (by the field 'event') nor an answer"),
        (
            {"reply": 1, "ok": True, "at_us": 1, "version": 3},
            "the answer, version must be 1 or 2, not 3",
        ),
    ],
)
def test_a_wrong_line_is_told_in_a_sentence_with_its_place(line: Any, sentence: str) -> None:
    with pytest.raises(WrongLine) as told:
        read_said(line)
    assert sentence in str(told.value)


V1 = Path(__file__).parents[2] / "specs" / "history" / "v1" / "driver.jsonl"
V2 = Path(__file__).parent / "recorded" / "v2.jsonl"


@pytest.mark.parametrize("version", [1, 2])
def test_what_a_driver_said_is_still_understood(version: int) -> None:
    """A recorded conversation of each version: by the schema that it was held by, by today's, and by the reader."""
    schemas = [json.loads(FILE.with_name(f"driver.v{version}.json").read_text(encoding="utf-8"))]
    lines = (V1 if version == 1 else V2).read_text(encoding="utf-8").splitlines()
    for line in map(json.loads, lines):
        if line.get("verb") != "dance":
            for schema in (*schemas, driver_schema()):
                jsonschema.Draft202012Validator(schema).validate(line)
            read(line)


@pytest.mark.parametrize(
    ("spoken", "told", "version"),
    [((1,), True, 1), ((1, 2), True, 2), ((2,), True, 2), ((1, 2, 3), False, 1)],
    ids=["only the old one", "both", "only the new one", "does not look, and says nothing"],
)
def test_a_driver_is_greeted_in_the_newest_version_that_it_speaks(
    tmp_path: Path, spoken: tuple[int, ...], told: bool, version: int
) -> None:
    says = "**({'version': line['version']} if told else {})".replace("told", str(told))
    program = (
        f"good = line['verb'] == 'stop' or line['version'] in {spoken}\n"
        f"if not good: say(reply=line['id'], ok=False, error='which version?'); continue\n"
        f"if line['verb'] == 'stop': say(reply=line['id'], ok=True); break\n"
        f"say(reply=line['id'], ok=True, driver='d', client='1', events=['sent'], {says})"
    )
    with driver(tmp_path, program, []) as running:
        running.hello()
        assert (running.version, running.failure) == (version, None)
        running.stop()


def driver(
    tmp_path: Path, program: str, seen: list[Any], on_event: Callable[[Any], Any] | None = None
) -> DriverProcess:
    """A driver that is a few lines of Python; `line` is the request, `say` writes an answer."""
    script = tmp_path / "driver.py"
    head = (
        "import json, sys, time\n"
        "def now(): return time.monotonic_ns() // 1000\n"
        "def say(**line):\n    print(json.dumps({'at_us': now(), **line}), flush=True)\n"
    )
    body = "for raw in sys.stdin:\n    line = json.loads(raw)\n    " + program.replace(
        "\n", "\n    "
    )
    script.write_text(head + body, encoding="utf-8")
    log = tmp_path / "driver.log"
    return DriverProcess("a driver", [sys.executable, script], log, on_event or seen.append)


def test_an_answer_a_refusal_and_an_event(tmp_path: Path) -> None:
    program = (
        "if line['verb'] == 'stop': say(reply=line['id'], ok=True); break\n"
        "say(event='added', topic='t', broker='b0', queue_id=0, incarnation=9)\n"
        "if line['verb'] == 'hello': say(reply=line['id'], ok=True, events=['added'])\n"
        "else: say(reply=line['id'], ok=False, error='no')"
    )
    seen: list[Any] = []
    with driver(tmp_path, program, seen) as running:
        assert running.hello()["ok"]
        with pytest.raises(DriverFailed, match="refused start: no"):
            running.ask("start")
        assert running.stop() == 0
        assert [event["incarnation"] for event in seen] == [9, 9]
        assert running.failure is None


def test_all_lines_that_a_killed_driver_had_ended_are_read(tmp_path: Path) -> None:
    """Whoever takes them may be slower than the kill; what it had begun to write is no line, and no fault."""
    program = (
        f"for number in range({LINES}):\n"
        "  say(event='added', topic='t', broker='b', queue_id=0, incarnation=number + 1)\n"
        'sys.stdout.write(\'{"event": "added", "incarnation"\')\n'
        "sys.stdout.flush()\n"
        "open(sys.argv[0] + '.written', 'w').close()"
    )
    seen: list[Any] = []

    def take(event: Any) -> None:
        assert wait_until(lambda: not running.process.alive, deadline_s=30)
        seen.append(event["incarnation"])

    with driver(tmp_path, program, [], take) as running:
        running.send(1, topic="t", message="m1", body="m1", key="k")
        written = tmp_path / "driver.py.written"
        assert wait_until(written.exists, deadline_s=30)
        running.kill()
        assert seen == list(range(1, LINES + 1))
        assert running.failure is None


def test_a_driver_that_dies_is_said_to(tmp_path: Path) -> None:
    with (
        driver(tmp_path, "sys.exit('out of order')", []) as running,
        pytest.raises(
            DriverFailed, match=r"(?s)died \(exit code 1\) before it answered hello.*out of order"
        ),
    ):
        running.hello()


WRONG: list[tuple[str, str]] = [
    ("say(event='committed', commit=6, outcome='ok')", "ends commit 6, which no `committing` has begun"),
    ("say(event='finished', call=1, outcome='success', manual=False, suspend_ms=-1)",
     "ends call 1, which no `delivered` has begun"),
    ("say(event='sent', id=99, outcome='ok')", "request 99, which asked for no send"),
    ("[say(event='sent', id=7, outcome='ok') for _ in 'ab']", "tells of request 7 a second time"),
    ("[say(event='locking', lock=1, topic='t', broker='b', queue_id=0) for _ in 'ab']",
     "begins request for a lease 1, which has not ended yet"),
    ("say(event='looked_up', look=1, outcome='ok', value=2**70)", "numbers have 64 bits"),
    ("say(event='sent', id=7, outcome='x' * 10**6)", "outcome must be one of ok, refused, unknown"),
    ("say(event='dropped', topic=chr(0xd800), broker='b', queue_id=0, incarnation=1)", "one half of a character"),
    ("print('[' * 200_000, flush=True)", "nests deeper than 100 levels"),
    ("print('{\"event\":' * 900 + '1' + '}' * 900, flush=True)", "nests deeper than 100 levels"),
    ("print('starting', flush=True)", "what is for people goes to stderr"),
    ("print(flush=True)", "it is not JSON"),
    ("sys.stdout.buffer.write('{}\\n'.encode('utf-16')); sys.stdout.flush()", "write UTF-8"),
    ("sys.stdout.buffer.write('{}\\n'.encode('utf-8-sig')); sys.stdout.flush()", "byte order mark"),
    ("sys.stdout.buffer.write(b'{\"a\": \"\\xff\"}\\n'); sys.stdout.flush()", "it is not in UTF-8"),
    ("say(reply=99, ok=True)", "answers request 99, which nobody asked"),
    ("say(reply=7, ok=True)", "answers request 7, which is a send"),
    ("say(event='dropped', topic='t', broker='b', queue_id=0, incarnation=1, at_us=time.time_ns() // 1000)",
     "this one looks like the wall clock in µs"),
    ("say(event='dropped', topic='t', broker='b', queue_id=0, incarnation=1, at_us=time.monotonic_ns())",
     "this one looks like the right clock in ns"),
    ("say(event='dropped', topic='t', broker='b', queue_id=0, incarnation=1, at_us=now() + 10**6)",
     "after the line arrived"),
    ("[say(event='dropped', topic='t', broker='b', queue_id=0, incarnation=1, at_us=now() - n * 1_500_000)"
     " for n in (0, 1)]", "before it can have been written"),
    ("say(event='dropped', topic='t', broker='b', queue_id=0, incarnation=1, at_us=now() // 2)",
     "before it can have been written"),
    ("say(event='sent', id=7, outcome='ok', at_us=now() - 10**6)", "before the request that it answers"),
]  # fmt: skip
"""What a driver does when it is asked to send, and the sentence about it."""


@pytest.mark.parametrize(("act", "sentence"), WRONG)
def test_what_can_not_be_is_told_at_once_to_whoever_waits(
    tmp_path: Path, act: str, sentence: str
) -> None:
    """It is the driver's mistake (64), quotes the line, and no time-out has to pass: the next answer never comes."""
    program = (
        "if line['verb'] == 'hello': say(reply=line['id'], ok=True, events=['sent'])\n"
        f"elif line['verb'] == 'send': {act}"
    )
    with driver(tmp_path, program, []) as running:
        running.hello()
        running.send(7, topic="t", message="m1", body="m1", key="k")
        with pytest.raises(DriverBug, match="which can't be") as told:
            running.ask("read", topic="t", group="g", client="c", namesrv="")
        assert sentence in str(told.value)
        assert len(str(told.value)) < 1_500
        assert told.value.exit_code == 64
        with pytest.raises(DriverBug):
            running.check()


def test_what_can_not_be_taken_down_reaches_who_waits(tmp_path: Path) -> None:
    """Whatever is raised in the reader's thread: here the recorder's disk is full, which is no driver's mistake."""

    def full(event: Any) -> None:
        raise OSError(28, "No space left on device")

    program = (
        "if line['verb'] == 'hello': say(reply=line['id'], ok=True, events=['sent'])\n"
        "else: say(event='dropped', topic='t', broker='b', queue_id=0, incarnation=1)"
    )
    with driver(tmp_path, program, [], full) as running:
        running.hello()
        with pytest.raises(TargetMisbehaved, match="No space left on device") as told:
            running.ask("read", topic="t", group="g", client="c", namesrv="")
        assert told.value.exit_code == 70


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        ("os._exit(3)", r"(?s)died \(exit code 3\) before it answered read\..*no such broker"),
        ("os.kill(os.getpid(), 11)", r"(?s)died \(SIGSEGV\) before it answered read\..*no such broker"),
        ("sys.stdin.read()", r"(?s)did not answer read in 0.5 s\..*no such broker"),
        ("os.close(1); os.dup(2)", "closed its stdout and runs on before it answered read"),
        ("say(reply=line['id'], ok=False, error='no')", "refused read: no"),
    ],
    ids=["exits", "segfaults", "hangs", "closes", "refuses"],
)  # fmt: skip
def test_a_driver_that_does_not_answer_is_said_to_with_its_end_and_its_log(
    tmp_path: Path, act: str, sentence: str
) -> None:
    """It is a part that is not there (69)."""
    program = (
        "import os\n"
        "if line['verb'] == 'hello': say(reply=line['id'], ok=True, events=['sent']); continue\n"
        f"print('\\x1b[2Jno such broker', file=sys.stderr, flush=True); {act}"
    )
    with driver(tmp_path, program, []) as running:
        running.hello()
        running.answer_s = 0.5 if "stdin" in act else running.answer_s
        with pytest.raises(DriverFailed, match=sentence) as told:
            running.ask("read", topic="t", group="g", client="c", namesrv="")
        assert told.value.exit_code == 69
        assert "\x1b" not in str(told.value)


def test_a_driver_that_reads_nothing_any_more_is_not_written_to_for_ever(tmp_path: Path) -> None:
    """What it does not take in fills the pipe."""
    program = "say(reply=line['id'], ok=True, events=['sent']); time.sleep(60)"
    with driver(tmp_path, program, []) as running:
        running.hello()
        running.answer_s = 1

        def send_on() -> None:
            for number in range(2, 1_000):
                running.send(number, topic="t", message="m", body="b" * 1000, key="k")

        with pytest.raises(DriverFailed, match="took no request for 1 s: it does not read"):
            send_on()


def test_a_driver_that_dies_while_nobody_asks_has_failed(tmp_path: Path) -> None:
    program = "say(reply=line['id'], ok=True, events=['sent']); sys.exit(3)"
    with driver(tmp_path, program, []) as running:
        running.hello()
        assert wait_until(lambda: running.failure, deadline_s=30)
        with pytest.raises(
            DriverFailed, match=r"died \(exit code 3\) after hello, and was not told to"
        ):
            running.check()


def test_a_driver_that_stood_still_may_tell_what_it_had_begun_to(tmp_path: Path) -> None:
    """A thread took the time, and another one its turn: after a pause what was about to be written is older."""
    program = (
        "if line['verb'] == 'hello': say(reply=line['id'], ok=True, events=['sent']); continue\n"
        "told = dict(event='dropped', topic='t', broker='b', queue_id=0)\n"
        "if line['verb'] == 'stop': say(**told, incarnation=2, at_us=before)\n"
        "before = now()\n"
        "if line['verb'] == 'stop': say(reply=line['id'], ok=True); break\n"
        "time.sleep(1.5)\n"
        "say(**told, incarnation=1)\n"
        "say(reply=line['id'], ok=True, messages=[])"
    )
    with driver(tmp_path, program, []) as running:
        running.hello()
        running.ask("read", topic="t", group="g", client="c", namesrv="")
        running.process.pause()
        running.process.resume()
        assert running.stop() == 0


@pytest.mark.parametrize("seconds", ["soon", "0", "-1", "nan", "1e300"])
def test_a_deadline_that_is_none_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: str
) -> None:
    monkeypatch.setenv("INORDER_DRIVER_ANSWER_S", seconds)
    with pytest.raises(UsageError, match="must be a number of seconds"):
        driver(tmp_path, "pass", [])
