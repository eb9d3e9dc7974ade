"""The JSON schema of plan v2, made from the plan's own model; `specs/schemas/plan.v2.json` is its copy."""

from __future__ import annotations

from typing import Any

from specs.plan.plan import PLAN_SCHEMA, Plan
from specs.reading import document_schema


def plan_schema() -> dict[str, Any]:
    """JSON schema, draft 2020-12."""
    return document_schema(Plan, PLAN_SCHEMA)
