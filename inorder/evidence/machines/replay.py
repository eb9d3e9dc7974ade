"""Runs a machine's program again, for `inorder replay PROGRAM` (entry-point group `inorder.replays`)."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from conformance.cli.options import JSON, print_json
from conformance.cli.people import tell
from conformance.cli.replay import Replayer
from conformance.replay import REFERENCE, mutant_of
from conformance.reports.saving import check
from conformance.reports.schemas import PROGRAM_SCHEMA
from inorder.evidence.machines.every import is_program, read_program, run_program
from specs.errors import EXIT_REFUTED, EXIT_UPHELD


def replayer(path: Path) -> Replayer | None:
    """None for a file that is no program."""
    return partial(_run_program, path) if is_program(path) else None


def _run_program(path: Path, target: str | None, form: str) -> int:
    """Exits with 0 when system and model agree, else with 1."""
    program = read_program(path)
    mutant = mutant_of(target) if target is not None else None
    name = mutant.name if mutant is not None else program.mutant if target is None else None
    tell(f"running a program of the machine {program.machine} on {name or REFERENCE}")
    wrong = run_program(program, name)
    if form == JSON:
        data = {**program.to_json(), "mutant": name, "disagreement": wrong}
        check(data, PROGRAM_SCHEMA)
        print_json(data)
    else:
        click.echo(f"{program}\n\n{wrong or 'system and model agree'}")
    return EXIT_UPHELD if wrong is None else EXIT_REFUTED
