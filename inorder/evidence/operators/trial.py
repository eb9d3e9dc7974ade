"""One change tried in a process of its own: what transcripts, definitions and laws say of it.

Whoever notices says by what; "" means that nothing was noticed. An error is noticed by whoever met it, and a change
that keeps something from ending by whoever was being asked.
"""

from __future__ import annotations

import ast
import multiprocessing
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any

from inorder.evidence import grid
from inorder.evidence.operators.histories import Rows
from inorder.evidence.operators.loading import load_anew
from inorder.evidence.operators.pools import source_of
from inorder.evidence.operators.questions import FEW, Answer, Questions
from specs.history.runinfo import RunInfo

CPU_S = 400
"""A change with which a question takes longer than this has stopped something from ending."""
TRANSCRIPTS, DEFINITIONS, LAWS = WAYS = ("transcripts", "definitions", "laws")
"""In this order; the laws are asked about what the two others did not notice."""
ENDLESS = "it does not end"
OVER = "over"

Noticed = dict[str, str]


def noticed(module: str, tree: ast.Module, questions: Questions) -> Noticed:
    """By way, what noticed the changed module first; in a child of this process."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    here = os.getpid()

    def work() -> None:
        grid.begin_work(here)
        _allow_more()
        _answer(module, tree, questions, sender)

    child = context.Process(target=work, daemon=True)
    child.start()
    sender.close()
    told: list[str] = []
    try:
        while not told or told[-1] != OVER:
            told.append(receiver.recv())
    except EOFError:
        told.append(ENDLESS)
    finally:
        child.join()
        receiver.close()
    answers = dict(zip(WAYS, (by for by in told if by != OVER), strict=False))
    return {way: answers.get(way, "") for way in WAYS}


def _answer(module: str, tree: ast.Module, questions: Questions, to: Connection) -> None:
    warnings.simplefilter("error")  # as the tests have it
    load_anew(module, tree)
    try:
        judges = _Judges(questions.clauses)
    except Exception as error:
        for by in (*[_told(error)] * 2, OVER):
            to.send(by)
        return
    silent = True
    for way in (_by_transcripts, _by_definitions, _by_laws):
        if way is _by_laws and not silent:
            break
        try:
            by = next(way(judges, questions), "")
        except Exception as error:
            by = _told(error)
        silent = silent and not by
        to.send(by)
    to.send(OVER)


def _allow_more() -> None:
    """From now on this process may take `CPU_S`, and is ended after that."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + CPU_S, hard))


def _told(error: Exception) -> str:
    return f"error: {type(error).__name__}"


class _Judges:
    """Some clauses, as they are loaded now."""

    def __init__(self, clauses: Sequence[str]) -> None:
        from specs.clauses.catalogue import all_clauses
        from specs.verdicts.examine import examine

        self._examine = examine
        self.clauses = {each.id: each for each in all_clauses() if each.id in clauses}

    def ask(self, asked: Sequence[str], info: RunInfo, rows: Rows) -> Mapping[str, Any]:
        """The tallies of these clauses."""
        found: Mapping[str, Any] = self._examine(
            rows, info, [self.clauses[each] for each in asked]
        ).tallies
        return found


def _by_transcripts(judges: _Judges, questions: Questions) -> Iterator[str]:
    for each in questions.examples:
        tally = judges.ask([each.clause], each.info, each.rows)[each.clause]
        if _came_out(tally, each.expected) != each.expected:
            yield f"{each.clause} {each.number} is not {each.expected}"
        if each.at_stake not in (None, tally.opportunities):
            yield f"{each.clause} {each.number} is at stake otherwise"


def _came_out(tally: Any, expected: str) -> str:
    """The word for what became of an example."""
    if tally.missing:
        return "not recorded"
    if tally.violations:
        return "broken"
    if tally.possible:
        return "possible"
    # An example that says so must not be at stake; one that is kept may not be either.
    idle = expected == "not at stake" and not tally.opportunities
    return "not at stake" if idle else "kept"


def _by_definitions(judges: _Judges, questions: Questions) -> Iterator[str]:
    if not questions.defined:
        return
    folder = str(source_of("specs").parents[1])
    if folder not in sys.path:  # definitions lie with the tests
        sys.path.append(folder)
    enumeration = import_module("tests.definitions.enumeration")
    long = len(questions.defined) <= FEW  # else it would take an hour
    for size in ("short", "long") if long else ("short",):
        histories = enumeration.SIZES[size]
        for clause in questions.defined:
            _allow_more()
            count = enumeration.compare(clause, histories)
            for how in count.differences:
                yield f"{clause}: {how}"
            if count.stakes != enumeration.stakes()[clause, size]:
                yield f"{clause}: at stake otherwise"
    _allow_more()


_BROKEN_BY: Mapping[Answer, Callable[[Any], bool]] = {
    Answer.NOTHING_REFUTED: lambda tally: bool(tally.violations),
    Answer.REFUTED: lambda tally: not tally.violations,
    Answer.NOT_AT_STAKE: lambda tally: tally.opportunities > 0,
}


def _by_laws(judges: _Judges, questions: Questions) -> Iterator[str]:
    for each in questions.laws:
        tallies = judges.ask(each.clauses, each.info, each.rows)
        broken = [clause for clause in each.clauses if _BROKEN_BY[each.answer](tallies[clause])]
        if broken:
            yield f"{each.law}: {broken[0]} of {each.name}"
