"""RocketMQ's own administration tool, `mqadmin`, from the released jars of one version.

said = run_mqadmin("5.4.0", namesrv, ["topicList"], folder)
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from conformance.parts import jars
from conformance.parts.java import java
from specs.errors import TargetMisbehaved

DEADLINE_S = 120.0
MAIN = "org.apache.rocketmq.tools.command.MQAdminStartup"
_JVM = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
_LOGBACK = """<configuration>
  <appender name="F" class="ch.qos.logback.core.FileAppender">
    <file>${user.home}/tools.log</file>
    <encoder><pattern>%m%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="F"/></root>
</configuration>
"""
_LOGBACK_SAYS = " |-"
"""In the lines in which the logging of 5.x tells of itself."""


def run_mqadmin(version: str, namesrv: str, words: Sequence[str], folder: Path) -> str:
    """What the command prints. folder: its home; it is made. Raises UsageError where jars or Java are missing,
    TargetMisbehaved when it does not end in time.
    """
    lib = jars.ensure(version)
    (folder / "conf").mkdir(parents=True, exist_ok=True)
    (folder / "conf" / "logback_tools.xml").write_text(_LOGBACK)  # 4.9 ends without it
    home = (f"-Duser.home={folder}", f"-Drocketmq.home.dir={folder}")
    command = [str(java()), *_JVM, *home, "-cp", f"{lib}/*", MAIN, *words, "-n", namesrv]
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise TargetMisbehaved(
            f"mqadmin {' '.join(words)} did not end within {DEADLINE_S:g} s"
        ) from error
    return "\n".join(line for line in done.stdout.splitlines() if _LOGBACK_SAYS not in line)
