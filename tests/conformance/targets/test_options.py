"""The argument of a target: one grammar, near matches for what is misspelt, and nothing of the file in any name."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.targets.options import Argument, parse, with_config
from specs.errors import UsageError

CLIENTS = ("java", "librdkafka")
OPTIONS = ("enable.auto.commit", "group.protocol", "sasl.password", "session.timeout.ms")
SECRET = "a-secret-nobody-reads"


def asked(text: str | None) -> Argument:
    return parse("kafka-local", text, clients=CLIENTS, options=OPTIONS)


def test_every_part_is_read() -> None:
    found = asked("4.3.1+java:4.4.0,group.protocol=consumer,enable.auto.commit=true")
    assert (found.head, found.client, found.client_version) == ("4.3.1", "java", "4.4.0")
    assert found.options == {"group.protocol": "consumer", "enable.auto.commit": "true"}
    assert found.named("kafka-local") == (
        "kafka-local:4.3.1+java:4.4.0,group.protocol=consumer,enable.auto.commit=true"
    )


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (None, (None, None, None)),
        ("4.3.1", ("4.3.1", None, None)),
        ("127.0.0.1:9092", ("127.0.0.1:9092", None, None)),
        ("+java", (None, "java", None)),
        ("127.0.0.1:9092+java:4.4.0", ("127.0.0.1:9092", "java", "4.4.0")),
    ],
)
def test_each_part_may_be_left_out(
    text: str | None, parts: tuple[str | None, str | None, str | None]
) -> None:
    found = asked(text)
    assert (found.head, found.client, found.client_version) == parts


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("4.3.1+jave:4.4.0", "no client 'jave'; did you mean java"),
        ("4.3.1+java:", r"write \+java:VERSION"),
        ("4.3.1,group.protocl=consumer", "no option 'group.protocl'; did you mean group.protocol"),
        ("4.3.1,group.protocol", "write KEY=VALUE"),
        ("4.3.1,group.protocol=a,group.protocol=b", "twice"),
        ("4.3.1,config=nowhere.toml", "nowhere.toml can't be read"),
    ],
)
def test_what_is_wrong_is_one_sentence(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        asked(text)
    assert "\n" not in str(caught.value)


def test_a_file_holds_options_and_credentials_and_only_its_path_is_named(tmp_path: Path) -> None:
    """The command line wins over the file; no name and no repr shows what stands in it."""
    path = tmp_path / "mine.toml"
    path.write_text(
        '[options]\n"session.timeout.ms" = 3000\n"group.protocol" = "classic"\n'
        f'[credentials]\n"sasl.password" = "{SECRET}"\n'
    )
    text = with_config("kafka-local:4.3.1,group.protocol=consumer", path).partition(":")[2]
    found = asked(text)
    assert found.options == {"session.timeout.ms": "3000", "group.protocol": "consumer"}
    assert found.credentials == {"sasl.password": SECRET}
    assert found.named("kafka-local").endswith(f",config={path}")
    assert SECRET not in f"{found!r} {found.named('kafka-local')}"
    assert "3000" not in f"{found!r} {found.named('kafka-local')}"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (f"[credential]\nx = '{SECRET}'", "no 'credential'; did you mean credentials"),
        (f"[credentials]\npassword = '{SECRET}'", "no credential 'password'"),
        (f"[credentials]\nsasl.password = '{SECRET}'", "sasl"),
        (f"credentials = '{SECRET}'", r"write \[credentials\]"),
        (f"'{SECRET}", "is no TOML"),
    ],
)
def test_a_wrong_file_is_one_sentence_without_its_secrets(
    tmp_path: Path, content: str, words: str
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(content)
    with pytest.raises(UsageError, match=words) as caught:
        asked(f"4.3.1,config={path}")
    assert SECRET not in str(caught.value)


def test_a_target_without_an_argument_takes_a_file(tmp_path: Path) -> None:
    assert with_config("kafka-local", tmp_path / "x.toml") == (
        f"kafka-local:,config={tmp_path / 'x.toml'}"
    )
    assert with_config("kafka-local:1", None) == "kafka-local:1"
    with pytest.raises(UsageError, match="comma"):
        with_config("kafka-local:1", tmp_path / "a,b.toml")
