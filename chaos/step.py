"""One step of a scenario: what is done, when it comes, and when it is over.

    [[fault]]
    do = "pause"              # a verb of specs.faults, or another name of it; or start, stop
    client = "c1"             # whom; for a fault of a link or a broker, whose work is waited for
    after_messages = [5, 20]  # how many that client has finished first, since the step's turn came
    for_ms = 3000             # how long it lasts
    times = 12                # it comes so often, one after the other; with `beside` each once the last has begun

A number may be a range, from which the run's seed draws. A step comes when all before it are over; with
`beside = true` when the one before it has begun, so that both go on at once.
A fault of a client comes while its listener runs, and lasts until others have its lanes, unless `for_ms` says how long.
A fault of a link is one of all clients' links to all brokers; with `broker` of those to that one, and with
`alone = true` it is the client's own link alone. A fault of a party befalls a broker where `broker` names one.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Self

from reference_impl.protocol.codes import RequestCode, ResponseCode
from specs.errors import UsageError
from specs.faults import FAULTS, named
from specs.plan.fault import Fault, Subject
from specs.plan.step import EVERYBODY, LATEST_MS, MOVES, Step

_WHOM = frozenset({Subject.CLIENT, Subject.PROCESS})
_LASTS_MS = 3_000
_HOUR_MS = 3_600_000
_DAYS_MS = 1_000_000_000
_USUAL: Mapping[str, int] = {
    "ms": 150,
    "percent": 50,
    "kb_per_s": 2,
    "piece_bytes": 30,
    "after_bytes": 2_000,
}
"""The numbers of faults, and what each is where nothing is said."""
_NUMBERS = {
    "times": (1, 1_000),
    "after_messages": (0, 1_000_000),
    "for_ms": (0, _HOUR_MS),
    "deadline_s": (0, _HOUR_MS // 1000),
    "ms": (-_DAYS_MS, _DAYS_MS),
    "percent": (0, 100),
    "kb_per_s": (0, 1_000_000),
    "piece_bytes": (0, 1_000_000),
    "after_bytes": (0, 1_000_000_000),
}
"""By word the least and the most: a run that would not end for days is a slip of the pen."""
_FLAGS = ("restart", "at_work", "beside", "alone", "silent", "answer", "synced", "same")
_CODES = {"request": ("code", RequestCode), "error": ("error", ResponseCode)}
"""By word the argument that is a number of the protocol, and its names."""


@dataclass(frozen=True, slots=True)
class StepTemplate:
    """do: the verb. table: the rest of the scenario's table, looked at."""

    do: str
    table: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        table: Mapping[str, Any],
        clients: Collection[str],
        brokers: Collection[str],
        where: str,
    ) -> Self:
        """From a scenario's [[fault]] table. Raises UsageError naming what is wrong with it."""
        rest = dict(table)
        name = str(rest.pop("do", ""))
        fault = named(name)
        if fault is None and name not in MOVES:
            known = sorted([*MOVES, *(word for fault in FAULTS.values() for word in fault.names)])
            raise UsageError(f"{where}: there is no fault {name!r}; known are {', '.join(known)}")
        mine = _words_of(fault)
        unknown = sorted(set(rest) - mine)
        if unknown:
            raise UsageError(
                f"{where}: fault {name} knows no {', '.join(unknown)}; it has {', '.join(sorted(mine))}"
            )
        if "client" not in rest:
            raise UsageError(f"{where}: fault {name} needs a client, whose work it waits for")
        if fault is not None and "code" in fault.arguments and "request" not in rest:
            raise UsageError(f"{where}: fault {name} needs a request, by its name in the protocol")
        _check_values(rest, fault, clients, brokers, f"{where}, fault {name}")
        return cls(name if fault is None else fault.verb, rest)

    @property
    def fault(self) -> Fault | None:
        """None of a client that joins or leaves."""
        return FAULTS.get(self.do)

    def steps(self, draw: Random, brokers: Collection[str]) -> Iterator[Step]:
        """Each time that it comes: its numbers drawn, and one step for each broker whose link it breaks."""
        times = _drawn(self.table["times"], draw) if "times" in self.table else 1
        for _ in range(times):
            yield from self._once(draw, brokers)

    def _once(self, draw: Random, brokers: Collection[str]) -> Iterator[Step]:
        fault, table = self.fault, self.table
        numbers = {
            word: _drawn(table[word], draw)
            for word in _NUMBERS
            if word in table and word != "times"
        }
        of_broker = fault is not None and "broker" in table and fault.subject in _WHOM
        befalls_client = fault is None or (fault.subject in _WHOM and not of_broker)
        leaves = self.do != "start"
        usual_ms = None if befalls_client else _LASTS_MS
        nodes = _nodes(self.do, fault, table, brokers)
        for number, args in enumerate(nodes):
            yield Step(
                self.do,
                args | _arguments(fault, table, numbers),
                client=table["client"] if leaves else table.get("while", ""),
                finished=numbers.get("after_messages", 10),
                at_work=table.get("at_work", befalls_client and leaves),
                for_ms=numbers.get("for_ms", usual_ms if leaves else 0),
                heals=table.get("restart", leaves),
                beside=table.get("beside", False) or number > 0,
                of_broker=of_broker,
                deadline_ms=numbers.get("deadline_s", LATEST_MS // 1000) * 1000,
            )


def _words_of(fault: Fault | None) -> set[str]:
    """The words that mean something to it."""
    known = {"client", "times", "after_messages", "for_ms", "beside", "at_work", "deadline_s"}
    if fault is None:
        return known | {"restart", "while"}
    if fault.subject not in (Subject.CLIENT, Subject.NAME_SERVER):
        known |= {"broker"}
    if fault.subject in (Subject.CLIENT, Subject.BROKER, Subject.NAME_SERVER):
        known |= {"restart"}
    if fault.subject is Subject.LINK:
        known |= {"alone"}
    takes = {
        name for name in fault.arguments if name in (*_USUAL, "silent", "answer", "synced", "same")
    }
    return known | takes | {word for word, (name, _) in _CODES.items() if name in fault.arguments}


def _check_values(
    table: Mapping[str, Any],
    fault: Fault | None,
    clients: Collection[str],
    brokers: Collection[str],
    where: str,
) -> None:
    for word, value in table.items():
        if word in _NUMBERS:
            ends = value if isinstance(value, list) else [value, value]
            least, most = _NUMBERS[word]
            if word == "ms" and fault is not None and fault.healed_by is not None:
                least = 0  # only a clock goes back
            if len(ends) != 2 or not all(type(end) is int and least <= end <= most for end in ends):
                raise UsageError(
                    f"{where}: {word} is a whole number from {least:,} to {most:,}, "
                    f"or a range [LEAST, MOST] within"
                )
            if ends[0] > ends[1]:
                raise UsageError(f"{where}: the range of {word} ends before it begins")
        elif word in _FLAGS:
            if not isinstance(value, bool):
                raise UsageError(f"{where}: {word} is true or false")
        elif not isinstance(value, str):
            raise UsageError(f"{where}: {word} is text")
        elif word in _CODES:
            _code(word, value, where)
        elif word == "broker" and value not in brokers:
            raise UsageError(
                f"{where}: there is no broker {value!r}; the workload has {', '.join(brokers)}"
            )
        elif word in ("client", "while") and value not in clients:
            raise UsageError(
                f"{where}: there is no consumer {value!r}; the workload has {', '.join(clients)}"
            )


def _code(word: str, name: str, where: str) -> int:
    """The number that the protocol has for it."""
    codes = _CODES[word][1]
    if name not in codes.__members__:
        near = difflib.get_close_matches(name, codes.__members__, n=2)
        meant = f"; did you mean {' or '.join(near)}?" if near else ""
        raise UsageError(f"{where}: there is no {word} {name!r}{meant}")
    return int(codes[name])


def _drawn(value: Any, draw: Random) -> int:
    return draw.randint(*value) if isinstance(value, list) else int(value)


def _nodes(
    do: str, fault: Fault | None, table: Mapping[str, Any], brokers: Collection[str]
) -> list[dict[str, Any]]:
    """Whom it befalls, as the arguments of the verb."""
    if fault is None:
        return [{"client": table["client"]}]
    if fault.subject is Subject.NAME_SERVER:
        return [{}]
    if fault.subject is Subject.LINK:
        whose = table["client"] if table.get("alone") else EVERYBODY
        ends = [table["broker"]] if "broker" in table else sorted(brokers)
        return [{"a": whose, "b": broker} for broker in ends]
    if fault.subject in _WHOM and "broker" not in table:
        return [dict.fromkeys(fault.nodes, table["client"])]
    return [dict.fromkeys(fault.nodes, table.get("broker", min(brokers)))]


def _arguments(
    fault: Fault | None, table: Mapping[str, Any], numbers: Mapping[str, int]
) -> dict[str, Any]:
    """Its number, if it has one, and what else it takes."""
    if fault is None:
        return {}
    found: dict[str, Any] = {
        name: numbers.get(name, number)
        for name, number in _USUAL.items()
        if name in fault.arguments
    }
    for word, (name, _) in _CODES.items():
        if name in fault.arguments and word in table:
            found[name] = _code(word, table[word], "the scenario")
    flags = (name for name in ("silent", "answer", "synced", "same") if name in table)
    return found | {name: table[name] for name in flags}
