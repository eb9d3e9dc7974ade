"""How often a failure comes again: so many of so many tries, and how sure that is.

    7 of 20 (18 to 57 %)

The interval is Wilson's, of 95 %: it holds for few tries, for none and for all of them
(https://en.wikipedia.org/wiki/Binomial_proportion_confidence_interval#Wilson_score_interval). It stands in the run's
folder, try by try, so that a later session goes on where one was ended.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

from specs.documents import json_in
from specs.errors import UsageError

FILE = "rate.json"
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Rate:
    """clauses: whose violation is looked for. tries: of each whether one of them was refuted."""

    clauses: tuple[str, ...]
    tries: tuple[bool, ...] = ()

    @property
    def broken(self) -> int:
        return sum(self.tries)

    @property
    def interval(self) -> tuple[float, float]:
        """The shares that are likely, from 0 to 1."""
        return wilson(self.broken, len(self.tries))

    def __str__(self) -> str:
        """As in `7 of 20 (18 to 57 %)`."""
        least, most = self.interval
        return f"{self.broken} of {len(self.tries)} ({least * 100:.0f} to {most * 100:.0f} %)"

    def after(self, *, broken: bool) -> Rate:
        """With one more try."""
        return replace(self, tries=(*self.tries, broken))

    def to_json(self) -> dict[str, Any]:
        least, most = self.interval
        return {
            "clauses": list(self.clauses),
            "tries": list(self.tries),
            "broken": self.broken,
            "of": len(self.tries),
            "interval": [round(least, 4), round(most, 4)],
            "confidence": CONFIDENCE,
        }


def wilson(broken: int, of: int) -> tuple[float, float]:
    """The interval of a share. All is possible where nothing was tried."""
    if not of:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    share = broken / of
    middle = share + z * z / (2 * of)
    width = z * (share * (1 - share) / of + z * z / (4 * of * of)) ** 0.5
    whole = 1 + z * z / of
    return max(0.0, (middle - width) / whole), min(1.0, (middle + width) / whole)


def read(folder: Path) -> Rate | None:
    """What a run's folder says of it. Raises UsageError for a file that is none."""
    path = folder / FILE
    if not path.is_file():
        return None
    try:
        data: Mapping[str, Any] = json_in(path, mend="; delete it to begin anew")
        return Rate(tuple(map(str, data["clauses"])), tuple(map(bool, data["tries"])))
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} can't be read: {error}; delete it to begin anew") from error


def write(folder: Path, rate: Rate) -> None:
    """Keep it, in one step: a try that was made stays made."""
    part = folder / f".{FILE}.part"
    part.write_text(json.dumps(rate.to_json(), indent=2) + "\n", encoding="utf-8")
    os.replace(part, folder / FILE)
