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
from specs.errors import TargetMisbehaved

FILE = Path(specs.__file__).parent / "schemas" / "driver.v2.json"

LINES = 800
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
        ({"reply": 1, "ok": "no", "error": "", "at_us": 1}, "the refusal: 'ok' must be False"),
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
        assert (running.version, running.faults) == (version, [])
        running.stop()


def driver(
    tmp_path: Path, program: str, seen: list[Any], on_event: Callable[[Any], Any] | None = None
) -> DriverProcess:
    """A driver that is a few lines of Python; `line` is the request, `say` writes an answer."""
    script = tmp_path / "driver.py"
    head = "import json, sys\ndef say(**line):\n    print(json.dumps({'at_us': 1, **line}), flush=True)\n"
    body = "for raw in sys.stdin:\n    line = json.loads(raw)\n    " + program.replace(
        "\n", "\n    "
    )
    script.write_text(head + body, encoding="utf-8")
    log = tmp_path / "driver.log"
    return DriverProcess("a driver", [sys.executable, script], log, on_event or seen.append)


def test_an_answer_a_refusal_and_an_event(tmp_path: Path) -> None:
    program = (
        "if line['verb'] == 'stop': say(reply=line['id'], ok=True); break\n"
        "say(event='sent', id=9, outcome='ok')\n"
        "say(reply=line['id'], ok=line['verb'] == 'hello', **({} if line['verb'] == 'hello' else {'error': 'no'}))"
    )
    seen: list[Any] = []
    with driver(tmp_path, program, seen) as running:
        assert running.hello()["ok"]
        with pytest.raises(TargetMisbehaved, match="refused start: no"):
            running.ask("start")
        assert running.stop() == 0
        assert [event["id"] for event in seen] == [9, 9]
        assert running.faults == []


def test_a_line_that_is_none_is_remembered(tmp_path: Path) -> None:
    with driver(
        tmp_path, "print('hello?', flush=True)\nsay(reply=line['id'], ok=True)", []
    ) as running:
        running.hello()
        assert len(running.faults) == 1
        assert "hello?" in running.faults[0]


def test_all_lines_that_a_killed_driver_had_ended_are_read(tmp_path: Path) -> None:
    """Whoever takes them may be slower than the kill; what it had begun to write is no line, and no fault."""
    program = (
        f"for number in range({LINES}): say(event='sent', id=number + 1, outcome='ok')\n"
        'sys.stdout.write(\'{"event": "sent", "id"\')\n'
        "sys.stdout.flush()\n"
        "open(sys.argv[0] + '.written', 'w').close()"
    )
    seen: list[Any] = []

    def take(event: Any) -> None:
        assert wait_until(lambda: not running.process.alive, deadline_s=30)
        seen.append(event["id"])

    with driver(tmp_path, program, [], take) as running:
        running.send(1, topic="t", message="m1", body="m1", key="k")
        written = tmp_path / "driver.py.written"
        assert wait_until(written.exists, deadline_s=30)
        running.kill()
        assert seen == list(range(1, LINES + 1))
        assert running.faults == []


def test_a_driver_that_dies_is_said_to(tmp_path: Path) -> None:
    with (
        driver(tmp_path, "sys.exit('out of order')", []) as running,
        pytest.raises(TargetMisbehaved, match=r"(?s)died before it answered hello.*out of order"),
    ):
        running.hello()
