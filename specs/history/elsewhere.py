"""A history on another file system, named by a URI: `s3://bucket/history`, `gs://…`, `hdfs://…`, `file:///…`.

It is read as a folder of this machine is, from a copy; or only described, for an engine that reads the place itself.
Arrow's file systems are what reads: keys and regions as their own tools know them (`AWS_ACCESS_KEY_ID`,
`AWS_ENDPOINT_URL`, a profile).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow.parquet as pq

from specs.errors import HistoryError
from specs.history.runinfo import read_runinfo
from specs.history.store import UNREADABLE, History, open_history
from specs.scratch import Scratch
from specs.secrets import refuse_in_uri

_S3, _HADOOPS = "s3://", ("s3a://", "s3n://")
"""How Arrow calls an object store, and how Hadoop does."""


def is_elsewhere(source: object) -> bool:
    """Is it a URI, and no path?"""
    return "://" in str(source)


@contextmanager
def opened(uri: str, *, rows: bool = True) -> Iterator[History]:
    """The history while the block runs. rows: False where nobody here will read them, but for their number.

    Raises HistoryError for a place that can't be read, or that holds no history.
    """
    refuse_in_uri(uri)
    with Scratch("elsewhere") as folder:
        try:
            files, system = _files(uri)
            wanted = files if rows else {name: files[name] for name in files if _tells(name)}
            for name, path in wanted.items():
                _copy(system, path, Path(folder) / name)
            history = open_history(Path(folder)) if rows else _described(Path(folder), uri, files)
            counted = 0 if rows else _count(system, files)
        except UNREADABLE as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise HistoryError(f"{uri} can't be read: {reason}") from error
        yield replace(history, uri=uri, events=counted)


def _files(uri: str) -> tuple[dict[str, str], Any]:
    """The files below a place, by their path from there on; and the file system."""
    from pyarrow import fs

    system, root = fs.FileSystem.from_uri(spelt(uri))
    root = root.rstrip("/")
    below = system.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True))
    files = {
        each.path[len(root) + 1 :]: each.path for each in below if each.type is fs.FileType.File
    }
    if not files:
        raise HistoryError(f"{uri} is no history: there is no such folder")
    return files, system


def spelt(uri: str) -> str:
    """The URI as Arrow understands it, with the endpoint that the environment names."""
    for theirs in _HADOOPS:
        uri = _S3 + uri.removeprefix(theirs) if uri.startswith(theirs) else uri
    endpoint = urlsplit(
        os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    )
    if not uri.startswith(_S3) or not endpoint.netloc or "?" in uri:
        return uri
    return f"{uri}?endpoint_override={endpoint.netloc}&scheme={endpoint.scheme}"


def _tells(name: str) -> bool:
    """Does the file describe the run? Spark writes a folder of that name."""
    return name.split("/")[0] == "run.json"


def _copy(system: Any, path: str, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    with system.open_input_stream(path) as source, to.open("wb") as file:
        while block := source.read(1 << 22):
            file.write(block)


def _parquet(files: dict[str, str]) -> list[str]:
    return [
        path
        for name, path in files.items()
        if name.startswith("history/") and name.endswith(".parquet")
    ]


def _described(folder: Path, uri: str, files: dict[str, str]) -> History:
    info = read_runinfo(folder)
    if info is None or not _parquet(files):
        raise HistoryError(
            f"{uri} lacks run.json or history/*.parquet, which Spark reads: leave --engine and --master out"
        )
    return History(folder, info)


def _count(system: Any, files: dict[str, str]) -> int:
    total = 0
    for path in _parquet(files):
        with system.open_input_file(path) as file:
            total += int(pq.ParquetFile(file).metadata.num_rows)
    return total
