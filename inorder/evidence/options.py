"""What every grid may be told on the command line: by which seed, by how many, where to, how long, and whether anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from conformance.cli.options import (
    HUMAN,
    LARGEST_SEED,
    budget_option,
    draw_seed,
    folder_name,
    format_option,
)
from conformance.cli.people import tell
from inorder.evidence import grid
from specs.errors import EXIT_INCONCLUSIVE, EXIT_REFUTED, EXIT_UPHELD, InorderError

F = TypeVar("F", bound=Callable[..., Any])
SEED = 1


@dataclass(frozen=True, slots=True)
class GridOptions:
    """What a grid was told. out: None where nobody said; budget_s: None for as long as it takes."""

    seed: int = SEED
    workers: int = 1
    out: Path | None = None
    budget_s: float | None = None
    fresh: bool = False
    form: str = HUMAN

    def folder(self, name: str) -> Path:
        """Where it is kept: `runs/NAME-SEED` if nobody says."""
        return folder_name(name, self.seed) if self.out is None else self.out

    @property
    def asked(self) -> dict[str, Any]:
        """For `grid.run`, and for who hands it on."""
        return {"budget_s": self.budget_s, "fresh": self.fresh, "workers": self.workers}

    def make(
        self,
        cells: Sequence[grid.Cell],
        work: grid.Work,
        store: Path | None,
        stands: Callable[[grid.Cell, Any], bool] = lambda cell, value: True,
    ) -> Iterator[grid.Done]:
        """The cells, as `grid.run` makes them."""
        return grid.run(cells, work, store, stands=stands, **self.asked)


def close(
    made: Sequence[grid.Done],
    total: int,
    *,
    wrong: bool = False,
    say: Callable[[str], Any] = tell,
) -> int:
    """Say what was kept from before, and what the budget left; the exit code. total: the cells that there are."""
    left = grid.told_of_left(total - len(made), total)
    for sentence in (grid.told_of_kept(made), left):
        if sentence:
            say(sentence)
    return EXIT_REFUTED if wrong else EXIT_INCONCLUSIVE if left else EXIT_UPHELD


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


def grid_options(
    *,
    out: str,
    seed: int | None = SEED,
    workers: int | None = None,
    formats: Sequence[str] | None = None,
    draws_seed: bool = False,
) -> Callable[[F], F]:
    """Adds --out, --budget and --fresh, and where they have a meaning --seed, --workers and --format.

    All of them reach the command as one `how` (GridOptions). out: what is kept there, for the help. seed, workers: what
    they are if nobody says; None for a grid that has none of them. formats: what can be printed beside `human` and
    `json`; None for a grid that prints for people alone. draws_seed: where nobody says one it is drawn.
    """

    def decorate(function: F) -> F:
        @wraps(function)
        def command(*arguments: Any, budget: float | None, **options: Any) -> Any:
            given = {name: options.pop(name) for name in _NAMES if name in options}
            if draws_seed and given["seed"] is None:
                given["seed"] = draw_seed()
            return function(*arguments, how=GridOptions(budget_s=budget, **given), **options)

        for option in (
            *(() if formats is None else (format_option(*formats),)),
            click.option(
                "--fresh", is_flag=True, help="Make every cell anew; else what is finished is kept."
            ),
            budget_option("Begin nothing after this time (90s, 10m, 2h); the same again goes on."),
            click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help=out),
            *(() if workers is None else (_workers(workers),)),
            *(() if seed is None and not draws_seed else (_seed(seed),)),
        ):
            command = option(command)
        return cast(F, command)

    return decorate


_NAMES = ("seed", "workers", "out", "fresh", "form")


def _seed(default: int | None) -> Callable[[F], F]:
    return click.option(
        "--seed",
        type=click.IntRange(0, LARGEST_SEED),
        default=default,
        show_default=True,
        metavar="N",
        help="An integer; drawn when left out." if default is None else "An integer.",
    )


def _workers(default: int) -> Callable[[F], F]:
    return click.option(
        "--workers",
        type=click.IntRange(1),
        default=default,
        show_default=True,
        metavar="N",
        help="Processes that make cells.",
    )
