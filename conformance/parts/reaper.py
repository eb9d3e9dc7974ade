"""Removes the containers of a program that died: `python -m conformance.parts.reaper`, started by `docker_engine`.

A container is the engine's child, not ours, so no kernel signal ends it with us. This process reads container
names from its standard input and waits for the end of that input, which comes when its parent ends, however it ends:

    +NAME   is ours, and goes with us         -NAME   was removed
    >NAME   is somebody's, and runs after us  <NAME   runs as it did

Then it removes what is left of ours, also what is paused, lets run what is somebody's, and exits. Ours goes first: it
may stand where somebody's is to be again. It has a session of its own, so that a Ctrl-C at the terminal does not
reach it.
"""

from __future__ import annotations

import contextlib
import sys

import docker
from docker import DockerClient
from docker.errors import DockerException

OWED = {"+": "-", ">": "<"}
"""By sign of what is owed the one that says it is no more."""


def main() -> int:
    """Returns when the parent is gone, its containers with it, and the others as they were."""
    client = docker.from_env(timeout=60)
    owed: dict[str, dict[str, None]] = {sign: {} for sign in OWED}
    for line in sys.stdin:
        sign, name = line[0], line[1:].strip()
        for owing, paid in OWED.items():
            if sign == owing:
                owed[owing][name] = None
            elif sign == paid:
                owed[owing].pop(name, None)
    for name in owed["+"]:
        # The engine may be gone too, and the container with it.
        with contextlib.suppress(DockerException):
            client.containers.get(name).remove(force=True)
    for name in owed[">"]:
        with contextlib.suppress(DockerException):
            let_run(client, name)
    return 0


def let_run(client: DockerClient, name: str) -> None:
    """That container goes on if it is paused, and is started if it does not run."""
    container = client.containers.get(name)
    if container.status == "paused":
        container.unpause()
    elif container.status != "running":
        container.start()


if __name__ == "__main__":
    sys.exit(main())
