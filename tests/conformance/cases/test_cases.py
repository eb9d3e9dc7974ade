"""Every case gives the answers that stand in its file; `pytest --rewrite` writes them there."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.cases.folder import FOLDER, case_files
from conformance.cases.play import play
from conformance.cases.text import read_case

FILES = case_files()


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(FOLDER)) for path in FILES])
def test_case(path: Path, pytestconfig: pytest.Config) -> None:
    """What happens is what the file says, to the letter."""
    rewrite = pytestconfig.getoption("--rewrite")
    played = play(read_case(path, unanswered=rewrite))
    if rewrite:
        if path.read_text(encoding="utf-8") != played.text:
            path.write_text(played.text, encoding="utf-8")
        return
    assert path.read_text(encoding="utf-8") == played.text
