"""A sample of changed operators as cells, and how one is made: no other process can import that from `__main__`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from pathlib import Path
from random import Random

from inorder.evidence import grid
from inorder.evidence.operators.edits import Change, Place, again, changed, places
from inorder.evidence.operators.histories import prepared
from inorder.evidence.operators.pools import concerned, left_out, modules, source_of
from inorder.evidence.operators.questions import questions_of
from inorder.evidence.operators.trial import Noticed, noticed
from specs.fingerprint import code_digest

CODE = ("specs", "reference_impl", "conformance", "spark_checkers", "inorder/evidence/operators")
"""What becomes of a change depends on it."""


def sample(count: int, seed: int) -> list[Change]:
    """So many places, drawn without putting back, each with one of its changes."""
    draw = Random(f"operators {seed}")
    known = [(module, place) for module in modules() for place in places_of(module)]
    chosen = draw.sample(known, min(count, len(known)))
    return [
        changed(text_of(module), module, place, draw.randrange(place.variants))[0]
        for module, place in chosen
    ]


@cache
def places_of(module: str) -> list[Place]:
    """Where a module can be changed."""
    return places(text_of(module), left_out(module))


def text_of(module: str) -> str:
    return source_of(module).read_text(encoding="utf-8")


def cells_of(count: int, seed: int) -> Iterator[grid.Cell]:
    """A cell for each change, with all that its fate depends on."""
    for change in sample(count, seed):
        key = {
            "change": asdict(change),
            "seed": seed,
            **grid.code_key(*CODE),
        }
        name = f"{change.module} {change.node} {change.variant}"
        yield grid.Cell("operators", name, key)


def suffer(cell: grid.Cell, store: Path | None = None) -> Noticed:
    """Make a cell: who notices the change. store: where the prepared histories are kept, too."""
    change = Change(**cell.key["change"])
    kept = store / f"histories-{code_digest(*CODE)}.pickle" if store is not None else None
    questions = questions_of(concerned(change.module), prepared(kept))
    return noticed(change.module, again(text_of(change.module), change), questions)
