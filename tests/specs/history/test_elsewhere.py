"""A history named by a URI is the same history."""

from __future__ import annotations

from pathlib import Path

import pytest

from specs.clauses.catalogue import get
from specs.errors import HistoryError
from specs.history import elsewhere
from specs.history.elsewhere import is_elsewhere, opened
from specs.history.store import History, open_history, write_history
from specs.history.text import parse_history


@pytest.fixture
def history(tmp_path: Path) -> History:
    info, rows = parse_history(get("LSE-1").shortest_violation)
    write_history(tmp_path / "h", info, rows)
    return open_history(tmp_path / "h")


def test_its_copy_holds_the_same_rows(history: History) -> None:
    uri = f"file://{history.folder}"
    with opened(uri) as found:
        assert (found.uri, found.info, list(found.rows())) == (
            uri,
            history.info,
            list(history.rows()),
        )
    assert not found.folder.exists()


def test_where_nobody_here_reads_the_rows_they_are_only_counted(history: History) -> None:
    with opened(f"file://{history.folder}", rows=False) as found:
        assert (found.info, found.parquet, found.loaded) == (history.info, (), ())
        assert found.events == len(list(history.rows()))


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("file:///no/such/folder", "there is no such folder"),
        ("nowhere://bucket/history", "can't be read: Unrecognized filesystem type"),
    ],
)
def test_a_place_that_holds_none_is_one_sentence(place: str, why: str) -> None:
    with pytest.raises(HistoryError, match=why), opened(place):
        pass


def test_a_folder_that_spark_can_not_read_says_so(tmp_path: Path) -> None:
    info, rows = parse_history(get("LSE-1").shortest_violation)
    write_history(tmp_path / "h", info, rows, as_text=True)
    with (
        pytest.raises(HistoryError, match="leave --engine"),
        opened(f"file://{tmp_path / 'h'}", rows=False),
    ):
        pass


def test_a_path_is_no_uri() -> None:
    assert [is_elsewhere(each) for each in ("runs/7", "-", "s3a://b/h", Path("s3:/b"))] == [
        False,
        False,
        True,
        False,
    ]


@pytest.mark.parametrize("endpoint", ["", "http://127.0.0.1:7070"])
def test_an_object_store_is_asked_where_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    named = "?endpoint_override=127.0.0.1:7070&scheme=http" if endpoint else ""
    assert elsewhere.spelt("s3a://bucket/history") == f"s3://bucket/history{named}"
    assert elsewhere.spelt("s3://bucket/history?region=x") == "s3://bucket/history?region=x"
    assert elsewhere.spelt("file:///h") == "file:///h"
