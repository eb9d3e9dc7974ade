"""Options that several commands share, and how they print data."""

from __future__ import annotations

import functools
import json
import re
import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

import click
from rich.console import Group, RenderableType

from conformance.cli import completion
from conformance.cli.people import carries_everything, console, put, tell, width
from conformance.reports import allure, text
from conformance.reports.lost import STDOUT, OutputLost, told_anyway
from conformance.reports.saving import check, context_of
from conformance.reports.view import VerdictView
from conformance.reports.visible import visible_json
from conformance.stopping import Bounds
from conformance.targets.options import with_config
from specs.history.store import History
from specs.outputs import writable_file, writable_folder
from specs.verdicts.baseline import read_baseline, today
from specs.verdicts.verdict import VERDICT_SCHEMA

F = TypeVar("F", bound=Callable[..., Any])

LARGEST_SEED = 2**31 - 1

HUMAN, JSON = "human", "json"


def format_option(*more: str) -> Callable[[F], F]:
    """`--format human|json` and what else a command can print. The parameter is `form`."""
    return click.option(
        "--format",
        "form",
        type=click.Choice([HUMAN, JSON, *more]),
        default=HUMAN,
        show_default=True,
        help="What to print on stdout.",
    )


class NeedsTarget(click.Command):
    """A command with `--target`. A target that stands by itself is told where it belongs."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.MissingParameter as error:
            named = entry_points(group=completion.TARGETS_GROUP).names
            targets = [word for word in given if word.partition(":")[0] in named]
            if error.param is None or error.param.name != "target" or not targets:
                raise
            raise click.UsageError(
                f"a target follows --target: --target {targets[0]}", ctx
            ) from error


class OutFolder(click.Path):
    """A folder that the command writes. One that can't be made, or written to, is refused before any work."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = cast(Path, super().convert(value, param, ctx))
        writable_folder(path)
        return path


class OutFile(click.Path):
    """As `OutFolder`, of a file."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = cast(Path, super().convert(value, param, ctx))
        writable_file(path)
        return path


def profile_option(help_text: str) -> Callable[[F], F]:
    return click.option(
        "--profile",
        metavar="NAME|FILE",
        help=help_text,
        shell_complete=completion.profile,
    )


def seed_option(command: F) -> F:
    """`--seed N`: an integer; drawn when left out, and always printed before the first step."""
    return click.option(
        "--seed",
        type=click.IntRange(0, LARGEST_SEED),
        metavar="N",
        help="An integer; drawn when left out.",
    )(command)


class Duration(click.ParamType[float]):
    """`90s`, `10m` or `2h`, in seconds."""

    name = "TIME"
    _SECONDS: ClassVar[Mapping[str, int]] = {"s": 1, "m": 60, "min": 60, "h": 3_600}

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, int | float):
            return float(value)
        found = re.fullmatch(r"(\d+(?:\.\d+)?)(s|m|min|h)", value)
        if found is None:
            self.fail(f"{value!r} is no time; it is given as 90s, 10m or 2h", param, ctx)
        return float(found[1]) * self._SECONDS[found[2]]


def budget_option(help_text: str) -> Callable[[F], F]:
    """`--budget TIME`: in seconds, None when left out."""
    return click.option("--budget", type=Duration(), metavar="TIME", help=help_text)


def search_options(command: F) -> F:
    """`--budget`, `--workers` and `--keep-going`, handed on as `bounds` (`conformance.stopping.Bounds`)."""

    @wraps(command)
    def bounded(
        *arguments: Any, budget: float | None, workers: int, keep_going: bool, **options: Any
    ) -> Any:
        return command(*arguments, bounds=Bounds(budget, workers, keep_going), **options)

    for option in (
        click.option(
            "--keep-going",
            is_flag=True,
            help="A refutation does not end it: each refuted clause gets a run of its own, in refuted/.",
        ),
        click.option(
            "--workers",
            type=click.IntRange(1),
            default=1,
            show_default=True,
            metavar="N",
            help="So many searches at once, each with a seed of its own; one verdict.",
        ),
        budget_option("Search until then (90s, 10m, 2h); no run begins after it."),
    ):
        bounded = option(bounded)
    return cast(F, bounded)


def target_config_option(command: F) -> F:
    """`--target-config FILE`: the command's `target` then names the file by its path."""

    @click.option(
        "--target-config",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        metavar="FILE",
        help="TOML with the target's options and credentials; only its path is written down.",
    )
    @functools.wraps(command)
    def with_the_file(*, target: str, target_config: Path | None, **rest: Any) -> Any:
        return command(target=with_config(target, target_config), **rest)

    return with_the_file  # type: ignore[return-value]


def baseline_option(command: F) -> F:
    """`--baseline FILE`: what is known to be broken, handed on as `baseline`; the day is today's, UTC."""

    @click.option(
        "--baseline",
        "known",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="What is known to be broken, by finding, with an owner and a last day: it is told, and lets the run pass.",
    )
    @functools.wraps(command)
    def with_the_file(*, known: Path | None, **rest: Any) -> Any:
        return command(baseline=None if known is None else read_baseline(known, today()), **rest)

    return with_the_file  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class Reporting:
    """How somebody wants to be told what came of a run.

    form: what is printed on stdout. only_failures: of a report for people what is not green, and its closing sentence.
    quiet: of the work nothing, and of its report no more than that. name: of the series of runs that this one is of.
    alluredir: where results for Allure are written too.
    """

    form: str = HUMAN
    only_failures: bool = False
    quiet: bool = False
    name: str = ""
    alluredir: Path | None = None

    @property
    def whole(self) -> bool:
        """Is the whole report shown?"""
        return not (self.only_failures or self.quiet)

    def tell(self, line: str) -> None:
        """A line on stderr about the work."""
        if not self.quiet:
            tell(line)

    def show(self, verdict: VerdictView, history: History | None = None) -> None:
        """A verdict on stdout: as `verdict.json` holds it, or as a table with the story of each failure.

        history: what was judged, where it does not lie in the verdict's folder.
        """
        if self.form == JSON:
            check(verdict.raw, VERDICT_SCHEMA)
        context = context_of(history or verdict.folder, verdict)
        told = text.report(verdict, width=width(), context=context, whole=self.whole)
        try:
            if self.form == JSON:
                print_json(verdict.raw)
            else:
                print_human(told)
        except OutputLost as lost:
            raise lost.with_verdict(verdict) from lost

    def add_to_allure(self, verdict: VerdictView, history: History | None = None) -> None:
        """Write results into the folder that somebody named, if any."""
        folder = self.alluredir
        if folder is None:
            return
        if allure.has_series(folder, verdict):
            tell(
                f"{folder} holds results of {verdict.label} already: Allure takes these for a new try of the same "
                "tests, and shows the newest; --name tells two runs apart"
            )
        with told_anyway(folder, verdict):
            allure.write(verdict, folder, context=context_of(history or verdict.folder, verdict))


def shown_options(command: F) -> F:
    """`--alluredir`, `--quiet` and `--only-failures`."""
    for option in (
        click.option(
            "-q",
            "--quiet",
            is_flag=True,
            help="Say nothing of the work; of the report only what is not green, and the verdict.",
        ),
        click.option(
            "--only-failures",
            is_flag=True,
            help="Print of the report only what is not green, and the verdict.",
        ),
        click.option(
            "--alluredir",
            type=OutFolder(),
            metavar="DIR",
            help="Write results for Allure into DIR too, beside those of other runs.",
        ),
    ):
        command = option(command)
    return command


def reporting_options(command: F) -> F:
    """`--format` and what else is about reports, handed on as `reporting`."""

    @click.option(
        "--name",
        default="",
        metavar="NAME",
        help="Of the series of runs that this one is of, for the history that Allure and CI servers keep. Default: the "
        "target's and the profile's.",
    )
    @shown_options
    @format_option()
    @functools.wraps(command)
    def with_reporting(
        *,
        form: str,
        only_failures: bool,
        quiet: bool,
        name: str,
        alluredir: Path | None,
        **rest: Any,
    ) -> Any:
        return command(reporting=Reporting(form, only_failures, quiet, name, alluredir), **rest)

    return with_reporting  # type: ignore[return-value]


def draw_seed() -> int:
    """A fresh seed, small enough to be typed."""
    return secrets.randbelow(1_000_000)


def print_json(data: Mapping[str, Any]) -> None:
    """One object on stdout; where that can't carry every character, they are escaped as JSON does it."""
    document = json.dumps(data, indent=2, ensure_ascii=not carries_everything(sys.stdout))
    put(visible_json(document))


def carried(markup: str) -> str:
    """XML or HTML for stdout: where that can't carry every character, they are written as references."""
    if carries_everything(sys.stdout):
        return markup
    return markup.encode("ascii", "xmlcharrefreplace").decode()


def print_human(what: RenderableType) -> None:
    """A table or text on stdout, in the width of the terminal; what must not be wrapped (a command) is not."""
    with told_anyway(STDOUT):
        console().print(text.Visible(Group(what)), crop=False)


def folder_name(target: str, seed: int) -> Path:
    """Where a run is kept when nobody says: `runs/TARGET-SEED`."""
    plain = "".join(char if char.isalnum() or char in "+.-_" else "-" for char in target)
    return Path("runs") / f"{plain}-{seed}"
