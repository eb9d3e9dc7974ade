"""Whose containers may be touched, and what a user is told who has them in another way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from chaos.attach import compose, run
from chaos.attach.breaking import VERBS
from chaos.attach.hers import look
from chaos.rounds import Bounds
from conformance.cli.main import root
from conformance.parts import docker_engine
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
    """By the folder, by the file, or by the environment, which comes first."""
    folder = tmp_path / "_My Shop.v2"
    folder.mkdir()
    file = folder / "compose.yaml"
    file.write_text("x-a: &a {image: b}\nservices:\n  one:\n    <<: *a\n")
    monkeypatch.delenv(compose.NAMED_BY, raising=False)
    names = [compose.read(file).name]
    file.write_text("name: Store\nservices: {one: {}}")
    names.append(compose.read(file).name)
    monkeypatch.setenv(compose.NAMED_BY, "other")
    names.append(compose.read(file).name)
    assert names == ["myshopv2", "store", "other"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--dry-run"], "go with --attach"),
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
