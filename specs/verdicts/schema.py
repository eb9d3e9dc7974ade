"""The JSON schema of verdict v1, made from the verdict's own words; `specs/schemas/verdict.v1.json` is its copy."""

from typing import Any

from specs.history.columns import COLUMNS
from specs.verdicts.verdict import VERDICT_SCHEMA, ClauseVerdict, Ended, NotJudged, RunVerdict
from specs.vocabulary import Kind, Level, Outcome, Party

_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_COUNT = {"type": "integer", "minimum": 0}
_WORDS = {"kind": Kind, "level": Level, "outcome": Outcome}


def _object(properties: dict[str, Any], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [name for name in properties if name not in optional],
        "properties": properties,
    }


def row_schema() -> dict[str, Any]:
    """A history row as JSON: its columns, without the empty ones."""
    properties: dict[str, Any] = {}
    for column in COLUMNS:
        kind: dict[str, Any] = {
            "type": "integer" if column.type == "int64" else "string",
            "description": column.doc,
        }
        if column.name in _WORDS:
            kind["enum"] = [word.value for word in _WORDS[column.name]]
        properties[column.name] = kind
    return _object(properties, tuple(column.name for column in COLUMNS if not column.required))


def verdict_schema() -> dict[str, Any]:
    """JSON schema, draft 2020-12."""
    clause = _object(
        {
            "id": {"type": "string", "pattern": "^[A-Z]{3}-[1-9][0-9]*$"},
            "title": _TEXT,
            "statement": _TEXT,
            "verdict": {"enum": [word.value for word in ClauseVerdict]},
            "party": {"enum": [word.value for word in Party]},
            "implementations": _TEXTS,
            "opportunities": _COUNT,
            "floor": _COUNT,
            "violations": _COUNT,
            "findings": _TEXTS,
            "witness": {"type": "array", "items": {"$ref": "#/$defs/row"}, "maxItems": 10},
            "explanation": _TEXT,
            "reason": _TEXT,
            "not_judged": {
                "enum": [word.value for word in NotJudged],
                "description": "Why nothing came of it; only where that is so.",
            },
        },
        ("not_judged",),
    )
    further = _object({"runs": _COUNT, "most": _COUNT, "sought": _TEXTS})
    growth = {
        "type": "array",
        "items": {"type": "array", "items": _COUNT, "minItems": 2, "maxItems": 2},
        "description": "Some points of [runs, states that they had reached].",
    }
    coverage = _object(
        {
            "states": _COUNT,
            "runs": _COUNT,
            "new_at_the_end": _COUNT,
            "further": further,
            "growth": growth,
        },
        ("further", "growth"),
    )
    search = _object(
        {
            "runs": _COUNT,
            "most": {**_COUNT, "type": ["integer", "null"]},
            "ended": {"enum": [word.value for word in Ended]},
            "budget_s": {"type": ["number", "null"]},
            "workers": _COUNT,
            "kept": {"type": "object", "additionalProperties": _TEXT},
        }
    )
    day = {"type": "string", "format": "date"}
    known = _object(
        {
            "clause": _TEXT,
            "finding": {**_TEXT, "description": "Its public name; empty for a wire rule."},
            "reason": _TEXT,
            "owner": _TEXT,
            "issue": _TEXT,
            "expires": {**day, "description": "The last day on which it is let pass."},
            "state": {
                "enum": ["seen", "not_seen", "not_told", "expired"],
                "description": "not_seen: although the clause was at stake. not_told: this run can't say.",
            },
        }
    )
    baseline = _object({"file": _TEXT, "today": day, "known": {"type": "array", "items": known}})
    exposure = _object(
        {
            "clause": {
                **_TEXT,
                "description": "Whose promise it is; after such a step it claims nothing.",
            },
            "title": _TEXT,
            "stepped": {**_TEXT, "description": "Whose wall clock was set, and by how much."},
            "after_ms": {**_COUNT, "description": "From the step to what broke the promise."},
            "explanation": _TEXT,
            "times": _COUNT,
            "rows": {"type": "array", "items": {"$ref": "#/$defs/row"}},
        }
    )
    check = _object(
        {"id": _TEXT, "title": _TEXT, "ok": {"type": ["boolean", "null"]}, "detail": _TEXT}
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": VERDICT_SCHEMA,
        "title": "What a run of the suite, or the check of a history, came to",
        "$defs": {"row": row_schema()},
        **_object(
            {
                "schema": {"const": VERDICT_SCHEMA},
                "verdict": {"enum": [word.value for word in RunVerdict]},
                "target": _TEXT,
                "parties": {"type": "object", "additionalProperties": _TEXT},
                "levels": {"type": "array", "items": {"enum": [word.value for word in Level]}},
                "profile": _TEXT,
                "seed": {"type": "integer"},
                "run": _TEXT,
                "replay": {"type": ["string", "null"]},
                "cut": _TEXTS,
                "faults": {
                    "type": "array",
                    "items": _object(
                        {
                            "fault": _TEXT,
                            "effective": {"type": "boolean"},
                            "from_ms": {"type": "integer"},
                            "to_ms": {"type": ["integer", "null"]},
                            "evidence": _TEXT,
                            "lanes": _COUNT,
                            "recovered_ms": {"type": ["integer", "null"]},
                        },
                        ("from_ms", "to_ms", "evidence", "lanes", "recovered_ms"),
                    ),
                },
                "met": {"type": "array", "items": check},
                "clauses": {"type": "array", "items": clause},
                "tool": {"type": "object", "additionalProperties": _TEXT},
                "coverage": coverage,
                "search": search,
                "baseline": baseline,
                "exposures": {
                    "type": "array",
                    "items": exposure,
                    "description": "What a stepped wall clock let happen; it changes no verdict.",
                },
            },
            ("coverage", "search", "baseline", "exposures"),
        ),
    }
