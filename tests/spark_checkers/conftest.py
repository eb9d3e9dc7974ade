"""What the tests of the Spark checkers share: one Spark session, and the helpers that lie beside this file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from spark_checkers.jobs import InProcesses
from spark_checkers.session import NO_JAVA, java, open_session

SPARK = [
    pytest.mark.spark,
    pytest.mark.xdist_group("spark"),
    # The Java process and its sockets outlive the tests on purpose: starting it takes long.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


@pytest.fixture(scope="session")
def session() -> Iterator[Any]:
    """The process's Spark session."""
    if java() is None:
        pytest.skip(NO_JAVA)
    made = open_session("local[2]", memory="2g")
    yield made
    made.stop()


@pytest.fixture(scope="session")
def here() -> InProcesses:
    """Who does the engine's tasks without Java, in this process: three at a time, one after the other."""
    return InProcesses(3, alone=True)
