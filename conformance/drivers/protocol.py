"""The driver protocol, version 2: JSON lines, requests on the driver's stdin, answers and events on its stdout.

A driver is one client of a plan. It is asked `hello` first, then `start`, any number of `send`, and `stop`; a driver
may also know `send_batch` (several messages in one request, told as one `sent`), `send_delayed` (one that is there for
consumers only after a while), `read` (a pull consumer reads a topic
to its end; the answer has the messages) and `query` (the messages of a key, likewise). Each request has an id, which
its answer repeats. What happens is told by events, each with the host's monotonic clock in µs, in the order of the
lines: `delivered` before the listener's work, `finished` before the client learns its result, `sent` when a send has
its answer. The listener decides by the rules that came with `start`. An unknown verb is refused, and so is a line
beyond `LINE_BYTES_MAX`. When stdin ends the driver dies at once. `assigned`, `added`, `dropped`, `locked`,
`committed`, `looked_up` and `gave_up` are optional: hello's `events` says what a driver tells whenever it happens, or
what can't happen with its client. A commit and a look-up of the stored offset are told twice: `committing` and
`looking_up` before the request, `committed` and `looked_up` once it is answered.

A driver behind `exec:COMMAND` also knows `prepare` (make these topics with so many queues, empty, and these groups) and
`read`; `progress` asks what the store says that a group has reached in each queue of a topic, of a driver that is no
client of the group. It may be one process that hosts all clients: its hello says `"hosts": true`, then every `send` and
`stop` names its client, as `start` does anyway, and every event does; a `stop` without one ends the process. Such a
one may know `crash` (this client is gone without a word: nothing is committed or given back). Hello's `verbs` names
the optional verbs that a driver knows, and `broker` who implements the queues.

`added` comes before the client's work on a lane begins, and `dropped` once it is over: after the last commit and the
unlock that go with it. Both name the work by a number, `incarnation`, new for each; so does then every delivery.
`assigned` tells a share that the client computed, of which topic, and from which members and queues; only one that
differs from the last need be told.

`gave_up` tells that a message is done with although no call of it ended well: the client, or the system behind it, put
it away or dropped it. It comes before anything beyond the message is delivered, from the client that had the lane. A
driver that does not know when that happens does not name the event: then nothing is concluded from there being none,
and what rests on it is possible and not refuted. Where nobody ever gives up it is named, for it can't happen.

Version 2 has `properties`: those of the application's own that a `send` is asked to give its message, and that a
message shows when it is delivered or read; a driver that does not tell them leaves them unknown. A driver that refuses
version 2 is greeted once more with version 1, and then asked for nothing that is new.

`python -m conformance.drivers.protocol` writes the schema into `specs/schemas/`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from specs.faults import crash
from specs.plan.config import Config
from specs.plan.plan import ListenerRule

DRIVER_SCHEMA = "inorder/driver/v2"
VERSION = 2
VERSIONS = (1, 2)
"""Those that are spoken, and the newest: what a driver is asked for first."""
WITH_PROPERTIES = 2
"""From which on messages have properties."""
LINE_BYTES_MAX = 1 << 20
"""Of a request and of an event, without its newline."""
REQUIRED_EVENTS = ("delivered", "finished", "sent")
OPTIONAL_EVENTS = (
    "assigned",
    "added",
    "dropped",
    "locked",
    "committed",
    "looked_up",
    "gave_up",
)
CALL_OUTCOMES = ("success", "suspend", "commit", "rollback", "null", "threw")

CONFIGURED = (
    "max_reconsume_times",
    "suspend_ms",
    "batch",
    "threads",
    "pull_batch",
    "persist_ms",
    "heartbeat_ms",
    "consume_from",
    "mode",
    "message_model",
    "subscription",
)
"""What a driver is told of a plan's configuration at `start`; lease times are its process's own affair."""

_TEXT = {"type": "string"}
_WHOLE = {"type": "integer"}
_MAYBE_TEXT = {"type": ["string", "null"]}
_AT = {"type": "integer", "minimum": 0, "description": "The host's monotonic clock, µs."}


def _line(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "required": sorted(required),
        "properties": {**required, **(optional or {})},
        "additionalProperties": False,
    }


_ID = {"type": "integer", "minimum": 0}
_PROPERTIES = {
    "type": "object",
    "additionalProperties": _TEXT,
    "description": "The application's own, by name. Without the field nobody says.",
}
_MESSAGE = _line(
    {
        "topic": _TEXT,
        "broker": _TEXT,
        "queue_id": _WHOLE,
        "queue_offset": _WHOLE,
        "message_id": {**_MAYBE_TEXT, "description": "The unique key that the producer gave it."},
        "reconsume_times": _WHOLE,
        "body": _TEXT,
    },
    {
        "key": _MAYBE_TEXT,
        "key_seq": _MAYBE_TEXT,
        "tags": _MAYBE_TEXT,
        "properties": _PROPERTIES,
        "incarnation": {
            "type": "integer",
            "minimum": 1,
            "description": "The number of the work on the lane.",
        },
    },
)


def _lane_event(name: str) -> dict[str, Any]:
    return _line(
        {
            "event": {"const": name},
            "topic": _TEXT,
            "broker": _TEXT,
            "queue_id": _WHOLE,
            "incarnation": {"type": "integer", "minimum": 1},
            "at_us": _AT,
        }
    )


_NAMES = {"type": "array", "items": _TEXT}
_SEND = {"id": _ID, "topic": _TEXT, "message": _TEXT, "body": _TEXT}
_SEND_MORE = {"key": _TEXT, "key_seq": _WHOLE, "tags": _TEXT}

_CLIENT = {"client": {**_TEXT, "description": "Of a process that hosts everybody: whose it is."}}

REQUESTS: dict[str, dict[str, Any]] = {
    "hello": _line({"verb": {"const": "hello"}, "id": _ID, "version": {"enum": list(VERSIONS)}}),
    "start": _line(
        {
            "verb": {"const": "start"},
            "id": _ID,
            "role": {"enum": ["consumer", "producer"]},
            "client": _TEXT,
            "group": _TEXT,
            "namesrv": _TEXT,
        },
        {
            "topics": {"type": "array", "items": _TEXT},
            "config": {
                "type": "object",
                "description": "Of a plan's configuration, what a client has.",
            },
            "listener": {
                "type": "array",
                "items": {"type": "object"},
                "description": "A plan's listener rules.",
            },
        },
    ),
    "send": _line({"verb": {"const": "send"}, **_SEND}, {**_SEND_MORE, **_CLIENT}),
    "send_delayed": _line(
        {
            "verb": {"const": "send_delayed"},
            **_SEND,
            "delay_level": {"type": "integer", "minimum": 1, "description": "As RocketMQ counts."},
            "delay_ms": {"type": "integer", "minimum": 0, "description": "What the level means."},
        },
        {**_SEND_MORE, **_CLIENT},
    ),
    "select": _line(
        {
            "verb": {"const": "select"},
            "id": _ID,
            "key": _TEXT,
            "queues": {"type": "integer", "minimum": 1},
        }
    ),
    "send_batch": _line(
        {
            "verb": {"const": "send_batch"},
            "id": _ID,
            "topic": _TEXT,
            "messages": {
                "type": "array",
                "items": _line({"message": _TEXT, "body": _TEXT}),
                "minItems": 1,
            },
        },
        {"tags": _TEXT, **_CLIENT},
    ),
    "read": _line(
        {
            "verb": {"const": "read"},
            "id": _ID,
            "topic": _TEXT,
            "group": _TEXT,
            "client": _TEXT,
            "namesrv": _TEXT,
        }
    ),
    "query": _line({"verb": {"const": "query"}, "id": _ID, "topic": _TEXT, "key": _TEXT}),
    "prepare": _line(
        {
            "verb": {"const": "prepare"},
            "id": _ID,
            "topics": {
                "type": "array",
                "items": _line({"name": _TEXT, "queues": {"type": "integer", "minimum": 1}}),
            },
            "groups": {"type": "array", "items": _TEXT},
        }
    ),
    "progress": _line({"verb": {"const": "progress"}, "id": _ID, "group": _TEXT, "topic": _TEXT}),
    crash.VERB: _line({"verb": {"const": crash.VERB}, "id": _ID, "client": _TEXT}),
    "stop": _line({"verb": {"const": "stop"}, "id": _ID}, _CLIENT),
}

LINES: dict[str, dict[str, Any]] = {
    "answer": _line(
        {"reply": _ID, "ok": {"const": True}, "at_us": _AT},
        {
            "version": {"enum": list(VERSIONS)},
            "driver": _TEXT,
            "client": {**_TEXT, "description": "The version of the client library."},
            "client_id": {**_TEXT, "description": "Its id in the protocol."},
            "broker": {**_TEXT, "description": "Who implements the queues, with a version."},
            "hosts": {"type": "boolean", "description": "This one process is all clients."},
            "verbs": {
                "type": "array",
                "items": _TEXT,
                "description": "The optional verbs that it knows.",
            },
            "queue_id": {
                **_WHOLE,
                "description": "To select: the place of the chosen queue, from 0.",
            },
            "events": {"type": "array", "items": {"enum": [*REQUIRED_EVENTS, *OPTIONAL_EVENTS]}},
            "messages": {
                "type": "array",
                "items": _MESSAGE,
                "description": "What was read, or found by a key.",
            },
            "progress": {
                "type": "array",
                "items": _line(
                    {"topic": _TEXT, "broker": _TEXT, "queue_id": _WHOLE, "value": _WHOLE}
                ),
                "description": "What the store says that a group has reached, -1 for nothing.",
            },
        },
    ),
    "refusal": _line(
        {
            "reply": {"type": ["integer", "null"]},
            "ok": {"const": False},
            "error": _TEXT,
            "at_us": _AT,
        }
    ),
    "delivered": _line(
        {
            "event": {"const": "delivered"},
            "call": _ID,
            "messages": {"type": "array", "items": _MESSAGE, "minItems": 1},
            "at_us": _AT,
        }
    ),
    "finished": _line(
        {
            "event": {"const": "finished"},
            "call": _ID,
            "outcome": {"enum": list(CALL_OUTCOMES)},
            "manual": {"type": "boolean"},
            "suspend_ms": {
                **_WHOLE,
                "description": "What the listener asked for; -1: the consumer's default.",
            },
            "at_us": _AT,
        }
    ),
    "committing": _line(
        {
            "event": {"const": "committing"},
            "commit": _ID,
            "topic": _TEXT,
            "broker": _TEXT,
            "queue_id": _WHOLE,
            "value": {**_WHOLE, "description": "The offset of the next message."},
            "at_us": _AT,
        },
        {"incarnation": {"type": "integer", "minimum": 1}},
    ),
    "committed": _line(
        {
            "event": {"const": "committed"},
            "commit": _ID,
            "outcome": {"enum": ["ok", "refused", "unknown"]},
            "at_us": _AT,
        }
    ),
    "looking_up": _line(
        {
            "event": {"const": "looking_up"},
            "look": _ID,
            "topic": _TEXT,
            "broker": _TEXT,
            "queue_id": _WHOLE,
            "at_us": _AT,
        },
        {"incarnation": {"type": "integer", "minimum": 1}},
    ),
    "looked_up": _line(
        {
            "event": {"const": "looked_up"},
            "look": _ID,
            "outcome": {"enum": ["ok", "refused", "unknown"]},
            "value": {**_WHOLE, "description": "The stored offset; -1: none is stored."},
            "at_us": _AT,
        }
    ),
    "gave_up": _line(
        {
            "event": {"const": "gave_up"},
            "topic": _TEXT,
            "broker": _TEXT,
            "queue_id": _WHOLE,
            "queue_offset": _WHOLE,
            "message_id": _TEXT,
            "at_us": _AT,
        },
        {"incarnation": {"type": "integer", "minimum": 1}},
    ),
    "added": _lane_event("added"),
    "dropped": _lane_event("dropped"),
    "assigned": _line(
        {
            "event": {"const": "assigned"},
            "topic": _TEXT,
            "members": {
                **_NAMES,
                "description": "Their ids in the protocol, in the client's order.",
            },
            "queues": {**_NAMES, "description": "`broker/queue` each, in the client's order."},
            "share": {**_NAMES, "description": "What the client takes of them."},
            "at_us": _AT,
        }
    ),
    "sent": _line(
        {
            "event": {"const": "sent"},
            "id": _ID,
            "outcome": {"enum": ["ok", "refused", "unknown"]},
            "at_us": _AT,
        },
        {
            "status": _TEXT,
            "broker": _TEXT,
            "queue_id": _WHOLE,
            "queue_offset": _WHOLE,
            "code": _WHOLE,
            "why": _TEXT,
            "choices": {
                **_NAMES,
                "description": "The queues that the key's hash chose from, in their order.",
            },
        },
    ),
}

for _asked in REQUESTS.values():
    if "message" in _asked["properties"]:
        _asked["properties"]["properties"] = _PROPERTIES
for _told in LINES.values():
    if "event" in _told["properties"]:
        _told["properties"] |= _CLIENT


def rules_as_json(rules: Sequence[ListenerRule]) -> list[dict[str, Any]]:
    """Listener rules as a driver gets them: without what is usual."""
    usual = asdict(ListenerRule())
    return [
        {name: value for name, value in asdict(rule).items() if value != usual[name]}
        for rule in rules
    ]


def configured(config: Config) -> dict[str, Any]:
    """The configuration as a driver gets it."""
    return {name: value for name, value in config.to_json().items() if name in CONFIGURED}


def driver_schema() -> dict[str, Any]:
    """Any line of the protocol, in either direction; draft 2020-12."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": DRIVER_SCHEMA,
        "title": "A line of the driver protocol: a request, an answer or an event",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in (*REQUESTS, *LINES)],
        "$defs": {**REQUESTS, **LINES},
    }


def schema_text() -> str:
    """The schema as `specs/schemas/driver.v2.json` holds it."""
    return json.dumps(driver_schema(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    path = Path(__file__).resolve().parents[2] / "specs" / "schemas" / "driver.v2.json"
    path.write_text(schema_text(), encoding="utf-8")
