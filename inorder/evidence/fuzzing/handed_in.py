"""What users hand in: command lines, maps with their logs, histories and reports, made wrong from right ones.

A sample has files and the words of a command line, and goes in by the door: `inorder` itself, in this process or in one
of its own. One to three changes are made of a valid one. Whatever it is, the answer is one of the exit codes, and never
70: that is the suite's own failure (but for a history that can't be trusted, which the verdict says).
What a command would do for minutes (a search, a server) is not done in this process: that it would begin is enough.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import CliRunner

import chaos.cli
import chaos.hunting.cli
import conformance.cli.confirm
import conformance.cli.shrink
import conformance.cli.tap
import conformance.drivers.smoke
import conformance.run
import inorder.evidence.kill_matrix.command
import reference_impl.cli
import spark_checkers.generate
import spark_checkers.layout
from conformance.cli import main, seam
from conformance.importing.mapping import CSV, JSONL, TEXT
from conformance.waiting import now_s
from inorder.evidence.fuzzing.mutate import CHANGES, STRANGE
from inorder.evidence.fuzzing.run import INPUT_S_MAX, largest_mib, time_limit
from inorder.evidence.grid import Cell, code_key
from specs import profiles
from specs.clauses.catalogue import all_clauses
from specs.errors import EXIT_SUITE, EXIT_UPHELD
from specs.history.store import rows_to_table, write_history
from specs.history.text import parse_history
from specs.plan.plan import Plan
from specs.scratch import Scratch

LINES, MAPS, HISTORIES, REPORTS = "command lines", "maps", "histories", "reports"
PROCESSES = "processes"
TAKEN = (0, 1, 2)
"""Exit codes of a command that did what it was asked."""
DISTRUST = "INADMISSIBLE"
"""What a verdict says of a history that can't be trusted: it was read, and 70 is the right answer."""
CHANGES_MAX = 3
LONG = "x" * 5_000
WORDS = (
    "", "-", "--", "---", "0", "-1", "1e9", "99999999999999999999", "nan", "inf", "None", "true", ".", "..", "~", "*",
    "nope/deep", "\x1b[2J\x1b]0;title\x07", "\u202egnp.exe", "süß", "\udcff", "a b", "'", '"', "$(id)", ";", "%s%n",
    "/dev/null", "/dev/full", "/proc/self/mem", "run", "h.txt", "map.toml", "m.toml", "x=y", ",", ":", "@", "a:b@c:1",
    "s3://a:b@c/d", "s3://", "file:///nope", "1.5", "٣", "\\", "\t", "\n", LONG,
)  # fmt: skip
"""What somebody, or somebody's script, puts where a word belongs. Nothing that a command could harm the machine by."""


@dataclass(frozen=True, slots=True)
class Sample:
    """files: by their path in an empty folder, in which the words are typed."""

    words: tuple[str, ...]
    files: Mapping[str, bytes]

    def __str__(self) -> str:
        shown = {name: data[:400] for name, data in self.files.items()}
        return f"inorder {' '.join(map(repr, self.words))}\n  files: {shown}"


@dataclass(frozen=True, slots=True)
class Answer:
    """code: the exit code. told: what was said on stderr, with the traceback where there is one."""

    code: int
    told: str
    seconds: float = 0.0

    @property
    def wrong(self) -> bool:
        """Is it none of the answers that a user may be given?"""
        return self.code == EXIT_SUITE or "Traceback" in self.told


# -------------------------------------------------------------------------------------------- changes


def changed_words(
    words: Sequence[str], choices: Random, known: Sequence[Sequence[str]]
) -> list[str]:
    """A command line with one change: a word that is lost, doubled, swapped, misspelt, strange, or another line's."""
    made = list(words)
    at = choices.randrange(len(made))
    match choices.randrange(13):
        case 0 if len(made) > 1:
            del made[at]
        case 1:
            made.insert(at, made[at])
        case 2:
            other = choices.randrange(len(made))
            made[at], made[other] = made[other], made[at]
        case 3:
            made[at] = misspelt(made[at], choices)
        case 4:
            made[at] = choices.choice(WORDS)
        case 5:
            made.insert(at + 1, choices.choice(WORDS))
        case 6:
            other_line = choices.choice(known)
            made.insert(at, choices.choice(other_line))
        case 7:
            made += choices.choice(
                (["-q"], ["--format", "json"], ["--only-failures"], ["--name", "n"])
            )
        case 8:
            made[at] = _other_number(made[at], choices)
        case _:  # an option of a line of the same command: it may say what this one did not, or otherwise
            like = (
                [line for line in known if line[0] == words[0] and len(line) > 2] if words else []
            )
            other_line = choices.choice(like or [tuple(made)])
            place = choices.randrange(len(other_line))
            if other_line[place].startswith("--"):
                made += other_line[place : place + 2]
    return made


def _how_many(choices: Random) -> int:
    """Changes of one sample: mostly one, for what is wrong twice is refused for the first."""
    return choices.choice((1, 1, 1, 2, CHANGES_MAX))


def misspelt(word: str, choices: Random) -> str:
    """The word with a letter that is lost, doubled or another one; no `/`, which could lead out of the folder."""
    if not word:
        return "x"
    at = choices.randrange(len(word))
    if word[at] == "/":
        return word
    return word[:at] + choices.choice(("", word[at] * 2, "z", "=", "\x1b", "é")) + word[at + 1 :]


def changed_text(text: str, choices: Random) -> str:
    """A document of lines with one change: a line that is lost, doubled, swapped, or changed inside."""
    lines = text.split("\n")
    at = choices.randrange(len(lines))
    match choices.randrange(7):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, lines[at])
        case 2:
            other = choices.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        case 3 | 4:
            lines[at] = _other_number(lines[at], choices)
        case 5:
            lines[at] = _other_word(lines[at], choices)
        case _:
            lines[at] = misspelt(lines[at], choices)
    return "\n".join(lines)


def _other_number(line: str, choices: Random) -> str:
    found = list(re.finditer(r"\d+", line))
    if not found:
        return line
    number = choices.choice(found)
    near = str(max(0, int(number[0][:15]) + choices.choice((-1, 1, 2, 10))))
    value = choices.choice((near, near, near, "0", "-1", "9" * 25, "1e400", "nan", ""))
    return line[: number.start()] + value + line[number.end() :]


def _other_word(line: str, choices: Random) -> str:
    found = list(re.finditer(r"[\w#-]+", line))
    if not found:
        return line
    word = choices.choice(found)
    other = choices.choice((*WORDS, choices.choice(found)[0], choices.choice(found)[0]))
    return line[: word.start()] + other + line[word.end() :]


def changed_bytes(data: bytes, choices: Random) -> bytes:
    """As the wire's inputs are changed: bits, cuts, lengths, tokens."""
    changed = bytearray(data or b"x")
    choices.choice(CHANGES)(changed, choices)
    return bytes(changed)


def changed_json(data: bytes, choices: Random) -> bytes:
    """One value at any depth becomes another, goes, or nests deep; or another one's text or number takes its place."""
    try:
        root = json.loads(data)
    except (ValueError, RecursionError):
        return changed_bytes(data, choices)
    holder, key = _somewhere(root, choices)
    if holder is None:
        return json.dumps(choices.choice(STRANGE)).encode()
    value = holder[key]
    if choices.random() < 0.6 and isinstance(value, str | int) and not isinstance(value, bool):
        # Most of what others write is of the right type.
        holder[key] = (
            choices.choice(WORDS)
            if isinstance(value, str)
            else value + choices.choice((1, -1, 1_000))
        )
    else:
        match choices.randrange(5):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, list):
                holder.append(value)
            case 1:
                holder[choices.choice(WORDS)] = value
            case 2:
                holder[key] = _deep(choices.choice((50, 150, 5_000)))
            case 3:
                holder[key] = choices.choice((2**63, 2**70, -(2**63) - 1, 10**400, 1e308, "\ud800"))
            case _:
                holder[key] = choices.choice(STRANGE)
    try:
        return json.dumps(root).encode()
    except (ValueError, RecursionError):  # Python writes neither 400 digits nor so deep a list
        return b"[" * 5_000


def _somewhere(root: Any, choices: Random) -> tuple[Any, Any]:
    """A place in a document, the deeper ones as likely as the others: who holds a value, and by which key."""
    holder, key, value = None, None, root
    while isinstance(value, dict | list) and value:
        holder = value
        key = choices.choice(list(value) if isinstance(value, dict) else range(len(value)))
        value = value[key]
        if choices.random() < 0.2:
            break
    return holder, key


def _deep(levels: int) -> Any:
    found: Any = 0
    for _ in range(levels):
        found = [found]
    return found


# ------------------------------------------------------------------------------------- command lines


def _lines() -> tuple[tuple[str, ...], ...]:
    """Valid command lines on the folder of `grounds`."""
    told = """
    list words|list targets|list profiles|list recipes|list scenarios --format json|list faults --target reference+tcp
    list mutants|list clauses --format json|check h.txt --profile reference|check h.txt --clause SND-1 --engine python
    check rows.jsonl --profile reference --floor 2 --format json|check run --profile reference
    check h.txt --profile kafka-java --baseline known.toml|check h.txt --profile reference --out kept --name nightly
    check h.txt --profile reference --alluredir allure|check h.txt --engine arrow --profile reference --findings found
    report run|report run --format markdown|report run --format junit|report run --format github --quiet
    report run other --only-failures|report run --format html --history h.txt|report run --format allure --alluredir a
    explain run|explain run --format svg|explain run --lane orders/b0/0|explain run --format trace
    explain run --key k1 --most 3|explain run --clause ORD-2 --format json|diff run other|diff run other --format json
    statement run|statement run --format json --date 2026-03-31|statement run --out s.html --badge b.svg --exit-code
    baseline run --owner me --reason later --expires 2099-01-31 --issue http://tracker/1 --out known2.toml
    import csv --map map.toml log.csv --out imported|import csv --map map.toml log.csv --out imported --hash-keys
    import --recipe kafka-java-client-log|import csv --map map.toml log.csv --out imported --skip-bad 5 --format json
    replay lease/stranger_cannot_unlock|replay lease/stranger_cannot_unlock --format json|replay plan.json --out again
    replay plan.json --profile reference --target reference|smoke --target exec:cat
    conform --target reference --seed 1 --examples 2 --floor 1 --out run2|conform --target mutant:suspend-ignored
    conform --target reference --budget 10s --workers 2 --keep-going -q|conform --target kafka:127.0.0.1:9092
    conform --target redis:127.0.0.1:6379,app.retries=default|conform --target nats:127.0.0.1:1 --target-config t.toml
    conform --target reference --profile mine.toml --baseline known.toml --alluredir a --name n --only-failures
    chaos consumer-killed --target reference --seed 3 --out c|chaos --target reference --seed 3
    hunt --target reference --minutes 0.1 --seed 2 --out hunted|serve --namesrv-port 0 --broker-port 0 --queues 8
    serve --store st --flush sync --keep-hours 1 --topic t|shrink run --out small|tap --upstream 127.0.0.1:9876 --out t
    generate --events 100 --out big --seed 1 --queues 3|compact run --out by-queue --format json|--version|--help
    check --help|conform --help|import --help|explain --help|list --help|statement --help|baseline --help|report --help
    """
    return tuple(
        tuple(line.split()) for row in told.strip().split("\n") for line in row.strip().split("|")
    )


def command_line(choices: Random) -> Sample:
    """A command line with one to three changes."""
    known = _lines()
    words: list[str] = list(choices.choice(known))
    for _ in range(_how_many(choices)):
        words = changed_words(words, choices, known) if words else ["--help"]
    return Sample(tuple(words), {})


# ------------------------------------------------------------------------------------ maps and logs


CSV_MAP = """\
profile = "kafka-java"
config = { system = "kafka", mode = "orderly", message_model = "clustering" }
order = "times"
clock_bound_ms = 0
time = "at"
time_zone = "UTC"
records = ["deliver", "send"]

[constants]
broker = "kafka"
group = "g"
incarnation = "1"
commit_mode = "auto"

[columns]
client_id = "who"
process = "who"
topic = "topic"
queue_id = "part"
queue_offset = "off"
message_id = "id"

[[event]]
kind = "deliver"
when = { what = "done" }
took = { field = "ms", unit = "ms" }
at = "end"
[event.columns]
outcome = { field = "how", values = { ok = "success", "*" = "threw" } }

[[event]]
kind = "send"
when = { what = "sent" }
at = "moment"
match = '(?P<word>[a-z]+) to (?P<topic2>\\\\w+)'
message = "text"
constants = { outcome = "ok" }
"""
CSV_LOG = "at,what,who,topic,part,off,id,how,ms,text\n" + "".join(
    f"2026-03-01T10:00:{n:02}.500,{what},{who},orders,0,{n // 2},m{n // 2},ok,3,written to orders\n"
    for n, (what, who) in enumerate([("sent", "p1"), ("done", "c1")] * 5)
)
_AT = "2026-03-01 10:00:0{},123 INFO  [Consumer clientId=c1, groupId=g] {}\n"
TEXT_LOG = "".join(
    _AT.format(second, said)
    for second, said in enumerate(
        (
            "Adding newly assigned partitions: orders-0, orders-1",
            "Setting offset for partition orders-0 to the committed offset FetchPosition{offset=7, offsetEpoch=none}",
            "Committed offset 9 for partition orders-0",
            "Revoke previously assigned partitions orders-0, orders-1",
        )
    )
)
TEXT_MAP = """\
extends = "kafka-java-client-log"
order = "lines"
clock_bound_ms = 0
time_zone = "UTC"
constants = { client_id = "c1", group = "g", broker = "kafka" }
"""


@functools.cache
def _imports() -> tuple[tuple[str, str, str], ...]:
    """Form, map and log, each of them valid."""
    names, *rows = (line.split(",") for line in CSV_LOG.splitlines())
    lines = "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)
    return ((CSV, CSV_MAP, CSV_LOG), (JSONL, CSV_MAP, lines), (TEXT, TEXT_MAP, TEXT_LOG))


def map_and_log(choices: Random) -> Sample:
    """A map and a log, of which one is changed, or both."""
    form, mapping, log = choices.choice(_imports())
    for _ in range(_how_many(choices)):
        if choices.random() < 0.35:
            mapping = changed_text(mapping, choices)
        elif form == JSONL and choices.random() < 0.5:
            head, line, tail = _a_line(log, choices)
            log = head + changed_json(line.encode(), choices).decode("utf-8", "replace") + tail
        else:
            log = changed_text(log, choices)
    more = choices.choice(((), ("--skip-bad", "100"), ("--skip-bad", "100"), ("--hash-keys",)))
    words = ("import", form, "--map", "map.toml", "log", "--out", "out", *more)
    return Sample(words, {"map.toml": _encoded(mapping), "log": _encoded(log)})


def _a_line(text: str, choices: Random) -> tuple[str, str, str]:
    lines = text.split("\n")
    at = choices.randrange(len(lines))
    head, tail = "\n".join(lines[:at]), "\n".join(lines[at + 1 :])
    return head + "\n" * bool(at), lines[at], "\n" + tail


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


# -------------------------------------------------------------------------------------- histories


@functools.cache
def _histories() -> tuple[str, ...]:
    """The clauses' own transcripts, in the text notation."""
    return tuple(example.text for clause in all_clauses() for example in clause.examples)


def history(choices: Random) -> Sample:
    """A history as text, JSON lines or Parquet, with a `run.json` or without."""
    text = choices.choice(_histories())
    words = ("check", "{}", "--profile", choice_of_profile(choices), "--engine", "python", "-q")
    form = choices.randrange(5)
    rounds = range(_how_many(choices))
    if form < 2:
        for _ in rounds:
            text = changed_text(text, choices)
        return Sample(_naming(words, "h.txt"), {"h.txt": _encoded(text)})
    info, rows = parse_history(text)
    described = json.dumps(info.to_json()).encode()
    if form == 2:
        table = rows_to_table(rows)
        for _ in rounds:
            table = _changed_table(table, choices)
        data = _parquet(table)
        if choices.random() < 0.3:
            data = changed_bytes(data, choices)
        files = {"run/history/part-0.parquet": data, "run/run.json": described}
        return Sample(_naming(words, "run"), files)
    lines = [
        json.dumps({k: v for k, v in row._asdict().items() if v is not None}).encode()
        for row in rows
    ]
    for _ in rounds:
        at = choices.randrange(len(lines) + 1)
        if at == len(lines):
            described = changed_json(described, choices)
        else:
            lines[at] = changed_json(lines[at], choices)
    files = {"run/history/rows.jsonl": b"\n".join(lines) + b"\n", "run/run.json": described}
    return Sample(_naming(words, "run"), files)


def choice_of_profile(choices: Random) -> str:
    """A profile that comes with the project."""
    return choices.choice(profiles.names())


def _naming(words: Sequence[str], path: str) -> tuple[str, ...]:
    return tuple(path if word == "{}" else word for word in words)


def _changed_table(table: pa.Table, choices: Random) -> pa.Table:
    """A column that is lost, of another type, nested, empty, or without a value; or a row twice."""
    at = choices.randrange(table.num_columns)
    name, column = table.column_names[at], table.column(at)
    match choices.randrange(6):
        case 0:
            return table.drop_columns([name])
        case 1:
            changed: Any = pa.array([[each] for each in column.to_pylist()])
        case 2:
            changed = pa.nulls(table.num_rows, column.type)
        case 3:
            changed = pa.array([None if each is None else str(each) for each in column.to_pylist()])
        case 4 if pa.types.is_integer(column.type):
            changed = pa.array(
                [
                    None if each is None else each + choices.choice((0, 1))
                    for each in column.to_pylist()
                ],
                column.type,
            )
        case _:
            rows = [choices.randrange(table.num_rows) for _ in range(table.num_rows)]
            return table.take(pa.array(rows, pa.int64()))
    return table.set_column(at, name, changed)


def _parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue())


# ---------------------------------------------------------------------------------------- reports


_ASKING: tuple[tuple[str, ...], ...] = (
    ("report", "run", "-q"),
    ("report", "run", "--format", "markdown"),
    ("report", "run", "--format", "junit"),
    ("report", "run", "--format", "github"),
    ("report", "run", "--format", "json"),
    ("explain", "run"),
    ("explain", "run", "--format", "svg"),
    ("statement", "run"),
    ("diff", "run", "other"),
    ("check", "h.txt", "--profile", "mine.toml", "-q", "--engine", "python"),
    (
        "check",
        "h.txt",
        "--profile",
        "reference",
        "--baseline",
        "known.toml",
        "-q",
        "--engine",
        "python",
    ),
    ("replay", "plan.json"),
)
DOCUMENTS = ("verdict.json", "run.json", "occasion.json")


def report(choices: Random) -> Sample:
    """A judged run's documents, a profile, a baseline or a plan, and a command that reads them."""
    words = choices.choice(_ASKING)
    given = ground()
    if words[0] == "check":
        name = "mine.toml" if "mine.toml" in words else "known.toml"
        text = given[name].decode()
        for _ in range(_how_many(choices)):
            text = changed_text(text, choices)
        return Sample(words, {name: _encoded(text)})
    names = ["plan.json"] if words[0] == "replay" else [f"run/{name}" for name in DOCUMENTS]
    files: dict[str, bytes] = {}
    for _ in range(_how_many(choices)):
        name = names[min(choices.randrange(5), len(names) - 1) if choices.random() < 0.4 else 0]
        change = changed_bytes if choices.random() < 0.05 else changed_json
        files[name] = change(files.get(name, given[name]), choices)
    return Sample(words, files)


KINDS: Mapping[str, Callable[[Random], Sample]] = {
    LINES: command_line,
    MAPS: map_and_log,
    HISTORIES: history,
    REPORTS: report,
}


# ------------------------------------------------------------------------------------------ asking


BROKEN = next(clause for clause in all_clauses() if clause.id.startswith("ORD")).shortest_violation
PROFILE = 'title = "mine"\nextends = "reference"\n\n[families]\nORD = "claimed"\n'
TARGET_FILE = '[options]\n[credentials]\npassword = "hidden"\n'


@functools.cache
def ground() -> Mapping[str, bytes]:
    """The files among which a command line is typed: two judged runs and what the commands read, all valid."""
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        Path("h.txt").write_text(BROKEN, encoding="utf-8")
        info, rows = parse_history(BROKEN)
        lines = [
            json.dumps({k: v for k, v in row._asdict().items() if v is not None}) for row in rows
        ]
        Path("rows.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        for name in ("run", "other"):
            write_history(Path(name), replace(info, profile="reference"), rows)
            asked(["check", name, "--out", name, "-q"])
        Path("known.toml").unlink(missing_ok=True)
        asked(
            [
                "baseline",
                "run",
                "--owner",
                "me",
                "--reason",
                "r",
                "--expires",
                "2099-01-01",
                "--out",
                "known.toml",
            ]
        )
        for name, text in (
            ("map.toml", CSV_MAP),
            ("log.csv", CSV_LOG),
            ("mine.toml", PROFILE),
            ("t.toml", TARGET_FILE),
        ):
            Path(name).write_text(text, encoding="utf-8")
        Path("plan.json").write_text(json.dumps(Plan().to_json()), encoding="utf-8")
        wanted = [
            path
            for path in Path().rglob("*")
            if path.is_file()
            and not {"allure-results", "pictures"} & set(path.parts)
            and path.suffix != ".html"
        ]
        return {str(path): path.read_bytes() for path in wanted}


def _begins(*_: Any, **__: Any) -> Any:
    """A command had nothing to say against what it was asked, and would begin its work."""
    raise SystemExit(EXIT_UPHELD)


@contextlib.contextmanager
def at_the_door() -> Iterator[None]:
    """What would take minutes begins, and is over at once; entry points are looked for once."""
    points = functools.cache(importlib.metadata.entry_points)
    with contextlib.ExitStack() as stack:
        for module in list(sys.modules.values()):
            looks = getattr(module, "entry_points", None) is importlib.metadata.entry_points
            if looks and module.__name__.split(".")[0] in ("conformance", "chaos", "inorder"):
                stack.enter_context(mock.patch.object(module, "entry_points", points))
        known = functools.cache(main._registered)  # noqa: SLF001 - which costs as much as all the rest
        stack.enter_context(mock.patch.object(main, "_registered", known))
        for owner, name in WORK:
            stack.enter_context(mock.patch.object(owner, name, _begins))
        yield


WORK: tuple[tuple[Any, str], ...] = (
    (seam.Conformance, "run"),
    (conformance.run, "run_again"),
    (chaos.cli, "run_scenario"),
    (chaos.hunting.cli, "hunt"),
    (conformance.cli.confirm, "confirm"),
    (conformance.cli.shrink, "shrink_run"),
    (conformance.cli.shrink, "shrink_real"),
    (conformance.cli.tap, "_serve"),
    (conformance.drivers.smoke, "smoke"),
    (inorder.evidence.kill_matrix.command, "run_matrix"),
    (reference_impl.cli, "_serve"),
    (spark_checkers.generate, "generate"),
    (spark_checkers.layout, "compact"),
)
"""Where the long work of the commands begins."""


def asked(words: Sequence[str]) -> Answer:
    """The door's answer in this process."""
    began_s = now_s()
    with time_limit(INPUT_S_MAX):
        said = CliRunner().invoke(main.root, list(words))
    told = said.stderr
    for path in re.findall(r"traceback is in (\S+)", told):
        told += "\n" + Path(path).read_text(encoding="utf-8", errors="replace")
        Path(path).unlink()
    distrusted = said.exit_code == EXIT_SUITE and DISTRUST in said.stdout
    return Answer(EXIT_UPHELD if distrusted else said.exit_code, told, now_s() - began_s)


def tried(sample: Sample, place: Path) -> Answer:
    """The answer to a sample in a folder of its own, which is empty."""
    lay(sample, place)
    with contextlib.chdir(place):
        return asked(sample.words)


def lay(sample: Sample, place: Path) -> None:
    """Write the files of a sample, and those that its words need and it does not bring."""
    needed = {word.partition("/")[0] for word in sample.words} | {"plan.json", "known.toml"}
    theirs = {name: data for name, data in ground().items() if name.partition("/")[0] in needed}
    for name, data in {**theirs, **sample.files}.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


# ------------------------------------------------------------------------------------------- cells


GRID = "handed in"
IN_A_CELL = {LINES: 500, MAPS: 500, HISTORIES: 500, REPORTS: 500, PROCESSES: 25}
WHOLE = {LINES: 20_000, MAPS: 40_000, HISTORIES: 20_000, REPORTS: 20_000, PROCESSES: 300}
"""How many of each are made if nobody says."""
LEAST_TAKEN = 0.3
"""The share of samples that the door must take: what is refused at once tells little of what lies behind it."""
MIB_MAX = 1_024
FOUND_MAX = 5
SEARCHES = (
    ("conform", "--target", "reference", "--seed", "1"),
    ("conform", "--target", "mutant:suspend-ignored", "--seed", "1", "--keep-going", "-q"),
    ("conform", "--target", "reference", "--workers", "2", "--out", "r"),
)
SHORTLY = ("--examples", "1", "--budget", "1s")
_LONG = frozenset(
    {
        "conform",
        "chaos",
        "hunt",
        "serve",
        "tap",
        "smoke",
        "shrink",
        "generate",
        "compact",
        "confirm",
    }
)


def cells(wanted: Mapping[str, int], seed: int) -> list[Cell]:
    """wanted: how many samples of each kind."""
    code = code_key(
        "specs",
        "conformance",
        "chaos",
        "spark_checkers",
        "reference_impl",
        "inorder/evidence/fuzzing",
    )
    return [
        Cell(
            GRID,
            f"{kind} {number}",
            {
                "kind": kind,
                "samples": min(size, total - number * size),
                "seed": seed,
                "number": number,
                **code,
            },
        )
        for kind, total in wanted.items()
        for size in (IN_A_CELL[kind],)
        for number in range(-(-total // size))
    ]


def make(cell: Cell) -> dict[str, Any]:
    """How the samples of a cell were answered: by exit code, the slowest, the memory, and what was wrong."""
    kind = cell.key["kind"]
    choices = Random(f"{cell.key['seed']} {kind} {cell.key['number']}")
    codes: Counter[str] = Counter()
    found, slowest, mib = list[str](), 0.0, 0.0
    with Scratch("fuzzing") as place, _tracebacks_in(place), at_the_door():
        ground()
        for number in range(cell.key["samples"]):
            folder = Path(place) / str(number)
            folder.mkdir()
            if kind == PROCESSES:
                sample, answer, rss_mib = in_a_process(choices, folder)
                mib = max(mib, rss_mib)
            else:
                sample = KINDS[kind](choices)
                answer = tried(sample, folder)
                mib = largest_mib()
            shutil.rmtree(folder, ignore_errors=True)
            codes[str(answer.code)] += 1
            slowest = max(slowest, answer.seconds)
            wrong = answer.wrong or answer.seconds > INPUT_S_MAX or mib > MIB_MAX
            if wrong and len(found) < FOUND_MAX:
                came = f"{answer.code} after {answer.seconds:.1f} s, {mib:.0f} MiB"
                found.append(f"{sample}\n  answer: {came}: {answer.told[-3_000:]}")
    return {"codes": dict(codes), "slowest": slowest, "mib": round(mib), "found": found}


@contextlib.contextmanager
def _tracebacks_in(place: str) -> Iterator[None]:
    with mock.patch.object(tempfile, "tempdir", place):
        yield


def in_a_process(choices: Random, place: Path) -> tuple[Sample, Answer, float]:
    """A sample in a process of its own, with its memory in MiB. seconds are those of its work on a core.

    The memory is at least what this process has had: it is small where only cells are made (`run.largest_mib`).
    """
    if choices.random() < 0.3:
        words: list[str] = list(choices.choice(SEARCHES))
        for _ in range(_how_many(choices)):
            words = changed_words(words, choices, SEARCHES) if words else ["--help"]
        sample = Sample((*words, *SHORTLY), {})
    else:
        sample = choices.choice(tuple(KINDS.values()))(choices)
        while _LONG & set(sample.words):
            sample = choices.choice(tuple(KINDS.values()))(choices)
    lay(sample, place)
    argv = [sys.executable, "-m", "inorder", *sample.words]
    with (place / "stderr.txt").open("wb") as told:
        process = subprocess.Popen(
            argv, cwd=place, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=told
        )
        assert process.stdout is not None
        with process.stdout:
            printed = process.stdout.read()
        _pid, status, used = os.wait4(process.pid, 0)
    process.returncode = code = os.waitstatus_to_exitcode(status)
    said = (place / "stderr.txt").read_text(encoding="utf-8", errors="replace")
    code = EXIT_UPHELD if code == EXIT_SUITE and DISTRUST.encode() in printed else code
    return sample, Answer(code, said, used.ru_utime + used.ru_stime), used.ru_maxrss / 1024
