"""Scenarios as somebody might write them by mistake: a plan comes of one, or a sentence and exit code 64."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from copy import deepcopy
from importlib import resources
from pathlib import Path
from random import Random
from typing import Any

import pytest

from chaos.runner import twin_plan
from chaos.scenario import load, names, scenario_of
from specs.errors import EXIT_UPHELD, EXIT_USAGE, InorderError, UsageError

TRIES = 2_500
OTHER_VALUES: tuple[Any, ...] = (
    *(0, -1, 1, 10**9, 2**31, 2**62, 1.5, float("nan"), True, False, "", "c1", "b0", "everybody"),
    *([], [1], [1, 2], [2, 1], [0, 10**12], ["a"], {}, {"a": 1}, "é" * 500),
)
WORDS = (
    *("client", "broker", "do", "for_ms", "ms", "percent", "alone", "request", "answer", "while"),
    *(
        "restart",
        "beside",
        "times",
        "after_messages",
        "at_work",
        "deadline_s",
        "silent",
        "synced",
        "error",
    ),
    *("consumers", "brokers", "queues", "keys", "messages", "pace_ms", "work_ms", "at_first"),
    *("flush", "broker_lease_ms", "max_reconsume_times", "persist_ms", "clauses", "backends"),
)
VERBS = (
    "pause",
    "crash",
    "start",
    "stop",
    "clock_step",
    "cut",
    "delay",
    "request_error",
    "no such",
)


def shipped() -> list[dict[str, Any]]:
    folder = resources.files("chaos") / "scenarios"
    return [tomllib.loads((folder / f"{name}.toml").read_text("utf-8")) for name in names()]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in entries:
        yield (*path, key)
        if isinstance(inner, dict | list):
            yield from places(inner, (*path, key))


def changed(scenario: dict[str, Any], draw: Random) -> dict[str, Any]:
    """With one to three entries left out, renamed, added or given another value."""
    result = deepcopy(scenario)
    for _ in range(draw.randint(1, 3)):
        *path, key = draw.choice(list(places(result)) or [("why",)])
        inner: Any = result
        for step in path:
            inner = inner[step]
        what = draw.choice(["leave out", "rename", "add", "verb", "value", "value"])
        if what == "leave out":
            inner.pop(key, None) if isinstance(inner, dict) else inner.pop(key)
        elif what == "rename" and isinstance(inner, dict):
            inner[draw.choice(WORDS)] = inner.pop(key, 1)
        elif what == "add" and isinstance(inner, dict):
            inner[draw.choice(WORDS)] = deepcopy(draw.choice(OTHER_VALUES))
        else:
            inner[key] = (
                draw.choice(VERBS) if what == "verb" else deepcopy(draw.choice(OTHER_VALUES))
            )
    return result


def exit_code_of(scenario: dict[str, Any]) -> int:
    """As the command line would end, were there nothing to run."""
    try:
        twin_plan(scenario_of("mine", scenario), seed=1)
    except InorderError as error:
        return error.exit_code
    return EXIT_UPHELD


def test_it_becomes_a_plan_or_is_told_in_a_sentence() -> None:
    """Before anything starts: whatever is wrong with it is found while it is read, and nothing else is raised."""
    draw = Random(7)
    codes = [exit_code_of(changed(scenario, draw)) for scenario in draw.choices(shipped(), k=TRIES)]
    assert set(codes) == {EXIT_UPHELD, EXIT_USAGE}
    assert codes.count(EXIT_USAGE) > TRIES / 2
    assert codes.count(EXIT_UPHELD) > TRIES / 100


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[workload]\nconsumers = 4000000000", "consumers is a whole number from 1 to 100"),
        ("[workload]\nqueues = 100000", "queues is a whole number from 1 to 1,000"),
        (
            '[[fault]]\ndo = "crash"\nclient = "c1"\nfor_ms = 100000000',
            "for_ms is a whole number from 0 to 3,600,000",
        ),
        (
            '[[fault]]\ndo = "delay"\nclient = "c1"\nms = -5',
            "ms is a whole number from 0 to",
        ),
        ('backends = ["proces"]', "backends knows process, docker, simulated, not 'proces'"),
    ],
)
def test_a_number_that_nobody_can_mean_is_told(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "mine.toml"
    fault = "" if "[[fault]]" in text else '\n[[fault]]\ndo = "crash"\nclient = "c1"'
    path.write_text(f'why = "x"\n{text}{fault}')
    with pytest.raises(UsageError, match=sentence):
        load(str(path))
