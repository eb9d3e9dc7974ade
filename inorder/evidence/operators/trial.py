"""One change tried in a process of its own: what the transcripts, the laws and the comparison say of it.

Whoever notices says by what; "" means that nothing was noticed. An error is noticed by whoever met it, and a change
that keeps something from ending by whoever was being asked.
"""

from __future__ import annotations

import ast
import multiprocessing
import os
import resource
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

from inorder.evidence import grid
from inorder.evidence.operators.histories import History, Rows
from inorder.evidence.operators.loading import load_anew
from inorder.evidence.operators.pools import Side
from inorder.evidence.operators.questions import Answer, Comparison, Questions
from specs.history.runinfo import RunInfo

CPU_S = 400
"""A change that takes longer than this has stopped something from ending."""
TRANSCRIPTS, COMPARISON, LAWS = WAYS = ("transcripts", "comparison", "laws")
"""In this order; the laws, which take longest, are asked about what the two others did not notice."""
CUT_EACH, FEW_ROWS = 4, 50
"""Of so many histories one comes to the kernels in parts of whole keys, of so many rows at least."""
SHORT, TOGETHER = 100, 64
"""So many histories of so few rows come to the kernels as one table."""
ENDLESS = "it does not end"
OVER = "over"

Found = tuple[int, list[tuple[tuple[int, ...], bool, str]]]
Noticed = dict[str, str]


def noticed(module: str, tree: ast.Module, questions: Questions) -> Noticed:
    """By way, what noticed the changed module first; in a child of this process."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    here = os.getpid()

    def work() -> None:
        grid.begin_work(here)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
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
        engines = _Engines(questions.clauses)
    except Exception as error:
        for by in (*[_told(error)] * 2, OVER):
            to.send(by)
        return
    silent = True
    for way in (_by_transcripts, _by_comparison, _by_laws):
        if way is _by_laws and not silent:
            break
        try:
            by = next(way(engines, questions), "")
        except Exception as error:
            by = _told(error)
        silent = silent and not by
        to.send(by)
    to.send(OVER)


def _told(error: Exception) -> str:
    return f"error: {type(error).__name__}"


class _Engines:
    """Both engines of some clauses, as they are loaded now."""

    def __init__(self, clauses: Sequence[str]) -> None:
        from inorder.evidence.operators.helpers import helper
        from spark_checkers.catalogue import all_twins
        from specs.clauses.catalogue import all_clauses
        from specs.verdicts.examine import examine

        judging = helper("judging")
        self.examine = examine
        self._by_python, self._by_twins = judging["by_python"], judging["by_twins"]
        self._together = judging["together_by_twins"]
        self.clauses = {each.id: each for each in all_clauses() if each.id in clauses}
        self.twins = {each.id: each for each in all_twins() if each.id in clauses}

    def ask(
        self, side: Side, asked: Sequence[str], info: Any, rows: Any, least: int | None = None
    ) -> Mapping[str, Found]:
        """What one engine finds. least: of how many rows, at least, whole keys come to the kernels together."""
        if side is Side.JUDGES:
            ordered = [self.clauses[each] for each in asked]
            found: Mapping[str, Found] = self._by_python(rows, info, ordered)
        else:
            parts = () if least is None else (least,)
            found = self._by_twins(rows, info, [self.twins[each] for each in asked], *parts)
        return found

    def ask_together(
        self, asked: Sequence[str], histories: Sequence[tuple[RunInfo, Rows]]
    ) -> Sequence[Mapping[str, Found]]:
        """What the kernels find in each of these, of which they make one table."""
        found: Sequence[Mapping[str, Found]] = self._together(
            histories, [self.twins[each] for each in asked]
        )
        return found


def _by_transcripts(engines: _Engines, questions: Questions) -> Iterator[str]:
    for each in questions.examples:
        where = f"{each.clause} {each.number}"
        if _came_out(engines, each.clause, each.expected, each.info, each.rows) != each.expected:
            yield f"{where} is not {each.expected}"
        one = [each.clause]
        judged, found = (engines.ask(side, one, each.info, each.rows) for side in Side)
        if judged != found:
            yield f"{where}: two answers"


def _came_out(engines: _Engines, clause: str, expected: str, info: Any, rows: Any) -> str:
    """The word for what the judge makes of an example."""
    tally = engines.examine(rows, info, (engines.clauses[clause],)).tallies[clause]
    if tally.missing:
        return "not recorded"
    if tally.violations:
        return "broken"
    if tally.possible:
        return "possible"
    # An example that says so must not be at stake; one that is kept may not be either.
    idle = expected == "not at stake" and not tally.opportunities
    return "not at stake" if idle else "kept"


_Breaks = Callable[[Found], bool]
_BROKEN_BY: Mapping[Answer, _Breaks] = {
    Answer.NOTHING_REFUTED: lambda found: any(certain for _, certain, _ in found[1]),
    Answer.REFUTED: lambda found: not any(certain for _, certain, _ in found[1]),
    Answer.NOT_AT_STAKE: lambda found: found[0] > 0,
}


def _by_laws(engines: _Engines, questions: Questions) -> Iterator[str]:
    for each in questions.laws:
        found = engines.ask(questions.side, each.clauses, each.info, each.rows)
        broken = [clause for clause in each.clauses if _BROKEN_BY[each.answer](found[clause])]
        if broken:
            yield f"{each.law}: {broken[0]} of {each.name}"


def _by_comparison(engines: _Engines, questions: Questions) -> Iterator[str]:
    number = 0
    for chosen in _together(questions.compared):
        clauses, histories = chosen[0].clauses, [each.history for each in chosen]
        found: Sequence[Mapping[str, Found]]
        if len(chosen) == 1:
            least = None if (number + 1) % CUT_EACH else FEW_ROWS
            found = [engines.ask(Side.KERNELS, clauses, *_parts(histories[0]), least)]
        else:
            found = engines.ask_together(clauses, [_parts(each) for each in histories])
        for history, by_kernels in zip(histories, found, strict=True):
            number += 1
            judged = engines.ask(Side.JUDGES, clauses, *_parts(history))
            if judged != by_kernels:
                apart = next(each for each in clauses if judged[each] != by_kernels[each])
                yield f"{apart} of {history.name} ({number})"


def _parts(history: History) -> tuple[RunInfo, Rows]:
    return history.info, history.rows


def _together(compared: Iterable[Comparison]) -> Iterator[list[Comparison]]:
    """Short histories come to the kernels together, as runs of one table: most of what they take is by the table."""
    waiting: list[Comparison] = []
    for each in compared:
        is_short = len(each.history.rows) <= SHORT
        if waiting and not (
            is_short and each.clauses == waiting[0].clauses and len(waiting) < TOGETHER
        ):
            yield waiting
            waiting = []
        if is_short:
            waiting.append(each)
        else:
            yield [each]
    if waiting:
        yield waiting
