"""Bugs that nobody had: one line of the reference changed at a random place. Does the suite notice?

The mutants in `reference_impl/mutants` are bugs that we know, and so does the suite. Here an operator, as mutation
testers use them, changes one expression or drops one statement of the lock table, the process queue or the commit
path. The suite is then run on what became of it, in a process of its own: first the text cases, then the machines
of single cores, then the cluster machine with all clauses. It kills the change when an answer differs, when a
clause is refuted, when the code falls over, or when it does not come to an end.

What survives is listed. Each survivor is either equivalent (nothing that a client or a broker can see depends on
it; `EQUIVALENT` says why) or shows a gap, which a new case closes.

`python -m inorder.evidence.planted` goes through all places; `--sample N --seed S` through some. A change is a
cell of the grid: a run that was ended goes on where it was.
"""

from __future__ import annotations

import ast
import copy
import importlib
import inspect
import multiprocessing
import os
import resource
import types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import click

from inorder.evidence import grid
from inorder.evidence.options import GridOptions, close, grid_options, in_a_sentence

MODULES = (
    "reference_impl.core.broker.lock_table",
    "reference_impl.core.broker.leases",
    "reference_impl.core.broker.offset_table",
    "reference_impl.core.broker.consumer_offsets",
    "reference_impl.core.consumer.process_queue",
    "reference_impl.core.consumer.results",
    "reference_impl.core.consumer.leases",
    "reference_impl.core.consumer.calls",
    "reference_impl.core.consumer.orderly_loop",
    "reference_impl.core.consumer.offsets",
    "reference_impl.core.consumer.lane_release",
)
"""The lock table, the process queue and the commit path, on both sides."""
TABLES = (
    ("reference_impl.core.broker.lock_table", "LockTable.on_lock"),
    ("reference_impl.core.broker.lock_table", "LockTable.on_unlock"),
    ("reference_impl.core.consumer.results", "RESULTS"),
)
"""The rules that are said as tables: each entry is changed as well."""
EXAMPLES = 60
"""Runs of the cluster machine for a change that no case notices."""
CODE = (
    "specs",
    "reference_impl",
    "conformance",
    "inorder/evidence/machines",
    "inorder/evidence/planted.py",
)
"""What the fate of a change depends on."""
CPU_S = 120
"""A change that takes longer than this has stopped something from ending."""

COMPARISONS: Mapping[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}


@dataclass(frozen=True, slots=True)
class Change:
    """One changed line. number: which of the module's changes it is. was, becomes: the line before and after."""

    module: str
    number: int
    function: str
    line: int
    operator: str
    was: str
    becomes: str

    @property
    def place(self) -> tuple[str, str, str, str]:
        """What names the change although lines move."""
        return (self.module.rsplit(".", 1)[1], self.function, self.was, self.becomes)

    def __str__(self) -> str:
        return (
            f"{self.module}:{self.line} in {self.function}: `{self.was}` becomes `{self.becomes}`"
        )


@dataclass(frozen=True, slots=True)
class Fate:
    """What the suite made of a change. by: what noticed it first (a case, a clause, an error); "" when nothing did."""

    change: Change
    by: str

    @property
    def killed(self) -> bool:
        return bool(self.by)


# ------------------------------------------------------------------------------------------ the operators

_Edit = Callable[[ast.AST], None]


def _edits(node: ast.AST) -> Iterator[tuple[str, _Edit]]:
    """(operator, what it does to the node) for all operators that fit the node itself."""
    match node:
        case ast.Compare(ops=[op]):
            for other in COMPARISONS.get(type(op), ()):
                yield "comparison", lambda it, other=other: setattr(it, "ops", [other()])  # type: ignore[misc]
        case ast.BoolOp(op=op):
            other_op = ast.Or if isinstance(op, ast.And) else ast.And
            yield "and/or", lambda it: setattr(it, "op", other_op())
        case ast.BinOp(op=ast.Add()):
            yield "arithmetic", lambda it: setattr(it, "op", ast.Sub())
        case ast.BinOp(op=ast.Sub()):
            yield "arithmetic", lambda it: setattr(it, "op", ast.Add())
        case ast.Constant(value=bool() as value):
            yield "constant", lambda it: setattr(it, "value", not value)
        case ast.Constant(value=int() as number):
            yield "constant", lambda it: setattr(it, "value", number + 1)
        case _:
            pass


def _conditions(node: ast.AST) -> Iterator[tuple[str, _Edit]]:
    """Turns a condition around, where no comparison in it is turned around anyway."""
    if isinstance(node, ast.If | ast.While | ast.IfExp) and not isinstance(
        node.test, ast.Compare | ast.BoolOp
    ):

        def turn(it: Any) -> None:
            test = it.test
            negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
            it.test = test.operand if negated else ast.UnaryOp(ast.Not(), test)

        yield "condition", turn


_DROPPED = (ast.Assign, ast.AugAssign, ast.Delete, ast.Expr)


def _statements(function: ast.FunctionDef) -> Iterator[tuple[list[ast.stmt], int]]:
    """Where a statement stands that can be dropped: the list that holds it, and its index."""
    for node in ast.walk(function):
        for name in ("body", "orelse"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                for index, statement in enumerate(block):
                    if isinstance(statement, _DROPPED) and not _is_text(statement):
                        yield block, index


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield f"{node.name}.{inner.name}", inner


def _line_of(tree: ast.AST, line: int) -> str:
    """The innermost statement of that line, without what it holds, on one line."""
    best: ast.stmt | None = None
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
            best = node
    if best is None:
        return ""
    if isinstance(best, ast.If | ast.While | ast.For | ast.FunctionDef | ast.With | ast.Match):
        return ast.unparse(best).splitlines()[0]
    return " ".join(ast.unparse(best).split())


def _changed(source: str, module: str) -> Iterator[tuple[Change, ast.FunctionDef]]:
    """Every change of a module's functions, in the order of the source, with the changed function."""
    number = 0
    for name, function in _functions(ast.parse(source)):
        plans: list[tuple[int, str, Callable[[ast.FunctionDef], None]]] = []
        for index, node in enumerate(ast.walk(function)):
            if _is_annotation(function, node):
                continue
            for operator, edit in (*_edits(node), *_conditions(node)):
                line = getattr(node, "lineno", function.lineno)
                plans.append(
                    (
                        line,
                        operator,
                        lambda it, index=index, edit=edit: edit(  # type: ignore[misc]
                            list(ast.walk(it))[index]
                        ),
                    )
                )
        for order, (block, index) in enumerate(_statements(function)):
            plans.append((block[index].lineno, "dropped", lambda it, order=order: _drop(it, order)))  # type: ignore[misc]
        for line, operator, plan in sorted(plans, key=lambda each: each[0]):
            target = copy.deepcopy(function)
            plan(target)
            was = _line_of(function, line)
            becomes = "" if operator == "dropped" else _line_of(target, line)
            if was == becomes:
                continue
            yield Change(module, number, name, line, operator, was, becomes), target
            number += 1


def _is_annotation(function: ast.FunctionDef, node: ast.AST) -> bool:
    """Types, defaults and decorators are no behaviour of the function's body."""
    return any(
        node is inner
        for part in (function.args, *function.decorator_list)
        for inner in ast.walk(part)
    ) or (
        function.returns is not None and any(node is inner for inner in ast.walk(function.returns))
    )


def _drop(function: ast.FunctionDef, order: int) -> None:
    block, index = list(_statements(function))[order]
    block[index] = ast.copy_location(ast.Pass(), block[index])


@cache
def all_changes() -> tuple[Change, ...]:
    """Every change that the operators can make."""
    lines = [change for module in MODULES for change, _ in _changed(_source(module), module)]
    return (*lines, *_table_changes())


def _table_changes() -> Iterator[Change]:
    """Each entry of each table of rules, with another entry's value instead of its own."""
    for module, name in TABLES:
        table: Mapping[Any, Any] = _table(module, name)
        for number, (key, value) in enumerate(table.items()):
            other = _another(table, value)
            was, becomes = (f"{_word(key)}: {_word(each)}" for each in (value, other))
            yield Change(module, number, name, 0, "table", was, becomes)


def _word(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(_word(each) for each in value)})"
    return str(getattr(value, "name", value))


def _another(table: Mapping[Any, Any], value: Any) -> Any:
    """The value that comes after this one in the table, and differs from it."""
    values = list(dict.fromkeys(table.values()))
    return values[(values.index(value) + 1) % len(values)]


def _table(module: str, name: str) -> Any:
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _source(module: str) -> str:
    return inspect.getsource(importlib.import_module(module))


# ------------------------------------------------------------------------------------------ planting


def plant(change: Change) -> None:
    """Change the running code, for good: to be called in a process that ends afterwards."""
    if change.operator == "table":
        _plant_in_table(change)
        return
    module = importlib.import_module(change.module)
    function = next(
        target
        for found, target in _changed(_source(change.module), change.module)
        if found == change
    )
    original = _function(module, change.function)
    if (
        original.__code__.co_freevars
    ):  # it knows its class, and so must what takes its place, with or without super()
        function.body.insert(0, ast.Expr(ast.Name("__class__", ast.Load())))
    code = compile(_shell(change.function, function), module.__file__ or change.module, "exec")
    original.__code__ = _code(code, change.function)


def _shell(name: str, function: ast.FunctionDef) -> ast.Module:
    """A module that holds the function alone, in a class of its class's name: code is found there by its name."""
    body: list[ast.stmt] = [function]
    owner, _, _ = name.rpartition(".")
    if owner:
        body = [ast.ClassDef(owner, bases=[], keywords=[], body=[function], decorator_list=[])]
    tree = ast.Module(
        [*ast.parse("from __future__ import annotations").body, *body], type_ignores=[]
    )
    return ast.fix_missing_locations(tree)


def _plant_in_table(change: Change) -> None:
    table = _table(change.module, change.function)
    key, value = list(table.items())[change.number]
    if isinstance(table, dict):  # other modules know it by the same object
        table[key] = _another(table, value)
    else:
        holder, _, name = change.function.rpartition(".")
        setattr(_table(change.module, holder), name, {**table, key: _another(table, value)})


def _function(module: types.ModuleType, name: str) -> Any:
    found: Any = module
    for part in name.split("."):
        found = inspect.getattr_static(found, part)
    if isinstance(found, property):
        found = found.fget
    return getattr(found, "__func__", found)


def _code(code: types.CodeType, name: str) -> types.CodeType:
    """The code of a function, by its qualified name, within a module's code."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            if constant.co_qualname == name:
                return constant
            if name.startswith(f"{constant.co_qualname}."):
                return _code(constant, name)
    raise LookupError(name)


def judge(change: Change, seed: int, examples: int = EXAMPLES) -> Fate:
    """Plant the change in this process and run the suite on it."""
    plant(change)
    try:
        return Fate(
            change, _by_cases() or _by_programs(seed, examples) or _by_machine(seed, examples)
        )
    except Exception as error:
        return Fate(change, f"error: {type(error).__name__}")


def _by_cases() -> str:
    from conformance.cases.folder import all_cases
    from conformance.cases.play import play

    for case in all_cases():
        if play(case).differences:
            return f"case {case.name}"
    return ""


def _by_programs(seed: int, examples: int) -> str:
    """The machines that hold one core against its model."""
    from inorder.evidence.machines.every import MACHINES
    from inorder.evidence.machines.programs import search

    for name, machine in MACHINES.items():
        found = search(machine, seed, examples)
        if found.broken is not None:
            return f"machine {name}"
    return ""


def _by_machine(seed: int, examples: int) -> str:
    from conformance.machines.cluster import Collector
    from conformance.runner import run_machine

    collector = Collector(lambda refuted: refuted)
    run_machine(collector, seed, examples)
    return "" if collector.broken is None else f"clause {collector.broken.examination.refuted()[0]}"


def _limited(change: Change, seed: int, examples: int) -> Fate:
    """In a child of its own; a change that keeps something from ending is ended by the limit on CPU time."""
    import conformance.cases.play
    import conformance.runner  # noqa: F401  (what children share is loaded once)

    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    here = os.getpid()

    def work() -> None:
        grid.begin_work(here)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
        sender.send(judge(change, seed, examples).by)

    child = context.Process(target=work, daemon=True)
    child.start()
    sender.close()
    try:
        by = receiver.recv()
    except EOFError:
        by = "it does not end"
    finally:
        child.join()
    return Fate(change, by)


def judge_all(
    changes: Sequence[Change],
    seed: int,
    examples: int = EXAMPLES,
    workers: int = 2,
    told: Callable[[Fate], None] = lambda fate: None,
    *,
    store: Path | None = None,
    budget_s: float | None = None,
    fresh: bool = False,
    made: Callable[[grid.Done], None] = lambda cell: None,
) -> list[Fate]:
    """The fate of each change, in their order, whatever the number of workers.

    store, budget_s, fresh: as `inorder.evidence.grid.run` has them; what a budget left undone has no fate. made: told
    of each cell.
    """
    cells = {cell_of(change, seed, examples): change for change in changes}
    fates: dict[Change, Fate] = {}
    for done in grid.run(
        list(cells), suffer, store, budget_s=budget_s, workers=workers, fresh=fresh
    ):
        if done.error is not None:
            raise done.error
        fate = Fate(cells[done.cell], done.value)
        fates[fate.change] = fate
        made(done)
        told(fate)
    return [fates[change] for change in changes if change in fates]


def cell_of(change: Change, seed: int, examples: int) -> grid.Cell:
    """A change, and all that its fate depends on."""
    key = {"change": asdict(change), "seed": seed, "examples": examples, **grid.code_key(*CODE)}
    name = f"{change.module} {change.function} {change.operator} {change.number}"
    return grid.Cell("planted", name, key)


def suffer(cell: grid.Cell) -> str:
    """Make a cell."""
    return _limited(Change(**cell.key["change"]), cell.key["seed"], cell.key["examples"]).by


def sample(count: int, seed: int) -> tuple[Change, ...]:
    """Some changes at random places, in the order of the source."""
    everything = all_changes()
    chosen = Random(seed).sample(range(len(everything)), min(count, len(everything)))
    return tuple(everything[index] for index in sorted(chosen))


# ------------------------------------------------------------------------------------------ what survives

_NEVER_EQUAL = "an offset that is held was passed over before, so the two are never equal"
_SET_FIRST = "whoever adds the lane sets it before anybody reads it"
_STAYS_OPEN = "in the history a request that never ends says as little as one of unknown outcome, or that was not sent"
_NUMBERS = "the numbers of calls need only differ"
_DROPPED_FIRST = "whoever looks at a lane looks first whether it was dropped"

EQUIVALENT: Mapping[tuple[str, str, str, str], str] = {
    (
        "leases",
        "Leases.lease_answered",
        "self.consumer.end(op, Outcome.UNKNOWN, {'code': answer.code, 'detail': answer.remark})",
        "",
    ): _STAYS_OPEN,
    (
        "leases",
        "Leases.unlock",
        "self.consumer.end(op, Outcome.REFUSED, {'detail': UNREACHABLE})",
        "",
    ): _STAYS_OPEN,
    ("calls", "Calls.__init__", "self._call_number = 0", "self._call_number = 1"): _NUMBERS,
    (
        "calls",
        "Calls.call_listener",
        "self._call_number += 1",
        "self._call_number += 2",
    ): _NUMBERS,
    (
        "consumer_offsets",
        "ConsumerOffsets.persist",
        "out.append(Note(Kind.PERSIST, Outcome.OK, {'level': Level.STORE, 'broker': self._parts.config.name, "
        "'broker_epoch': self._parts.store.epoch, 'value': sum((len(queues) for queues in snapshot.values()))}))",
        "",
    ): "a row for people: that the broker wrote its offsets is asked by no clause, what it still has after a crash is",
    (
        "lane_release",
        "LaneRelease.release",
        "pq.locked = False",
        "pq.locked = True",
    ): _DROPPED_FIRST,
    ("lane_release", "LaneRelease.release", "pq.locked = False", ""): _DROPPED_FIRST,
    (
        "offsets",
        "OffsetStore.store_offset",
        "if value >= 0 and (not pq.dropped):",
        "if value >= 0 or not pq.dropped:",
    ): "what is kept for a dropped lane is reported by nobody, and a batch that is finished is never empty",
    (
        "consumer_offsets",
        "ConsumerOffsets.__init__",
        "self._told = 0",
        "self._told = 1",
    ): "requests that nobody answers are numbered by it",
    (
        "consumer_offsets",
        "ConsumerOffsets.reset_by_clients",
        "told[queue_id] = target if header.is_force or target < stored else stored",
        "told[queue_id] = target if header.is_force or target <= stored else stored",
    ): "where both are the same it does not matter which one is told",
    (
        "lock_table",
        "LockTable.lock",
        "self.refuse(now_ms, lease)",
        "",
    ): "a refusal changes nothing: the method is there for mutants to override",
    (
        "lock_table",
        "LockTable.unlock_batch",
        "freed.append(queue)",
        "",
    ): "the broker answers every unlock alike; only tests look at what was freed",
    (
        "lock_table",
        "LockTable.situation",
        "return Situation.OWN_EXPIRED if self.is_expired(now_ms, lease) else Situation.OWN_LIVE",
        "return Situation.OWN_EXPIRED if not self.is_expired(now_ms, lease) else Situation.OWN_LIVE",
    ): "both tables treat the asker's own lease alike, expired or not",
    (
        "lock_table",
        "LockTable.on_unlock",
        "OWN_EXPIRED: FREE",
        "OWN_EXPIRED: IGNORE",
    ): "an expired lease that stays is granted to the next asker like none at all",
    (
        "lock_table",
        "LockTable.on_unlock",
        "OTHER_EXPIRED: IGNORE",
        "OTHER_EXPIRED: FREE",
    ): "an expired lease that is gone is granted to the next asker like one that stayed",
    (
        "offset_table",
        "OffsetTable.fetch",
        "offset = self._table.get(OffsetKey(topic, group), {}).get(queue_id, -1)",
        "offset = self._table.get(OffsetKey(topic, group), {}).get(queue_id, -2)",
    ): "every negative value reads as nothing stored",
    (
        "process_queue",
        "ProcessQueue.__init__",
        "self.incarnation = incarnation",
        "",
    ): "the rows carry the name already; this one is for people and tests",
    ("process_queue", "ProcessQueue.__init__", "self.offset = NOTHING", ""): _SET_FIRST,
    (
        "process_queue",
        "ProcessQueue.__init__",
        "self.locked = False",
        "self.locked = True",
    ): _SET_FIRST,
    ("process_queue", "ProcessQueue.__init__", "self.locked = False", ""): _SET_FIRST,
    (
        "process_queue",
        "ProcessQueue.__init__",
        "self.last_lock_ms = 0",
        "self.last_lock_ms = 1",
    ): _SET_FIRST,
    ("process_queue", "ProcessQueue.__init__", "self.last_lock_ms = 0", ""): _SET_FIRST,
    (
        "process_queue",
        "ProcessQueue.__init__",
        "self.loop_began_ms = 0",
        "self.loop_began_ms = 1",
    ): _SET_FIRST,
    ("process_queue", "ProcessQueue.__init__", "self.loop_began_ms = 0", ""): _SET_FIRST,
    (
        "process_queue",
        "ProcessQueue.__init__",
        "self.delivered: dict[int, int] = {} if delivered is None else delivered",
        "self.delivered: dict[int, int] = {} if delivered is not None else delivered",
    ): "the counts of deliveries are for listener rules, of the client and not of the incarnation",
    (
        "process_queue",
        "ProcessQueue.put",
        "if not pending or pending[-1].queue_offset < offset:",
        "if not pending or pending[-1].queue_offset <= offset:",
    ): _NEVER_EQUAL,
    (
        "process_queue",
        "ProcessQueue.commit",
        "self.extra_times.pop(offset, None)",
        "",
    ): "an incarnation never sees a committed offset again: it costs memory and nothing else",
    (
        "process_queue",
        "ProcessQueue._insert",
        "if not pending or offset < pending[0].queue_offset:",
        "if not pending or offset <= pending[0].queue_offset:",
    ): _NEVER_EQUAL,
    (
        "process_queue",
        "ProcessQueue._insert",
        "while pending[at - 1].queue_offset > offset:",
        "while pending[at - 1].queue_offset >= offset:",
    ): _NEVER_EQUAL,
}
"""Survivors that change nothing anybody can see, by `Change.place`, with the reason."""


def report(fates: Sequence[Fate]) -> str:
    """How many were killed, by what, and every survivor with the reason why it is equivalent, or none."""
    killed = [fate for fate in fates if fate.killed]
    kinds = Counter(fate.by.split(" ")[0].rstrip(":") for fate in killed)
    lines = [
        f"{len(killed)} of {len(fates)} planted bugs killed: "
        + ", ".join(f"{count} by {_BY.get(kind, kind)}" for kind, count in kinds.most_common())
    ]
    for fate in fates:
        if not fate.killed:
            reason = EQUIVALENT.get(fate.change.place)
            lines += [
                f"survives: {fate.change}",
                f"    {f'equivalent: {reason}' if reason else 'NOT EXPLAINED'}",
            ]
    return "\n".join(lines)


_BY = {
    "case": "a case",
    "machine": "a machine of one core",
    "clause": "a clause",
    "error": "an error",
    "it": "not coming to an end",
}


def unexplained(fates: Sequence[Fate]) -> list[Change]:
    """The survivors that nobody has looked at."""
    return [
        fate.change for fate in fates if not fate.killed and fate.change.place not in EQUIVALENT
    ]


@click.command()
@click.option("--sample", "count", type=click.IntRange(1), help="Only so many, at random places.")
@click.option("--examples", type=click.IntRange(1), default=EXAMPLES, show_default=True)
@grid_options(out="Where finished changes are kept: runs/planted-SEED if not given.", workers=2)
@in_a_sentence
def main(
    count: int | None,
    examples: int,
    how: GridOptions,
) -> None:
    """Plant bugs, run the suite on each.

    Exit code: 1 when one survives that nobody has explained, 2 when --budget left some, else 0.
    """
    from conformance.cli.people import console

    people = console()
    changes = all_changes() if count is None else sample(count, how.seed)
    cells: list[grid.Done] = []
    fates = judge_all(
        changes,
        how.seed,
        examples,
        told=lambda fate: people.print(f"{fate.by or 'survives'}: {fate.change}"),
        store=how.folder("planted"),
        made=cells.append,
        **how.asked,
    )
    people.print(report(fates), markup=False)
    raise SystemExit(close(cells, len(changes), wrong=bool(unexplained(fates)), say=people.print))


if __name__ == "__main__":
    main()
