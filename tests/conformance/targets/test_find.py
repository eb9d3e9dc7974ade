"""How a target is found by its name."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from conformance.targets import base
from conformance.targets.base import find, names
from specs.errors import UsageError


def test_an_unknown_name_is_told_with_what_was_probably_meant() -> None:
    with pytest.raises(UsageError, match="did you mean reference"):
        find("referense")
    assert {"reference", "reference+tcp", "mutant+tcp", "rocketmq"} <= set(names())


def test_a_factory_that_makes_no_target_is_told_by_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Or it would fail at the first thing that it has not, in the middle of a run."""
    point = EntryPoint("mine", "builtins:str", base.ENTRY_POINTS)
    monkeypatch.setattr(base, "entry_points", lambda group: [point])
    with pytest.raises(
        UsageError, match="builtins:str made a str for 'mine:7', which is no Target"
    ):
        find("mine:7")
