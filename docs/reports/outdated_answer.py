"""librdkafka: an answer that came too late takes a consumer back. `python outdated_answer.py HOST:PORT`

Exit code 1 where it shows, else 0. See librdkafka-outdated-answer.md.
"""

import sys
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition, libversion
from confluent_kafka.admin import AdminClient, NewTopic

LANES, MESSAGES, START = 100, 6, 3
LOOK_S = 10

server = {"bootstrap.servers": sys.argv[1]}
topic = f"outdated-{time.time_ns()}"
admin = AdminClient(server)
for made in admin.create_topics([NewTopic(topic, LANES, 1)]).values():
    made.result()
producer = Producer(server)
for number in range(MESSAGES * LANES):
    producer.produce(topic, b"%d" % number, partition=number % LANES)
producer.flush()

consumer = Consumer({**server, "group.id": topic, "enable.auto.commit": False})
consumer.list_topics(topic)  # its connections are there
consumer.assign([TopicPartition(topic, lane, OFFSET_BEGINNING) for lane in range(LANES)])
consumer.unassign()  # while where the partitions begin is being asked
consumer.assign([TopicPartition(topic, lane, START) for lane in range(LANES)])

below = set()
ends = time.monotonic() + LOOK_S
while time.monotonic() < ends:
    message = consumer.poll(0.1)
    if message is not None and message.error() is None and message.offset() < START:
        below.add(message.partition())
consumer.close()
found = f"{len(below)} of {LANES} partitions"
sys.stdout.write(
    f"librdkafka {libversion()[0]}: assigned at {START}, and given what is below: {found}\n"
)
sys.exit(bool(below))
