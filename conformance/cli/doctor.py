"""`inorder doctor`: what is missing on this machine, what is skipped without it, and the command that mends it."""

from __future__ import annotations

from collections.abc import Sequence

import click
from rich import box
from rich.table import Table
from rich.text import Text

from conformance.cli.options import JSON, format_option, print_human, print_json
from conformance.cli.people import tell
from conformance.parts.doctor import Part, Purpose, State, checks
from conformance.reports.saving import check
from conformance.reports.schemas import LIST_SCHEMA
from specs.errors import EXIT_UNAVAILABLE


@click.command(name="doctor")
@click.option(
    "--for",
    "purpose",
    type=click.Choice([each.value for each in Purpose]),
    help="Only what this command can use; all parts if left out.",
)
@format_option()
def command(purpose: str | None, form: str) -> int:
    """Say which real parts are here and how to get the others.

    A simulated target and a history to check need none of them, so what is missing is told
    and asked for by nobody. With --for that command's parts are asked for.

    \b
    Exits with 0, or with 69 where --for is given and a part that is not optional is missing.
    """
    parts = [part for part in checks() if purpose is None or purpose in part.needed_for]
    missing = [part for part in parts if part.state is not State.OK and not part.optional]
    if form == JSON:
        data = {"schema": LIST_SCHEMA, "items": [_item(part) for part in parts]}
        check(data, LIST_SCHEMA)
        print_json(data)
    else:
        print_human(_table(parts))
        names = ", ".join(part.name for part in missing)
        tell(f"missing: {names}" if missing else "everything that is needed is here")
        if missing and purpose is None:
            tell("a simulated target, and a history to check, need nothing of it")
    return EXIT_UNAVAILABLE if missing and purpose is not None else 0


def _item(part: Part) -> dict[str, object]:
    return {
        "name": part.name,
        "state": part.state.value,
        "detail": part.detail,
        "skipped": part.skipped,
        "mend": part.mend,
        "needed_for": sorted(part.needed_for),
        "optional": part.optional,
    }


def _table(parts: Sequence[Part]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, expand=True, show_edge=False)
    table.add_column("part", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column(
        "where, or what is skipped without it and how to mend it", ratio=1, overflow="fold"
    )
    for part in parts:
        here = part.state is State.OK
        colour = "green" if here else "dim" if part.optional else "yellow"
        word = "here" if here else "missing (optional)" if part.optional else "missing"
        told = (
            part.detail if here else f"{part.detail}; skipped: {part.skipped}; to mend: {part.mend}"
        )
        table.add_row(Text(part.name), Text(word, style=colour), Text(told))
    return table
