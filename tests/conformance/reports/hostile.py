"""A run in which every name, key and text is an attack on whoever shows it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from conformance.reports.view import FaultView, VerdictView
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.history.store import History, write_history
from specs.verdicts.tally import FaultTold

NAME = (
    "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>"
    "\"' onmouseover='window.pwned=1' <!-- ]]> ${1} {{7*7}} {% raw %} javascript:1 &lt; \u202egnp.exe"
)
MARK = "window.pwned"


def row(each: Row, name: str = NAME) -> Row:
    """The row, with the attack in each of its texts."""
    texts = ("client_id", "process", "group", "topic", "broker", "message_id", "sharding_key")
    more = ("tags", "view", "detail", "incarnation", "run")
    return each._replace(**dict.fromkeys((*texts, *more), name))


def run(verdict: VerdictView, rows: list[Row], folder: Path) -> tuple[VerdictView, History]:
    """A refuted run whose target, parties, clauses and events carry the attack, and its history."""
    hostile = [row(each) for each in rows]
    info = RunInfo(NAME, environment={NAME: NAME}, parties={"broker": NAME}, target=NAME)
    history = write_history(folder, info, hostile)
    clauses = tuple(
        replace(
            clause,
            witness=tuple(row(each) for each in clause.witness),
            explanation=clause.explanation and NAME,
            reason=NAME,
            findings=clause.findings and (NAME,),
            implementations=(NAME,),
        )
        for clause in verdict.clauses
    )
    made = replace(
        verdict,
        clauses=clauses,
        target=NAME,
        profile=NAME,
        run=NAME,
        replay=NAME,
        parties={"broker": NAME, "client": NAME},
        faults=(FaultView(NAME, effective=True, told=FaultTold(NAME, True, 0, 1, NAME)),),
        tool={"engine": NAME},
        cut=(NAME,),
        folder=folder,
        met=tuple(replace(check, detail=NAME) for check in verdict.met),
    )
    return made, history
