"""A CSV of a consumer's deliveries: judged as what it is, whatever its columns, times and order."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from click.testing import Result

from specs.history.store import open_history

from .conftest import KAFKA

Run = Callable[..., Result]
Write = Callable[[str, "str | Sequence[str]"], Path]
BEGAN = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def deliveries(offsets: Sequence[int], part: int = 0, who: str = "c1") -> list[str]:
    """A header and a line every 10 ms."""
    lines = [
        f"{(BEGAN + timedelta(milliseconds=10 * place)).isoformat()},{who},{part},{offset}"
        for place, offset in enumerate(offsets)
    ]
    return ["ts,who,part,off", *lines]


def judged(run: Run, history: Path, *more: str) -> dict[str, dict[str, object]]:
    """The verdict's clauses by id, and the run's own as `run`."""
    result = run("check", history, "--format", "json", "--engine", "python", *more)
    verdict = json.loads(result.stdout)
    return {each["id"]: each for each in verdict["clauses"]} | {"run": verdict}


def imported(run: Run, tmp_path: Path, log: Path, text: str, *more: str, form: str = "csv") -> Path:
    map_file = tmp_path / "map.toml"
    map_file.write_text(text, encoding="utf-8")
    out = tmp_path / f"history-{log.stem}"
    result = run("import", form, "--map", map_file, log, "--out", out, *more)
    assert (result.exit_code, result.stderr.count("Traceback")) == (0, 0), result.stderr
    return out


def test_a_planted_disorder_is_refuted_by_its_clause(
    run: Run, write: Write, tmp_path: Path
) -> None:
    """One swap among fifty is ORD-2's, with the two lines as its witness, and the first: it may begin late."""
    offsets = [*range(20), 21, 20, *range(22, 50)]
    history = imported(run, tmp_path, write("log.csv", deliveries(offsets)), KAFKA)
    clauses = judged(run, history)
    witness = clauses["ORD-2"]["witness"]
    assert clauses["ORD-2"]["verdict"] == "refuted"
    assert isinstance(witness, list)
    assert [row["queue_offset"] for row in witness] == [0, 21, 20]


def test_a_correct_log_is_upheld_for_what_it_shows(run: Run, write: Write, tmp_path: Path) -> None:
    """Nothing is refuted or left possible, and what the log does not tell is not recorded."""
    history = imported(run, tmp_path, write("log.csv", deliveries(range(50))), KAFKA)
    clauses = judged(run, history)
    assert clauses["ORD-2"]["verdict"] == "upheld"
    assert clauses["CMT-1"]["verdict"] == "not_recorded"
    assert clauses["run"]["verdict"] == "upheld"


def test_what_was_not_declared_may_excuse(run: Run, write: Write, tmp_path: Path) -> None:
    """Where the map does not say that no offset was moved, the same disorder is possible and no more."""
    text = KAFKA.replace('did_not_happen = ["add", "reset"]', "")
    history = imported(run, tmp_path, write("log.csv", deliveries([1, 3, 2])), text)
    assert judged(run, history)["ORD-2"]["verdict"] == "possible"


FORMATS: list[tuple[str, str, Callable[[datetime], str]]] = [
    ("epoch_s", "", lambda at: f"{at.timestamp():.6f}"),
    ("epoch_ms", "", lambda at: str(round(at.timestamp() * 1000))),
    ("epoch_us", "", lambda at: str(round(at.timestamp() * 1_000_000))),
    ("epoch_ns", "", lambda at: str(round(at.timestamp() * 1000) * 1_000_000)),
    ("iso", "", lambda at: at.isoformat().replace("+00:00", "Z")),
    ("iso", "", lambda at: at.astimezone(ZoneInfo("Asia/Kolkata")).isoformat()),
    (
        "iso",
        "Europe/Berlin",
        lambda at: at.astimezone(ZoneInfo("Europe/Berlin")).strftime("%Y-%m-%d %H:%M:%S.%f"),
    ),
    (
        "iso",
        "-05:30",
        lambda at: (at - timedelta(hours=5, minutes=30)).strftime("%Y-%m-%dT%H:%M:%S,%f"),
    ),
    ("%d/%b/%Y:%H:%M:%S.%f %z", "", lambda at: at.strftime("%d/%b/%Y:%H:%M:%S.%f %z")),
    ("%d.%m.%Y %H:%M:%S.%f", "UTC", lambda at: at.strftime("%d.%m.%Y %H:%M:%S.%f")),
]


@pytest.mark.parametrize(("form", "zone", "written"), FORMATS)
def test_times_mean_the_same_however_they_are_written(
    run: Run,
    write: Write,
    tmp_path: Path,
    form: str,
    zone: str,
    written: Callable[[datetime], str],
) -> None:
    """Seconds to nanoseconds since 1970, with a zone, in a named zone, by a pattern: the same microsecond."""
    moments = [BEGAN + timedelta(milliseconds=7 * place) for place in range(3)]
    log = write(
        "log.csv",
        ["who;off;part;ts", *(f'c1;{n};0;"{written(at)}"' for n, at in enumerate(moments))],
    )
    text = KAFKA.replace(
        'time = "ts"',
        f'time = "ts"\ndelimiter = ";"\ntime_format = "{form}"'
        + (f'\ntime_zone = "{zone}"' if zone else ""),
    )
    rows = list(open_history(imported(run, tmp_path, log, text)).rows())
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    assert [row.started_us for row in rows] == [
        (at - epoch) // timedelta(microseconds=1) for at in moments
    ]


def test_times_of_1970_are_told(run: Run, write: Write, tmp_path: Path) -> None:
    """Seconds that a map takes for milliseconds; and a log on stdin may be packed."""
    log = "\n".join(["ts,who,part,off", "1772442840,c1,0,1", "1772442841,c1,0,2", ""])
    for form, warned in (("epoch_ms", True), ("epoch_s", False)):
        text = KAFKA.replace('time = "ts"', f'time = "ts"\ntime_format = "{form}"')
        asked = ("import", "csv", "--map", write("m.toml", text), "-", "--out", tmp_path / form)
        result = run(*asked, input=gzip.compress(log.encode()))
        assert result.exit_code == 0, result.stderr
        assert ("times of 1970: is the unit that of time_format?" in result.stdout) is warned


def test_lines_in_any_order_are_put_in_that_of_their_times(
    run: Run, write: Write, tmp_path: Path
) -> None:
    """An export that begins with the newest line is judged as the log that it was made of."""
    header, *lines = deliveries([0, 1, 2, 4, 3, 5])
    text = KAFKA.replace('order = "lines"', 'order = "times"')
    for name, mixed in (("down", lines[::-1]), ("mixed", [*lines[3:], *lines[:3]])):
        history = imported(run, tmp_path, write(f"{name}.csv", [header, *mixed]), text)
        assert [row.queue_offset for row in open_history(history).rows()] == [0, 1, 2, 4, 3, 5]
        assert judged(run, history)["ORD-2"]["verdict"] == "refuted"


def test_nothing_is_concluded_from_the_order_of_lines_of_one_time(
    run: Run, write: Write, tmp_path: Path
) -> None:
    """Times that tell only the second leave it open which line came first."""
    at = BEGAN.isoformat()
    log = write("log.csv", ["ts,who,part,off", f"{at},c1,0,1", f"{at},c1,0,3", f"{at},c1,0,2"])
    by_times = KAFKA.replace('order = "lines"', 'order = "times"')
    assert judged(run, imported(run, tmp_path, log, by_times))["ORD-2"]["verdict"] == "possible"
    copy = write("again.csv", log.read_text(encoding="utf-8"))
    assert judged(run, imported(run, tmp_path, copy, KAFKA))["ORD-2"]["verdict"] == "refuted"


ADDED = (
    KAFKA.replace('order = "lines"', 'order = "times"')
    .replace('records = ["deliver"]', 'records = ["deliver", "add", "drop"]')
    .replace('did_not_happen = ["add", "reset"]', 'did_not_happen = ["reset", "dead_letter"]')
    .replace(', incarnation = "1"', "")
    .replace('at = "moment"', 'at = "moment"\nwhen.what = "done"')
)
for _kind in ("add", "drop"):
    ADDED += f"""
[[event]]
kind = "{_kind}"
when.what = "{_kind}"
columns = {{ client_id = "who", queue_id = "part" }}
constants = {{ group = "billing", topic = "orders", broker = "kafka" }}
"""
TIED: list[tuple[str, list[tuple[int, str, int]]]] = [
    ("ORD-2", [(0, "add", 0), (10, "done", 7), (20, "done", 5), (20, "add", 0)]),
    ("ORD-2", [(0, "add", 0), (10, "done", 7), (10, "done", 5), (10, "done", 6)]),
    ("ORD-13", [(0, "add", 0), (10, "add", 0), (10, "drop", 0), (20, "done", 5)]),
    ("ORD-13", [(0, "add", 0), (10, "drop", 0), (10, "done", 5)]),
]
"""The clause; when, what and which offset."""


@pytest.mark.parametrize(("clause", "told"), TIED)
def test_no_order_of_files_makes_a_tie_certain(
    run: Run, write: Write, tmp_path: Path, clause: str, told: list[tuple[int, str, int]]
) -> None:
    """Nor what follows from it: in which incarnation a call was, or which of two was dropped."""

    def verdict(name: str, lines: Sequence[tuple[int, str, int]]) -> str:
        logs = [
            write(
                f"{name}-{place}.csv",
                [
                    "ts,who,part,off,what",
                    f"{(BEGAN + timedelta(milliseconds=at)).isoformat()},c1,0,{offset},{what}",
                ],
            )
            for place, (at, what, offset) in enumerate(lines)
        ]
        out = tmp_path / name
        result = run("import", "csv", "--map", write("map.toml", ADDED), *logs, "--out", out)
        assert result.exit_code == 0, result.stderr
        return str(judged(run, out)[clause]["verdict"])

    orders = {tuple(sorted(lines, key=lambda line: line[0])) for lines in permutations(told)}
    found = {verdict(f"tied-{n}", lines) for n, lines in enumerate(sorted(orders))}
    assert "possible" in found
    assert "refuted" not in found


def test_clocks_of_several_hosts_count_with_their_bound(
    run: Run, write: Write, tmp_path: Path
) -> None:
    """Two members work on one queue side by side: possible within the bound, certain beyond it."""
    lines = ["ts,who,part,off,host"]
    for place, (who, offset) in enumerate([("c1", 5), ("c1", 7), ("c1", 6)]):
        at = BEGAN + timedelta(milliseconds=100 * place)
        lines.append(f"{at.isoformat()},{who},0,{offset},h{place}")
    for bound, verdict in ((150, "possible"), (50, "refuted")):
        text = KAFKA.replace('order = "lines"', 'order = "times"\nclock = "host"')
        text = text.replace("clock_bound_ms = 0", f"clock_bound_ms = {bound}")
        history = imported(run, tmp_path, write(f"log-{bound}.csv", lines), text)
        assert judged(run, history)["ORD-2"]["verdict"] == verdict
        assert open_history(history).info.clock_bound_us == bound * 1000


def test_two_lines_for_each_call_are_one_operation(run: Run, write: Write, tmp_path: Path) -> None:
    """A begin and an end find each other; a begin without an end stays open, and its outcome unknown."""
    text = KAFKA.replace('at = "moment"', 'at = "begin"\nwhen = { what = "start" }').replace(
        ', outcome = "success"', ""
    )
    text += """
[[event]]
kind = "deliver"
at = "end"
when = { what = ["done", "failed"] }
columns.client_id = "who"
columns.queue_id = "part"
columns.queue_offset = "off"
columns.outcome = { field = "what", values = { done = "success", failed = "suspend" } }
constants = { group = "billing", topic = "orders", broker = "kafka" }
"""
    rows = [("start", 1), ("start", 2), ("done", 1), ("failed", 2), ("start", 2), ("start", 9)]
    lines = ["ts,who,part,off,what"] + [
        f"{(BEGAN + timedelta(milliseconds=n)).isoformat()},c1,0,{offset},{what}"
        for n, (what, offset) in enumerate(rows)
    ]
    history = imported(run, tmp_path, write("log.csv", lines), text)
    told = [
        (row.queue_offset, row.seq_begin, row.seq_end, str(row.outcome))
        for row in open_history(history).rows()
    ]
    assert told == [
        (1, 1, 3, "success"),
        (2, 2, 4, "suspend"),
        (2, 5, None, "unknown"),
        (9, 6, None, "unknown"),
    ]


def test_begin_and_end_in_one_line_and_a_length(run: Run, write: Write, tmp_path: Path) -> None:
    """Both times, or one and how long it took, make the same calls; they overlap as they did."""
    both = KAFKA.replace('order = "lines"', 'order = "times"').replace(
        'at = "moment"', 'begin = "b"\nend = "e"'
    )
    length = KAFKA.replace('order = "lines"', 'order = "times"').replace(
        'at = "moment"', 'at = "end"\ntime = "e"\ntook = { field = "ms", unit = "ms" }'
    )
    spans = [(0, 30), (10, 20), (40, 40)]
    lines = ["b,e,ms,who,part,off"]
    for offset, (begin, end) in enumerate(spans):
        moments = [BEGAN + timedelta(milliseconds=each) for each in (begin, end)]
        lines.append(
            f"{moments[0].isoformat()},{moments[1].isoformat()},{end - begin}.0,c1,0,{offset}"
        )
    found = []
    for name, text in (("both", both), ("length", length)):
        history = imported(run, tmp_path, write(f"{name}.csv", lines), text)
        found.append(
            [(row.queue_offset, row.seq_begin, row.seq_end) for row in open_history(history).rows()]
        )
    assert found[0] == found[1] == [(0, 1, 4), (1, 2, 3), (2, 5, 5)]


def test_gzipped_without_a_header_with_other_signs_and_from_stdin(
    run: Run, write: Write, tmp_path: Path
) -> None:
    """A tab, a BOM, CRLF, quoted line ends and no header: the same rows; a .gz as it is."""
    data = "\r\n".join(line.replace(",", "\t") for line in deliveries([1, 2])[1:])
    data = data.replace("c1", "'c\r\n1'")
    text = KAFKA.replace(
        'time = "ts"',
        'time = "ts"\ndelimiter = "\\t"\nquote = "\'"\nfields = ["ts", "who", "part", "off"]',
    )
    packed = tmp_path / "log.csv.gz"
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + data.encode()))
    rows = list(open_history(imported(run, tmp_path, packed, text)).rows())
    assert [(row.client_id, row.queue_offset) for row in rows] == [("c\n1", 1), ("c\n1", 2)]
    map_file = write("stdin.toml", KAFKA)
    out = tmp_path / "from-stdin"
    result = run(
        "import", "csv", "--map", map_file, "-", "--out", out, input="\n".join(deliveries([4]))
    )
    assert result.exit_code == 0, result.stderr
    assert [row.queue_offset for row in open_history(out).rows()] == [4]


TWO_KINDS = (
    KAFKA.replace('order = "lines"', 'order = "times"')
    .replace('records = ["deliver"]', 'records = ["deliver", "commit"]')
    .replace('queue_offset = "off" }', 'queue_offset = "off", message_id = "id" }')
    .replace('at = "moment"', 'at = "moment"\nmessage = "off"\nmatch = "."')
    + """
[[event]]
kind = "commit"
at = "moment"
message = "done"
match = "."
columns = { client_id = "who", queue_id = "part", value = "done" }
constants = { group = "billing", topic = "orders", broker = "kafka", outcome = "ok" }
"""
)


def test_each_file_is_read_by_its_own_header(run: Run, write: Write, tmp_path: Path) -> None:
    """A column that a file lacks is empty there, and told; one that no file has is refused."""
    logs = [
        write("a.csv", ["ts,who,part,off", "2026-03-02T09:00:00.1Z,c1,0,6"]),
        write("b.csv", ["off,part,id,who,ts", "7,0,m7,c1,2026-03-02T09:00:00.2Z"]),
        write("c.csv", ["ts,who,part,done", "2026-03-02T09:00:00.3Z,c1,0,8"]),
    ]
    out = tmp_path / "history"
    asked = ("import", "csv", "--map", write("map.toml", TWO_KINDS))
    result = run(*asked, *logs, "--out", out)
    assert result.exit_code == 0, result.stderr
    assert [
        (row.kind.value, row.queue_offset, row.message_id, row.value)
        for row in open_history(out).rows()
    ] == [
        ("deliver", 6, None, None),
        ("deliver", 7, "m7", None),
        ("commit", None, None, 8),
    ]
    told_by = " ".join(result.stdout.split())
    for name, lacks in (("a", "id, done"), ("b", "done"), ("c", "off, id")):
        assert f"{name}.csv has no column {lacks}: empty in its lines" in told_by
    told = json.loads((out / "import.json").read_text(encoding="utf-8"))
    assert told["logs_that_lack_columns"][2] == {"log": 3, "columns": ["off", "id"]}
    refused = run(*asked, *logs[:2], "--out", tmp_path / "other")
    assert refused.exit_code == 64
    assert "the field 'done' (event 2 (commit), message), and no log has it: " in refused.stderr


def test_what_was_sorted_in_pieces_is_in_order(
    run: Run, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However small the pieces are in which a log is sorted, the history is the same."""
    from conformance.importing import timeline

    header, *lines = deliveries(range(200))
    mixed = [header, *(lines[place * 37 % 200] for place in range(200))]
    text = KAFKA.replace('order = "lines"', 'order = "times"')
    whole = open_history(imported(run, tmp_path, write("whole.csv", mixed), text))
    for defaults in (timeline.by_times, timeline.in_order):
        monkeypatch.setattr(defaults, "__defaults__", (7,))
    pieces = open_history(imported(run, tmp_path, write("pieces.csv", mixed), text))
    assert [row[1:4] for row in whole.rows()] == [row[1:4] for row in pieces.rows()]
    assert [row.queue_offset for row in pieces.rows()] == list(range(200))


def test_nothing_is_measured_more_finely_than_the_log_tells(
    run: Run, write: Write, tmp_path: Path
) -> None:
    """Of times to the second a pause of 1.5 s is no measure, one of 2 s is."""
    for pause, config in ((1500, {}), (2000, {"suspend_ms": 2000})):
        text = KAFKA.replace("config.mode", f"config.suspend_ms = {pause}\nconfig.mode")
        log = write(
            f"log-{pause}.csv",
            ["ts,who,part,off", *(f"2026-03-02T09:00:0{n}Z,c1,0,{n}" for n in range(1, 8))],
        )
        history = open_history(imported(run, tmp_path, log, text))
        told = history.info.config.to_json()
        assert {name: told[name] for name in told if name.endswith("_ms")} == config


def test_what_lies_beside_is_left_alone(run: Run, write: Write, tmp_path: Path) -> None:
    """Neither a folder of a similar name is touched, nor does a failed import leave anything."""
    beside = tmp_path / "history.part"
    beside.mkdir()
    (beside / "mine").write_text("mine")
    map_file = write("map.toml", KAFKA)
    good, bad = (
        write("log.csv", deliveries([1, 2])),
        write("bad.csv", [*deliveries([1]), "x,y,z,7"]),
    )
    out = tmp_path / "new" / "history"
    assert run("import", "csv", "--map", map_file, bad, "--out", out).exit_code == 64
    assert list((tmp_path / "new").iterdir()) == []
    assert run("import", "csv", "--map", map_file, good, "--out", out).exit_code == 0
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["history"]
    assert (beside / "mine").read_text() == "mine"


@pytest.mark.parametrize("order", ["lines", "times"])
def test_both_engines_judge_an_imported_log_alike(
    run: Run, write: Write, tmp_path: Path, order: str
) -> None:
    """Also where rows of one time have clocks of their own."""
    lines = deliveries([1, 2, 4, 3, 5, 5, 7, 6])
    lines[6] = lines[5].replace(",5", ",6")
    text = KAFKA.replace('order = "lines"', f'order = "{order}"')
    history = imported(run, tmp_path, write("log.csv", lines), text)
    found = []
    for engine in ("python", "arrow"):
        verdict = json.loads(run("check", history, "--format", "json", "--engine", engine).stdout)
        found.append(
            [
                (c["id"], c["verdict"], c["violations"], c["opportunities"])
                for c in verdict["clauses"]
            ]
        )
    assert found[0] == found[1]
    assert ("ORD-2", "refuted") in [each[:2] for each in found[0]]


def test_a_log_that_begins_with_the_newest_is_turned_round(
    run: Run, write: Write, tmp_path: Path
) -> None:
    """Lines of one time too; and the report says so."""
    times = ["09:00:01", "09:00:02", "09:00:02", "09:00:03"]
    lines = [f"2026-03-02T{at}Z,c1,0,{offset}" for offset, at in enumerate(times)]
    log = write("log.csv", ["ts,who,part,off", *lines[::-1]])
    map_file = write("map.toml", KAFKA.replace('order = "lines"', 'order = "times"'))
    result = run("import", "csv", "--map", map_file, log, "--out", tmp_path / "history")
    assert "the newest line comes first" in result.stdout
    rows = list(open_history(tmp_path / "history").rows())
    assert [row.queue_offset for row in rows] == [0, 1, 2, 3]


def test_a_call_with_an_end_needs_its_result(run: Run, write: Write, tmp_path: Path) -> None:
    """A judge would take it that nobody finished the message."""
    map_file = write("map.toml", KAFKA.replace('"success"', '"unknown"'))
    log = write("log.csv", deliveries([1]))
    result = run("import", "csv", "--map", map_file, log, "--out", tmp_path / "history")
    assert result.exit_code == 64
    assert "line 2: the line does not say how the call ended (commit, cut, null" in result.stderr


def test_a_begin_that_was_reckoned_is_no_exact_one(run: Run, write: Write, tmp_path: Path) -> None:
    """One call after the other, whose lengths were rounded up, overlap on paper: possible, never certain."""
    text = KAFKA.replace('order = "lines"', 'order = "times"').replace(
        'at = "moment"', 'at = "end"\ntook = { field = "ms", unit = "ms" }'
    )
    text = text.replace("config.mode", "config.suspend_ms = 5\nconfig.mode")
    for far, verdict in ((1, "possible"), (50, "refuted")):
        lines = ["ts,ms,who,part,off"]
        for place, offset in enumerate([1, 3, 2]):
            at = BEGAN + timedelta(milliseconds=100 + far * place)
            lines.append(f"{at.isoformat()},1,c1,0,{offset}")
        history = imported(run, tmp_path, write(f"far-{far}.csv", lines), text)
        assert open_history(history).info.clock_bound_us == 2000
        assert judged(run, history)["ORD-2"]["verdict"] == verdict
        assert "suspend_ms" not in open_history(history).info.config.to_json()


def test_the_recipe_for_deliveries_and_other_names(run: Run, write: Write, tmp_path: Path) -> None:
    """It is asked for the group and the topic, and takes the log's own names for its columns."""
    text = """
extends = "kafka-deliveries"
order = "lines"
clock_bound_ms = 0
time = "ts"
columns = { client_id = "who", queue_id = "part", queue_offset = "off" }
did_not_happen = ["add", "reset"]
"""
    log = write("log.csv", deliveries([1, 3, 2]))
    map_file = write("map.toml", text)
    result = run("import", "csv", "--map", map_file, log, "--out", tmp_path / "history")
    assert (result.exit_code, "where group comes from" in result.stderr) == (64, True)
    text += """
[constants]
group = "billing"
topic = "orders"
broker = "kafka"
outcome = "success"
incarnation = "1"
"""
    assert judged(run, imported(run, tmp_path, log, text))["ORD-2"]["verdict"] == "refuted"
