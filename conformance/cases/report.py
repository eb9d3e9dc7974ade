"""A played case, for people and for programs."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any

from conformance.cases.play import Played
from conformance.cases.text import MIDDLE, Block
from conformance.reports.schemas import CASE_SCHEMA


def as_json(played: Played, target: str) -> dict[str, Any]:
    """An object of the schema inorder/case/v1."""
    pairs = zip(played.case.blocks, played.answers, strict=True)
    return {
        "schema": CASE_SCHEMA,
        "case": played.case.name,
        "why": played.case.why,
        "target": target,
        "as_expected": not played.differences,
        "blocks": [
            {
                "line": block.number,
                "commands": [line.text for line in block.commands],
                "expected": list(block.expected or ()),
                "happened": list(answer),
                "as_expected": block.expected == answer,
            }
            for block, answer in pairs
        ],
    }


def as_text(played: Played) -> str:
    """The case with what happened; where that differs, `-` is expected and `+` happened. Ends with the verdict."""
    case = played.case
    lines = [*case.header, ""]
    for block, answer in zip(case.blocks, played.answers, strict=True):
        lines += [
            *block.remarks,
            *(line.text for line in block.commands),
            MIDDLE,
            *_marked(block, answer),
            "",
        ]
    count = len(played.differences)
    if count:
        first = played.differences[0].block.number
        many = "one answer is" if count == 1 else f"{count} answers are"
        lines.append(
            f"{many} not as expected, the first in the block at line {first} of {case.path}"
        )
    else:
        lines.append("all as expected")
    return "\n".join(lines)


def _marked(block: Block, answer: tuple[str, ...]) -> Iterator[str]:
    expected = block.expected or ()
    if expected == answer:
        yield from answer
        return
    for line in difflib.ndiff(expected, answer):
        if not line.startswith("?"):
            yield line.rstrip()
