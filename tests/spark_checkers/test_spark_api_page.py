"""The examples of docs/spark-api.md, run as they stand."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import SPARK

pytestmark = [*SPARK, pytest.mark.timeout(900)]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "spark-api.md"
BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", re.DOTALL)


def test_the_examples_print_what_the_page_says(session: Any) -> None:
    names: dict[str, object] = {"__name__": "example"}
    examples = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert len(examples) >= 3
    for source, expected in examples:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(source, str(PAGE), "exec"), names)
        assert printed.getvalue() == expected
