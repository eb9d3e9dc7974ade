"""JSON lines of an application, and the log of a client library, in layouts that such logs have."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import jsonschema
from click.testing import Result

from conformance.importing.job import IMPORT_SCHEMA
from conformance.importing.reach import Decided
from conformance.reports.schemas import schema
from specs.history.store import open_history
from specs.vocabulary import Kind

from .test_csv import imported, judged

Run = Callable[..., Result]
Write = Callable[[str, "str | Sequence[str]"], Path]

APPLICATION = """
profile = "kafka-java"
config.system = "kafka"
config.mode = "orderly"
config.message_model = "clustering"
config.subscription = "*"
config.max_reconsume_times = -1
order = "lines"
clock_bound_ms = 0
time = "@timestamp"
records = ["deliver", "commit", "add", "drop"]
did_not_happen = ["reset", "pull", "fetch_offset", "dead_letter"]
columns = { client_id = "host.name", topic = "kafka.topic", queue_id = "kafka.partition" }
constants = { group = "billing", broker = "kafka" }

[[event]]
kind = "add"
when = { event = "assigned" }
each = { field = "partitions" }
columns = { topic = "topic", queue_id = "id", value = "from" }

[[event]]
kind = "deliver"
at = "begin"
when = { event = "received" }
columns = { queue_offset = "kafka.offset", sharding_key = "kafka.key" }

[[event]]
kind = "deliver"
at = "end"
when = { event = "handled" }
columns.queue_offset = "kafka.offset"
columns.outcome = { field = "ok", values = { true = "success", false = "suspend" } }

[[event]]
kind = "commit"
at = "moment"
match = 'committed (?P<topic>\\S+)/(?P<part>\\d+) at (?P<at>\\d+)'
message = "msg"
columns = { topic = "topic", queue_id = "part", value = { field = "at", plus = 1 } }
constants = { outcome = "ok" }

[[event]]
kind = "drop"
when = { event = ["revoked", "lost"] }
each = { field = "partitions" }
columns = { topic = "topic", queue_id = "id" }
"""


def application(*told: dict[str, object]) -> list[str]:
    """JSON lines, one a millisecond."""
    return [
        json.dumps(
            {"@timestamp": f"2026-03-02T09:00:00.{n:03d}Z", "host": {"name": "pod-1"}, **each}
        )
        for n, each in enumerate(told)
    ]


def received(offset: int, key: str = "a") -> dict[str, object]:
    return {
        "event": "received",
        "kafka": {"topic": "orders", "partition": 0, "offset": offset, "key": key},
    }


def handled(offset: int, *, ok: bool = True) -> dict[str, object]:
    return {
        "event": "handled",
        "ok": ok,
        "kafka": {"topic": "orders", "partition": 0, "offset": offset},
    }


ASSIGNED: dict[str, object] = {
    "event": "assigned",
    "partitions": [
        {"topic": "orders", "id": 0, "from": 5},
        {"topic": "orders", "id": 1, "from": 0},
    ],
}
REVOKED: dict[str, object] = {"event": "revoked", "partitions": [{"topic": "orders", "id": 0}]}
NOISE: dict[str, object] = {"level": "info", "msg": "garbage collected"}


def test_json_lines_of_several_kinds_of_events(run: Run, write: Write, tmp_path: Path) -> None:
    """Nested fields, lists, two lines for a call and a sentence with numbers in it become one history."""
    log = write(
        "app.jsonl",
        application(
            ASSIGNED,
            received(5),
            handled(5),
            NOISE,
            received(6),
            {"msg": "committed orders/0 at 5"},
            handled(6),
        ),
    )
    history = imported(run, tmp_path, log, APPLICATION, form="jsonl")
    rows = list(open_history(history).rows())
    assert [(row.kind, row.queue_id, row.queue_offset, row.value) for row in rows] == [
        (Kind.ADD, 0, None, 5),
        (Kind.ADD, 1, None, 0),
        (Kind.DELIVER, 0, 5, None),
        (Kind.DELIVER, 0, 6, None),
        (Kind.COMMIT, 0, None, 6),
    ]
    assert {row.incarnation for row in rows} == {"1"}
    assert len({row.op_id for row in rows}) == len(rows)
    clauses = judged(run, history)
    assert clauses["CMT-1"]["verdict"] == "upheld"
    assert clauses["run"]["verdict"] == "upheld"


def test_a_commit_past_what_is_not_done_is_possible_while_sends_are_not_told(
    run: Run, write: Write, tmp_path: Path
) -> None:
    """The library committed 7 while 6 was in work; the report said beforehand that this can only be possible."""
    log = write(
        "app.jsonl",
        application(
            ASSIGNED,
            received(5),
            handled(5),
            received(6),
            {"msg": "committed orders/0 at 6"},
            handled(6),
        ),
    )
    history = imported(run, tmp_path, log, APPLICATION, form="jsonl")
    report = json.loads((history / "import.json").read_text(encoding="utf-8"))
    told = schema(IMPORT_SCHEMA)
    jsonschema.validate(report, told)
    words = told["properties"]["clauses"]["items"]["properties"]["can_be"]["enum"]
    assert words == [each.value for each in Decided]
    said = {each["id"]: (each["can_be"], each["missing_kinds"]) for each in report["clauses"]}
    assert said["CMT-1"] == ("at most possible", ["drop", "send", "trim"])
    assert judged(run, history)["CMT-1"]["verdict"] == "possible"


def test_a_call_after_the_revocation_is_refuted_and_one_that_ends_after_it_is_not(
    run: Run, write: Write, tmp_path: Path
) -> None:
    """Incarnations are numbered by what the log tells of partitions taken and left."""
    fine = application(ASSIGNED, received(5), REVOKED, handled(5), ASSIGNED, received(5))
    wrong = application(ASSIGNED, received(5), handled(5), REVOKED, received(6), handled(6))
    for name, lines, verdict in (("fine", fine, "upheld"), ("wrong", wrong, "refuted")):
        history = imported(run, tmp_path, write(f"{name}.jsonl", lines), APPLICATION, form="jsonl")
        assert judged(run, history)["ORD-13"]["verdict"] == verdict


def test_an_end_without_its_begin_is_counted_and_not_imported(
    run: Run, write: Write, tmp_path: Path
) -> None:
    """A rotated log begins in the midst of a call."""
    log = write("app.jsonl", application(handled(4), ASSIGNED, received(5)))
    map_file = write("map.toml", APPLICATION)
    result = run("import", "jsonl", "--map", map_file, log, "--out", tmp_path / "history")
    assert "1  deliver ended that no line began (the log begins late), line 1" in result.stdout
    assert "1  deliver begun and never ended" in result.stdout
    assert open_history(tmp_path / "history").info.begins_late


BROKEN_JSON = ["{", "[1]", "7", '{"a": 1} {"b": 2}', '{"@timestamp": {}}' + " " * 3, "{" * 100_000]


def test_broken_json_is_counted_with_its_line(run: Run, write: Write, tmp_path: Path) -> None:
    """Whatever stands there: one sentence with the line, never a crash."""
    log = write("app.jsonl", [*BROKEN_JSON, *application(ASSIGNED)])
    map_file = write("map.toml", APPLICATION)
    asked = ("import", "jsonl", "--map", map_file, log, "--out", tmp_path / "history")
    refused = run(*asked)
    assert (refused.exit_code, "line 1: the line is no JSON" in refused.stderr) == (64, True)
    passed = run(*asked, "--skip-bad", "5")
    assert passed.exit_code == 0, passed.stderr
    assert "5  bad lines passed over" in passed.stdout


def test_a_list_that_is_none_is_a_bad_line(run: Run, write: Write, tmp_path: Path) -> None:
    """And nothing of the line is imported."""
    log = write("app.jsonl", application({"event": "assigned", "partitions": 7}, ASSIGNED))
    result = run(
        "import", "jsonl", "--map", write("m.toml", APPLICATION), log, "--out", tmp_path / "history"
    )
    assert result.exit_code == 64
    assert "line 1: the field 'partitions' is no list of objects" in result.stderr


KAFKA_LOG = """
extends = "kafka-java-client-log"
order = "lines"
clock_bound_ms = 0
time_zone = "Europe/Berlin"
constants = { client_id = "billing-1", group = "billing", broker = "kafka" }
did_not_happen = ["reset", "pull"]
"""
LAYOUTS = (
    "[{at}] {level} [Consumer clientId=billing-1, groupId=billing] {said} (org.apache.kafka.clients.X)",
    "{at} [main] {level} org.apache.kafka.clients.X - [Consumer clientId=billing-1, groupId=billing] {said}",
    "{at} {level}  1 --- [billing-0-C-1] o.a.k.c.c.X : [Consumer clientId=billing-1, groupId=billing] {said}",
)


def consumer_log(layout: str, *commits: int) -> list[str]:
    """What Kafka's Java consumer writes, ConsumerCoordinator at DEBUG."""
    said = [
        ("INFO", "Adding newly assigned partitions: web-orders-0, web-orders-11"),
        (
            "INFO",
            "Setting offset for partition web-orders-0 to the committed offset FetchPosition{offset=40, "
            "offsetEpoch=Optional[3], currentLeader=LeaderAndEpoch{leader=Optional[k1:9092 (id: 1 rack: null)], "
            "epoch=3}}",
        ),
        ("INFO", "Found no committed offset for partition web-orders-11"),
        *(("DEBUG", f"Committed offset {each} for partition web-orders-0") for each in commits),
        ("INFO", "Revoke previously assigned partitions [web-orders-0, web-orders-11]"),
        ("INFO", "Revoke previously assigned partitions []"),
    ]
    lines = [
        layout.format(at=f"2026-03-02 09:00:00,{n:03d}", level=level, said=text)
        for n, (level, text) in enumerate(said)
    ]
    return ["  .   ____          _", "\tat org.apache.Some.method(Some.java:17)", *lines]


def test_the_log_of_kafkas_java_client(run: Run, write: Write, tmp_path: Path) -> None:
    """In each of three layouts: who had which partition, look-ups and commits; one that goes back is refuted."""
    for number, layout in enumerate(LAYOUTS):
        for name, commits, verdict in (
            ("fine", (41, 44, 44), "upheld"),
            ("back", (41, 44, 43), "refuted"),
        ):
            log = write(f"{name}-{number}.log", consumer_log(layout, *commits))
            history = imported(run, tmp_path, log, KAFKA_LOG, form="text")
            found = [
                (row.kind.value, row.queue_id, row.value) for row in open_history(history).rows()
            ]
            assert found == [
                ("add", 0, None),
                ("add", 11, None),
                ("fetch_offset", 0, 40),
                ("fetch_offset", 11, -1),
                *(("commit", 0, each) for each in commits),
                ("drop", 0, None),
                ("drop", 11, None),
            ]
            assert judged(run, history)["CMT-4"]["verdict"] == verdict


MOVED = [
    "Resetting offset for partition web-orders-0 to position FetchPosition{{offset={}, offsetEpoch=Optional.empty}}.",
    "Resetting offset for partition web-orders-0 to offset {}.",
    "Seeking to offset {} for partition web-orders-0",
]


def test_an_offset_that_the_client_itself_moved_excuses_a_commit_that_goes_back(
    run: Run, write: Write, tmp_path: Path
) -> None:
    """In each wording; a map that says that there was none is refused."""
    text = KAFKA_LOG.replace('["reset", "pull"]', '["pull"]')
    text += 'records = ["add", "drop", "fetch_offset", "commit", "reset"]\n'
    for number, said in enumerate(MOVED):
        lines = consumer_log(LAYOUTS[0], 41, 44, 12)
        moved = lines[-3].replace("Committed offset 12 for partition web-orders-0", said.format(10))
        log = write(f"{number}.log", [*lines[:-3], moved, *lines[-3:]])
        history = imported(run, tmp_path, log, text, form="text")
        assert [row.value for row in open_history(history).rows() if row.kind is Kind.RESET] == [10]
        assert judged(run, history)["CMT-4"]["verdict"] == "upheld"
        map_file = write("map.toml", KAFKA_LOG)
        result = run("import", "text", "--map", map_file, log, "--out", tmp_path / "other")
        assert (result.exit_code, "says that no reset happened" in result.stderr) == (64, True)


MQ = "MessageQueue [topic={topic}, brokerName=broker-a, queueId={queue}]"
ROCKETMQ_SAID = [
    "message queue lock OK, billing " + MQ.format(topic="orders", queue=3),
    "doRebalance, billing, add a new mq, " + MQ.format(topic="orders", queue=3),
    "[persistAll] Group: billing ClientId: 10.0.0.7@c1 updateConsumeOffsetToBroker "
    + MQ.format(topic="orders", queue=3)
    + " 4",
    "doRebalance, billing, remove unnecessary mq, " + MQ.format(topic="orders", queue=3),
    "the message queue unlock OK, Group: billing " + MQ.format(topic="orders", queue=3),
    "message queue lock Failed, billing " + MQ.format(topic="%RETRY%billing", queue=0),
    "the consumer [billing] shutdown OK",
]
ROCKETMQ_LAYOUTS = {
    "5.x": "2026-11-23 03:58:01.{n:03d} INFO  [10793] [RebalanceService] [o.a.r.c.i.c.RebalanceImpl#?:?] - {said}",
    "4.x": "2026-11-22 19:55:43,{n:03d} INFO RocketmqClient - {said}",
    "logback": "2021-03-09 20:16:19.{n:03d} WARN  [RebalanceService] (Slf4jLoggerFactory.java:115) - {said}",
}


def test_the_log_of_rocketmqs_java_client(run: Run, write: Write, tmp_path: Path) -> None:
    """In the layouts of three versions: lanes taken and left, leases, persisted offsets."""
    for name, layout in ROCKETMQ_LAYOUTS.items():
        text = 'extends = "rocketmq-client-log"\norder = "lines"\nclock_bound_ms = 0\ntime_zone = "Asia/Shanghai"\n'
        if name != "5.x":
            text += 'constants = { client_id = "10793" }\n'
        log = write(
            f"{name}.log",
            [layout.format(n=n, said=said) for n, said in enumerate(ROCKETMQ_SAID)]
            + ["java.lang.NullPointerException: null"],
        )
        history = imported(run, tmp_path, log, text, form="text")
        rows = list(open_history(history).rows())
        assert [(row.kind.value, row.outcome.value, row.topic) for row in rows] == [
            ("lock", "ok", "orders"),
            ("add", "ok", "orders"),
            ("commit", "sent", "orders"),
            ("drop", "ok", "orders"),
            ("unlock", "sent", "orders"),
            ("lock", "refused", "%RETRY%billing"),
            ("leave", "ok", None),
        ]
        assert {row.client_id for row in rows} == {"10793"}
        # Of locks it tells only the first of each lane, so they are not declared; of commits those without a pull.
        assert open_history(history).info.records == {"client": ("add", "commit")}
        assert open_history(history).info.gaps == ("commit",)
        assert [row.incarnation for row in rows[:4]] == [None, "1", "1", "1"]
        clauses = judged(run, history)
        # Renewals of leases are not told, and what was not told to the judge is not taken for the usual.
        assert clauses["LSE-3"]["verdict"] == "not_claimed"
        assert clauses["run"]["verdict"] == "inconclusive"


def test_a_lease_whose_renewals_are_not_logged_accuses_nobody(
    run: Run, write: Write, tmp_path: Path
) -> None:
    """Not even where the map declares locks: a call ten minutes after the only grant in the log is possible."""
    text = """
extends = "rocketmq-client-log"
order = "lines"
clock_bound_ms = 0
time_zone = "UTC"
records = ["add", "drop", "commit", "lock", "unlock", "leave", "deliver"]
did_not_happen = ["reset", "crash", "pause", "fault", "clock_step", "pull", "join", "fetch_offset"]
begins_late = false
config = { client_lease_ms = 30000, broker_lease_ms = 60000, lock_interval_ms = 20000 }
constants.client_id = "c1"
[[event]]
kind = "deliver"
at = "moment"
match = 'done (?P<group>\\w+)/(?P<topic>\\w+)/(?P<broker>[\\w-]+)/(?P<queue>\\d+)#(?P<offset>\\d+)'
columns.queue_offset = "offset"
constants.outcome = "success"
"""
    layout = ROCKETMQ_LAYOUTS["4.x"].replace("19:55:43,{n:03d}", "19:{n:02d}:43,000")
    said = [*ROCKETMQ_SAID[:2], "done billing/orders/broker-a/3#7", *ROCKETMQ_SAID[2:]]
    log = write(
        "rocketmq.log", [layout.format(n=10 * (n // 2) + n, said=s) for n, s in enumerate(said)]
    )
    for partial, verdict in ((None, "possible"), ('["commit"]', "refuted")):
        own = text if partial is None else f"partial = {partial}\n{text}"
        log = log.rename(log.with_stem(f"rocketmq-{verdict}"))
        history = imported(run, tmp_path, log, own, form="text")
        assert judged(run, history)["LSE-3"]["verdict"] == verdict


def test_two_kinds_of_lines_in_two_files(run: Run, write: Write, tmp_path: Path) -> None:
    """The library's log and the application's own, put in one order by their times."""
    text = """
extends = "rocketmq-client-log"
order = "times"
clock_bound_ms = 0
time_zone = "UTC"
records = ["add", "drop", "commit", "deliver"]
did_not_happen = ["reset"]
constants = { client_id = "c1", group = "billing", broker = "broker-a" }
line = [
  '(?P<time>\\S+ \\S+) INFO  \\[\\d+\\] \\[[^\\]]*\\] \\[[^\\]]*\\] - (?P<message>.*)',
  '(?P<time>\\S+ \\S+) app (?P<message>.*)',
]
[[event]]
kind = "deliver"
at = "moment"
match = 'done (?P<topic>\\w+)/(?P<queue>\\d+)#(?P<offset>\\d+)'
columns = { queue_offset = "offset" }
constants = { outcome = "success" }
"""
    layout = ROCKETMQ_LAYOUTS["5.x"]
    library = write(
        "client.log", [layout.format(n=100 * n, said=s) for n, s in enumerate(ROCKETMQ_SAID)]
    )
    own = write(
        "own.log",
        [
            f"2026-11-23 03:58:01.{at} app done orders/3#{offset}"
            for at, offset in ((150, 3), (160, 5), (170, 4))
        ],
    )
    map_file = write("map.toml", text)
    out = tmp_path / "history"
    result = run("import", "text", "--map", map_file, own, library, "--out", out)
    assert result.exit_code == 0, result.stderr
    rows = [(row.kind.value, row.incarnation) for row in open_history(out).rows()]
    assert rows[:5] == [("lock", None), ("add", "1"), *[("deliver", "1")] * 3]
    assert judged(run, out)["ORD-2"]["verdict"] == "refuted"


def test_text_that_is_none_is_a_bad_line(run: Run, write: Write, tmp_path: Path) -> None:
    """Half a character in JSON, a list whose elements nobody can read."""
    half = application(received(5) | {"host": {"name": "pod"}})[0].replace("pod", "pod \\ud800")
    result = run(
        "import",
        "jsonl",
        "--map",
        write("m.toml", APPLICATION),
        write("a.jsonl", [half]),
        "--out",
        tmp_path / "h",
    )
    assert (result.exit_code, "'host.name' holds half a character" in result.stderr) == (64, True)
    lines = consumer_log(LAYOUTS[0])
    lines[2] = lines[2].replace("web-orders-0, web-orders-11", "everything!")
    result = run(
        "import",
        "text",
        "--map",
        write("k.toml", KAFKA_LOG),
        write("k.log", lines),
        "--out",
        tmp_path / "h",
    )
    assert (result.exit_code, "holds nothing that `each` finds" in result.stderr) == (64, True)


def test_before_its_first_assignment_a_client_works_in_one_that_the_log_begins_after(
    run: Run, write: Write, tmp_path: Path
) -> None:
    """Where every assignment is told, an hour without one is one incarnation; else nobody knows."""
    log = write(
        "app.jsonl", application(received(5), handled(5), ASSIGNED, received(6), handled(6))
    )
    map_file = write("map.toml", APPLICATION)
    for told, expected in (
        (APPLICATION, ["0", "1"]),
        (APPLICATION.replace(', "add", "drop"]', "]"), [None, "1"]),
    ):
        map_file.write_text(told, encoding="utf-8")
        out = tmp_path / f"history-{expected[0]}"
        assert run("import", "jsonl", "--map", map_file, log, "--out", out).exit_code == 0
        calls = [row.incarnation for row in open_history(out).rows() if row.kind is Kind.DELIVER]
        assert calls == expected


def test_that_a_log_is_silent_does_not_say_that_nothing_happened(
    run: Run, write: Write, tmp_path: Path
) -> None:
    """A kind without a line is not recorded until the map says that there was none; and then there must be none."""
    log = write(
        "app.jsonl",
        application(received(5), handled(5), received(7), handled(7), received(6), handled(6)),
    )
    map_file = write("map.toml", APPLICATION)
    out = tmp_path / "history"
    result = run("import", "jsonl", "--map", map_file, log, "--out", out)
    assert (
        'add counts as not told; if you know that there was none: did_not_happen = ["add"]'
        in result.stdout
    )
    assert judged(run, out)["ORD-2"]["verdict"] == "possible"
    text = APPLICATION.replace('["reset",', '["add", "reset",')
    known = imported(run, tmp_path, log, text, form="jsonl")
    assert judged(run, known)["ORD-2"]["verdict"] == "refuted"
    there = write("there.jsonl", application(ASSIGNED, received(5)))
    map_file.write_text(text, encoding="utf-8")
    result = run("import", "jsonl", "--map", map_file, there, "--out", tmp_path / "other")
    assert (result.exit_code, "says that no add happened" in result.stderr) == (64, True)


CONSOLE = """
profile = "kafka-java"
config.system = "kafka"
config.mode = "orderly"
config.message_model = "clustering"
config.suspend_ms = 1000
order = "lines"
clock_bound_ms = 0
time_format = "none"
line = 'CreateTime:\\d+\\tPartition:(?P<partition>\\d+)\\tOffset:(?P<offset>\\d+)\\t(?P<key>[^\\t]*)\\t.*'
records = ["deliver"]
did_not_happen = ["add", "reset"]
[[event]]
kind = "deliver"
at = "moment"
columns = { queue_id = "partition", queue_offset = "offset", sharding_key = "key" }
constants.group = "console"
constants.topic = "orders"
constants.broker = "kafka"
constants.outcome = "success"
constants.client_id = "console"
constants.incarnation = "1"
"""


def test_the_output_of_kafkas_console_consumer(run: Run, write: Write, tmp_path: Path) -> None:
    """It tells when a record was made, not when it came: the order of the lines is all there is."""
    made = [(3, 0, 7), (1, 1, 4), (2, 0, 8), (9, 0, 9)]
    for name, offsets, verdict in (
        ("fine", [7, 4, 8, 9], "upheld"),
        ("wrong", [7, 4, 9, 8], "refuted"),
    ):
        lines = [
            f"CreateTime:177243924710{at}\tPartition:{part}\tOffset:{offset}\tkey-{at}\tbody"
            for (at, part, _), offset in zip(made, offsets, strict=True)
        ]
        log = write(f"{name}.txt", [*lines, "Processed a total of 4 messages"])
        history = imported(run, tmp_path, log, CONSOLE, form="text")
        assert judged(run, history)["ORD-2"]["verdict"] == verdict
        assert "suspend_ms" not in open_history(history).info.config.to_json()
        assert [row.wall_us for row in open_history(history).rows()] == [None] * 4


def test_a_recipe_for_a_log_that_a_collector_sent_on_as_json(
    run: Run, write: Write, tmp_path: Path
) -> None:
    """The same sentences, in a field of JSON lines: the recipe's lines are not asked for, its events are."""
    text = KAFKA_LOG.replace('time_zone = "Europe/Berlin"', 'time = "@timestamp"\nmessage = "msg"')
    said = [line.partition("] ")[2] for line in consumer_log(LAYOUTS[0], 41, 44, 43)[2:]]
    log = write("app.jsonl", application(*({"msg": each} for each in said)))
    history = imported(run, tmp_path, log, text, form="jsonl")
    assert judged(run, history)["CMT-4"]["verdict"] == "refuted"
