"""The examples of docs/python-api.md, run as they stand."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.parts import jars
from conformance.parts.apache import ApacheCluster
from conformance.parts.java import find_java
from reference_impl.shell.cluster import ThreadedCluster

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "python-api.md"
ADDRESS = "127.0.0.1:9876"
VERSION = "5.4.0"
BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", re.DOTALL)


def examples() -> list[tuple[str, str]]:
    """(program, what it prints) of each example."""
    return BLOCK.findall(PAGE.read_text())


def run_example(source: str, namesrv: str) -> str:
    """What it prints."""
    program = source.replace(ADDRESS, namesrv)
    code = compile(program, str(PAGE), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    names: dict[str, object] = {"__name__": "example"}

    async def go() -> None:
        async with asyncio.timeout(60):
            result = eval(code, names)
            if inspect.isawaitable(result):
                await result

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        asyncio.run(go())
    return printed.getvalue()


def run_worker(source: str, namesrv: str) -> None:
    """A program that works until it is told to stop: it prints what it got, and ends well."""
    command = [sys.executable, "-c", source.replace(ADDRESS, namesrv)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().split(" ")[0] in ("orders", "bills")
            process.terminate()
            process.communicate(timeout=60)
        finally:
            process.kill()
        assert process.returncode == 0


def run_all(namesrv: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for source, expected in examples():
        if source.startswith("# worker.py"):
            run_worker(source, namesrv)
        else:
            assert run_example(source, namesrv) == expected


def test_the_page_has_examples() -> None:
    assert len(examples()) >= 8


def test_the_examples_run_on_our_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ThreadedCluster() as cluster:
        run_all(cluster.namesrv, tmp_path, monkeypatch)


@pytest.mark.long
@pytest.mark.apache
@pytest.mark.skipif(
    not jars.present(VERSION) or find_java() is None,
    reason=f"needs Java and the jars of RocketMQ {VERSION}; `make setup` gets them",
)
def test_the_examples_run_on_a_cluster_of_apaches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every run of the tests they run on our cluster, and the same calls on Apache's: test_client.py."""
    with ApacheCluster(VERSION, workdir=tmp_path / "cluster") as cluster:
        run_all(cluster.namesrv, tmp_path, monkeypatch)
