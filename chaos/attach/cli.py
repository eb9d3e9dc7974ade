"""The options of `inorder chaos --attach FILE`, and what they do.

The Docker SDK and the reader of compose files are an extra: they are imported only where somebody attaches.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from chaos.rounds import Bounds
from conformance.cli.options import Reporting, draw_seed, folder_name
from conformance.cli.people import put, say, tell, watching
from conformance.cli.seam import load_profile, make_room, told_by
from conformance.cli.tap import read_config
from conformance.parts import extras
from conformance.reports.occasion import begin
from conformance.reports.saving import save
from specs.errors import EXIT_UNAVAILABLE, EXIT_UPHELD, Unavailable, UsageError
from specs.plan.config import Config
from specs.verdicts.baseline import Baseline

if TYPE_CHECKING:
    from docker import DockerClient

    from chaos.attach.compose import Project

PROFILE = "rocketmq-5-orderly"
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Attaching:
    """What a user says besides. file: hers. verbs: the faults that she wants, all if none. put_back: she wants what
    earlier runs have left cleaned up, and nothing else."""

    file: Path
    verbs: tuple[str, ...]
    namesrv: str | None
    config: Path | None
    dry_run: bool
    put_back: bool = False


def attach_options(command: F) -> F:
    """`--attach` and what goes with it, handed on as `attaching`: None where she does not attach."""

    @click.option(
        "--attach",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Break the containers of this compose file that are labelled for it (docs/attach.md).",
    )
    @click.option(
        "--dry-run", is_flag=True, help="With --attach: say what would be done, and do nothing."
    )
    @click.option(
        "--put-back",
        is_flag=True,
        help="With --attach: remove what an earlier run has left, start what it stopped, and no more.",
    )
    @click.option(
        "--fault",
        "verbs",
        multiple=True,
        metavar="VERB",
        help="With --attach: only this fault; repeatable.",
    )
    @click.option(
        "--namesrv",
        metavar="HOST:PORT",
        help="With --attach: the name server as the clients call it. Default: what they are told.",
    )
    @click.option(
        "--config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="With --attach: JSON, the clients' and the broker's times where not the default.",
    )
    @functools.wraps(command)
    def with_attaching(
        *,
        attach: Path | None,
        dry_run: bool,
        put_back: bool,
        verbs: tuple[str, ...],
        namesrv: str | None,
        config: Path | None,
        **rest: Any,
    ) -> Any:
        if attach is None:
            if dry_run or put_back or verbs or namesrv or config:
                raise UsageError(
                    "--dry-run, --put-back, --fault, --namesrv and --config go with --attach"
                )
            return command(attaching=None, **rest)
        context = click.get_current_context()
        for name in ("scenarios", "target", "target_config", "backend"):
            if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
                raise UsageError(
                    f"--attach has clients and faults of its own: leave {name.replace('_', '-')} out"
                )
        return command(
            attaching=Attaching(attach, verbs, namesrv, config, dry_run, put_back), **rest
        )

    return with_attaching  # type: ignore[return-value]


def attach(
    attaching: Attaching,
    bounds: Bounds,
    profile: str | None,
    baseline: Baseline | None,
    seed: int | None,
    out: Path | None,
    reporting: Reporting,
) -> int:
    """Look, say what is to be done, and do it unless it is a dry run; the exit code."""
    try:
        from chaos.attach import compose, hers, run
        from chaos.attach.breaking import VERBS
        from conformance.parts import docker_engine
        from conformance.parts.restoring import PUT_BACK
    except ImportError as error:
        raise Unavailable(f"--attach needs more: {extras.why(error)}") from error
    for verb in attaching.verbs:
        if verb not in VERBS:
            raise UsageError(f"a container can't have the fault {verb!r}, but {', '.join(VERBS)}")
    config = Config() if attaching.config is None else read_config(attaching.config)
    chosen = load_profile(profile or PROFILE)
    project = compose.read(attaching.file)
    seed = draw_seed() if seed is None else seed
    with closing(docker_engine.connect()) as client:
        if attaching.put_back:
            return _put_back(client, project, dry_run=attaching.dry_run)
        look = hers.look(client, project, attaching.namesrv)
        asked = run.Asked(
            look,
            attaching.verbs or tuple(VERBS),
            config,
            chosen if baseline is None else baseline.under(chosen),
            seed,
            bounds,
            _words(attaching, bounds, chosen.name, seed, out),
            _variables(look.project),
        )
        if attaching.dry_run:
            for line in run.lines(asked):
                put(line)
            return EXIT_UPHELD
        folder = folder_name(f"attach-{project.name}", seed) if out is None else out
        if (folder / PUT_BACK).exists():
            raise UsageError(
                f"{folder / PUT_BACK} says what an earlier run has not put back: run it, or remove it"
            )
        make_room(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for line in run.lines(asked):
            reporting.tell(line)
        over = begin(reporting.name or f"{project.name} under {chosen.name}")
        image = docker_engine.image_of_ours(client)
        with watching(quiet=reporting.quiet) as watch:
            verdict, _history = run.attach(asked, client, image, folder, watch.say, warn=say)
        view = save(told_by(baseline, verdict), folder, occasion=over())
    reporting.show(view)
    reporting.add_to_allure(view)
    if not reporting.quiet or view.exit_code != EXIT_UPHELD:
        tell(f"kept in {folder}")
        tell(f"again: {view.replay}")
    return view.exit_code


def _put_back(client: DockerClient, project: Project, *, dry_run: bool) -> int:
    """Clean up after earlier runs; on a dry run it is only told, by the commands."""
    from chaos.attach import hers
    from conformance.parts.restoring import command

    debts = hers.owed_of_earlier_runs(client, project)
    lines = map(command, debts) if dry_run else hers.put_back(debts)
    told = list(lines) or [f"no run has left anything of the project {project.name}"]
    for line in told:
        put(line)
    return EXIT_UNAVAILABLE if any(line.startswith(hers.NOT_DONE) for line in told) else EXIT_UPHELD


def _words(
    attaching: Attaching, bounds: Bounds, profile: str, seed: int, out: Path | None
) -> list[object]:
    """By which the same is asked for from any folder."""
    words: list[object] = ["chaos", "--attach", attaching.file.resolve()]
    words += ["--profile", profile, "--seed", seed]
    words += [word for verb in attaching.verbs for word in ("--fault", verb)]
    words += ["--namesrv", attaching.namesrv] if attaching.namesrv else []
    words += ["--config", attaching.config.resolve()] if attaching.config else []
    words += ["--rounds", bounds.rounds] if bounds.rounds not in (None, 1) else []
    words += ["--budget", f"{bounds.budget_s:g}s"] if bounds.budget_s is not None else []
    words += ["--out", out.resolve()] if out is not None else []
    return words


def _variables(project: Project) -> dict[str, str]:
    """Those of the environment that say which containers, which image and which engine."""
    named = {
        name: os.environ[name] for name in ("INORDER_IMAGE", "DOCKER_HOST") if name in os.environ
    }
    return {"COMPOSE_PROJECT_NAME": project.name, **named}
