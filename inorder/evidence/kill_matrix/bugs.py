"""The known bugs, by number: what went wrong somewhere, and, where no mutant stands for it, why not.

The numbers are the project's own and are used in the mutants' `BUG`. A bug with a mutant needs no reason; one with
a reason and a mutant says what of it is still missing. `waits_for` names the clauses of the catalogue that would
show the bug; until they can be judged, a mutant would survive whatever it did.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from reference_impl.mutants import Mutant, every_mutant

_NUMBER = re.compile(r"B-(\d\d)")

POP = "a lease per message that nobody asks for by name (POP), which no part of ours speaks"


@dataclass(frozen=True, slots=True)
class Bug:
    """title: what went wrong. why_not: why no mutant stands for it, or what is missing beside those that do."""

    number: int
    title: str
    why_not: str = ""
    waits_for: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return f"B-{self.number:02d}"


_ALL = (
    Bug(1, "The lock was released at a rebalance while the listener was running"),
    Bug(2, "Work went on under an expired or lost lock: one condition too few"),
    Bug(3, "The age of the lock was compared the wrong way round"),
    Bug(4, "The lock was released although messages were still in work"),
    Bug(5, "The unlock was forgotten, the next owner waited for the expiry"),
    Bug(6, "No unlock at a shutdown, or at a rebalance (Go #994, #1220)"),
    Bug(
        7,
        "A lane that was just locked was not marked so, and stood idle for 20 s (issue 2621)",
        "the lane is added, and delivers one lock interval later: LSE-5 bounds the one, and no clause the other",
    ),
    Bug(8, "The flag said locked when the lock was gone"),
    Bug(
        9,
        "A granted lock was reported as refused, and the lane was never consumed (cpp #345)",
    ),
    Bug(10, "A refusal refreshed the client's own validity"),
    Bug(11, "Queues were added without a lock"),
    Bug(12, "Broadcasting took locks as well (pre-Apache #331, issue 8772)"),
    Bug(13, "Grants were lost where answers are gathered"),
    Bug(14, "A request without the lock was parked instead of refused (AutoMQ #828)", POP),
    Bug(
        15,
        "A late lock answer changed the next incarnation of its queue (rocketmq-rust #8806)",
        "a lane is added under a grant of its own, so that the late grant of an earlier life changes nothing that "
        "any clause speaks of; the late refusal only costs time",
    ),
    Bug(
        16,
        "One line of the lock table changed",
        "an unlock at unregistering shows in cases only (`lease/`); an unlock that an expired owner is refused changes "
        "nothing",
    ),
    Bug(17, "The smallest hash gave a negative queue number (issue 2421)"),
    Bug(18, "Producers saw the queues in different orders (issue 1999, Go #795)"),
    Bug(19, "The fixed order configuration was ignored (Go #1187)", "needs an order configuration"),
    Bug(
        20,
        "A hash was keyed differently in one language (clients d43bdc0f)",
        "needs the gRPC protocol",
    ),
    Bug(21, "Two messages got one offset"),
    Bug(22, "Clients sorted the queues differently (Go #420)"),
    Bug(23, "Two processes had one client id"),
    Bug(24, "Members saw different member lists"),
    Bug(25, "The next task began before the last one had ended"),
    Bug(
        26,
        "Two pull requests, or two process queues, for one queue",
        "two process queues of one client for one lane: each is an incarnation of its own, and no clause of the "
        "catalogue forbids two of one client at once",
    ),
    Bug(27, "A lane without a lock was pulled at once and later as well"),
    Bug(28, "An exhausted message circled through the retry topic for ever"),
    Bug(29, "A dead letter waited for its delay level"),
    Bug(30, "Orderly consumers gave up after 16 tries instead of never (pre-Apache #174)"),
    Bug(
        31,
        "A message went to the dead letters at its first failure",
        "the concurrent form: a consumer may ask for the dead letters at any time, by a level below 0",
    ),
    Bug(32, "One delivery too many, or one too few"),
    Bug(
        33,
        "Suspended or rolled-back messages stayed among the taken ones, and a later commit passed them",
    ),
    Bug(34, "COMMIT and ROLLBACK in auto mode did not commit"),
    Bug(35, "The suspend time was neither defaulted nor clamped"),
    Bug(36, "The cap on continuous work never fired, lanes starved (Go)"),
    Bug(37, "An error was taken for success"),
    Bug(
        38,
        "A pulled message was kept a second time while it was in work (Go #615)",
        "takes a second mistake: our consumer never pulls an offset twice within an incarnation; what the process "
        "queue does with one that it holds is said by its machine (`docs/machines.md`)",
    ),
    Bug(39, "A flag stayed set, and the lane stood still (pre-Apache #230)"),
    Bug(40, "Orderly consumption in C++: no limit, no guard in the loop, offsets of dropped lanes"),
    Bug(41, "A failed send-back was ignored"),
    Bug(
        42,
        "A half message's property travelled with the copy (PR 1649)",
        "needs two mistakes at once: our broker takes the mark away at the commit, and our consumer from its copies",
    ),
    Bug(43, "The dead letter lost its origin's id"),
    Bug(
        44,
        "A missing limit in the request crashed the broker (issue 1843)",
        "needs a wire rule for send-backs",
    ),
    Bug(
        45,
        "A dead letter was sent where its topic did not exist",
        "with brokers of different topics",
    ),
    Bug(46, "The timed retry of a removed queue went on"),
    Bug(47, "A limit of -1 was compared as a number (issues 8490, 8332)"),
    Bug(48, "A message was acknowledged instead of forwarded to the dead letters"),
    Bug(
        49, "A message was erased before a failed forwarding was handled", f"the other parts: {POP}"
    ),
    Bug(50, "A dropped queue discarded messages whose lease lived on (clients #186)", POP),
    Bug(51, "A dropped queue still moved the offset"),
    Bug(52, "The offset was not stored at a handover"),
    Bug(
        53,
        "A lower offset at the broker made the pull wait for ever (pre-Apache #106)",
        "no queue loses messages in the simulated cluster, so that no client is ever ahead of its broker",
    ),
    Bug(54, "An error in the offset query was taken for a missing offset"),
    Bug(55, "An offset beyond the end was corrected to the start"),
    Bug(56, "A read without a result set the offset to 0"),
    Bug(57, "Two first commits raced, and one was lost"),
    Bug(58, "An old process queue reported for the new one"),
    Bug(59, "A reset was overwritten by a commit in flight (pre-Apache #50)"),
    Bug(
        60,
        "The retry topic began at its end (pre-Apache #4, Go #530)",
        "an orderly group's retry topic stays empty",
    ),
    Bug(61, "The start was computed twice, and what came in between was skipped"),
    Bug(62, "Messages in flight were not counted, and the offset passed them"),
    Bug(
        63,
        "A running listener's commit overwrote the offset that the broker had corrected (issue 7634)",
    ),
    Bug(
        64,
        "A reset waited for a listener while holding others (issue 10076)",
        "in one thread no reset waits for a listener",
    ),
    Bug(65, "A shutdown left consuming tasks behind"),
    Bug(66, "An error ended rebalancing for ever (pre-Apache #172)"),
    Bug(
        67,
        "Counters were not lowered, and pulling stopped (issue 7538)",
        "shows after a thousand messages in one queue, many more than a run of the machine has",
    ),
    Bug(
        68,
        "An older subscription was accepted (ROCKETMQ-175)",
        "needs subscriptions that change in a run",
    ),
    Bug(69, "The offset after an empty filtered read was committed late (issue 8268)", POP),
    Bug(70, "POP orderly began at the pull offset (issue 9695)", POP),
    Bug(71, "Parked requests were woken while the queue was blocked (issue 8592)", POP),
    Bug(72, "A batch acknowledgement was ignored (issue 7205)", POP),
    Bug(73, "The id of an attempt was not kept (issues 10827, 10828)", POP),
    Bug(74, "A queue's lock was not freed after an error (issue 5813)", POP),
    Bug(75, "Bounds and order of acknowledgements (issue 9187)", POP),
    Bug(76, "A client consumed without order until its settings had arrived"),
    Bug(
        77,
        "Hazards of the present code, no mending known",
        "d has no counterpart in one thread; f repeats the last batch at a handover, which ORD-14 allows; g and h are "
        "the premises of the lease clauses; i is what the 5.x dialect does",
    ),
)


def all_bugs() -> tuple[Bug, ...]:
    """By number."""
    return _ALL


def mutants_of() -> Mapping[str, list[Mutant]]:
    """The mutants that stand for each bug, by the bug's id."""
    found: dict[str, list[Mutant]] = {bug.id: [] for bug in _ALL}
    for mutant in sorted(every_mutant(), key=lambda mutant: mutant.name):
        for number in dict.fromkeys(_NUMBER.findall(mutant.bug)):
            found[f"B-{number}"].append(mutant)
    return found
