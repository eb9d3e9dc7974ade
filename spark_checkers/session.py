"""One local Spark session, or one clear sentence why there is none.

Starting Spark takes ten seconds and more, so a process makes one session and keeps it.
The Java process ends with this one: PySpark's gateway leaves when its standard input closes.
"""

import atexit
import importlib
import os
import shutil
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from specs.errors import TargetMisbehaved, Unavailable, UsageError
from specs.scratch import Scratch

DEFAULT_MASTER = "local[*]"
DEFAULT_MEMORY = "4g"
NO_JAVA = "Spark needs a Java runtime (17 or later) and there is none: install one, or judge with --engine arrow"


def java() -> Path | None:
    """The Java that Spark would start: JAVA_HOME's, or the first in PATH; None where there is none."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").is_file():
        return Path(home) / "bin" / "java"
    found = shutil.which("java")
    return Path(found) if found else None


def open_session(
    master: str | None = None, *, memory: str | None = None, scratch: Path | None = None
) -> Any:
    """The process's Spark session (`pyspark.sql.SparkSession`); made at the first call.

    master: a Spark master URL, local by default. memory: of the driver, which is all there is in local mode, and of
    each executor elsewhere; where nobody says, 4g in local mode, and elsewhere what Spark's own settings say.
    scratch: where shuffles are written. Raises Unavailable where there is no Java, UsageError where the
    master is no master, and TargetMisbehaved where Java is there and Spark does not start.
    """
    if java() is None:
        raise Unavailable(NO_JAVA)
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    # Spark's default for its workers is the first python3 in PATH, which lacks our packages; who names one knows why.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    master = master or DEFAULT_MASTER
    if _is_here(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(master).appName("inorder")
    for name, value in _settings(memory, scratch, master).items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except (
        Exception
    ) as error:  # py4j and PySpark raise a dozen kinds here; each means that Spark did not start
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if "master" in reason.lower() and "URL" in reason:
            raise UsageError(f"Spark can't use the master {master}: {reason}") from error
        raise TargetMisbehaved(f"Spark did not start: {reason}") from error


def _is_here(master: str) -> bool:
    """Is the master on this machine, and reached by its own loop only?"""
    return master.startswith("local") or "127.0.0.1" in master or "localhost" in master


def _settings(memory: str | None, scratch: Path | None, master: str) -> Mapping[str, str]:
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(1 << 16),
        # Exactly this number switches a slower way off, in which every batch is measured while it is made.
        "spark.sql.execution.arrow.maxBytesPerBatch": str((1 << 31) - 1),
        # One file of a history is one stretch of it.
        "spark.sql.files.ignoreCorruptFiles": "false",
        "spark.ui.showConsoleProgress": "false",
        # What Java holds of ours is short-lived: without a bound it takes a gigabyte for what is gone already.
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_log_settings()} -XX:+UseParallelGC "
        "-XX:MaxNewSize=384m",
    }
    if memory is None and master.startswith("local"):
        memory = DEFAULT_MEMORY
    if memory is not None:
        settings |= {"spark.driver.memory": memory, "spark.executor.memory": memory}
    if _is_here(master):
        settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    if master.startswith("local"):
        # Elsewhere Spark merges small partitions as it goes; a partition holds whole keys then as well.
        settings |= {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "8"}
    if scratch is not None:
        settings["spark.local.dir"] = str(scratch)
    return settings


def _log_settings() -> Path:
    """Spark's own log, errors only; a file, because Java's logger reads nothing else."""
    return Path(__file__).with_name("log4j2.properties")


def parallelism(session: Any) -> int:
    """How many tasks run at once."""
    return int(session.sparkContext.defaultParallelism)


def is_local(session: Any) -> bool:
    """Are Spark's workers processes of this machine, with this machine's files and packages?"""
    try:
        return str(session.sparkContext.master).startswith("local")
    except Exception:  # a session of Spark Connect has none, and says so in more than one way
        return False


def on_workers(frame: Any, work: Callable[..., Any], schema: Any) -> Any:
    """`frame.mapInArrow`; on a local session by the Python that runs this, whichever the session was told of."""
    if not is_local(frame.sparkSession):
        return frame.mapInArrow(work, schema)
    context = frame.sparkSession.sparkContext
    theirs, context.pythonExec = context.pythonExec, sys.executable
    try:
        return frame.mapInArrow(work, schema)
    finally:
        context.pythonExec = theirs


def ship(session: Any) -> None:
    """Bring our packages to Spark's workers, once for a session: as a zip, from which Python imports.

    The workers' own Python brings numpy and pyarrow.
    """
    if is_local(session) or id(session) in _SHIPPED:
        return
    folder = Scratch("packages")
    atexit.register(folder.cleanup)
    session.addArtifacts(str(packages(Path(folder.name))), pyfile=True)
    _SHIPPED.add(id(session))


_SHIPPED: set[int] = set()


def packages(folder: Path) -> Path:
    """A zip of the packages that judges import."""
    path = folder / "inorder.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("specs", "spark_checkers"):
            root = Path(next(iter(importlib.import_module(name).__path__)))
            for file in sorted(root.rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    archive.write(file, Path(name) / file.relative_to(root))
    return path
