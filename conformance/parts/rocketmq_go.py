"""The driver of Apache RocketMQ's Go client: built once for a client's version, on the released module.

Two things of the released source are compiled otherwise; a version in which they are not where they were is refused:
- What the client does at fixed intervals (heartbeats, rebalance, storing offsets) and how long it believes in a lock
  are constants. They are read from the environment instead, so that a run need not take minutes, as the Java client
  reads its own from system properties; without these variables they are what was released.
- The table of the lanes on which it works tells its changes, as the one does that the Java driver puts in its place.

    python -m conformance.parts.rocketmq_go 2.1.2
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from conformance.parts import golang
from conformance.parts.places import beside
from conformance.parts.telling import tell
from specs.errors import Unavailable

DEFAULT = "2.1.2"
AT_LEAST = {"github.com/json-iterator/go": "1.1.12", "github.com/modern-go/reflect2": "1.0.2"}
"""Those of 2.1.2: what 2.1.0 names reads Go's maps as they were before Go 1.18, and dies."""
TIMERS: Mapping[str, Mapping[str, str]] = {
    "internal/client.go": {
        "_HeartbeatBrokerInterval": "INORDER_HEARTBEAT_MS",
        "_PersistOffsetInterval": "INORDER_PERSIST_MS",
        "_RebalanceInterval": "INORDER_REBALANCE_MS",
    },
    "consumer/process_queue.go": {"_RebalanceLockMaxTime": "INORDER_CLIENT_LEASE_MS"},
}
"""File of the module → constant in it → variable of the environment, in ms."""

TABLE = "consumer/consumer.go"
TOLD: Mapping[str, str] = {
    "processQueueTable sync.Map": "processQueueTable inorderTable",
    "dc.processQueueTable.Store(mq, pq)": "dc.processQueueTable.begin(&mq, pq)",
}
"""What stands once in the file of the table → what is compiled."""

_LANES = """package consumer

import (
	"sync"

	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// InorderLane hears of a lane before the client has it in its table, and once it is gone. The queue that it is given
// first is the one to which all messages of this work on the lane point.
var InorderLane = func(queue *primitive.MessageQueue, added bool) {}

type inorderTable struct{ sync.Map }

func (t *inorderTable) begin(queue *primitive.MessageQueue, work *processQueue) {
	InorderLane(queue, true)
	t.Map.Store(*queue, work)
}

func (t *inorderTable) Delete(key interface{}) {
	queue, isQueue := key.(primitive.MessageQueue)
	if _, there := t.Map.LoadAndDelete(key); there && isQueue {
		InorderLane(&queue, false)
	}
}
"""
_TIMER = """package {package}

import (
	"os"
	"strconv"
	"time"
)

func inorderTimer(name string, released time.Duration) time.Duration {{
	if ms, err := strconv.ParseInt(os.Getenv(name), 10, 64); err == nil {{
		return time.Duration(ms) * time.Millisecond
	}}
	return released
}}
"""


def changes(module: Path) -> dict[str, str]:
    """The files of the released module that are compiled otherwise, and those that are added.

    Raises Unavailable where something is not where it was: this version would not run as it is told.
    """
    made: dict[str, str] = {}
    for file, variables in TIMERS.items():
        text = (module / file).read_text(encoding="utf-8")
        for constant, variable in variables.items():
            released = re.compile(rf"^\s*{constant}\s*=\s*(\d+ \* time\.\w+)$", re.MULTILINE)
            found = _only(released.findall(text), file, constant)
            text = released.sub("", text)
            text += f'\nvar {constant} = inorderTimer("{variable}", {found})\n'
        made[file] = text
        package = file.partition("/")[0]
        made[f"{package}/inorder_timer.go"] = _TIMER.format(package=package)
    text = (module / TABLE).read_text(encoding="utf-8")
    for released_text, told in TOLD.items():
        _only(re.findall(re.escape(released_text), text), TABLE, released_text)
        text = text.replace(released_text, told)
    return {**made, TABLE: text, "consumer/inorder_lanes.go": _LANES}


def _only(found: Sequence[str], file: str, what: str) -> str:
    if len(found) != 1:
        raise Unavailable(f"{file} of RocketMQ's Go client has {what!r} {len(found)} times")
    return found[0]


DRIVER = golang.Driver(
    client="Go client of Apache RocketMQ",
    source=beside("drivers") / "go" / "main.go",
    module="github.com/apache/rocketmq-client-go/v2",
    versions=("2.1.0", "2.1.1", "2.1.2"),
    folder="go-driver",
    changes=changes,
    said_in=Path(__file__),
    at_least=AT_LEAST,
)


def parts(versions: Sequence[str]) -> Iterator[str]:
    """Build the named drivers; a line for each."""
    for version in versions or (DEFAULT,):
        yield f"{version}: {DRIVER.ensure(version)}"


if __name__ == "__main__":
    sys.exit(tell(parts(sys.argv[1:])))
