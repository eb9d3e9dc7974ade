"""A served broker on a file system that is full, killed there and started again: for a mount namespace of its own.

`unshare -rm python -m tests.reference_impl.storage.full_tmpfs FOLDER FLUSH` mounts a small tmpfs there, which is gone
with the process, and says what it saw as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from conformance.waiting import wait_until
from reference_impl.shell.client import SyncClient
from tests.reference_impl.storage.test_real_disk import (
    commit,
    committed,
    pull_all,
    saved_offsets,
    send,
    serving,
    serving_fails,
)

SMALL, LARGE = "size=400k", "size=4m"
BODY = b"x" * 4_000


def mount(folder: Path, *options: str) -> None:
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", ",".join(options), "none", str(folder)], check=True
    )


def until_it_is_full(client: SyncClient, broker: str, name: str) -> tuple[list[bytes], list[bytes]]:
    """What was acknowledged and what was refused, until the tenth refusal in all."""
    taken: list[bytes] = []
    refused: list[bytes] = []
    while len(refused) < 10:
        body = f"{name}{len(taken) + len(refused)}".encode() + BODY
        code = send(client, broker, body).code
        assert code in (0, 14), code
        (taken if code == 0 else refused).append(body)
    return taken, refused


def main(folder: Path, flush: str) -> dict[str, object]:
    mount(folder, SMALL)
    store = folder / "store"
    options = ("--flush", flush, "--persist-ms", "50")
    with serving(store, *options) as (process, broker), SyncClient() as client:
        send(client, broker, b"first")
        commit(client, broker, 1)
        assert wait_until(lambda: b"{0:1}" in saved_offsets(store), 20)
        taken, refused = until_it_is_full(client, broker, "a")
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    with serving_fails(store) as (code, said):
        still_full = (code, said)
    mount(folder, "remount", LARGE)
    with serving(store, *options) as (_, broker), SyncClient() as client:
        found = pull_all(client, broker)
        more = send(client, broker, b"room again").code
        return {
            "still_full": still_full,
            "taken": len(taken),
            "refused": len(refused),
            "all_taken_are_there": found == [b"first", *taken],
            "none_refused_is_there": not set(refused) & set(found),
            "committed": committed(client, broker),
            "room_again": more,
            "at": len(pull_all(client, broker)) - len(found),
        }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]), sys.argv[2])))
