"""Documentation and schemas that are made from the specification: `python -m specs.docs` writes them all.

They lie in the repository, so that they can be read there; a test says when one is stale.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from specs.docs.clause_pages import clause_pages, index_page
from specs.docs.faults import faults_page
from specs.docs.history import history_page
from specs.docs.schemas import history_row_schema
from specs.docs.words import glossary_page
from specs.history.runinfo import run_schema
from specs.plan.schema import plan_schema
from specs.verdicts.online import online_schema
from specs.verdicts.schema import verdict_schema


def schema_text(schema: Mapping[str, Any]) -> str:
    """A schema as its file holds it."""
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


DOCUMENTS: Mapping[str, Callable[[], str]] = {
    "docs/clauses.md": index_page,
    **clause_pages(),
    "docs/faults.md": faults_page,
    "docs/glossary.md": glossary_page,
    "docs/history.md": history_page,
    "specs/schemas/history-row.v2.json": lambda: schema_text(history_row_schema()),
    "specs/schemas/online.v1.json": lambda: schema_text(online_schema()),
    "specs/schemas/plan.v2.json": lambda: schema_text(plan_schema()),
    "specs/schemas/run.v2.json": lambda: schema_text(run_schema()),
    "specs/schemas/verdict.v1.json": lambda: schema_text(verdict_schema()),
}
"""What is generated, by its path in the repository."""


def write_all(root: Path) -> list[str]:
    """Write every document below the repository's root; returns those that were stale."""
    stale = []
    for path, make in DOCUMENTS.items():
        target, text = root / path, make()
        if not target.is_file() or target.read_text(encoding="utf-8") != text:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
            stale.append(path)
    return stale
