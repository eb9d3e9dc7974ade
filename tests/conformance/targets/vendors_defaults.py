"""Servers as somebody starts them by hand: their vendors' defaults, and only ports and folders of their own.

Of Kafka, RabbitMQ and RocketMQ that is the file that comes with the release (the copies of Kafka's internal topics are
one there); NATS, Redis and ElasticMQ are started without any file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conformance.parts.apache import ApacheCluster
from conformance.parts.elasticmq import ElasticServer
from conformance.parts.kafka import KafkaServer
from conformance.parts.local_server import HOST, LocalServer
from conformance.parts.nats import NatsServer
from conformance.parts.rabbitmq import RabbitServer
from conformance.parts.redis import RedisServer, command

ADDRESSES = frozenset({"namesrvAddr", "listenPort", "brokerIP1", "brokerIP2", "bindAddress"})
"""What of a RocketMQ broker's configuration says where it is; how large its files are is no matter of a verdict."""
SIZES = frozenset(
    {
        "mappedFileSizeCommitLog",
        "mappedFileSizeConsumeQueue",
        "mappedFileSizeTimerLog",
        "maxHashSlotNum",
        "maxIndexNum",
    }
)
NAMES = frozenset({"brokerClusterName", "brokerName", "brokerId"})


class DefaultKafka(KafkaServer):
    """As its config/server.properties of KRaft says."""

    def _settings(self) -> dict[str, str]:
        controller = f"{HOST}:{self.port(1)}"
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{controller}",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": str(self.data),
            "offsets.topic.replication.factor": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
        }


class DefaultRedis(RedisServer):
    def command(self) -> list[str | Path]:
        return [
            *command(self.version),
            *("--bind", HOST, "--port", str(self.port()), "--dir", str(self.data)),
        ]


class DefaultElastic(ElasticServer):
    def set_up(self) -> None:
        port, host = self.port(), HOST
        self._config.write_text(
            'include classpath("application.conf")\n'
            f'node-address {{ host = "{host}", port = {port} }}\n'
            f'rest-sqs {{ bind-hostname = "{host}", bind-port = {port} }}\n'
            "rest-stats { enabled = false }\n"  # its port is another one
        )


class DefaultRabbit(RabbitServer):
    def set_up(self) -> None:
        super().set_up()
        (self.workdir / "rabbitmq.conf").write_text(f"listeners.tcp.1 = {self.address}\n")


class DefaultRocket(ApacheCluster):
    def _broker_conf(self) -> dict[str, str]:
        ours = super()._broker_conf()
        kept = ADDRESSES | SIZES | NAMES
        return {
            key: value
            for key, value in ours.items()
            if key in kept or key.startswith("storePath") or key == "diskMaxUsedSpaceRatio"
        }


SERVERS: dict[str, tuple[type[LocalServer], str]] = {
    "kafka": (DefaultKafka, "4.3.1"),
    "nats": (NatsServer, "2.15.2"),
    "redis": (DefaultRedis, "7.0.15"),
    "rabbitmq": (DefaultRabbit, "3.10.8"),
    "sqs": (DefaultElastic, "1.6.11"),
}
ROCKETMQ = "5.4.0"
SYSTEMS = (*SERVERS, "rocketmq")


@contextmanager
def started(system: str, folder: Path) -> Iterator[str]:
    """The server; what `--target` is to be for it."""
    if system == "rocketmq":
        cluster = DefaultRocket(ROCKETMQ, workdir=folder)
        with cluster:
            yield f"rocketmq:{cluster.namesrv}"
        return
    made, version = SERVERS[system]
    with made(version, workdir=folder) as server:
        scheme = "http://" if system == "sqs" else ""
        yield f"{system}:{scheme}{server.address}"
