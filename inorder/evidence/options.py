"""What every grid may be told on the command line: how long, by how many, and whether to begin anew."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import click

from specs.errors import InorderError

F = TypeVar("F", bound=Callable[..., Any])
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3_600}


class Duration(click.ParamType[float]):
    """`90s`, `10m` or `2h`, in seconds."""

    name = "TIME"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        if isinstance(value, int | float):
            return float(value)
        found = re.fullmatch(r"(\d+(?:\.\d+)?)(s|m|min|h)", value)
        if found is None:
            self.fail(f"{value!r} is no time; it is given as 90s, 10m or 2h", param, ctx)
        return float(found[1]) * _SECONDS[found[2]]


def in_a_sentence(function: F) -> F:
    """For a command of `python -m`: an error that its user can mend is one sentence and its exit code."""

    @wraps(function)
    def command(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except InorderError as error:
            click.echo(str(error), err=True)
            raise SystemExit(error.exit_code) from error

    return cast(F, command)


def grid_options(function: F) -> F:
    """Adds --budget and --fresh, as `budget` (seconds, or None) and `fresh`."""
    function = click.option(
        "--fresh", is_flag=True, help="Make every cell anew; else what is finished is kept."
    )(function)
    return click.option(
        "--budget",
        type=Duration(),
        metavar="TIME",
        help="Begin nothing after this time (90s, 10m, 2h); the same again goes on.",
    )(function)
