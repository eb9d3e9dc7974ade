"""`docs/cores.md`: the tables by which the cores decide, and the diagrams drawn from them.

`python -m reference_impl.document` writes the page; a test says that it is fresh. Nothing in it is typed by hand, so
that what a reader sees is what runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from enum import Enum
from pathlib import Path

from reference_impl.core.broker.broker import Broker
from reference_impl.core.broker.config import BrokerConfig
from reference_impl.core.broker.dialect import DIALECTS, Dialect
from reference_impl.core.broker.lock_table import ON_LOCK, ON_UNLOCK, Action, Situation
from reference_impl.core.broker.log import BrokerStore
from reference_impl.core.consumer.lane_life import LIFE, SIDE_BY_SIDE, Phase
from reference_impl.core.consumer.results import RESULTS
from reference_impl.core.consumer.start_offset import START
from reference_impl.protocol.codes import RequestCode

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "cores.md"
FIRST_WORDS = """\
# The cores, as tables

<!-- Written by `python -m reference_impl.document`, from the tables that run. -->

The reference decides by tables where it can; each one below is the data that the code looks into.
How a message passes through all of it is told in [one message's life](one-message.md).
"""


def page() -> str:
    """The whole document."""
    return "\n".join(
        [
            FIRST_WORDS,
            *_section("A lane at one client", _life(), "reference_impl/core/consumer/lane_life.py"),
            *_section(
                "What a listener's result means",
                _results(),
                "reference_impl/core/consumer/results.py",
            ),
            *_section(
                "Where a lane begins", _start(), "reference_impl/core/consumer/start_offset.py"
            ),
            *_section(
                "The broker's lock table", _locks(), "reference_impl/core/broker/lock_table.py"
            ),
            *_section(
                "Which request is answered by what",
                _requests(),
                "reference_impl/core/broker/broker.py",
            ),
            *_section(
                "Where 4.9 and 5.x differ", _dialects(), "reference_impl/core/broker/dialect.py"
            ),
        ]
    )


def _section(title: str, lines: Iterable[str], source: str) -> list[str]:
    return [f"## {title}", "", f"[`{source}`](../{source})", "", *lines, ""]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table of Markdown."""
    return [_row(head), _row(["---"] * len(head)), *map(_row, rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _life() -> list[str]:
    states = [f"    {phase.name.lower()} : {phase.value}" for phase in Phase]
    arrows = [
        f"    {before.name.lower()} --> {after.name.lower()} : {event.name.lower()}"
        for (before, event), after in LIFE.items()
        if after is not before
    ]
    diagram = [
        "```mermaid",
        "stateDiagram-v2",
        "    [*] --> elsewhere",
        *states,
        *arrows,
        "```",
        "",
    ]
    words = [
        "A lane's phase is stored, and `Consumer.move(lane, event)` moves it to the table's entry.",
        "An event that is no entry of its phase is an error in the code, and raises.",
        "Where calls of a lane run side by side it has no task, and takes only the steps that are marked.",
        "",
    ]
    steps = (
        (
            before.name.lower(),
            event.name.lower(),
            event.value,
            after.name.lower(),
            _yes((before, event) in SIDE_BY_SIDE),
        )
        for (before, event), after in LIFE.items()
    )
    head = ("phase", "event", "that is", "next phase", "side by side")
    return [*words, *diagram, *table(head, steps)]


def _results() -> list[str]:
    said = {
        "none": "nothing",
        "batch": "the batch",
        "taken": "all that was taken and not committed",
    }
    rows = (
        (
            outcome.value,
            mode.value,
            _yes(given_up),
            "all taken" if rule.commit else "nothing",
            said[rule.back.value],
            "at once" if rule.go_on else "after the suspend time",
        )
        for (outcome, mode, given_up), rule in RESULTS.items()
    )
    return table(("result", "mode", "all given up", "commits", "puts back", "goes on"), rows)


def _start() -> list[str]:
    said = {"zero": "offset 0", "end": "the end", "time": "the first message since that time"}
    rows = (
        (consume_from, "the retry topic" if retry else "a topic", said[where.value])
        for (consume_from, retry), where in START.items()
    )
    words = "A stored offset always wins; this is for a lane without one."
    return [words, "", *table(("consume from", "of", "begins at"), rows)]


def _locks() -> list[str]:
    """Both tables side by side, and what they come to for one client."""
    rows = ((each.value, ON_LOCK[each].value, ON_UNLOCK[each].value) for each in Situation)
    owners = {
        Situation.FREE: "free",
        Situation.OWN_LIVE: "mine",
        Situation.OWN_EXPIRED: "mine_expired",
        Situation.OTHER_LIVE: "theirs",
        Situation.OTHER_EXPIRED: "theirs_expired",
    }
    after = {Action.TAKE: "mine", Action.RENEW: "mine", Action.FREE: "free"}
    arrows = [
        f"    {owners[situation]} --> {after.get(action, owners[situation])} : {asked}"
        for asked, rules in (("lock", ON_LOCK), ("unlock", ON_UNLOCK))
        for situation, action in rules.items()
    ]
    states = [f"    {name} : {situation.value}" for situation, name in owners.items()]
    diagram = ["```mermaid", "stateDiagram-v2", *states, *arrows]
    diagram += [
        "    mine --> mine_expired : the limit passes",
        "    theirs --> theirs_expired : the limit passes",
    ]
    return [*diagram, "```", "", *table(("as the asker sees it", "lock", "unlock"), rows)]


def _requests() -> list[str]:
    broker = Broker(BrokerConfig(), BrokerStore())
    return table(("code", "request", "answered by"), _handlers(broker.requests()))


def _handlers(requests: Mapping[int, object]) -> Iterable[Sequence[str]]:
    for code, handler in requests.items():
        yield str(int(code)), RequestCode(code).name, f"`{getattr(handler, '__qualname__', '')}`"


def _dialects() -> list[str]:
    meaning = _meanings(Dialect.__doc__ or "")
    names = [each.name for each in fields(Dialect) if each.name != "name"]
    rows = (
        (
            f"`{name}`",
            *(_said(getattr(each, name)) for each in DIALECTS.values()),
            meaning.get(name, ""),
        )
        for name in names
    )
    return table(("rule", *DIALECTS, "meaning"), rows)


def _meanings(text: str) -> dict[str, str]:
    """The lines `name: words` of a docstring."""
    parts = (line.strip().partition(": ") for line in text.splitlines())
    return {name: words for name, colon, words in parts if colon and name.isidentifier()}


def _said(value: object) -> str:
    match value:
        case bool():
            return _yes(value)
        case Enum():
            return str(value.value)
        case tuple():
            return ", ".join(f"{name}={said}" for name, said in value) or "none"
        case _:
            return str(value)


def _yes(value: bool) -> str:
    return "yes" if value else "no"


if __name__ == "__main__":
    DOCUMENT.write_text(page(), encoding="utf-8")
