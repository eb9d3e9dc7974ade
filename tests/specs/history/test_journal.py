"""A recorder that is killed at any moment loses nothing that it had begun."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from specs.errors import HistoryError
from specs.history.clock import RecorderClock
from specs.history.journal import Assembler, Journal, MemoryRecorder, assemble, read_journal
from specs.history.runinfo import RunInfo, write_runinfo
from specs.history.store import compact_journal, open_history
from specs.vocabulary import Kind, Level, Outcome

DEADLINE_S = 60

CHILD = textwrap.dedent(
    """
    import os, sys
    from pathlib import Path
    from specs.history.journal import Journal
    from specs.vocabulary import Kind, Outcome

    # Begins sends, tells each id after its begin has returned, and ends every second one.
    journal = Journal(Path(sys.argv[1]), "shop")
    out = sys.stdout.fileno()
    number = 0
    while True:
        number += 1
        journal.begin(number, Kind.SEND, {"client_id": "shop", "topic": "orders", "message_id": f"m{number}"})
        os.write(out, b"%d\\n" % number)
        if number % 2:
            journal.end(number, Outcome.OK, {"broker": "b0", "queue_id": 0, "queue_offset": number})
    """
)


@pytest.mark.parametrize("kills", [20, pytest.param(100, marks=pytest.mark.long)])
def test_a_recorder_killed_many_times(tmp_path: Path, kills: int) -> None:
    """Each time the history opens, says that it was cut, and holds every send whose begin had returned."""
    chance = random.Random(20)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    told_in_all = 0
    for kill in range(kills):
        folder = tmp_path / str(kill)
        write_runinfo(folder, RunInfo(run=f"killed-{kill}"))
        wanted = chance.randrange(1, 400)
        with subprocess.Popen(
            [sys.executable, "-S", "-c", CHILD, str(folder)],
            stdout=subprocess.PIPE,
            env=environment,
        ) as child:
            assert child.stdout is not None
            watchdog = threading.Timer(DEADLINE_S, child.kill)
            watchdog.start()
            try:
                told = [child.stdout.readline() for _ in range(wanted)]
                child.send_signal(signal.SIGKILL)
                told += child.stdout.readlines()
            finally:
                watchdog.cancel()
        ids = {f"m{int(line)}" for line in told if line.endswith(b"\n")}
        assert len(ids) >= wanted
        told_in_all += len(ids)

        history = open_history(folder)
        assert history.cut
        assert history.why_cut == ("shop.0.jsonl has no end",)
        rows = list(history.rows())
        assert ids <= {row.message_id for row in rows}
        assert len(rows) <= len(ids) + 1, "at most one send had begun and was not told yet"
        assert all(
            row.kind is Kind.SEND and row.outcome in (Outcome.OK, Outcome.UNKNOWN) for row in rows
        )
        compacted = compact_journal(folder)
        assert compacted.cut
        assert list(compacted.rows()) == rows
        assert (folder / "journal" / "shop.0.jsonl").is_file(), "nothing recorded is thrown away"
    assert told_in_all > kills


def test_a_journal_cut_at_any_byte_opens(tmp_path: Path) -> None:
    """A torn line is left out, everything before it is there."""
    ticks = iter(range(1000, 10_000))
    clock = RecorderClock("host", lambda: next(ticks), lambda: 5)
    whole = tmp_path / "whole"
    with Journal(whole, "c1", clock=clock) as journal:
        journal.begin("a", Kind.SEND, {"message_id": "m1"})
        journal.end("a", Outcome.OK, {"queue_offset": 1})
        journal.note(Kind.CRASH, Outcome.OK, {"client_id": "c2"})
    data = (whole / "journal" / "c1.0.jsonl").read_bytes()
    begun = data.index(b'"m1"')
    for length in range(len(data)):
        folder = tmp_path / str(length)
        write_runinfo(folder, RunInfo(run="r"))
        (folder / "journal").mkdir()
        (folder / "journal" / "c1.0.jsonl").write_bytes(data[:length])
        history = open_history(folder)
        assert history.cut, length
        whole_lines = data[:length].count(b"\n")
        assert len(list(history.rows())) == (0 if whole_lines < 2 else 1 if whole_lines < 4 else 2)
        assert length < begun or whole_lines >= 1


def test_a_journal_that_was_closed_is_not_cut(tmp_path: Path) -> None:
    """Whoever closes says that nothing is missing."""
    write_runinfo(tmp_path, RunInfo(run="r"))
    journal = Journal(tmp_path, "c1", common={"level": Level.WIRE, "client_id": "c1"})
    journal.note(Kind.JOIN, Outcome.OK, {"group": "billing"})
    journal.close()
    journal.close()
    history = open_history(tmp_path)
    assert not history.cut
    (row,) = history.rows()
    assert (row.process, row.client_id, row.level, row.group) == ("c1", "c1", Level.WIRE, "billing")
    assert row.wall_us is not None
    assert row.seq_begin == row.seq_end


def test_recording_never_waits_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recorder on a disk that is busy for seconds holds up nothing: `close` alone asks for it."""
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    journal = Journal(tmp_path, "c1")
    for number in range(2000):
        journal.begin(number, Kind.SEND, {"message_id": f"m{number}"})
        journal.end(number, Outcome.OK, {"queue_offset": number})
    assert not synced
    journal.close()
    assert len(synced) == 1


def test_a_process_that_starts_again_gets_a_file_of_its_own(tmp_path: Path) -> None:
    """What its first life wrote stays."""
    write_runinfo(tmp_path, RunInfo(run="r"))
    first = Journal(tmp_path, "c1")
    first.note(Kind.JOIN, Outcome.OK, {"client_id": "c1"})
    with Journal(tmp_path, "c1") as second:
        second.note(Kind.JOIN, Outcome.OK, {"client_id": "c1"})
    history = open_history(tmp_path)
    assert history.why_cut == ("c1.0.jsonl has no end",)
    assert len(list(history.rows())) == 2
    first.close()


def test_journals_of_one_host_merge_by_time(tmp_path: Path) -> None:
    """Two processes, one clock: one total order, dense from 1."""
    times = iter((1, 2, 3, 4, 5, 6, 7, 8))
    clock = RecorderClock("host", lambda: next(times), lambda: 0)
    with Journal(tmp_path, "a", clock=clock) as a, Journal(tmp_path, "b", clock=clock) as b:
        a.begin(1, Kind.LOCK, {}, [{"queue_id": 0}, {"queue_id": 1}])
        b.begin(1, Kind.LOCK, {"queue_id": 0})
        a.end(1, Outcome.OK, {"code": 0}, [{"outcome": Outcome.OK}, {"outcome": Outcome.REFUSED}])
        b.end(1, Outcome.REFUSED)
    paths = sorted((tmp_path / "journal").iterdir())
    rows = assemble("r", [read_journal(path) for path in paths])
    assert [
        (row.process, row.queue_id, row.outcome, row.seq_begin, row.seq_end) for row in rows
    ] == [
        ("a", 0, Outcome.OK, 1, 4),
        ("a", 1, Outcome.REFUSED, 2, 5),
        ("b", 0, Outcome.REFUSED, 3, 6),
    ]
    assert rows[0].op_id == rows[1].op_id != rows[2].op_id
    assert [(row.started_us, row.ended_us) for row in rows] == [(1, 3), (1, 3), (2, 4)]


def test_the_memory_recorder_and_the_journal_make_the_same_rows(tmp_path: Path) -> None:
    """A simulated run and a real one are recorded alike."""
    now = [0]

    def play(recorder: Journal | MemoryRecorder) -> None:
        for number in range(3):
            now[0] += 10
            recorder.begin(number, Kind.SEND, {"message_id": f"m{number}"})
            now[0] += 1
            if number != 1:
                recorder.end(number, Outcome.OK, {"queue_offset": number})
            recorder.note(Kind.CRASH, Outcome.OK, {"client_id": "c"})

    memory = MemoryRecorder("r", lambda: now[0], clock="host")
    play(memory)
    now[0] = 0
    common = {"process": None, "wall_us": None}
    with Journal(
        tmp_path, "p", clock=RecorderClock("host", lambda: now[0], lambda: 0), common=common
    ) as journal:
        play(journal)
    assert assemble("r", [read_journal(next((tmp_path / "journal").iterdir()))]) == memory.rows()


def test_a_recorder_is_used_in_order(tmp_path: Path) -> None:
    """A begin twice, an end without a begin, another number of rows, an unknown column: errors at once."""
    with Journal(tmp_path, "p") as journal:
        journal.begin("a", Kind.SEND, {})
        with pytest.raises(HistoryError, match="begins twice"):
            journal.begin("a", Kind.SEND, {})
        with pytest.raises(HistoryError, match="without a begin"):
            journal.end("b", Outcome.OK)
        with pytest.raises(KeyError, match="mood"):
            journal.note(Kind.SEND, Outcome.OK, {"mood": "fine"})
    assembler = Assembler("r")
    assembler.begin("a", Kind.LOCK, 1, "host", {}, [{"queue_id": 0}, {"queue_id": 1}])
    with pytest.raises(HistoryError, match="began with 2 rows and ended with 1"):
        assembler.end("a", Outcome.OK, 2, {}, [{"outcome": "ok"}])


def test_a_line_is_one_json_object(tmp_path: Path) -> None:
    """Other programs can read a journal while it grows."""
    journal = Journal(tmp_path, "p")
    journal.begin(1, Kind.SEND, {"message_id": "m"})
    lines = (tmp_path / "journal" / "p.0.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["e"] for line in lines] == ["open", "begin"]
    journal.close()
