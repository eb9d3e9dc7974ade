"""A right driver with one line altered: what each command says of it. A dozen cells here; the whole grid is a command's
(`python -m inorder.evidence.wrong_drivers`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.drivers.protocol import EVENTS
from inorder.evidence.wrong_drivers.__main__ import main
from inorder.evidence.wrong_drivers.cells import (
    ANSWERS,
    CHANGED,
    WRONG_DRIVERS,
    WrongDriver,
    tried,
)

SAMPLE = {
    ("left out", "committing"): ("smoke", "which no `committing` has begun"),
    ("left out", "read"): ("smoke", "did not answer read in 15 s"),
    ("doubled", "committed"): ("smoke", "a second time"),
    ("doubled", "added"): ("smoke", "each work on a lane is added once"),
    ("swapped", "sent"): ("smoke", ""),
    ("wrong type", "hello"): ("smoke", "must be a whole number"),
    ("too large", "read"): ("smoke", "numbers have 64 bits"),
    ("too late", "delivered"): ("smoke", "after the line arrived"),
    ("killed", "start"): ("smoke", "died (SIGKILL)"),
    ("flooding", "locking"): ("smoke", "which has not ended yet"),
    ("killed", "delivered"): ("conform", "died (SIGKILL)"),
    ("left out", "delivered"): ("chaos", "which no `delivered` has begun"),
}
"""By change and kind of line: which command tries it, and what its sentence says."""


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("change", "kind"), SAMPLE)
def test_a_wrong_driver_is_told_in_a_sentence(tmp_path: Path, change: str, kind: str) -> None:
    command, said = SAMPLE[change, kind]
    wrong = WrongDriver(change, kind)
    told = tried(wrong, command, tmp_path)
    assert told.met, told
    assert told.is_right(wrong), told
    assert said in told.sentence


@pytest.mark.long
@pytest.mark.timeout(120)
@pytest.mark.parametrize("wrong", WRONG_DRIVERS, ids=lambda wrong: wrong.name.replace(" ", "-"))
def test_smoke_says_of_each_what_is_wrong(tmp_path: Path, wrong: WrongDriver) -> None:
    told = tried(wrong, "smoke", tmp_path)
    assert told.met, told
    assert told.is_right(wrong), told
    assert told.sentence or told.code == 0


def test_the_rule_makes_sixty_of_them() -> None:
    assert len(WRONG_DRIVERS) == len(set(WRONG_DRIVERS)) == 60
    kinds = {kind for kinds in CHANGED.values() for kind in kinds}
    assert kinds <= {*EVENTS, *ANSWERS}


def test_the_grid_is_gone_on_with(tmp_path: Path) -> None:
    """A cell that is made is kept, and the table holds it."""
    words = ["committed too late", "--command", "smoke", "--out", str(tmp_path / "grid")]
    first, again = (CliRunner().invoke(main, words) for _ in range(2))
    assert (first.exit_code, again.exit_code) == (0, 0), first.output
    assert "old and kept" in again.stderr
    table = (tmp_path / "grid" / "table.md").read_text(encoding="utf-8")
    assert "| committed too late | smoke | yes | 64 |" in table
