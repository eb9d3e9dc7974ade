"""The JSON schema of plan v1, made from the plan's own definitions; `specs/schemas/plan.v1.json` is its copy."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from specs.faults import FAULTS
from specs.plan.arguments import NODE, STATE
from specs.plan.config import Config
from specs.plan.plan import CLIENT_KINDS, LISTENER_OUTCOMES, PLAN_SCHEMA, STATES, VERBS
from specs.plan.step import MOVES

_TEXT = {"type": "string"}
_WHOLE = {"type": "integer", "minimum": 0}
_ANY_WHOLE = {"type": "integer"}
_FLAG = {"type": "boolean"}
_TEXTS = {"type": "array", "items": _TEXT}
_ARG: dict[str, dict[str, Any]] = {
    NODE: _TEXT,
    STATE: {"enum": list(STATES)},
    "string": _TEXT,
    "integer": _ANY_WHOLE,
    "boolean": _FLAG,
    "integers": {"type": "array", "items": _WHOLE},
}


def _object(properties: dict[str, Any], required: tuple[str, ...] = ()) -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
    }
    if required:
        found["required"] = list(required)
    return found


def _action(verb: str) -> dict[str, Any]:
    act = {"at_ms": _WHOLE, "do": {"const": verb}, "args": _args(verb)}
    return _object(act, ("at_ms", "do", "args"))


def _step(verb: str) -> dict[str, Any]:
    moment = {"client": _TEXT, "finished": _WHOLE, "at_work": _FLAG, "beside": _FLAG}
    end = {"for_ms": {"type": ["integer", "null"]}, "heals": _FLAG, "deadline_ms": _WHOLE}
    step = {"do": {"const": verb}, "args": _args(verb), **moment, **end}
    return _object(step, ("do", "args"))


def _args(verb: str) -> dict[str, Any]:
    arguments = VERBS[verb]
    required = tuple(name for name, (_, needed) in arguments.items() if needed)
    return _object({name: _ARG[kind] for name, (kind, _) in arguments.items()}, required)


def plan_schema() -> dict[str, Any]:
    """JSON schema, draft 2020-12."""
    or_null = {"type": ["string", "null"]}
    rule = _object(
        {
            "outcome": {"enum": [outcome.value for outcome in LISTENER_OUTCOMES]},
            "suspend_ms": _ANY_WHOLE,
            "delay_level": _ANY_WHOLE,
            "duration_ms": _WHOLE,
            "manual": _FLAG,
            "from_ms": _WHOLE,
            "group": or_null,
            "client": or_null,
            "topic": or_null,
            "key": or_null,
            "number": {"type": ["integer", "null"]},
            "delivery_min": _WHOLE,
            "delivery_max": {"type": ["integer", "null"]},
        }
    )
    topology = _object(
        {
            "brokers": {**_TEXTS, "minItems": 1},
            "topics": {
                "type": "array",
                "items": _object({"name": _TEXT, "queues": _WHOLE}, ("name", "queues")),
            },
            "groups": _TEXTS,
        }
    )
    client = _object(
        {"id": _TEXT, "kind": {"enum": list(CLIENT_KINDS)}, "group": _TEXT, "topics": _TEXTS},
        ("id", "kind"),
    )
    config = _object({f.name: _TEXT if f.type == "str" else _ANY_WHOLE for f in fields(Config)})
    found = _object(
        {
            "schema": {"const": PLAN_SCHEMA},
            "seed": _WHOLE,
            "topology": topology,
            "config": config,
            "clients": {"type": "array", "items": client},
            "actions": {"type": "array", "items": {"oneOf": [_action(verb) for verb in VERBS]}},
            "listener": {"type": "array", "items": rule},
            "until_ms": _WHOLE,
            "settle_ms": _WHOLE,
            "drain": _FLAG,
            "steps": {
                "type": "array",
                "items": {"oneOf": [_step(verb) for verb in (*FAULTS, *MOVES)]},
            },
        },
        ("schema",),
    )
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": PLAN_SCHEMA, **found}
