"""Whose containers may be touched, and what a user is told who has them in another way."""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from chaos.attach import compose, run
from chaos.attach.breaking import VERBS
from chaos.attach.hers import STANDS_FOR, look, owed_of_earlier_runs
from chaos.rounds import Bounds
from conformance.cli.main import root
from conformance.parts import docker_engine
from conformance.parts.docker_engine import LABEL, LABEL_OF_PROJECT, own_labels
from specs.errors import EXIT_USAGE, UsageError
from specs.plan.config import Config
from specs.profiles import load
from tests.chaos.attach.fakes import Engine, container

SHOP = compose.Project(Path("compose.yaml"), "shop", ("mq", "billing-1", "billing-2", "checkout"))
TOLD = ("ROCKETMQ_NAMESRV_ADDR=mq:9876", "DATABASE=db:5432")
MQ = container("mq")
FIRST = container("billing-1", "consumer", env=TOLD)


def looked(*containers: Any, namesrv: str | None = None) -> Any:
    return look(Engine(*containers), SHOP, namesrv)  # type: ignore[arg-type]


def lines(found: Any) -> list[str]:
    return list(run.lines(run.Asked(found, tuple(VERBS), Config(), load("reference"), 1, Bounds())))


def test_what_carries_no_label_is_in_no_line_but_the_last() -> None:
    """A dry run names each container with what would happen to it, and last those that nothing happens to."""
    second = container("billing-2")
    found = looked(MQ, FIRST, second, container("checkout", "producer", env=TOLD))
    told = lines(found)
    assert (found.namesrv, found.network) == ("mq:9876", "net")
    assert told[-1] == "never touched: shop-billing-2-1, shop-mq-1"
    assert not [line for line in told[:-1] if "billing-2" in line or "shop-mq" in line]
    assert not [line for line in told if line.startswith("fault") and "checkout" in line]
    assert [line.rpartition("(")[2] for line in told if line.startswith("fault")] == [
        "crash)", "pause)", "stop)", "cut)",
    ]  # fmt: skip


def test_a_broker_is_broken_where_it_is() -> None:
    """It is not copied, and has the faults of a broker."""
    told = lines(looked(container("mq", "broker"), FIRST))
    assert not [line for line in told if "shop-mq-1" in line and "stands in" in line]
    assert sum(line.startswith("fault") and "shop-mq-1" in line for line in told) == 2


def test_another_project_s_container_is_not_hers() -> None:
    """Of the same engine and with the label, but of a service that her file does not have."""
    stranger = container("somebody", "consumer", env=TOLD)
    assert [each.name for each in looked(MQ, FIRST, stranger).clients] == ["shop-billing-1-1"]


@pytest.mark.parametrize(
    ("containers", "namesrv", "why"),
    [
        ((), None, "no container of the project shop runs at"),
        ((MQ, container("billing-1")), None, "has the label inorder.chaos: consumer"),
        ((MQ, container("billing-1", "allowed")), None, "may be consumer, producer, broker"),
        ((MQ, container("billing-1", "consumer")), None, "--namesrv HOST:PORT"),
        ((MQ, FIRST, container("checkout", "producer", env=("NAMESRV=b:9876",))), None,
         "told of b:9876 and mq:9876"),
        ((MQ, container("billing-1", "consumer", env=("NAMESRV=a:9876;b:9876",))), None,
         "told of a:9876 and b:9876"),
        ((MQ, FIRST), "10.0.0.5:9876", "only a name can lead to the tap"),
        ((MQ, FIRST), "mq", "HOST:PORT|host:port|mq"),
        ((MQ, container("billing-1", "consumer", env=TOLD, network="other")), None,
         "are in no network together"),
        ((MQ, container("billing-1", "consumer", env=TOLD, network="host")), None, "network mode host"),
        ((MQ, container("billing-1", "consumer", env=TOLD, AutoRemove=True)), None, "--rm"),
        ((MQ, container("billing-1", "consumer", env=TOLD, status="paused")), None, "is paused"),
    ],
)  # fmt: skip
def test_what_can_t_be_attached_is_one_sentence(
    containers: tuple[Any, ...], namesrv: str | None, why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        looked(*containers, namesrv=namesrv)


def leaving(owner: str, **other: Any) -> Any:
    """A copy of billing-1 that a run has made and not removed."""
    marks = {LABEL: owner, LABEL_OF_PROJECT: "shop", STANDS_FOR: "shop-billing-1-1"}
    return container("billing-1", "consumer", env=TOLD, more=marks, **other)


def test_what_an_earlier_run_left_is_not_taken_for_hers() -> None:
    """Neither where it runs nor where it has ended; one sentence says what cleans it up."""
    dead = f"{socket.gethostname()}/1/1"
    for status in ("running", "exited"):
        with pytest.raises(UsageError, match=r"has left shop-billing-1-1: .*--put-back"):
            looked(MQ, FIRST, leaving(dead, status=status))


def test_a_second_run_is_refused_while_the_first_is_at_work() -> None:
    """Also to clean up: what it has made is in use."""
    mine = leaving(own_labels()[LABEL])
    with pytest.raises(UsageError, match=f"another run is at work .*process {os.getpid()} of"):
        looked(MQ, FIRST, mine)
    with pytest.raises(UsageError, match="wait for its end"):
        owed_of_earlier_runs(Engine(MQ, FIRST, mine), SHOP)  # type: ignore[arg-type]


def test_what_is_cleaned_up_is_what_was_left_and_what_it_stopped() -> None:
    """A paused broker of hers too; what has no label, and what runs, is left alone."""
    left = leaving("elsewhere", status="exited")
    left.name = "shop-billing-1-1-inorder-7-2"
    hers = container("billing-1", "consumer", env=TOLD, status="exited")
    broker = container("mq", "broker", status="paused")
    second = container("billing-2", status="exited")
    found = owed_of_earlier_runs(
        Engine(hers, broker, second, left),  # type: ignore[arg-type]
        SHOP,
    )
    assert found == [
        ("+", "shop-billing-1-1-inorder-7-2"),
        (">", "shop-billing-1-1"),
        (">", "shop-mq-1"),
    ]


def test_a_project_of_another_name_is_found_by_its_file(tmp_path: Path) -> None:
    """As after `docker compose -p`: 2.x notes whole paths on a container, 1.x names beside the folder."""
    file = tmp_path / "compose.yaml"
    project = compose.Project(file, "folder", SHOP.services)
    for files in (str(file), "compose.yaml"):
        marks = {compose.FOLDER: str(tmp_path), compose.FILES: files}
        here = [
            container("mq", more=marks),
            container("billing-1", "consumer", env=TOLD, more=marks),
        ]
        assert look(Engine(*here), project, None).project.name == "shop"  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="no container of the project folder"):
            look(Engine(*here), replace(project, named=True), None)  # type: ignore[arg-type]


def test_a_name_server_that_does_not_run_is_told_before_anything() -> None:
    down = container("mq", status="exited")
    with pytest.raises(UsageError, match="the name server mq does not run: shop-mq-1 is exited"):
        looked(down, FIRST)


def test_what_does_not_run_is_told() -> None:
    found = looked(MQ, FIRST, container("checkout", status="exited"))
    assert "does not run: shop-checkout-1 (exited)" in lines(found)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "can't be read"),
        ("a: [", "is no YAML"),
        ("jobs: {}", "is no compose file"),
        ("- a", "is no compose file"),
        ("services: {}", "is no compose file"),
    ],
)
def test_a_file_that_is_no_compose_file(text: str | None, why: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "compose.yaml").write_text(text)
    with pytest.raises(UsageError, match=why):
        compose.read(tmp_path / "compose.yaml")


def test_a_project_is_named_as_compose_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the folder, by the file, by `.env` beside it, or by the environment, which comes first."""
    folder = tmp_path / "_My Shop.v2"
    folder.mkdir()
    file = folder / "compose.yaml"
    file.write_text("x-a: &a {image: b}\nservices:\n  one:\n    <<: *a\n")
    monkeypatch.delenv(compose.NAMED_BY, raising=False)
    names = [compose.read(file).name]
    file.write_text("name: Store\nservices: {one: {}}")
    names.append(compose.read(file).name)
    (folder / ".env").write_text("A=1\nexport COMPOSE_PROJECT_NAME='Mine' # hers\n")
    names.append(compose.read(file).name)
    monkeypatch.setenv(compose.NAMED_BY, "other")
    names.append(compose.read(file).name)
    assert names == ["myshopv2", "store", "mine", "other"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--dry-run"], "go with --attach"),
        (["--put-back"], "go with --attach"),
        (["--attach", "compose.yaml", "consumer-killed"], "leave scenarios out"),
        (["--attach", "compose.yaml", "--target", "reference"], "leave target out"),
        (["--attach", "compose.yaml", "--fault", "melt"], "can't have the fault 'melt', but crash"),
        (["--attach", "pyproject.toml"], "is no"),
        (["--attach", "compose.yaml", "--config", "none.json"], "none.json can't be read"),
    ],
)
def test_wrong_words_end_with_64_before_anything_starts(
    words: list[str], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect() -> None:
        raise AssertionError("the engine was asked")

    monkeypatch.setattr(docker_engine, "connect", connect)
    done = CliRunner().invoke(root, ["chaos", *words])
    assert (done.exit_code, done.stdout) == (EXIT_USAGE, "")
    assert why in done.stderr
    assert len(done.stderr.splitlines()) == 1
