"""The digest of code."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from specs import fingerprint
from specs.fingerprint import code_digest


def test_the_digest_of_code_knows_content_and_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled files are no code."""
    monkeypatch.setattr(fingerprint, "ROOT", tmp_path)
    (tmp_path / "room" / "__pycache__").mkdir(parents=True)
    (tmp_path / "room" / "a.py").write_text("a = 1\n")
    seen = [fresh_digest("room")]
    (tmp_path / "room" / "__pycache__" / "a.pyc").write_bytes(b"x")
    assert fresh_digest("room") == seen[0]
    (tmp_path / "room" / "a.py").write_text("a = 2\n")
    seen.append(fresh_digest("room"))
    os.rename(tmp_path / "room" / "a.py", tmp_path / "room" / "b.py")
    seen.append(fresh_digest("room"))
    assert len(set(seen)) == 3
    with pytest.raises(ValueError, match="no elsewhere"):
        fresh_digest("elsewhere")


def fresh_digest(place: str) -> str:
    code_digest.cache_clear()
    found = code_digest(place)
    code_digest.cache_clear()
    return found
