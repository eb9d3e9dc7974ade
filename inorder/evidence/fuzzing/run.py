"""Gives bad inputs to every reader, and says what it found.

Every input gets a limit of time: a reader that has not ended within it hangs. Memory is looked at from outside, as
the largest that the process ever had, before the run and after it.
"""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType

from conformance.waiting import now_s
from inorder.evidence.fuzzing.mutate import mutate, mutate_framed
from inorder.evidence.fuzzing.readers import Misbehaved, Reader, accepts

OWN_MEMORY = Path("/proc/self/status")
INPUT_S_MAX = 10.0
"""An input of 64 KiB takes a few ms; what takes this long on a busy machine is a hang."""


@dataclass
class Found:
    """One input that a reader should have borne. To be put into the corpus, when it is mended."""

    reader: str
    data: bytes
    why: str

    def __str__(self) -> str:
        return f"{self.reader}: {self.why}\n  input: {self.data.hex()}"


@dataclass
class Tally:
    """What one reader was given. inputs: how many; taken: of these, for good; seconds: in which time."""

    reader: str
    inputs: int = 0
    taken: int = 0
    seconds: float = 0.0
    found: list[Found] = field(default_factory=list)


class _TooLongError(BaseException):
    """Out of the reader, past its handlers of exceptions."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises _TooLongError into what runs longer. For the main thread."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise _TooLongError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def try_input(reader: Reader, data: bytes) -> bool | Found:
    """Whether the reader took the input, or what it did that it must not do."""
    try:
        with time_limit(INPUT_S_MAX):
            return accepts(reader, data)
    except Misbehaved as error:
        return Found(reader.name, data, str(error))
    except _TooLongError:
        return Found(reader.name, data, f"It did not end within {INPUT_S_MAX:g} s.")


def fuzz(reader: Reader, inputs: int, choices: Random, found_max: int = 5) -> Tally:
    """So many mutants of the reader's good inputs; stops early when it has found enough."""
    tally = Tally(reader.name)
    make = mutate_framed if reader.framed else mutate
    began_s = now_s()
    while tally.inputs < inputs and len(tally.found) < found_max:
        tally.inputs += 1
        match try_input(reader, make(reader.seeds, choices)):
            case Found() as found:
                tally.found.append(found)
            case taken:
                tally.taken += taken
    tally.seconds = now_s() - began_s
    return tally


def fuzz_all(every: Sequence[Reader], inputs: int, seed: int) -> list[Tally]:
    """The inputs are shared out among the readers; each has a stream of choices of its own."""
    share, rest = divmod(inputs, len(every))
    return [
        fuzz(reader, share + (place < rest), Random(f"{seed} {reader.name}"))
        for place, reader in enumerate(every)
    ]


def largest_mib() -> float:
    """The most memory that this process ever had, in MiB.

    Linux counts in `ru_maxrss` what the process had that started this one as well.
    """
    if OWN_MEMORY.is_file():
        words = OWN_MEMORY.read_text(encoding="ascii", errors="replace").split()
        return int(words[words.index("VmHWM:") + 1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
