"""The JSON schemas of what we print and save, by the name that every such object carries in `schema`.

`python -m conformance.reports.schemas` writes them into `specs/schemas/`, where other programs find them.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from conformance.reports.occasion import OCCASION_SCHEMA, occasion_schema
from conformance.reports.power import POWER_SCHEMA, power_schema
from conformance.reports.statement import STATEMENT_SCHEMA
from specs.errors import SpecError
from specs.verdicts.schema import row_schema, verdict_schema
from specs.verdicts.verdict import VERDICT_SCHEMA, ClauseVerdict, RunVerdict

LIST_SCHEMA = "inorder/list/v1"
CASE_SCHEMA = "inorder/case/v1"
MATRIX_SCHEMA = "inorder/mutants/v1"
SHRINK_SCHEMA = "inorder/shrink/v1"
PROGRAM_SCHEMA = "inorder/program/v1"
CROSSING_SCHEMA = "inorder/crossing/v1"
DIFF_SCHEMA = "inorder/diff/v1"
IMPORT_SCHEMA = "inorder/import/v1"
HUNT_SCHEMA = "inorder/hunt/v1"


@cache
def schema(name: str) -> dict[str, Any]:
    """The schema of that name. SpecError for one that is not printed here."""
    if name not in _MADE_BY:
        raise SpecError(f"there is no schema of the name {name}")
    return _MADE_BY[name]()


def crossing_schema() -> dict[str, Any]:
    """What a run of the matrix came to: each broker with each client; draft 2020-12."""
    text, whole = _TEXT, _COUNT
    deviation = {
        "clause": text,
        "title": text,
        "violations": whole,
        "opportunities": whole,
        "seen": {**text, "description": "The first of them, in words."},
        "known": {**text, "description": "Why it is known; empty for what nobody knew."},
        "source": text,
    }
    cell = {
        "target": text,
        "broker": text,
        "client": text,
        "profile": text,
        "verdict": {"enum": [each.value for each in RunVerdict]},
        "counts": {
            "type": "object",
            "required": [each.value for each in ClauseVerdict],
            "additionalProperties": False,
            "properties": {each.value: whole for each in ClauseVerdict},
        },
        "deviations": {"type": "array", "items": _object(deviation)},
        "rounds": whole,
        "seed": whole,
        "date": text,
        "clauses": {
            "type": "object",
            "description": "By id, what each clause came to; missing in files of earlier versions.",
            "additionalProperties": {"enum": [each.value for each in ClauseVerdict]},
        },
    }
    required = [name for name in cell if name != "clauses"]
    feature = {
        "feature": text,
        "direction": {**text, "description": "Whose client, and whose broker."},
        "works": {"type": "boolean"},
        "seen": {**text, "description": "What showed it, or what was missing."},
        "date": text,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": CROSSING_SCHEMA,
        "title": "The matrix: every broker with every client",
        **_object(
            {
                "schema": {"const": CROSSING_SCHEMA},
                "cells": {"type": "array", "items": {**_object(cell), "required": required}},
                "features": {"type": "array", "items": _object(feature)},
            }
        ),
    }


def diff_schema() -> dict[str, Any]:
    """What `inorder diff --format json` prints; draft 2020-12."""
    side = _object(
        {
            "run": _TEXT,
            "target": _TEXT,
            "profile": _TEXT,
            "seed": {"type": "integer"},
            "verdict": {"enum": [each.value for each in RunVerdict]},
            "parties": {"type": "object", "additionalProperties": _TEXT},
        }
    )
    words = {"enum": ["not judged", *(each.value for each in ClauseVerdict)]}
    change = _object(
        {
            "clause": _TEXT,
            "title": _TEXT,
            "finding": {**_TEXT, "description": "Its public name, where the change is about one."},
            "before": words,
            "after": words,
        }
    )
    changes = {"type": "array", "items": change}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": DIFF_SCHEMA,
        "title": "Two verdicts, compared",
        **_object(
            {
                "schema": {"const": DIFF_SCHEMA},
                "before": side,
                "after": side,
                "broke": changes,
                "perhaps": changes,
                "mended": changes,
                "no_longer": changes,
                "newly": changes,
                "checks": {**_TEXTS, "description": "What leaves a run open as a whole."},
            }
        ),
    }


def list_schema() -> dict[str, Any]:
    """What every `--format json` of a command that lists things prints; draft 2020-12."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": LIST_SCHEMA,
        "title": "A list of things, each an object",
        "type": "object",
        "required": ["schema", "items"],
        "additionalProperties": False,
        "properties": {
            "schema": {"const": LIST_SCHEMA},
            "items": {
                "type": "array",
                "items": {
                    "type": "object",
                    "anyOf": [
                        {"required": ["name"]},
                        {"required": ["id"]},
                        {"required": ["verdict", "schema"]},
                    ],
                },
            },
        },
    }


def program_schema() -> dict[str, Any]:
    """What a machine wrote down, and what `replay` prints of it; draft 2020-12."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": PROGRAM_SCHEMA,
        "title": "A program: the steps of a machine, in its words",
        "type": "object",
        "additionalProperties": False,
        "required": ["schema", "machine", "mutant", "steps"],
        "properties": {
            "schema": {"const": PROGRAM_SCHEMA},
            "machine": {"type": "string"},
            "mutant": {
                "type": ["string", "null"],
                "description": "Whose cores ran; null for the reference.",
            },
            "steps": {
                "type": "array",
                "items": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["do", "args"],
                    "properties": {"do": {"type": "string"}, "args": {"type": "object"}},
                },
            },
            "disagreement": {
                "type": ["string", "null"],
                "description": "What was seen and what was allowed; null where system and model agree.",
            },
        },
    }


def case_schema() -> dict[str, Any]:
    """What `inorder replay CASE --format json` prints; draft 2020-12."""
    lines = {"type": "array", "items": {"type": "string"}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": CASE_SCHEMA,
        "title": "A case, played: what its file expects and what happened",
        "type": "object",
        "required": ["schema", "case", "why", "target", "as_expected", "blocks"],
        "additionalProperties": False,
        "properties": {
            "schema": {"const": CASE_SCHEMA},
            "case": {"type": "string", "description": "Topic and name."},
            "why": {"type": "string"},
            "target": {"type": "string"},
            "as_expected": {"type": "boolean"},
            "blocks": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["line", "commands", "expected", "happened", "as_expected"],
                    "additionalProperties": False,
                    "properties": {
                        "line": {"type": "integer", "minimum": 1},
                        "commands": lines,
                        "expected": lines,
                        "happened": lines,
                        "as_expected": {"type": "boolean"},
                    },
                },
            },
        },
    }


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": [*properties],
        "additionalProperties": False,
        "properties": properties,
    }


_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_COUNT = {"type": "integer", "minimum": 0}
_SECONDS = {"type": "number", "minimum": 0}


def matrix_schema() -> dict[str, Any]:
    """What `inorder mutants --format json` prints and keeps as `matrix.json`; draft 2020-12."""
    count_or_none = {**_COUNT, "type": ["integer", "null"]}
    size = {
        **_object({"rows": _COUNT, "actions": _COUNT, "rules": _COUNT}),
        "type": ["object", "null"],
    }
    mutant = _object(
        {
            "name": _TEXT,
            "bug": _TEXT,
            "oracle": {
                "enum": ["history", "model", "vectors", "leased"],
                "description": "What kills it: a clause in a history; a wire rule; a table.",
            },
            "clause": {**_TEXT, "description": "The clause or wire rule that has to kill it."},
            "killed": {"type": "boolean", "description": "By that clause."},
            "refuted": {
                **_TEXTS,
                "description": "All that the run refutes; of a survivor, all that any run refuted.",
            },
            "examples": {
                **_COUNT,
                "description": "Generated runs, up to and with the one that kills.",
            },
            "found": {**size, "description": "The run that kills, as it was found."},
            "shrunk": {**size, "description": "The same, shrunk."},
            "shrunk_refuted": _TEXTS,
            "witness": {"type": "array", "items": {"$ref": "#/$defs/row"}},
            "witness_size": count_or_none,
            "minimal": {
                "type": ["boolean", "null"],
                "description": "Refuted alone, and not without any one of its events; null without a witness.",
            },
            "explanation": _TEXT,
            "search_s": _SECONDS,
            "shrink_s": _SECONDS,
            "cpu_s": _SECONDS,
        }
    )
    summary = {
        "mutants": _COUNT,
        "killed": _COUNT,
        "survivors": _TEXTS,
        "not_good": {
            **_TEXTS,
            "description": "Survivors, and those whose witness is not minimal or too large.",
        },
        "witness_median": {"type": ["number", "null"]},
        "witness_max": count_or_none,
        "cpu_s": _SECONDS,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": MATRIX_SCHEMA,
        "title": "The kill matrix: every known bug, and how it was found",
        "$defs": {"row": row_schema()},
        **_object(
            {
                "schema": {"const": MATRIX_SCHEMA},
                "seed": _COUNT,
                "examples": {
                    **_COUNT,
                    "description": "The budget of generated runs for each mutant.",
                },
                "workers": _COUNT,
                "elapsed_s": _SECONDS,
                "summary": _object(summary),
                "mutants": {"type": "array", "items": mutant},
                "tool": {"type": "object", "additionalProperties": _TEXT},
            }
        ),
    }


def shrink_schema() -> dict[str, Any]:
    """What `inorder shrink --format json` prints; draft 2020-12."""
    names = ("rows", "actions", "faults", "messages", "rules", "clients", "brokers", "queues")
    size = _object(dict.fromkeys(names, _COUNT))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SHRINK_SCHEMA,
        "title": "A run, made smaller while the same clause stays refuted",
        **_object(
            {
                "schema": {"const": SHRINK_SCHEMA},
                "run": _TEXT,
                "out": _TEXT,
                "clause": _TEXT,
                "before": size,
                "after": size,
                "tried": {**_COUNT, "description": "Plans that were run."},
                "explanation": _TEXT,
                "replay": _TEXT,
            }
        ),
    }


def hunt_schema() -> dict[str, Any]:
    """`hunt.json` in the folder of `inorder hunt`; draft 2020-12."""
    share = {"type": "number", "minimum": 0, "maximum": 1}
    rate = _object(
        {
            "clauses": _TEXTS,
            "tries": {"type": "array", "items": {"type": "boolean"}},
            "broken": _COUNT,
            "of": _COUNT,
            "interval": {"type": "array", "items": share, "minItems": 2, "maxItems": 2},
            "confidence": share,
        }
    )
    find = {
        "clause": _TEXT,
        "folder": _TEXT,
        "example": {**_COUNT, "description": "The number of the first example that broke it."},
        "faults": {**_COUNT, "description": "That are left after it was made small."},
        "rate": rate,
        "replay": {"type": ["string", "null"]},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": HUNT_SCHEMA,
        "title": "What a hunt reached and found",
        **_object(
            {
                "schema": {"const": HUNT_SCHEMA},
                "target": _TEXT,
                "seed": _COUNT,
                "examples": _COUNT,
                "states": {**_COUNT, "description": "Of lanes, under faults."},
                "curve": {
                    "type": "array",
                    "items": _COUNT,
                    "description": "After each example, how many states were reached by then.",
                },
                "saturation": _TEXT,
                "failed": _TEXTS,
                "finds": {"type": "array", "items": _object(find)},
            }
        ),
    }


def import_schema() -> dict[str, Any]:
    """`import.json` of an imported history, and what `inorder import --format json` prints; draft 2020-12."""
    clause = {
        "id": _TEXT,
        "title": _TEXT,
        "can_be": {
            "enum": ["decided", "at most possible", "hardly at stake", "not recorded", "not judged"]
        },
        "why": _TEXT,
        "missing_kinds": _TEXTS,
        "missing_columns": _TEXTS,
        "missing_settings": _TEXTS,
    }
    by_kind = {"type": "object", "additionalProperties": _COUNT}
    told = {**_COUNT, "description": "Rows in which the column has a value."}
    kind = {"rows": _COUNT, "values": {"type": "object", "additionalProperties": told}}
    repeated = {"line": _COUNT, "same_as_line": _COUNT}
    bad = {"line": _COUNT, "why": {**_TEXT, "description": "Left out where words were hashed."}}
    lacking = {
        "log": {**_COUNT, "description": "The first log is 1."},
        "columns": {**_TEXTS, "description": "Left out where words were hashed."},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": IMPORT_SCHEMA,
        "title": "What became of a log's lines, and what can be judged of it",
        **_object(
            {
                "schema": {"const": IMPORT_SCHEMA},
                "lines": _COUNT,
                "rows": _COUNT,
                "not_in_the_form_of_a_line": _COUNT,
                "of_no_event": _COUNT,
                "first_of_no_event": {
                    "type": ["integer", "null"],
                    "description": "The first line that no event of the map speaks of.",
                },
                "bad": _COUNT,
                "bad_lines": {"type": "array", "items": {**_object(bad), "required": ["line"]}},
                "never_ended": by_kind,
                "ends_without_begin": by_kind,
                "ends_without_begin_in_the_midst": {
                    **by_kind,
                    "description": "Of these, where the log had told before of what that client began there.",
                },
                "twice": {**_COUNT, "description": "Lines that repeat another, byte for byte."},
                "twice_lines": {"type": "array", "items": _object(repeated)},
                "logs_that_lack_columns": {
                    "type": "array",
                    "items": {**_object(lacking), "required": ["log"]},
                },
                "gaps": {
                    **_TEXTS,
                    "description": "Kinds of which rows are missing, as of lines that were passed over.",
                },
                "texts_of_many_lines": _COUNT,
                "rows_of_one_time": _COUNT,
                "newest_first": {"type": "boolean"},
                "hashed": {"type": "boolean"},
                "assumed": _TEXTS,
                "resolution_us": {**_COUNT, "description": "The step of the log's times."},
                "settings_finer_than_the_times": _TEXTS,
                "kinds": {"type": "object", "additionalProperties": _object(kind)},
                "profile": _TEXT,
                "clauses": {"type": "array", "items": _object(clause)},
            }
        ),
    }


def statement_schema() -> dict[str, Any]:
    """What `inorder statement --format json` prints; draft 2020-12."""
    texts_by_name = {"type": "object", "additionalProperties": _TEXT}
    count_or_none = {**_COUNT, "type": ["integer", "null"]}
    share = {"type": "number", "minimum": 0, "maximum": 1}
    run = _object(
        {
            "folder": _TEXT,
            "run": _TEXT,
            "seed": {"type": "integer"},
            "verdict": {"enum": [each.value for each in RunVerdict]},
            "examples": {**count_or_none, "description": "Generated runs of a search, where told."},
            "events": count_or_none,
            "levels": _TEXTS,
            "cut_short": {"type": "boolean"},
            "replay": _TEXT,
        }
    )
    allowance = _object(
        {
            "by": {"enum": ["profile", "baseline"]},
            "findings": {**_TEXTS, "description": "None: whatever breaks the clause."},
            "reason": _TEXT,
            "source": {**_TEXT, "description": "Of a profile: where it was told or measured."},
            "owner": {**_TEXT, "description": "Of a baseline, as what follows."},
            "issue": _TEXT,
            "expires": {**_TEXT, "description": "The last day on which it is let pass."},
        }
    )
    such = {
        **_object(
            {
                "bugs": _COUNT,
                "found": {**_COUNT, "description": "By every search for them."},
                "slowest": {**_COUNT, "description": "The latest run that showed one."},
                "chance": {
                    **_object({"runs": _COUNT, "estimate": share, "low": share, "high": share}),
                    "description": "That so many runs show one of them, and its interval of 95 %.",
                },
            }
        ),
        "type": ["object", "null"],
        "description": "Of the searches that these runs were; null where they were none.",
    }
    clause = _object(
        {
            "id": _TEXT,
            "title": _TEXT,
            "promise": _TEXT,
            "sources": _TEXTS,
            "party": _TEXT,
            "implementations": _TEXTS,
            "verdict": {"enum": [each.value for each in ClauseVerdict]},
            "opportunities": {**_COUNT, "description": "How often it was at stake, in all runs."},
            "floor": _COUNT,
            "violations": _COUNT,
            "findings": _TEXTS,
            "happened": _TEXT,
            "reason": _TEXT,
            "allowed": {"type": "array", "items": allowance},
            "rate_seen": {
                **share,
                "type": ["number", "null"],
                "description": "Of an upheld clause: this rate of violations would have shown with 95 %.",
            },
            "planted": {
                **_object({"bugs": _COUNT, "found": _COUNT, "in_such_searches": such}),
                "description": "Bugs that were planted in our reference for this clause to find.",
            },
            "replay": _TEXT,
        }
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": STATEMENT_SCHEMA,
        "title": "A conformance statement: what a system was found to keep, and on how much evidence",
        **_object(
            {
                "schema": {"const": STATEMENT_SCHEMA},
                "verdict": {"enum": [each.value for each in RunVerdict]},
                "sentence": _TEXT,
                "date": {**_TEXT, "format": "date"},
                "system": _object({"target": _TEXT, "parties": texts_by_name}),
                "profile": _TEXT,
                "tool": {**texts_by_name, "description": "What judged: version, code, engine."},
                "written_by": {**texts_by_name, "description": "What wrote the statement."},
                "runs": {"type": "array", "minItems": 1, "items": run},
                "counts": _object({each.value: _COUNT for each in ClauseVerdict}),
                "clauses": {"type": "array", "items": clause},
                "checks": {
                    "type": "array",
                    "items": _object({"id": _TEXT, "title": _TEXT, "detail": _TEXT}),
                    "description": "Of the runs themselves, those that failed.",
                },
            }
        ),
    }


_MADE_BY = {
    VERDICT_SCHEMA: verdict_schema,
    LIST_SCHEMA: list_schema,
    CASE_SCHEMA: case_schema,
    MATRIX_SCHEMA: matrix_schema,
    SHRINK_SCHEMA: shrink_schema,
    PROGRAM_SCHEMA: program_schema,
    CROSSING_SCHEMA: crossing_schema,
    DIFF_SCHEMA: diff_schema,
    IMPORT_SCHEMA: import_schema,
    HUNT_SCHEMA: hunt_schema,
    OCCASION_SCHEMA: occasion_schema,
    POWER_SCHEMA: power_schema,
    STATEMENT_SCHEMA: statement_schema,
}
NAMES = tuple(_MADE_BY)


def text_of(name: str) -> str:
    """The schema as its file `specs/schemas/KIND.vN.json` holds it."""
    return json.dumps(schema(name), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def file_of(name: str) -> str:
    """`inorder/verdict/v1` → `verdict.v1.json`."""
    _, kind, version = name.split("/")
    return f"{kind}.{version}.json"


def write_all(folder: Path) -> None:
    """Write the schemas of this module's names into `folder`."""
    for name in NAMES:
        (folder / file_of(name)).write_text(text_of(name), encoding="utf-8")


if __name__ == "__main__":
    write_all(Path(__file__).resolve().parents[2] / "specs" / "schemas")
