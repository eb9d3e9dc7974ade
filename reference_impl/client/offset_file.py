"""The file in which a broadcast consumer writes down how far it is.

JSON: `{"format": "inorder/offsets/v1", "group": ..., "offsets": [{"topic", "broker", "queue", "offset"}, ...]}`. It is
written beside itself, synced and renamed, so that a crash leaves the old one or the new one and never half of one. A
lock file beside it (`NAME.lock`) keeps a second consumer away for as long as the first one runs.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
from pathlib import Path
from typing import Any

from specs.documents import json_in
from specs.errors import UsageError
from specs.vocabulary import Queue

FORMAT = "inorder/offsets/v1"


class OffsetsOnDisk(dict[Queue, int]):
    """Queue → where to go on. What is set is on disk soon: all that one turn of the event loop sets, in one write.

    Raises UsageError for a file that is none of ours, is another group's, or is in use.
    """

    def __init__(self, path: Path, group: str) -> None:
        super().__init__()
        self._path = path
        self._group = group
        self._lock: int | None = _take(path)
        self._is_due = False
        try:
            self.update(_read(path, group))
        except BaseException:
            self.close()
            raise

    def __setitem__(self, queue: Queue, offset: int) -> None:
        if self.get(queue) == offset:
            return
        super().__setitem__(queue, offset)
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self.save)

    def save(self) -> None:
        """Write what was set since the last time."""
        if not self._is_due or self._lock is None:
            return
        self._is_due = False
        rows = [
            {
                "topic": queue.topic,
                "broker": queue.broker,
                "queue": queue.queue_id,
                "offset": offset,
            }
            for queue, offset in sorted(self.items())
        ]
        text = json.dumps({"format": FORMAT, "group": self._group, "offsets": rows}, indent=1)
        fresh = self._path.with_name(self._path.name + ".new")
        with fresh.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)

    def close(self) -> None:
        """Write what is left, and let somebody else use the file."""
        self.save()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _take(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(
            path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644
        )
    except OSError as error:
        raise UsageError(f"The offsets can't be kept in {path}: {error.strerror}.") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        raise UsageError(
            f"{path} is in use by another consumer; give each one a file of its own."
        ) from error
    return lock


def _read(path: Path, group: str) -> dict[Queue, int]:
    if not path.exists():
        return {}
    document = json_in(path, mend=": it is no file of offsets; remove it to start anew")
    try:
        if document["format"] != FORMAT:
            raise UsageError(
                f"{path} has the format {document['format']!r}, not {FORMAT!r}; was it written by a newer "
                "release?"
            )
        if document["group"] != group:
            raise UsageError(
                f"{path} belongs to the group {document['group']!r}, not to {group!r}."
            )
        return dict(_entry(row) for row in document["offsets"])
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{path} is no file of offsets; remove it to start anew.") from error


def _entry(row: dict[str, Any]) -> tuple[Queue, int]:
    return Queue(str(row["topic"]), str(row["broker"]), int(row["queue"])), int(row["offset"])
