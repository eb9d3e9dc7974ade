"""The kill matrix as a table for people, as Markdown and as Allure results.

In Allure: one result per mutant (passed: the clause that it names has killed it, with a small and minimal witness),
and one for the matrix, which carries it as Markdown and as JSON.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element

from allure_commons.logger import AllureFileLogger
from allure_commons.model2 import Label, Parameter, Status, StatusDetails, TestResult
from allure_commons.types import AttachmentType, LabelType
from allure_commons.utils import now
from rich.table import Table

from conformance.reports import allure, plots
from conformance.reports.saving import check
from conformance.reports.schemas import MATRIX_SCHEMA
from conformance.reports.text import events
from inorder.evidence import tables
from inorder.evidence.kill_matrix.kill import Kill
from inorder.evidence.kill_matrix.matrix import Matrix
from reference_impl.mutants import HISTORY
from specs.clauses.clause import Clause

JSON_FILE, MARKDOWN_FILE, PICTURE_FILE = "matrix.json", "matrix.md", "matrix.svg"
SUITE = "kill matrix"
_NAMESPACE = uuid.UUID("0d4f4c1e-51a7-5c3c-8b83-6a0f8c1f6a57")
_COLUMNS = (
    "mutant",
    "clause",
    "killed",
    "refutes",
    "examples",
    "events",
    "witness",
    "search s",
    "shrink s",
)
_NUMBERS = frozenset(_COLUMNS[4:])
_NOT_ON_A_TERMINAL = "refutes"


def save(matrix: Matrix, folder: Path) -> Path:
    """Write matrix.json (checked against its schema), matrix.md, matrix.svg and allure-results/ into `folder`."""
    data = matrix.to_json()
    check(data, MATRIX_SCHEMA)
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    (folder / JSON_FILE).write_text(text, encoding="utf-8")
    (folder / MARKDOWN_FILE).write_text(markdown(matrix), encoding="utf-8")
    tables.draw(folder / PICTURE_FILE, picture(matrix))
    write_allure(matrix, folder / allure.FOLDER)
    return folder


def picture(matrix: Matrix) -> Element:
    """How many of the mutants were found after so many runs of each one's search."""
    runs = [each.examples for each in matrix.kills if each.killed]
    title = f"Mutants found, by the runs of each search (seed {matrix.seed})"
    curves = {f"seed {matrix.seed}": found_after(runs)}
    return found_picture("found", title, curves, len(matrix.kills))


def found_after(runs: Sequence[int]) -> list[tuple[float, float]]:
    """After how many runs so many are found."""
    return [(0.0, 0.0), *((float(at), float(sum(n <= at for n in runs))) for at in sorted({*runs}))]


def found_picture(
    key: str, title: str, curves: Mapping[str, Sequence[tuple[float, float]]], most: int
) -> Element:
    """The saturation of searches for planted bugs. most: how many bugs there are."""
    x_axis = plots.Axis("runs of a search", log=True)
    return plots.lines(key, title, curves, x_axis, plots.Axis("bugs found"), most=float(most))


def cells(kill: Kill) -> tuple[str, ...]:
    """One line of the matrix, under `_COLUMNS`. events: of the run as found and as shrunk."""
    sizes = f"{kill.found.rows} → {kill.shrunk.rows}" if kill.found and kill.shrunk else ""
    size = (
        str(len(kill.witness))
        if kill.witness
        else "answer"
        if kill.killed and kill.oracle != HISTORY
        else ""
    )
    if kill.witness and not kill.minimal:
        size += " (not minimal)"
    return (
        kill.name,
        kill.clause,
        "yes" if kill.killed else "NO",
        " ".join(kill.refuted) or "none",
        str(kill.examples),
        sizes,
        size,
        f"{kill.search_s:.1f}",
        f"{kill.shrink_s:.1f}" if kill.shrunk else "",
    )


def closing(matrix: Matrix) -> str:
    """What it all came to, in one sentence."""
    killed = len(matrix.kills) - len(matrix.survivors)
    words = [f"{killed} of {len(matrix.kills)} mutants killed by the clause that they name"]
    if matrix.witness_sizes:
        words.append(
            f"witnesses of {matrix.median:g} events (median), {max(matrix.witness_sizes)} at most"
        )
    wrong = [each.name for each in matrix.bad if each.killed]
    if wrong:
        words.append(f"not minimal or too large: {', '.join(wrong)}")
    if matrix.survivors:
        words.append(f"survivors: {', '.join(each.name for each in matrix.survivors)}")
    words.append(
        f"seed {matrix.seed}, at most {matrix.examples} examples each, {matrix.elapsed_s:.0f} s"
    )
    return "; ".join(words)


def table(kills: Sequence[Kill]) -> Table:
    """For a terminal: without the other clauses that a run refutes, which need room."""
    shown = [number for number, column in enumerate(_COLUMNS) if column != _NOT_ON_A_TERMINAL]
    return tables.terminal(
        [_COLUMNS[number] for number in shown],
        [[texts[number] for number in shown] for texts in map(cells, kills)],
        right=_NUMBERS,
        bad=lambda number: not kills[number].is_good,
    )


def markdown(matrix: Matrix) -> str:
    """The document: the sentence, the table, and the story of each kill."""
    lines = ["# Kill matrix", "", f"{closing(matrix)}.", ""]
    lines += tables.markdown(_COLUMNS, [cells(kill) for kill in matrix.kills], right=_NUMBERS)
    for kill in matrix.kills:
        lines += ["", f"## {kill.name}", "", f"{tables.one_line(kill.bug)}.", ""]
        lines.append(f"{tables.one_line(story(kill))}.")
        if kill.witness:
            lines += ["", "````text", events(kill.witness), "````"]
    return "\n".join(lines) + "\n"


def story(kill: Kill) -> str:
    """What became of one mutant, in a sentence."""
    if not kill.killed:
        others = f"; refuted was {', '.join(kill.refuted)}" if kill.refuted else ""
        return f"{kill.clause} was not refuted in {kill.examples} runs{others}"
    return f"{kill.clause}: {kill.explanation}"


def write_allure(matrix: Matrix, folder: Path) -> Path:
    """Allure results of the matrix; what else lies in the folder stays."""
    writer = AllureFileLogger(str(folder), clean=False)
    moment = now()
    whole = _result(matrix, SUITE, "every known bug is found", SUITE, moment)
    whole.status = Status.FAILED if matrix.bad else Status.PASSED
    whole.statusDetails = StatusDetails(message=closing(matrix))
    allure.attach(writer, whole, "kill matrix", markdown(matrix), AttachmentType.TEXT)
    text = json.dumps(matrix.to_json(), indent=2, sort_keys=True, ensure_ascii=False)
    allure.attach(writer, whole, "kill matrix (data)", text, AttachmentType.JSON)
    writer.report_result(whole)
    for kill in matrix.kills:
        _write_kill(writer, matrix, kill, moment)
    return folder


def _write_kill(writer: AllureFileLogger, matrix: Matrix, kill: Kill, moment: int) -> None:
    family = Clause.FAMILIES.get(kill.clause.split("-")[0], "the wire")
    result = _result(matrix, kill.name, f"{kill.name} is killed by {kill.clause}", family, moment)
    result.status = Status.PASSED if kill.is_good else Status.FAILED
    result.description = kill.bug
    result.statusDetails = StatusDetails(
        message=story(kill), trace=events(kill.witness) if kill.witness else None
    )
    result.parameters += [
        Parameter(name="clause", value=kill.clause),
        Parameter(name="examples", value=str(kill.examples), excluded=True),
        Parameter(name="seed", value=str(kill.seed), excluded=True),
    ]
    if kill.witness:
        allure.attach(writer, result, "witness", events(kill.witness), AttachmentType.TEXT)
    writer.report_result(result)


def _result(matrix: Matrix, identity: str, name: str, suite: str, moment: int) -> TestResult:
    test = f"inorder.mutants.{identity}"
    history = hashlib.md5(test.encode(), usedforsecurity=False).hexdigest()
    result = TestResult(
        uuid=str(uuid.uuid5(_NAMESPACE, f"{matrix.seed}|{history}")),
        name=name,
        fullName=test,
        historyId=history,
        testCaseId=history,
        stage="finished",
        start=moment,
        stop=moment,
    )
    labels = (
        (LabelType.PARENT_SUITE, SUITE),
        (LabelType.SUITE, suite),
        (LabelType.FEATURE, suite),
        (LabelType.STORY, name),
        (LabelType.FRAMEWORK, "inorder"),
    )
    result.labels += [Label(name=kind, value=value) for kind, value in labels]
    result.titlePath += [SUITE, suite]
    return result
