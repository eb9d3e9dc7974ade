"""Small libraries are compiled and tried before they count as there, and a process may be told by several of them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.parts import preload, troubled_disk, wall_clock
from conformance.parts.preload import Told, environment_of, said_by

LIBRARIES = (wall_clock.LIBRARY, troubled_disk.LIBRARY)
WHY_NOT = next((why for each in LIBRARIES if (why := each.why_not()) is not None), None)
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
AHEAD_NS = 10**18
BOTH = "import os, time; print(time.time_ns() > 2 * 10**18, os.statvfs('/').f_bavail)"


def test_without_a_compiler_it_says_what_mends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INORDER_TOOLS", str(tmp_path))
    monkeypatch.setattr(preload, "COMPILERS", ("no-such-compiler",))
    for library in LIBRARIES:
        assert "apt-get install gcc libc6-dev" in str(library.why_not())


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.name)
def test_what_a_compiler_makes_of_it_is_tried_before_it_counts(
    library: preload.Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library that changes nothing is none."""
    source = tmp_path / "idle.c"
    source.write_text("int nothing;\n")
    monkeypatch.setenv("INORDER_TOOLS", str(tmp_path))
    idle = replace(library, source=source)
    assert idle.why_not() == "a process that was given one did not see it"
    assert list((tmp_path / "bin").iterdir()) == []


def test_a_process_is_told_by_several_and_keeps_those_that_were_loaded_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_PRELOAD", "libc.so.6")
    clock, disk = (Told(library, tmp_path) for library in LIBRARIES)
    clock.put(0, AHEAD_NS)
    disk.put(0, 1)
    assert said_by(BOTH, clock, disk) == ["True", "0"]
    assert environment_of(clock, disk)["LD_PRELOAD"].split(":")[-1] == "libc.so.6"
    for told in (clock, disk):
        told.close()


def test_who_is_told_nothing_has_our_environment() -> None:
    assert {**os.environ, **environment_of()} == dict(os.environ)
