"""The root of the command line: commands by entry point, and one sentence for every error.

Rules:
- a command is a click command in the entry-point group `inorder.commands`; it returns its exit code (None is 0);
- data goes to stdout, everything for people to stderr;
- an `InorderError` is one sentence and its own exit code; a usage error is 64, never the 2 of argument parsers,
  which means *inconclusive* here; anything unexpected is 70, with the traceback in a file, never on the screen;
- Ctrl-C ends with 130 after everybody's clean-up, SIGTERM with 143.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, NoReturn

import click
from click.shell_completion import CompletionItem, add_completion_class

from conformance.cli.completion import TARGETS_GROUP, ColonsInBash
from conformance.cli.people import lose_no_line, say
from conformance.parts import extras
from conformance.parts.places import beside
from conformance.parts.processes import exit_on_sigterm
from conformance.reports.lost import STDOUT, OutputLost, told_anyway
from specs.errors import (
    EXIT_SUITE,
    EXIT_UNAVAILABLE,
    EXIT_UPHELD,
    EXIT_USAGE,
    InorderError,
    Unavailable,
)
from specs.outputs import is_surroundings, told
from specs.scratch import remove_abandoned
from specs.secrets import masked, refuse_in_words

COMMAND_GROUP = "inorder.commands"
_WHOLE = 1_000
"""More than any command's first sentence has letters."""
EXIT_INTERRUPTED = 130
EXIT_PIPE_CLOSED = 141

_ORDER = (
    "conform",
    "chaos",
    "hunt",
    "check",
    "import",
    "explain",
    "replay",
    "confirm",
    "shrink",
    "report",
    "mutants",
    "smoke",
    "tap",
    "list",
    "serve",
    "generate",
    "compact",
    "doctor",
)


class CommandUnavailable(Unavailable):
    """A command is registered, but the part that brings it can't be imported."""


class ReaderGone(Exception):
    """Whoever read our stdout has closed it."""


class Root(click.Group):
    """The group of all registered commands. Its `main` never lets a traceback through."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        found = set(_registered())
        return [name for name in _ORDER if name in found] + sorted(found - set(_ORDER))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names alone: click would load every command for a sentence on each, and one may lack its extra."""
        return [
            *(
                CompletionItem(name)
                for name in self.list_commands(ctx)
                if name.startswith(incomplete)
            ),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = _registered().get(cmd_name)
        return None if entry is None else _load(entry)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's; an unknown command is told with what was probably meant."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            if name.partition(":")[0] in entry_points(group=TARGETS_GROUP).names:
                ctx.fail(f"{name} is a target: `inorder conform --target {name}` judges it")
            close = difflib.get_close_matches(name, self.list_commands(ctx), n=2)
            meant = f"; did you mean {' or '.join(close)}?" if close else ""
            ctx.fail(f"there is no command {name!r}{meant}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows: list[tuple[str, str]] = []
        for name in self.list_commands(ctx):
            try:
                command = self.get_command(ctx, name)
            except CommandUnavailable as error:
                rows.append((name, f"(not available: {error})"))
            else:
                rows.append((name, command.get_short_help_str(limit=_WHOLE) if command else ""))
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT002  # as click's
        **extra: Any,
    ) -> Any:
        """As click's, but standalone it exits with the codes of this command line, whatever happens."""
        add_completion_class(ColonsInBash)
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        sys.exit(self._guarded(args, prog_name or "inorder", complete_var, extra))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ReaderGone from error  # click would make it exit code 1, which means refuted here

    def _guarded(
        self,
        args: Sequence[str] | None,
        prog_name: str,
        complete_var: str | None,
        extra: dict[str, Any],
    ) -> int:
        try:
            refuse_in_words(sys.argv[1:] if args is None else list(args))
            code = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
            with told_anyway(STDOUT):
                sys.stdout.flush()
        except BaseException as error:
            code = _conclude(error)
        _let_go()
        return code if isinstance(code, int) else EXIT_UPHELD


def _registered() -> dict[str, EntryPoint]:
    """Commands by name. Of two distributions that bring one name, ours wins."""
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=COMMAND_GROUP):
        ours = entry.dist is not None and entry.dist.name == "inorder"
        if ours or entry.name not in found:
            found[entry.name] = entry
    return found


def _load(entry: EntryPoint) -> click.Command:
    try:
        command = entry.load()
    except (ImportError, AttributeError) as error:
        reason = extras.why(error) if isinstance(error, ImportError) else str(error)
        raise CommandUnavailable(
            f"`inorder {entry.name}` can't be loaded from {entry.value}: {reason}"
        ) from error
    if not isinstance(command, click.Command):
        raise CommandUnavailable(f"`inorder {entry.name}`: {entry.value} is no click command")
    return command


def _conclude(error: BaseException) -> int:
    """One sentence on stderr and the exit code that `error` means."""
    match error:
        case SystemExit():
            return (
                error.code
                if isinstance(error.code, int)
                else EXIT_UPHELD
                if error.code is None
                else EXIT_SUITE
            )
        case click.exceptions.NoArgsIsHelpError():
            click.echo(error.ctx.get_help() if error.ctx else error.format_message(), err=True)
            return EXIT_USAGE
        case click.UsageError():
            where = error.ctx.command_path if error.ctx else "inorder"
            say(f"{_sentence(error.format_message())}; `{where} --help` shows what there is")
            return EXIT_USAGE
        case click.ClickException():
            say(_sentence(error.format_message()))
            return EXIT_USAGE
        case click.Abort() | KeyboardInterrupt():
            say("stopped by Ctrl-C")
            return EXIT_INTERRUPTED
        case ReaderGone() | BrokenPipeError():
            return EXIT_PIPE_CLOSED
        case OutputLost(error=BrokenPipeError(), exit_code=code):
            if error.verdict is not None:
                say(_sentence(str(error)))
            return EXIT_PIPE_CLOSED if code == EXIT_USAGE else code
        case InorderError():
            say(_sentence(str(error) or type(error).__name__))
            return error.exit_code
        case OSError() if is_surroundings(error):
            say(_sentence(told(error)))
            return EXIT_USAGE
        case ImportError() if extras.extra_of(error):
            say(_sentence(extras.why(error)))
            return EXIT_UNAVAILABLE
        case BaseExceptionGroup():
            return _conclude_group(error)
        case _ if isinstance(error.__cause__, KeyboardInterrupt | SystemExit):
            return _conclude(error.__cause__)  # Hypothesis wraps what ends a program
        case _:
            say(
                f"{_unexpected(error)}; the suite itself failed, not the system it judges; {_keep_traceback(error)}"
            )
            return EXIT_SUITE


def _conclude_group(group: BaseExceptionGroup[BaseException]) -> int:
    """Several tasks failed: an interruption wins, then anything unexpected, then the first known error."""
    leaves = list(_leaves(group))
    for wanted in (KeyboardInterrupt, SystemExit):
        for leaf in leaves:
            if isinstance(leaf, wanted):
                return _conclude(leaf)
    if all(isinstance(leaf, InorderError) or is_surroundings(leaf) for leaf in leaves):
        return _conclude(leaves[0])
    say(
        f"{_unexpected(leaves[0])}; the suite itself failed, not the system it judges; {_keep_traceback(group)}"
    )
    return EXIT_SUITE


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield (
            error.__cause__
            if isinstance(error.__cause__, KeyboardInterrupt | SystemExit)
            else error
        )


def _let_go() -> None:
    """Of an output that can't be written: Python's own flush at exit would fail again, and change the exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _unexpected(error: BaseException) -> str:
    text = _sentence(str(error))
    return f"unexpected {type(error).__name__}{f': {text}' if text else ''}"


def _keep_traceback(error: BaseException) -> str:
    """Write the traceback to a file of its own and say where."""
    try:
        handle, name = tempfile.mkstemp(prefix="inorder-traceback-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            trace = "".join(traceback.format_exception(error))
            file.write(masked(" ".join(sys.argv) + "\n\n" + trace))
    except OSError as why:
        return f"its traceback could not be kept ({why})"
    return f"its traceback is in {Path(name)}"


def _sentence(text: str) -> str:
    """One line, without a final stop: more words may follow."""
    return " ".join(text.split()).rstrip(".")


@click.command(
    cls=Root,
    name="inorder",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=f"\b\nDocumentation:\n  {beside('docs') / 'index.md'}",
)
@click.version_option(package_name="inorder", prog_name="inorder", message="%(prog)s %(version)s")
def root() -> None:
    """Does this message system really keep the order it promises?

    \b
    Exit codes: 0 upheld, 1 refuted, 2 inconclusive, 64 wrong usage or input,
    69 a server or a part that is not there, 70 the suite itself failed or the
    run can't be trusted.
    """


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit. SIGTERM and SIGHUP unwind like Ctrl-C, so that children are put away."""
    exit_on_sigterm()
    lose_no_line()
    remove_abandoned(Path(tempfile.gettempdir()))
    root.main(args=arguments, prog_name="inorder")
    raise AssertionError("click returned in standalone mode")


if __name__ == "__main__":
    main()
