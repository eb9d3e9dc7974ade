"""What is owed at a Docker engine is paid, each by itself, again and again; what is not stands in a script."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests
from docker.errors import APIError, NotFound

from conformance.parts import docker_engine
from conformance.parts.docker_engine import EngineFailed, asking
from conformance.parts.restoring import GONE, REMOVE, RUN, Owed, settle

DEBTS = [(REMOVE, "copy"), (RUN, "hers"), (RUN, "other")]
LOST = requests.ConnectionError("Remote end closed connection")


class Engine:
    """Containers by name, each with its state; what is asked of one may fail first. fails: by name what is raised."""

    def __init__(self, fails: dict[str, list[Exception]]) -> None:
        self.states = {"copy": "paused", "hers": "exited", "other": "paused"}
        self.fails = fails
        self.containers = SimpleNamespace(get=self._get)

    def __call__(self) -> Any:
        return self

    def close(self) -> None:
        """Nothing to close."""

    def _get(self, name: str) -> Any:
        if waiting := self.fails.get(name):
            raise waiting.pop(0)

        def state(new: str) -> Callable[..., None]:
            return lambda **_: self.states.update({name: new})

        return SimpleNamespace(
            status=self.states[name],
            remove=state("gone"),
            start=state("running"),
            unpause=state("running"),
        )


@pytest.mark.parametrize(
    "error", [LOST, APIError("busy"), OSError("reset")], ids=lambda each: type(each).__name__
)
def test_one_that_fails_is_tried_again_and_holds_up_no_other(error: Exception) -> None:
    """Whatever the connection's error is."""
    engine, paid = Engine({"copy": [error, error]}), list[str]()
    assert settle(DEBTS, engine, 30.0, paid.append) == {}
    assert engine.states == {"copy": "gone", "hers": "running", "other": "running"}
    assert paid == ["<hers", "<other", "-copy"]


def test_what_stays_is_told_with_its_reason_and_the_others_are_put_back() -> None:
    """One of hers that somebody removed is not waited for."""
    engine = Engine({"hers": [NotFound("no such container")], "copy": [LOST] * 1_000_000})
    left = settle(DEBTS, engine, 1.2, lambda _line: None)
    assert left == {DEBTS[0]: str(LOST), DEBTS[1]: GONE}
    assert engine.states["other"] == "running"


def test_an_engine_that_is_away_for_good_raises_nothing() -> None:
    def away() -> Any:
        raise LOST

    assert set(settle(DEBTS, away, 0.1, lambda _line: None)) == set(DEBTS)


def test_the_script_says_what_is_owed_and_is_gone_when_nothing_is(tmp_path: Path) -> None:
    """It is a shell script that runs as it is; ours go first."""
    owed = Owed("unix:///x y.sock")
    script = tmp_path / "put-back.sh"
    for line in (f"={script}", ">hers", "+a copy"):
        owed.take(line)
        owed.write()
    shown = f"docker() {{ echo $DOCKER_HOST: $*; }}; . {script}"
    done = subprocess.run(["sh", "-c", shown], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "unix:///x y.sock: rm --force a copy",
        "unix:///x y.sock: start hers",
    ]
    for line in ("-a copy", "<hers"):
        owed.take(line)
        owed.write()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (NotFound("No such container: c"), "could not pause c: somebody removed the container"),
        (APIError("is not running"), "the Docker engine could not pause c: is not running"),
        (LOST, "the Docker engine at .* went away, or did not answer, when it was to pause c"),
    ],
)
def test_an_error_of_the_engine_is_one_sentence_that_blames_right(
    error: Exception, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docker_engine, "where", lambda: "unix:///somewhere")
    with pytest.raises(EngineFailed, match=sentence), asking("pause c"):
        raise error
