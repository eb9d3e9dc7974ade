"""Every machine that writes programs, by name, and how a program from a file is run again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conformance.reports.schemas import PROGRAM_SCHEMA
from inorder.evidence.machines.allocation import AllocationMachine
from inorder.evidence.machines.lock_table import LockTableMachine
from inorder.evidence.machines.membership import MembershipMachine
from inorder.evidence.machines.message_log import MessageLogMachine
from inorder.evidence.machines.offset_table import OffsetTableMachine
from inorder.evidence.machines.orderly_consumer import OrderlyConsumerMachine
from inorder.evidence.machines.process_queue import ProcessQueueMachine
from inorder.evidence.machines.programs import Program, ProgramMachine, repeat
from inorder.evidence.machines.side_by_side_consumer import SideBySideConsumerMachine
from inorder.evidence.machines.start_matrix import StartMatrixMachine
from reference_impl.mutants import load
from specs.documents import json_in
from specs.errors import UsageError

MACHINES: Mapping[str, type[ProgramMachine]] = {
    machine.NAME: machine
    for machine in (
        LockTableMachine,
        OffsetTableMachine,
        MessageLogMachine,
        MembershipMachine,
        OrderlyConsumerMachine,
        StartMatrixMachine,
        SideBySideConsumerMachine,
        ProcessQueueMachine,
        AllocationMachine,
    )
}


def is_program(path: Path) -> bool:
    """Whether the file says that it is a program. Whatever can't be read is none."""
    try:
        data: Any = json_in(path)
    except UsageError:
        return False
    return isinstance(data, dict) and str(data.get("schema", "")).startswith(
        PROGRAM_SCHEMA.rsplit("/", 1)[0]
    )


def read_program(path: Path) -> Program:
    """A program from a file. Raises UsageError for another version, an unknown machine or verb, or a broken shape."""
    data = json_in(path)
    if data.get("schema") != PROGRAM_SCHEMA:
        raise UsageError(
            f"{path} has schema {data.get('schema')!r}; this version reads {PROGRAM_SCHEMA!r}"
        )
    try:
        program = Program.from_json(data)
        machine = MACHINES.get(program.machine)
    except (KeyError, TypeError) as error:
        raise UsageError(
            f"{path} can't be read as a program: {type(error).__name__} {error}"
        ) from error
    if machine is None:
        raise UsageError(
            f"{path} is of the machine {program.machine!r}; known are {', '.join(MACHINES)}"
        )
    for step in program.steps:
        if step.do.startswith("_") or not callable(getattr(machine.bench_class, step.do, None)):
            raise UsageError(f"{path}: the machine {program.machine} has no step {step.do!r}")
    return program


def run_program(program: Program, mutant: str | None) -> str | None:
    """How system and model disagree when the program is run, None when they do not. mutant: None for the reference."""
    bench_class = MACHINES[program.machine].bench_class
    try:
        return repeat(program, bench_class, None if mutant is None else load(mutant))
    except TypeError as error:
        raise UsageError(
            f"a step of the program has other arguments than its verb: {error}"
        ) from error
