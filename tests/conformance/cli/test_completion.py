"""What a shell is told when somebody presses the tabulator."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from conformance.cli.completion import ColonsInBash
from conformance.cli.main import root

RUN_FOLDERS = {"run", "runs", "before", "after"}
NAMES = {"target", "profile", "clause_id", "clauses", "recipe_name", "scenarios", "names"}


def completed(*words: str) -> list[str]:
    """The last word's completions, as click finds them."""
    *args, incomplete = words
    found = ShellComplete(root, {}, "inorder", "_INORDER_COMPLETE").get_completions(
        args, incomplete
    )
    return [item.value for item in found]


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two runs, one of them deeper."""
    for name in ("runs/one", "runs/grid/cell"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "verdict.json").write_text("{}", encoding="utf-8")
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "some"),
    [
        (("conf",), "conform"),
        (("conform", "--target", "refer"), "reference+tcp"),
        (("conform", "--target", "mutant:unlock-w"), "mutant:unlock-while-listener-runs"),
        (("conform", "--target", "reference+tcp:"), "reference+tcp:sync"),
        (("conform", "--target", "rocketmq-local:5.4"), "rocketmq-local:5.4.0"),
        (("conform", "--target", "kafka-local:"), "kafka-local:4.3.1"),
        (("conform", "--target", "nats-local:"), "nats-local:2.15.2"),
        (("conform", "--target", "redis-local:"), "redis-local:7.0.15"),
        (("conform", "--target", "rabbitmq-local:"), "rabbitmq-local:3.10.8"),
        (("conform", "--target", "sqs-local:"), "sqs-local:1.6.11"),
        (("conform", "--profile", "rocketmq-5-o"), "rocketmq-5-orderly"),
        (("check", "h", "--clause", "lse-1"), "LSE-16"),
        (("explain", "r", "--clause", "WIR-1"), "WIR-13"),
        (("replay", "lease/str"), "lease/stranger_cannot_unlock"),
        (("mutants", "unlock-w"), "unlock-while-listener-runs"),
        (("chaos", "consumer-k"), "consumer-killed"),
        (("import", "--recipe", "kafka"), "kafka-java-client-log"),
        (("list", "mut"), "mutants"),
    ],
)
def test_names_are_completed(words: tuple[str, ...], some: str) -> None:
    found = completed(*words)
    assert some in found
    assert [each for each in found if not each.lower().startswith(words[-1].lower())] == []


@pytest.mark.parametrize("command", ["explain", "replay", "report", "shrink", "diff", "baseline"])
def test_folders_of_runs_are_completed(command: str, runs: Path) -> None:
    """Those with a verdict, also further down; other folders are passed over."""
    found = [each for each in completed(command, "") if "/" in each and each.startswith("runs")]
    assert found == ["runs/grid/cell", "runs/one"]
    assert completed(command, "runs/o") == ["runs/one"]


def parameters() -> Iterator[tuple[str, click.Parameter]]:
    with click.Context(root) as above:
        for name in root.list_commands(above):
            command = root.get_command(above, name)
            assert command is not None
            known = (each for each in command.params if each.name in NAMES | RUN_FOLDERS)
            yield from ((name, each) for each in known)


def test_every_parameter_with_known_values_completes(runs: Path) -> None:
    """A command that is added has to say so too."""
    told: dict[tuple[str, str | None], int] = {}
    for command, parameter in parameters():
        with click.Context(click.Command(command)) as context:
            found = parameter.shell_complete(context, "")
        told[command, parameter.name] = sum(item.type == "plain" for item in found)
    assert len(told) > 20
    assert [each for each, count in told.items() if not count] == []


def test_what_can_t_be_read_completes_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error would be printed into the line that somebody is typing."""

    def broken() -> None:
        raise OSError("gone")

    monkeypatch.setattr("specs.profiles.names", broken)
    assert completed("conform", "--profile", "r") == []


@pytest.mark.parametrize(
    ("typed", "printed"),
    [
        (["mutant", ":", "unlock-wh"], "plain,unlock-while-listener-runs"),
        (["reference+tcp", ":"], "plain,sync\nplain,async"),
        (["redis-local"], "plain,redis-local"),
    ],
)
def test_bash_ends_a_word_at_a_colon(
    typed: list[str], printed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it then completes is the part behind it."""
    words = ["inorder", "conform", "--target", *typed]
    monkeypatch.setenv("COMP_WORDS", "\n".join(words))
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    assert ColonsInBash(root, {}, "inorder", "_INORDER_COMPLETE").complete() == printed
