"""Every case on every body of the reference.

In the simulated world its answers are exact, by the file. On sockets they are the same, to the millisecond, for only
the clock is ours (`conformance.cases.sockets`). Killed: before its last block every broker is gone without a word and
starts again on what it had written; the answers are then those of the simulated world in which the same happens, and
no clause is refuted by the history. What sockets can't do is counted as not applicable, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from conformance.cases.folder import all_cases
from conformance.cases.play import Played, play
from conformance.cases.sockets import NotOnSockets, SocketCluster
from conformance.cases.text import Case, CaseError
from conformance.waiting import now_s
from specs import profiles
from specs.verdicts.examine import examine

SIMULATED = "reference"
ON_SOCKETS = "reference+tcp"
KILLED_SIMULATED = "reference, killed"
KILLED = "reference+tcp, killed"
BODIES = (SIMULATED, KILLED_SIMULATED, ON_SOCKETS, KILLED)
PROFILE = "reference"
_ID = re.compile(r"\b[0-9A-F]{32}\b")
"""A broker's id of a message: its address, and where in its log the message lies."""
_ADDRESS_DIGITS = 16


A_MOMENT = "two parties act in one millisecond, and the answer depends on whose frame is first: sockets choose"
OF_A_MOMENT = frozenset(
    {
        "commit/of_a_lane_that_comes_back",  # the old owner's release and the new one's request
        "handover/a_lane_lost_and_regained_counts_from_0",  # the same
        "handover/to_a_member_who_joins",  # the same
        "handover/restarted_broker",  # a retried pull and the start of the broker
    }
)
"""Cases whose answers the simulated network decides by its order within a millisecond, which is no promise."""
KILLED_IN_A_MOMENT = (
    OF_A_MOMENT
    | {
        "concurrent/calls_side_by_side",  # the commit and the broker's write of its offsets, which a kill shows
    }
)
"""The same when brokers are killed."""


@dataclass(slots=True)
class CasesKept:
    """All cases on one body. differs: case → what was answered otherwise. not_applicable: reason → cases."""

    target: str
    held: list[str] = field(default_factory=list)
    differs: dict[str, str] = field(default_factory=dict)
    not_applicable: dict[str, list[str]] = field(default_factory=dict)
    seconds: int = 0
    date: str = ""

    @property
    def count(self) -> int:
        return len(self.held) + len(self.differs) + sum(map(len, self.not_applicable.values()))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def keep_cases(
    target: str, *, date: str, topic: str = "", say: Callable[[str], Any] = lambda _: None
) -> CasesKept:
    """Play the cases of a topic (of all, when none is given) on one of BODIES."""
    began_s = now_s()
    kept = CasesKept(target, date=date)
    for case in all_cases():
        if not case.name.startswith(topic):
            continue
        if case.name in {ON_SOCKETS: OF_A_MOMENT, KILLED: KILLED_IN_A_MOMENT}.get(target, ()):
            kept.not_applicable.setdefault(A_MOMENT, []).append(case.name)
            continue
        try:
            why = keep_case(case, target)
        except CaseError as error:
            if not isinstance(error.__cause__, NotOnSockets):
                raise
            kept.not_applicable.setdefault(str(error.__cause__), []).append(case.name)
            continue
        if why is None:
            kept.held.append(case.name)
        else:
            kept.differs[case.name] = why
            say(f"{case.name} on {target}: {why}")
    kept.seconds = round(now_s() - began_s)
    return kept


def keep_case(case: Case, target: str) -> str | None:
    """What is wrong about the case on that body; None when it holds. CaseError by NotOnSockets where it can't be."""
    is_killed = target in (KILLED_SIMULATED, KILLED)
    options: Mapping[str, Any] = {}
    if is_killed:
        options = {"killed_before": len(case.blocks) - 1}
    if target in (SIMULATED, KILLED_SIMULATED):
        played = play(case, **options)
        wanted: Sequence[tuple[str, ...]] = (
            played.answers if is_killed else [block.expected or () for block in case.blocks]
        )
    else:
        played = play(case, None, SocketCluster, **options)
        wanted = (
            play(case, **options).answers
            if is_killed
            else [block.expected or () for block in case.blocks]
        )
    return _different(played, wanted) or _refuted(played)


def _different(played: Played, wanted: Sequence[tuple[str, ...]]) -> str | None:
    for block, expected, happened in zip(played.case.blocks, wanted, played.answers, strict=True):
        if _comparable(expected) != _comparable(happened):
            return f"line {block.number}: expected {' / '.join(expected)}, happened {' / '.join(happened)}"
    return None


def _comparable(lines: Sequence[str]) -> list[str]:
    """The answer without the broker's address in its ids of messages, which are another one on each body, and with
    what different parties do in the same millisecond in one order: between them nothing says who is first."""
    plain = [_ID.sub(lambda found: "*" + found[0][_ADDRESS_DIGITS:], line) for line in lines]
    return list(_ties(plain))


_DONE_AT = re.compile(r"(\d+)ms\S*\s+(\S+)")


def _ties(lines: Sequence[str]) -> Iterator[str]:
    """Told lines of one moment, by who did it; a party's own stay in their order."""
    run: list[tuple[str, str, str]] = []
    for line in lines:
        found = _DONE_AT.match(line)
        if found is None or (run and run[0][0] != found[1]):
            yield from (each[2] for each in sorted(run, key=lambda each: each[1]))
            run = []
        if found is None:
            yield line
        else:
            run.append((found[1], found[2], " ".join(line.split())))
    yield from (each[2] for each in sorted(run, key=lambda each: each[1]))


NOT_JUDGED: Mapping[str, str] = {
    "retention forgets": "a history says nothing of messages that the broker no longer keeps",
    "dialect=4.9": "the 4.9 line promises less than the reference's profile",
    "without an id": "a message without an id is nobody's in a history",
    "send back": "the copy that a broker makes names its origin by its place in the log",
}
"""Words of cases whose history no clause is asked about, and why."""


def _refuted(played: Played) -> str | None:
    """A clause that the history refutes, though the reference promises it."""
    lines = [line.text for block in played.case.blocks for line in block.commands]
    if any(words in line for line in lines for words in NOT_JUDGED):
        return None
    profile = profiles.load(PROFILE)
    found = examine(played.rows, played.info)
    for name in found.refuted():
        if profile.claim(name).status == "claimed":
            return f"{name} is refuted: {found.tallies[name].explanation}"
    return None
