"""Transcripts: the histories beside a clause that say aloud what breaks it and what does not.

`<claim>.txt` lies beside `<claim>.py` and holds examples in the text notation, apart by lines of `----`. The first
line of each is a comment that says what must come out of it, and why:

    # broken: the second grant comes while the first lives
    0ms      alice  locks  billing/orders/b0/3   ok
    30000ms  bob    locks  billing/orders/b0/3   ok
    ----
    # kept: alice gave it back
    ...

*broken*: a certain violation. *possible*: no certain one, and at least one that something unrecorded, or the bound
between clocks, leaves open. *kept*: no violation. *not at stake*: no violation, and no opportunity either. *not
recorded*: the history lacks what the clause needs. The first broken one is the shortest violation, the first kept one
the lookalike of the documentation. Both engines are held to all of them.
"""

from dataclasses import dataclass
from enum import StrEnum
from importlib.resources.abc import Traversable

from specs.errors import SpecError

BETWEEN = "----"


class Expected(StrEnum):
    BROKEN = "broken"
    POSSIBLE = "possible"
    KEPT = "kept"
    NOT_AT_STAKE = "not at stake"
    NOT_RECORDED = "not recorded"


@dataclass(frozen=True, slots=True)
class Example:
    """One history of a transcript. why: the sentence; text: the notation, without the first line."""

    expected: Expected
    why: str
    text: str


def read_transcript(path: Traversable) -> tuple[Example, ...]:
    """The examples of a transcript, in its order. Raises SpecError for one that says nothing of what must come out."""
    examples: list[Example] = []
    for block in path.read_text(encoding="utf-8").split(f"\n{BETWEEN}\n"):
        head, _, text = block.strip("\n").partition("\n")
        word, colon, why = head.removeprefix("# ").partition(": ")
        if not head.startswith("# ") or not colon or word not in set(Expected) or not why.strip():
            known = ", ".join(Expected)
            raise SpecError(
                f"{path.name}: an example begins with `# WORD: why`, WORD one of {known}; got {head!r}"
            )
        examples.append(Example(Expected(word), why.strip(), text.strip("\n") + "\n"))
    return tuple(examples)
