"""When, where and under which name a run was judged: what its reports say besides the verdict.

It lies beside the verdict (`occasion.json`) and not in it: the same seed gives the same verdict, to the byte.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from specs.documents import json_in
from specs.errors import HistoryError
from specs.history.clock import host_clock
from specs.reading import an_object, document_schema, read, told, version_of

OCCASION_SCHEMA = "inorder/occasion/v1"
FILE = "occasion.json"


@dataclass(frozen=True, slots=True)
class Occasion:
    """name: of the series of runs that this one is of, where somebody named it. began_us: 0 where nobody knows."""

    name: str = field(default="", metadata=told("Of the series of runs, as --name says it."))
    began_us: int = field(default=0, metadata=told("In µs since 1970, UTC.", least=0))
    took_us: int = field(default=0, metadata=told("How long the run and its judges took.", least=0))
    host: str = field(default="", metadata=told("The machine that judged."))

    def write(self, folder: Path) -> None:
        """Write `occasion.json`."""
        text = json.dumps({"schema": OCCASION_SCHEMA, **asdict(self)}, indent=2, sort_keys=True)
        (folder / FILE).write_text(text + "\n", encoding="utf-8")


def begin(name: str = "") -> Callable[[], Occasion]:
    """Remember that it begins now; call what comes back when it is over."""
    clock = host_clock()
    began_us, begin_us = clock.wall_us(), clock.monotonic_us()
    return lambda: Occasion(name, began_us, clock.monotonic_us() - begin_us, socket.gethostname())


def read_occasion(folder: Path) -> Occasion:
    """Of a run's folder; one that says nothing where there is none. Raises HistoryError for one that can't be read."""
    path = folder / FILE
    if not path.is_file():
        return Occasion()
    document = an_object(json_in(path, error=HistoryError), str(path), HistoryError)
    version_of(document, OCCASION_SCHEMA, str(path), HistoryError)
    return read(Occasion, document, str(path), error=HistoryError, besides=["schema"])


def occasion_schema() -> dict[str, object]:
    """The JSON schema of `occasion.json`."""
    title = "When, where and under which name a run was judged"
    return document_schema(Occasion, OCCASION_SCHEMA, title)
