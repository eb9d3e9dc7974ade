"""The JSON schema of a history row, made from its columns."""

from __future__ import annotations

from typing import Any

from specs.reading import DRAFT
from specs.verdicts.schema import row_schema

ROW_SCHEMA = "inorder/history-row/v2"


def history_row_schema() -> dict[str, Any]:
    """A line of `history/*.jsonl`: a row's columns, the empty ones left out."""
    return {"$schema": DRAFT, "$id": ROW_SCHEMA, "title": "One row of a history", **row_schema()}
