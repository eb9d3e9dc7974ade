"""What an import left out of a log is told, and never held against the system: bad lines, repeats, lost begins."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import Result

from specs.clauses.catalogue import by_id
from specs.history.store import open_history
from specs.verdicts.verdict import why_possible

from .conftest import KAFKA
from .test_csv import deliveries, imported, judged
from .test_logs import APPLICATION, ASSIGNED, REVOKED, application, handled, received

Run = Callable[..., Result]
Write = Callable[[str, "str | Sequence[str]"], Path]

RESULTS = KAFKA.replace(
    'queue_offset = "off"',
    'queue_offset = "off", outcome = { field = "ok", values = { y = "success", n = "suspend" } }',
).replace('outcome = "success", ', "")


def calls(*lines: str) -> list[str]:
    """A header, and for `offset result` a line every 10 ms; what has no blank is taken as it stands."""
    found = ["ts,who,part,off,ok"]
    for place, line in enumerate(lines):
        offset, _, ok = line.partition(" ")
        found.append(f"2026-03-02T09:00:00.{place:02d}0Z,c1,0,{offset},{ok}" if ok else line)
    return found


LOST = [
    ("a line cut short", "2026-03-02T09:00:00.010Z,c1,0"),
    ("a line without its offset", "2026-03-02T09:00:00.010Z,c1,0,,n"),
    ("a line whose time goes back", "2026-03-02T08:00:00Z,c1,0,1,n"),
]


@pytest.mark.parametrize("line", [line for _why, line in LOST], ids=[why for why, _line in LOST])
@pytest.mark.parametrize("engine", ["python", "arrow"])
def test_a_line_that_was_passed_over_refutes_nobody(
    run: Run, write: Write, tmp_path: Path, line: str, engine: str
) -> None:
    """1 failed where the line stood, and came again after 2: to who lacks that line, 2 was first."""
    log = write("log.csv", calls("0 y", line, "2 n", "1 y", "2 y"))
    history = imported(run, tmp_path, log, RESULTS, "--skip-bad", "1")
    info = open_history(history).info
    assert (info.gaps, info.records) == (("deliver",), {"client": ("add", "deliver", "reset")})
    result = run("check", history, "--engine", engine)
    assert "the history was cut (1 line was passed over at the import)" in " ".join(
        result.stdout.split()
    )
    assert judged(run, history)["ORD-2"]["verdict"] == "possible"
    assert why_possible(by_id()["ORD-2"], info) == (
        "rows that are missing from the history may explain it: deliver"
    )


def test_the_report_says_beforehand_what_a_passed_over_line_leaves_open(
    run: Run, write: Write, tmp_path: Path
) -> None:
    """No clause that goes by such lines can be decided, and a closed world is none any more."""
    log = write("log.csv", [*deliveries([0, 1]), "x"])
    text = KAFKA.replace('order = "lines"', 'order = "lines"\nbegins_late = false')
    history = imported(run, tmp_path, log, text, "--skip-bad", "1")
    report = json.loads((history / "import.json").read_text(encoding="utf-8"))
    said = {each["id"]: each["can_be"] for each in report["clauses"]}
    assert (said["ORD-2"], report["gaps"]) == ("at most possible", ["deliver"])
    assert not open_history(history).info.closed_world


def test_a_bad_line_of_one_kind_leaves_others_decided(
    run: Run, write: Write, tmp_path: Path
) -> None:
    """Which kind it told of is known where an event speaks of it."""
    bad = {"event": "received", "kafka": {"topic": "orders", "partition": 0, "offset": "?"}}
    commits: list[dict[str, object]] = [{"msg": f"committed orders/0 at {at}"} for at in (5, 7, 6)]
    log = write("app.jsonl", application(ASSIGNED, bad, *commits))
    history = imported(run, tmp_path, log, APPLICATION, "--skip-bad", "1", form="jsonl")
    assert open_history(history).info.gaps == ("deliver",)
    assert judged(run, history)["CMT-4"]["verdict"] == "refuted"


REPEATED = calls("0 y", "1 y", "2 y")
REPEATED.insert(3, REPEATED[2])
WITH_ADD = RESULTS.replace('["add", "reset"]', '["reset", "fetch_offset", "pull", "commit"]')
ADDED = """
[[event]]
kind = "add"
when = { ok = "added" }
columns = { client_id = "who", queue_id = "part" }
constants = { group = "billing", topic = "orders", broker = "kafka", incarnation = "1" }
"""
WHEN = WITH_ADD.replace('at = "moment"', 'at = "moment"\nwhen = { ok = ["y", "n"] }').replace(
    'records = ["deliver"]', 'records = ["deliver", "add"]'
)


@pytest.mark.parametrize("order", ["lines", "times"])
def test_a_line_that_is_there_twice_is_no_second_call(
    run: Run, write: Write, tmp_path: Path, order: str
) -> None:
    """A shipper that sends a line again looks like a redelivery: what the map says of it decides what is known."""
    lines = list(REPEATED)
    lines.insert(1, "2026-03-02T08:59:59Z,c1,0,0,added")
    log = write("log.csv", lines)
    text = WHEN.replace('order = "lines"', f'order = "{order}"') + ADDED
    verdicts = {}
    for said in ("", '"drop"', '"keep"'):
        mine = text.replace("time =", f"duplicates = {said}\ntime =") if said else text
        out = tmp_path / f"h{len(verdicts)}"
        map_file = write("map.toml", mine)
        result = run("import", "csv", "--map", map_file, log, "--out", out)
        assert result.exit_code == 0, result.stderr
        told = "1  line the same as another, byte for byte, left out: line 5 as 4" in result.stdout
        assert told is (said != '"keep"')
        clause = judged(run, out)["ORD-10"]
        verdicts[said] = (clause["verdict"], open_history(out).info.gaps)
    assert verdicts == {
        "": ("not_exercised", ("deliver",)),
        '"drop"': ("not_exercised", ()),
        '"keep"': ("refuted" if order == "lines" else "possible", ()),
    }


def test_a_repeated_line_can_be_refused_and_is_told_by_its_number(
    run: Run, write: Write, tmp_path: Path
) -> None:
    """Both lines are named."""
    log = write("log.csv", REPEATED)
    text = RESULTS.replace("time =", 'duplicates = "refuse"\ntime =')
    out = tmp_path / "h"
    result = run("import", "csv", "--map", write("map.toml", text), log, "--out", out)
    assert (result.exit_code, "line 4 is the same as line 3, byte" in result.stderr) == (64, True)
    result = run("import", "csv", "--map", write("map.toml", RESULTS), log, "--out", out)
    told = " ".join(result.stdout.split())
    assert 'duplicates = "drop"; if each is an event: duplicates = "keep"' in told


def test_what_stays_certain_though_a_line_repeats(run: Run, write: Write, tmp_path: Path) -> None:
    """Where the map says that a line may come twice, a disorder elsewhere is refuted."""
    lines = calls("0 y", "1 y", "3 y", "2 y")
    lines.insert(2, lines[1])
    text = RESULTS.replace("time =", 'duplicates = "drop"\ntime =')
    history = imported(run, tmp_path, write("log.csv", lines), text)
    assert judged(run, history)["ORD-2"]["verdict"] == "refuted"


PAIRS = APPLICATION.replace(
    'columns = { queue_offset = "kafka.offset", sharding_key = "kafka.key" }',
    'columns = { queue_offset = "kafka.offset", message_id = "id" }',
).replace(
    'columns.queue_offset = "kafka.offset"',
    'columns.queue_offset = "kafka.offset"\ncolumns.message_id = "id"',
)


@pytest.mark.parametrize("began", ["m5", "", None])
@pytest.mark.parametrize("ended", ["m5", "", None])
def test_an_end_finds_its_begin_though_one_of_them_lacks_the_id(
    run: Run, write: Write, tmp_path: Path, began: str | None, ended: str | None
) -> None:
    """By who, where and which offset."""
    log = write(
        "app.jsonl", application(ASSIGNED, received(5) | {"id": began}, handled(5) | {"id": ended})
    )
    history = imported(run, tmp_path, log, PAIRS, form="jsonl")
    row = list(open_history(history).rows())[-1]
    assert (row.outcome.value, row.message_id) == ("success", began or ended or None)


def test_ids_that_differ_are_two_calls(run: Run, write: Write, tmp_path: Path) -> None:
    """Then the end of one is no end of the other; it is told by its line, and what rests on calls is left open."""
    log = write(
        "app.jsonl",
        application(ASSIGNED, received(5) | {"id": "a"}, handled(5) | {"id": "b"}),
    )
    result = run(
        "import", "jsonl", "--map", write("m.toml", PAIRS), log, "--out", tmp_path / "history"
    )
    assert "1  deliver ended that no line began (1 after that client had begun" in result.stdout
    assert "line 3" in result.stdout
    assert open_history(tmp_path / "history").info.gaps == ("deliver",)


def test_an_end_in_the_midst_of_a_clients_work_is_a_gap(
    run: Run, write: Write, tmp_path: Path
) -> None:
    """Its begin was lost: to who lacks that, 7 seems to come first. At a log's begin it lacks nothing that it tells."""
    lost = application(
        ASSIGNED, received(5), handled(5), handled(6, ok=False), received(7), handled(7, ok=False)
    )
    lost += application(*[NOTHING] * 6, received(6), handled(6), received(7), handled(7))[6:]
    text = APPLICATION.replace('"dead_letter"', '"dead_letter", "send"')
    found = imported(run, tmp_path, write("lost.jsonl", lost), text, form="jsonl")
    assert judged(run, found)["ORD-2"]["verdict"] == "possible"
    late = application(handled(4), ASSIGNED, received(5), handled(5), received(7), handled(7))
    late += application(*[NOTHING] * 6, received(6), handled(6))[6:]
    found = imported(run, tmp_path, write("late.jsonl", late), text, form="jsonl")
    assert open_history(found).info.gaps == ()
    assert judged(run, found)["ORD-2"]["verdict"] == "refuted"


NOTHING: dict[str, object] = {"msg": ""}


@pytest.mark.parametrize(
    ("column", "value"), [("off", "-1"), ("off", "-1001"), ("part", "-1"), ("off", "-1.0")]
)
def test_a_negative_offset_or_queue_is_none(
    run: Run, write: Write, tmp_path: Path, column: str, value: str
) -> None:
    """A client's word for "none" is never taken for a place."""
    line = {"off": "7", "part": "0", column: value}
    log = write(
        "log.csv", ["ts,who,part,off", f"2026-03-02T09:00:00Z,c1,{line['part']},{line['off']}"]
    )
    result = run(
        "import", "csv", "--map", write("m.toml", KAFKA), log, "--out", tmp_path / "history"
    )
    assert result.exit_code == 64
    assert f"the field '{column}' is below 0, which tells of none" in result.stderr


def test_where_it_is_not_asked_for_a_negative_number_is_not_told(
    run: Run, write: Write, tmp_path: Path
) -> None:
    """An assignment whose start nobody knows (-1001), and a look-up that found nothing (-1, refused)."""
    assigned = {"event": "assigned", "partitions": [{"topic": "orders", "id": 0, "from": -1001}]}
    text = (
        APPLICATION.replace('"fetch_offset", ', "")
        + """
[[event]]
kind = "fetch_offset"
at = "moment"
match = 'nothing stored for (?P<topic>\\S+)/(?P<part>\\d+): (?P<at>-?\\d+)'
message = "msg"
columns = { topic = "topic", queue_id = "part", value = "at" }
constants = { outcome = "refused" }
"""
    )
    log = write("a.jsonl", application(assigned, {"msg": "nothing stored for orders/0: -1001"}))
    rows = list(open_history(imported(run, tmp_path, log, text, form="jsonl")).rows())
    assert [(row.kind.value, row.value) for row in rows] == [("add", None), ("fetch_offset", -1)]


def test_a_key_that_a_line_tells_twice_is_a_bad_line(
    run: Run, write: Write, tmp_path: Path
) -> None:
    """But not one that says the same twice, or that the map does not read."""
    fine = application(ASSIGNED, received(5))
    fine[1] = fine[1].replace('"event"', '"logger": 1, "logger": 2, "event": "received", "event"')
    imported(run, tmp_path, write("fine.jsonl", fine), APPLICATION, form="jsonl")
    fine[1] = fine[1].replace('"offset": 5', '"offset": 5, "offset": 6')
    result = run(
        "import",
        "jsonl",
        "--map",
        write("m.toml", APPLICATION),
        write("bad.jsonl", fine),
        "--out",
        tmp_path / "h",
    )
    assert result.exit_code == 64
    assert "line 2: the line tells 'offset' twice, and not the same" in result.stderr


def test_blanks_around_a_text_make_no_other_client(run: Run, write: Write, tmp_path: Path) -> None:
    """A table that is padded; a client of blanks alone is missing."""
    lines = deliveries([1, 2])
    lines[2] = lines[2].replace(",c1,", ", c1 ,")
    history = imported(run, tmp_path, write("log.csv", lines), KAFKA)
    assert {row.client_id for row in open_history(history).rows()} == {"c1"}
    lines[2] = lines[2].replace(", c1 ,", ",  ,")
    log, map_file = write("blank.csv", lines), write("m.toml", KAFKA)
    result = run("import", "csv", "--map", map_file, log, "--out", tmp_path / "h")
    assert (result.exit_code, "the field 'who' gives no client_id" in result.stderr) == (64, True)


def test_a_damaged_end_can_not_be_passed_over(run: Run, write: Write, tmp_path: Path) -> None:
    """Nobody knows what stood there: a gzip that breaks off, a quote that nothing closes."""
    map_file = write("m.toml", KAFKA)
    packed = tmp_path / "log.csv.gz"
    whole = gzip.compress("\n".join(deliveries(range(50))).encode())
    quoted = [*deliveries(range(3)), '2026-03-02T09:00:01Z,"c1,0,7', "2026-03-02T09:00:02Z,c1,0,8"]
    for data, said in ((whole[:-60], "can't be read on after line"), (whole[:40], "can't be read")):
        packed.write_bytes(data)
        asked = ("import", "csv", "--map", map_file, packed, "--out", tmp_path / "h")
        result = run(*asked, "--skip-bad", "9")
        assert (result.exit_code, said in result.stderr) == (64, True), result.stderr
    log = write("log.csv", quoted)
    result = run(
        "import", "csv", "--map", map_file, log, "--out", tmp_path / "h", "--skip-bad", "9"
    )
    assert result.exit_code == 64
    assert "line 5: nothing closes a quote that is opened here" in result.stderr


def test_lines_that_a_quote_swallows_count_each(run: Run, write: Write, tmp_path: Path) -> None:
    """A quote that another line's closes makes one bad record of many lines; one that is well formed is told."""
    swallowed = deliveries(range(30))
    swallowed[3] = swallowed[3].replace("c1,", '"c1,')
    swallowed[20] = swallowed[20].replace("c1,", 'c1",')
    map_file = write("m.toml", KAFKA)
    log = write("log.csv", swallowed)
    asked = ("import", "csv", "--map", map_file, log, "--out", tmp_path / "h", "--skip-bad")
    result = run(*asked, "17")
    assert result.exit_code == 0
    assert "1  line with a quoted text of more than ten lines, first line 4" in result.stdout
    swallowed[20] += ",x"
    log = write("log.csv", swallowed)
    asked = ("import", "csv", "--map", map_file, log, "--out", tmp_path / "h2", "--skip-bad")
    result = run(*asked, "17")
    assert result.exit_code == 64
    assert "that makes 18 bad lines, and --skip-bad allows 17" in result.stderr
    assert run(*asked, "18").exit_code == 0


def test_an_id_commands_no_terminal(run: Run, write: Write, tmp_path: Path) -> None:
    """Control characters of a log are spelt out wherever people read them."""
    lines = [line.replace(",c1,", ",c\x1b[31m\x9b1,") for line in deliveries([1, 3, 2])]
    history = imported(run, tmp_path, write("log.csv", lines), KAFKA)
    shown = [
        run("check", history, "--out", tmp_path / "kept"),
        run("explain", history, "--lane", "billing/orders/kafka/0"),
    ]
    for result in shown:
        assert "c\\x1b[31m\\x9b1" in result.stdout
        assert "\x1b" not in result.stdout
        assert "\x9b" not in result.stdout
    assert "\x1b" not in (tmp_path / "kept" / "report.txt").read_text(encoding="utf-8")


def test_the_report_and_the_verdict_say_alike_what_is_not_recorded(
    run: Run, write: Write, tmp_path: Path
) -> None:
    """ORD-4 is judged from commits alone, and no clause is said to be not recorded that is."""
    taken: dict[str, object] = {"event": "assigned", "partitions": ASSIGNED["partitions"]}
    lines = application(
        ASSIGNED,
        received(5),
        handled(5),
        {"msg": "committed orders/0 at 5"},
        received(6),
        handled(6, ok=False),
        REVOKED,
        taken,
        received(7),
        handled(7),
    )
    text = APPLICATION.replace('"fetch_offset", ', "").replace(
        "max_reconsume_times = -1", "max_reconsume_times = -1\nconfig.consume_from = 'first'"
    )
    history = imported(run, tmp_path, write("a.jsonl", lines), text, form="jsonl")
    report = json.loads((history / "import.json").read_text(encoding="utf-8"))
    said = {each["id"]: each["can_be"] for each in report["clauses"]}
    found = judged(run, history)
    assert said["ORD-4"] == "at most possible"
    assert found["ORD-4"]["verdict"] == "possible"
    for name, can_be in said.items():
        assert (can_be == "not recorded") is (found[name]["verdict"] == "not_recorded"), name


def test_what_was_not_looked_at_is_said_beside_upheld(
    run: Run, write: Write, tmp_path: Path
) -> None:
    """No clause of order without incarnations, and no message that nobody was given without sends."""
    commits: list[dict[str, object]] = [{"msg": f"committed orders/0 at {at}"} for at in (5, 6, 7)]
    log = write("app.jsonl", application(received(5), handled(5), *commits))
    text = APPLICATION.replace(', "add", "drop"]', "]").replace(
        'broker = "kafka" }', 'broker = "kafka" }\nduplicates = "drop"'
    )
    by_another = 'constants = { outcome = "ok", incarnation = "1", client_id = "committer" }'
    text = text.replace('constants = { outcome = "ok" }', by_another)
    map_file = write("map.toml", text)
    out = tmp_path / "h"
    told = " ".join(run("import", "jsonl", "--map", map_file, log, "--out", out).stdout.split())
    assert "Sends are not told: a message that was passed over" in told
    result = run("check", out)
    assert (result.exit_code, "sends are not told, so that a message" in result.stderr) == (0, True)
    assert "of order nothing was judged: neither of ORD-2, ORD-3" in result.stdout


def test_revoked_and_passed_over(run: Run, write: Write, tmp_path: Path) -> None:
    """An assignment that nobody could read leaves open whether a redelivery was one by the same incarnation."""
    again: dict[str, object] = {"event": "assigned", "partitions": 7}
    log = write(
        "app.jsonl",
        application(ASSIGNED, received(5), handled(5), REVOKED, again, received(5), handled(5)),
    )
    history = imported(run, tmp_path, log, APPLICATION, "--skip-bad", "1", form="jsonl")
    verdicts = {each["verdict"] for each in judged(run, history)["run"]["clauses"]}  # type: ignore[attr-defined]
    assert "refuted" not in verdicts
