"""Which sessions the brokers of a cluster allow, as one JSON object on stdout: asked before a run, by nobody's client.

The settings are the drivers' (INORDER_CLIENT_OPTIONS). Told are the settings of NAMES that the brokers show, all as
text; who may not read them is told nothing of them. Where no broker answers it is `error`, in the library's words.
"""

from __future__ import annotations

import json
import os
import sys

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from driver import COMMON_SETTINGS, only

ANSWER_S = 10.0
NAMES = (
    "group.min.session.timeout.ms",
    "group.max.session.timeout.ms",
    "group.consumer.session.timeout.ms",
    "group.consumer.heartbeat.interval.ms",
    "group.share.session.timeout.ms",
    "group.share.heartbeat.interval.ms",
)


def main():
    options = json.loads(os.environ.get("INORDER_CLIENT_OPTIONS", "{}"))
    heard = []
    admin = AdminClient({**only(COMMON_SETTINGS, options), "error_cb": heard.append})
    try:
        brokers = admin.list_topics(timeout=ANSWER_S).brokers
    except KafkaException as error:
        said = [each for each in heard if "brokers are down" not in each.str()] or error.args
        return {"error": said[-1].str()}
    of = ConfigResource(ResourceType.BROKER, str(min(brokers)))
    try:
        found = admin.describe_configs([of], request_timeout=ANSWER_S)[of].result(ANSWER_S)
    except KafkaException as error:
        sys.stderr.write(f"no settings of brokers: {error}\n")
        return {}
    return {name: found[name].value for name in NAMES if name in found}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main()))
    sys.stdout.flush()
    os._exit(0)  # nobody waits for the library's threads
