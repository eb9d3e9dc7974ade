"""`inorder import FORM --map MAP LOG... --out HISTORY`: anybody's log becomes a history."""

from __future__ import annotations

from pathlib import Path

import click
from rich.text import Text

from conformance.cli import completion
from conformance.cli.options import JSON, OutFolder, format_option, print_human, print_json
from conformance.cli.people import put, tell, watching
from conformance.importing.hashing import draw_secret, secret_in
from conformance.importing.job import IMPORT_SCHEMA, Job, Wanted
from conformance.importing.mapping import FORMS, read_map, recipe
from conformance.importing.report import report_text
from conformance.reports.saving import check
from specs.errors import UsageError


@click.command(name="import")
@click.argument("log_form", metavar="csv|jsonl|text", type=click.Choice(FORMS), required=False)
@click.argument("logs", metavar="LOG...", nargs=-1)
@click.option(
    "--map",
    "map_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Which lines are which events, and where the columns come from (docs/import.md).",
)
@click.option(
    "--out",
    type=OutFolder(),
    metavar="HISTORY",
    help="The history's folder, new or empty.",
)
@click.option(
    "--recipe",
    "recipe_name",
    metavar="NAME",
    shell_complete=completion.recipe,
    help="Print this map, to begin yours with, and do nothing else; `inorder list recipes`.",
)
@click.option(
    "--skip-bad",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    metavar="N",
    help="Pass over so many bad lines; each is counted, and the first ones are told.",
)
@click.option(
    "--hash-keys",
    is_flag=True,
    help="Write no word of the log down: ids, keys, hosts and bodies become keyed hashes.",
)
@click.option(
    "--hash-secret-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The secret for --hash-keys, so that two logs have the same hashes. Default: drawn, and kept in "
    "HISTORY.secret beside the history.",
)
@format_option()
def command(
    log_form: str | None,
    logs: tuple[str, ...],
    map_file: Path | None,
    out: Path | None,
    recipe_name: str | None,
    skip_bad: int,
    hash_keys: bool,
    hash_secret_file: Path | None,
    form: str,
) -> int:
    """Make a history of a LOG (several, or - for stdin) that was not written for it.

    CSV, JSON lines or text, as it is or gzipped. The map is ten lines of TOML; what it has to say and does not, it is
    asked for, and what the log does not tell stays unknown. The report says what was imported, and what that decides.

    \b
    Exits with 0 when the history is written, 64 for a map or a log that can't be read.
    """
    if recipe_name is not None:
        put(recipe(recipe_name), end=False)
        return 0
    if log_form is None or not logs or map_file is None or out is None:
        raise UsageError(
            "an import needs the log's form, a map, the log and a folder: "
            "`inorder import csv --map map.toml LOG --out HISTORY`"
        )
    if hash_secret_file is not None and not hash_keys:
        raise UsageError("--hash-secret-file is for --hash-keys")
    mapping = read_map(map_file, log_form)
    kept = out if out.name else out.resolve()
    if not kept.name:
        raise UsageError(f"{out} is no folder for a history; give one below it")
    kept = kept.with_name(kept.name + ".secret")
    secret = None
    if hash_keys:
        secret = draw_secret(kept) if hash_secret_file is None else secret_in(hash_secret_file)
    try:
        with watching() as watch:
            report = Job(Wanted(log_form, logs, mapping, out, skip_bad, secret), watch.say).run()
    except BaseException:
        if hash_keys and hash_secret_file is None:
            kept.unlink(missing_ok=True)  # of a history that there is not
        raise
    for bad in report.shown_bad:
        tell(f"passed over: {bad.sentence}")
    if form == JSON:
        data = report.to_json()
        check(data, IMPORT_SCHEMA)
        print_json(data)
    else:
        print_human(Text(report_text(report, mapping)))
    tell(f"written to {out}; judge it with `inorder check {out}`")
    if hash_keys and hash_secret_file is None:
        tell(f"the secret of its hashes is in {kept}: it must not leave the house")
    return 0
