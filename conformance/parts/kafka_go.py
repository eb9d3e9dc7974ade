"""The driver of confluent-kafka-go: built once for a version, on the released module.

The module carries librdkafka of its own number as a static library. So it is the way to releases of librdkafka for
which the Python package index has no wheel that runs here; a C compiler is needed.

    python -m conformance.parts.kafka_go 1.9.2
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from conformance.parts import golang
from conformance.parts.places import beside
from conformance.parts.telling import tell

DEFAULT = "1.9.2"
DRIVER = golang.Driver(
    client="confluent-kafka-go",
    source=beside("drivers") / "kafka-go" / "main.go",
    module="github.com/confluentinc/confluent-kafka-go",
    versions=("1.8.2", "1.9.2"),
    folder="kafka-go-driver",
    with_c=True,
)


def parts(versions: Sequence[str]) -> Iterator[str]:
    """Build the named drivers; a line for each."""
    for version in versions or (DEFAULT,):
        yield f"{version}: {DRIVER.ensure(version)}"


if __name__ == "__main__":
    sys.exit(tell(parts(sys.argv[1:])))
