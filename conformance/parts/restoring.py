"""What is owed to the user of a Docker engine: our containers gone, and hers running again.

Each debt is paid by itself, again and again for a while, whatever became of the others and of the engine meanwhile.
What is owed stands as a shell script beside the run, from before anything is touched until all is paid:
`docker_engine` owes and pays, and `reaper` does when that process has died.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import requests
from docker import DockerClient
from docker.errors import DockerException, NotFound
from urllib3.exceptions import HTTPError

from conformance.parts.processes import wait_until

ENGINE_ERRORS = (DockerException, OSError, HTTPError)
"""All that a request to an engine can end in: a refusal, or a connection that was lost (`requests` raises OSErrors)."""
REMOVE, RUN = "+", ">"
PAID = {REMOVE: "-", RUN: "<"}
"""By sign of what is owed the one that says it is no more: see `reaper`."""
SCRIPT = "="
PUT_BACK = "put-back.sh"
AGAIN_S = 0.5
GONE = "somebody removed it; `docker compose up -d` makes it anew"
Debt = tuple[str, str]
"""The sign, and the container's name."""


def command(debt: Debt) -> str:
    """What pays it by hand."""
    sign, name = debt[0], shlex.quote(debt[1])
    if sign == REMOVE:
        return f"docker rm --force {name}"
    return f"docker start {name} || docker unpause {name}"


class Owed:
    """What is owed now. host: the engine's address, for the script."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._debts: dict[Debt, None] = {}
        self.script: Path | None = None

    def take(self, line: str) -> None:
        """A line as `reaper` describes it."""
        sign, name = line[0], line[1:].strip()
        if sign == SCRIPT:
            self.script = Path(name)
        for owing, paid in PAID.items():
            if sign == owing:
                self._debts[owing, name] = None
            elif sign == paid:
                self._debts.pop((owing, name), None)

    @property
    def debts(self) -> Sequence[Debt]:
        """Ours first: one may stand where somebody's is to be again."""
        return sorted(self._debts, key=lambda debt: list(PAID).index(debt[0]))

    def write(self) -> None:
        """The script says what is owed now; there is none where nothing is."""
        if self.script is None:
            return
        lines = [
            "#!/bin/sh",
            "# What a run of inorder has not put back: written before it touched anything, gone when all is as before.",
            f"export DOCKER_HOST={shlex.quote(self._host)}",
            *map(command, self.debts),
        ]
        with contextlib.suppress(OSError):  # the folder was removed
            if self.debts:
                part = self.script.with_suffix(".part")
                part.write_text("\n".join([*lines, ""]), encoding="utf-8")
                part.replace(self.script)
            else:
                self.script.unlink()


def settle(
    debts: Sequence[Debt],
    connect: Callable[[], DockerClient],
    patience_s: float,
    paid: Callable[[str], None],
) -> Mapping[Debt, str]:
    """Pay them, each by itself, until all are paid or the time is over. Raises nothing of the engine's.

    connect: makes a client, of which a request ends soon. paid: is told of each, as `reaper` is.
    Returns what is left, with the reason.
    """
    left: dict[Debt, str] = dict.fromkeys(debts, "it was not tried")

    def once() -> bool:
        try:
            client = connect()
        except ENGINE_ERRORS as error:
            left.update((debt, first_line(error)) for debt in left if left[debt] != GONE)
        else:
            with closing(client):
                for debt in _to_pay(left):
                    try:
                        why = _pay(client, debt)
                    except requests.Timeout as error:
                        left[debt] = first_line(error)
                        break  # it would hang for the others too: is there time left?
                    if why is None:
                        del left[debt]
                        paid(PAID[debt[0]] + debt[1])
                    else:
                        left[debt] = why
        return not list(_to_pay(left))

    wait_until(once, deadline_s=patience_s, every_s=AGAIN_S)
    return left


def _to_pay(left: Mapping[Debt, str]) -> Iterator[Debt]:
    """What may still come right."""
    return iter([debt for debt, why in left.items() if why != GONE])


def _pay(client: DockerClient, debt: Debt) -> str | None:
    """Why it could not be paid; None where it is. Raises Timeout where the engine hangs."""
    sign, name = debt
    try:
        if sign == REMOVE:
            client.containers.get(name).remove(force=True)
        else:
            let_run(client, name)
    except NotFound:
        return None if sign == REMOVE else GONE
    except requests.Timeout:
        raise
    except ENGINE_ERRORS as error:
        return first_line(error)
    return None


def let_run(client: DockerClient, name: str) -> None:
    """That container goes on if it is paused, and is started if it does not run."""
    container = client.containers.get(name)
    if container.status == "paused":
        container.unpause()
    elif container.status != "running":
        container.start()


def first_line(error: BaseException) -> str:
    """Of its message, which may quote a whole answer."""
    return str(error).split("\n", 1)[0][:300] or type(error).__name__
