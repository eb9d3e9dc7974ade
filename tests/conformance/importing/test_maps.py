"""What a map does not say it is asked for, in one sentence that shows what to write; what can't be is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from conformance.importing.mapping import MapError, parse_map, recipe, recipes

from .conftest import KAFKA

Run = Callable[..., Result]
Write = Callable[..., Path]

ASKED: list[tuple[str, str, str]] = [
    ('profile = "kafka-java"', "", "what was promised: profile ="),
    ('config.system = "kafka"', "", "which system wrote the log"),
    ('order = "lines"', "", "in which order things happened: order ="),
    ("clock_bound_ms = 0", "", "clock_bound_ms = 0 if one clock timed all"),
    ("clock_bound_ms = 0", "clock_bound_ms = 5", "whose clock timed a line: clock = FIELD"),
    ("clock_bound_ms = 0", 'clock_bound_ms = 5\nclock = "host"', "in no order of their own"),
    ('records = ["deliver"]', "", "which kinds of events the log tells"),
    ('records = ["deliver"]', 'records = ["commit"]', 'did_not_happen = ["commit"]'),
    ('["add", "reset"]', '["ad"]', "unknown word 'ad'; did you mean 'add'?"),
    ('time = "ts"', "", "which field holds its time"),
    ('time = "ts"', 'time = "ts"\ntime_format = "%H:%M"', "in which time zone the times are"),
    ('time = "ts"', 'time = "ts"\ntime_format = "unix"', "time_format must be iso, epoch_s"),
    ('time = "ts"', 'time = "ts"\ntime_format = "none"', "there is no `time`"),
    ('time = "ts"', 'time = "ts"\ntime_zone = "Mars/Base"', "there is no time zone 'Mars/Base'"),
    ('time = "ts"', 'time = "ts"\ntimezone = "UTC"', "did you mean 'time_zone'?"),
    ('at = "moment"', "", "what the line's moment is: at ="),
    ('at = "moment"', 'at = "end"', "nobody tells when it began"),
    ('at = "moment"', 'at = "begin"', "can't tell how it ends"),
    ('at = "moment"', 'at = "end"\ntook = { field = "x" }', "in which unit"),
    (
        'at = "moment"',
        'at = "end"\ntook = { field = "x", unit = "ms" }',
        'that of begins and ends: order = "times"',
    ),
    ('at = "moment"', 'begin = "ts"', "begin and end are told together"),
    (', outcome = "success"', "", "where outcome comes from"),
    ('outcome = "success"', 'outcome = "sucess"', "constants.outcome must be one of commit"),
    (', broker = "kafka"', "", 'constants.broker = "kafka"'),
    ('queue_id = "part", ', "", "where queue_id comes from"),
    ("queue_offset =", "offset =", "a history has no column 'offset'"),
    ("queue_offset =", "seq_begin =", "the import fills the column 'seq_begin' itself"),
    ('"off" }', '{ fild = "off" } }', "did you mean 'field'?"),
    ('kind = "deliver"', 'kind = "delivery"', "did you mean 'deliver'?"),
    ('kind = "deliver"', 'kind = "deliver"\nmatch = "("', "is no regular expression"),
    ('time = "ts"', 'time = "ts"\nencoding = "utf-16"', "turn the log into UTF-8 first"),
    ('time = "ts"', 'time = "ts"\nencoding = "utf8mb4"', "there is no encoding 'utf8mb4'"),
    (
        'broker = "kafka"',
        'broker = "kafka", code = 9223372036854775808',
        "numbers have 64 bits",
    ),
    ('broker = "kafka"', "broker = 7", "must be text, not 7"),
    ('broker = "kafka"', 'broker = " "', "constants.broker must not be empty"),
    ('broker = "kafka"', 'broker = "kafka", attempt = -1', "constants.attempt must not be below 0"),
    ('system = "kafka"', 'system = "kafaka"', "is 'kafaka'; did you mean 'kafka'?"),
    ('mode = "orderly"', 'mode = "ordered"', "mode must be one of orderly, concurrent"),
    ("max_reconsume_times = -1", 'max_reconsume_times = "x"', "must be a whole number"),
    ("max_reconsume_times", "max_reconsume_time", "did you mean 'max_reconsume_times'?"),
    ('mode = "orderly"', 'generations = "yes"', "config.generations must be a whole number"),
    ('["add", "reset"]', '["send"]\nclosed_world = true', "of messages that nobody sent"),
    (
        'order = "lines"',
        'order = "lines"\nduplicates = "once"',
        "must be one of drop, keep, refuse",
    ),
    ("[[event]]", "[event]", "events are written as [[event]]"),
    ('profile = "kafka-java"', 'extends = "kafka"', "is no recipe (kafka-deliveries"),
    ('profile = "kafka-java"', "profile = ", "is no TOML"),
    ('"off" }', '"off" }\ncolumns.tags = "t"', "as x = { y = 1 } or as x.y = 1"),
]


@pytest.mark.parametrize(("there", "instead", "said"), ASKED)
def test_a_map_is_asked_for_what_it_leaves_out(there: str, instead: str, said: str) -> None:
    """One sentence each, which names what is missing or wrong, and how to write it."""
    assert there in KAFKA
    with pytest.raises(MapError) as refused:
        parse_map(KAFKA.replace(there, instead, 1), "csv")
    sentence = " ".join(str(refused.value).split())
    assert said in sentence
    assert sentence.count("\n") == 0


BAD: list[tuple[str, str]] = [
    ("2026-03-02T09:00:00,c1,0,7", "line 3: the field 'ts' does not say in which time zone it is"),
    ("yesterday,c1,0,7", "line 3: the field 'ts' is no time as iso has it: 'yesterday'"),
    (",c1,0,7", "line 3: the field 'ts' is missing: every line needs a time"),
    (
        "2026-03-02T09:00:01Z,c1,0,seven",
        "the field 'off' is no whole number (queue_offset): 'seven'",
    ),
    ("2026-03-02T09:00:01Z,c1,0,7.5", "is no whole number (queue_offset): '7.5'"),
    ("2026-03-02T09:00:01Z,c1,0,99999999999999999999", "is too large (queue_offset)"),
    ("2026-03-02T09:00:01Z,c1,,7", "line 3: the field 'part' gives no queue_id"),
    ("2026-03-02T08:00:01Z,c1,0,7", "the line is 3599000 ms earlier than line 2"),
    ("2026-03-02T09:00:01Z", "line 3: the line has 1 field, and"),
    ("2026-03-02T09:00:01Z,c1,0", "line 3: the line has 3 fields, and the header names 4"),
    ("2026-03-02T08:59:59.5Z,c1,0,7", "line 3: the line is 500 ms earlier than line 2"),
    ('2026-03-02T09:00:01Z,"c1"x,0,7', "line 3: the line is no CSV"),
]


@pytest.mark.parametrize(("line", "said"), BAD)
def test_a_bad_line_is_told_and_may_be_passed_over(
    run: Run, write: Write, tmp_path: Path, line: str, said: str
) -> None:
    """By its number, field, reason and value; passed over only if so many are allowed, and counted then."""
    log = write("log.csv", ["ts,who,part,off", "2026-03-02T09:00:00Z,c1,0,6", line])
    map_file = write("map.toml", KAFKA)
    out = tmp_path / "history"
    asked = ("import", "csv", "--map", map_file, log, "--out", out)
    refused = run(*asked)
    assert refused.exit_code == 64
    assert said in refused.stderr
    assert "--skip-bad N" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert not out.exists()
    passed = run(*asked, "--skip-bad", "1")
    assert passed.exit_code == 0
    assert said in passed.stderr
    assert "1  bad line passed over" in passed.stdout


def test_an_hour_that_clocks_show_twice_is_not_guessed(
    run: Run, write: Write, tmp_path: Path
) -> None:
    """Nor one that they never show."""
    text = KAFKA.replace('time = "ts"', 'time = "ts"\ntime_zone = "Europe/Berlin"')
    for at, often in (("2026-10-25 02:30:00", "twice"), ("2026-03-29 02:30:00", "never")):
        log = write("log.csv", ["ts,who,part,off", f"{at},c1,0,6"])
        result = run(
            "import", "csv", "--map", write("m.toml", text), log, "--out", tmp_path / "history"
        )
        assert result.exit_code == 64
        assert f"show {often}" in result.stderr


USES: list[tuple[tuple[str, ...], str]] = [
    (("csv", "LOG", "--out", "OUT"), "an import needs the log's form, a map, the log and a folder"),
    (("xml", "--map", "MAP", "LOG", "--out", "OUT"), "is not one of"),
    (("csv", "--map", "nowhere.toml", "LOG", "--out", "OUT"), "can't be read: No such file"),
    (("jsonl", "--map", "MAP", "LIST", "--out", "OUT"), "no JSON object; of a file that is one"),
    (("csv", "--map", "MAP", "nowhere.csv", "--out", "OUT"), "the log nowhere.csv can't be read"),
    (("csv", "--map", "MAP", "LOG", "--out", "FULL"), "exists and is not empty"),
    (
        ("csv", "--map", "MAP", "LOG", "--out", "OUT", "--hash-secret-file", "MAP"),
        "is for --hash-keys",
    ),
    (("text", "--map", "MAP", "LOG", "--out", "OUT"), "what a line of the text log looks like"),
    (("csv", "--map", "MISNAMED", "LOG", "--out", "OUT"), "did you mean 'part'?"),
    (("jsonl", "--map", "MAP", "LOG", "--out", "OUT"), "is no JSON"),
    (("csv", "--map", "MAP", "EMPTY", "--out", "OUT"), "gives no event at all: it is empty"),
    (("--recipe", "kafka-delivery"), "did you mean 'kafka-deliveries'?"),
]


@pytest.mark.parametrize(("arguments", "said"), USES)
def test_a_wrong_use_is_one_sentence(
    run: Run, write: Write, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    """Exit 64, one line on stderr, nothing written."""
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine.txt").write_text("mine")
    names = {
        "LOG": write("log.csv", ["ts,who,part,off", "2026-03-02T09:00:00Z,c1,0,6"]),
        "EMPTY": write("empty.csv", ""),
        "LIST": write("list.json", "[{}]"),
        "MAP": write("map.toml", KAFKA),
        "MISNAMED": write("misnamed.toml", KAFKA.replace('"part"', '"parts"')),
        "OUT": tmp_path / "history",
        "FULL": full,
    }
    result = run("import", *(names.get(each, each) for each in arguments))
    assert (result.exit_code, result.stdout) == (64, "")
    assert said in result.stderr
    assert not (tmp_path / "history").exists()


def test_each_recipe_is_listed_and_asks_for_what_only_its_user_knows(run: Run) -> None:
    """Printed as it is; and of what it leaves out the user is asked by name."""
    listed = run("list", "recipes").stdout
    for name in recipes():
        assert name in listed
        assert run("import", "--recipe", name).stdout == recipe(name)
        form = "csv" if name == "kafka-deliveries" else "text"
        with pytest.raises(MapError, match="order"):
            parse_map(f'extends = "{name}"', form)


def test_a_map_that_extends_another_has_the_last_word() -> None:
    """A column of the recipe's may become a constant, and the other way round; events are added."""
    found = parse_map(
        """
extends = "rocketmq-client-log"
order = "lines"
clock_bound_ms = 0
constants = { client_id = "c1" }
[[event]]
kind = "crash"
match = "OutOfMemoryError"
""",
        "text",
    )
    assert found.event[0].constants["client_id"] == "c1"
    assert "client_id" not in found.event[0].columns
    assert found.event[-1].kind == "crash"


EXTENDS = """
extends = "kafka-java-client-log"
order = "lines"
clock_bound_ms = 0
time_zone = "UTC"
constants = { client_id = "c1", group = "billing", broker = "kafka" }
[[event]]
kind = "commit"
at = "moment"
match = 'done up to (?P<offset>\\d+) of (?P<topic>\\w+)-(?P<partition>\\d+)'
columns.value = "offset"
constants.outcome = "ok"
"""


def test_an_event_takes_the_place_of_the_recipes_if_the_map_says_so() -> None:
    """Of all of its kind there; else both are events, and a line that is both would be two."""
    for replaces, commits, others in (("true", 1, 6), ("false", 2, 6)):
        text = EXTENDS.replace('kind = "commit"', f'kind = "commit"\nreplaces = {replaces}')
        events = parse_map(text, "text").event
        matches = [event.match or "" for event in events if event.kind == "commit"]
        assert (len(matches), len(events) - len(matches)) == (commits, others)
        assert matches[-1].startswith("done up to")


BLAMED: list[tuple[str, str, str]] = [
    ("", "", "mine.toml, event 1 (commit): kafka-java-client-log has an event of that kind too: "),
    (
        '"commit"',
        '"crash"\nreplaces = true',
        "event 1 (crash) replaces nothing: kafka-java-client-log",
    ),
    (
        '"commit"',
        '"commit"\nreplaces = "yes"',
        "mine.toml, event 1 (commit): replaces must be true",
    ),
    (
        ', broker = "kafka" }',
        " }",
        "mine.toml, event 1 (add) of kafka-java-client-log does not say where broker comes from",
    ),
    (
        'columns.value = "offset"',
        "",
        "mine.toml, event 1 (commit) does not say where value comes from",
    ),
    ('at = "moment"', 'at = "noon"', "mine.toml, event 1 (commit): at must be one of"),
]


@pytest.mark.parametrize(("there", "instead", "said"), BLAMED)
def test_a_sentence_about_an_event_names_the_map_that_it_stands_in(
    there: str, instead: str, said: str
) -> None:
    """By its number there, and not among all."""
    text = EXTENDS.replace(there, instead) if there else EXTENDS
    if there and "replaces" not in instead:
        text = text.replace('kind = "commit"', 'kind = "commit"\nreplaces = true')
    with pytest.raises(MapError) as raised:
        parse_map(text, "text", "mine.toml")
    assert said in str(raised.value)


def test_a_map_that_extends_itself_is_refused(write: Write) -> None:
    """By its name, not by a full stack."""
    path = write("self.toml", "")
    path.write_text(f'extends = "{path}"', encoding="utf-8")
    with pytest.raises(MapError, match="can't extend itself"):
        parse_map(f'extends = "{path}"', "csv")
