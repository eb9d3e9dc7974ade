"""Puts back what a program that died has left at the Docker engine: `python -m conformance.parts.reaper`.

A container is the engine's child, not ours, so no kernel signal ends it with us. This process, which `docker_engine`
starts, reads names of containers from its standard input and waits for the end of that input, which comes when its
parent ends, however it ends:

    +NAME   is ours, and goes with us         -NAME   was removed
    >NAME   is somebody's, and runs after us  <NAME   runs as it did
    =FILE   in which it stands, as a script, what is owed

Then it removes what is left of ours, also what is paused, lets run what is somebody's, and exits: an engine that is
away is waited for some minutes. It has a session of its own, so that a Ctrl-C at the terminal does not reach it.
"""

from __future__ import annotations

import os
import sys

import docker
from docker import DockerClient

from conformance.parts.restoring import Owed, settle

REQUEST_DEADLINE_S = 60
PATIENCE_S = 300.0


def main() -> int:
    """Returns when the parent is gone and all is put back (0), or could not be (1)."""
    owed = Owed(os.environ["DOCKER_HOST"])

    def take(line: str) -> None:
        owed.take(line)
        owed.write()

    for line in sys.stdin:
        take(line)
    return 1 if settle(owed.debts, _connect, PATIENCE_S, take) else 0


def _connect() -> DockerClient:
    return docker.from_env(timeout=REQUEST_DEADLINE_S)


if __name__ == "__main__":
    sys.exit(main())
