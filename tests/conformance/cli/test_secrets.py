"""A secret stands where it was given, and nowhere else: in no output, folder, log, report or traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.cli.main import root
from conformance.parts.doctor import why_not
from conformance.targets.options import parse, read_config
from specs.errors import UsageError
from specs.secrets import holds_secret, masked

SECRET = "planted-SECRET-4711"
URI = f"user:{SECRET}@127.0.0.1:1"
REDIS, KAFKA = ("redis-local:7.0.15", "kafka-local:4.3.1")
FILES = {
    "redis": f'[credentials]\nusername = "u"\npassword = "{SECRET}"\n',
    "rabbitmq": f'[credentials]\nusername = "u"\npassword = "{SECRET}"\n',
    "nats": f'[credentials]\nuser = "u"\npassword = "{SECRET}"\ntoken = "{SECRET}"\n',
    "kafka": f'[credentials]\n"sasl.password" = "{SECRET}"\n"ssl.key.password" = "{SECRET}"\n',
    "sqs": f'[credentials]\naws_access_key_id = "{SECRET}"\naws_secret_access_key = "{SECRET}"\n',
}


def left_by(tmp_path: Path, *words: str) -> tuple[int, str, list[str]]:
    """The exit code, what was said, and each file that holds the secret, `said` among them. The user's own is none."""
    temporary = tmp_path / "tmp"
    temporary.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "inorder", *words],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    said = done.stdout + done.stderr
    return done.returncode, said, _holding(tmp_path, said)


def _holding(folder: Path, said: str) -> list[str]:
    found = ["said"] if SECRET in said else []
    found += [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "mine.toml" and SECRET.encode() in path.read_bytes()
    ]
    return found + [str(each) for each in folder.rglob(f"*{SECRET}*")]


@pytest.fixture
def refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, list[str]]]:
    """As `left_by`, in this process: of a command that is refused before it begins anything."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def ask(*words: str) -> tuple[int, str, list[str]]:
        done = CliRunner().invoke(root, list(words))
        said = done.stdout + done.stderr
        return done.exit_code, said, _holding(tmp_path, said)

    return ask


@pytest.mark.parametrize(
    "words",
    [
        *(("conform", "--target", f"{name}:{URI}") for name in ("kafka", "nats", "rabbitmq", "redis", "rocketmq")),
        ("conform", "--target", f"sqs:http://{URI}"),
        ("conform", "--target", f"nats:nats://{URI}"),
        ("conform", "--target", f"redis:{SECRET}@127.0.0.1:1"),
        ("conform", "--target", f"processes:rocketmq:{URI}"),
        ("conform", "--target", f"nothing-of-that-name:{URI}"),
        ("conform", f"--target=redis:{URI}"),
        ("conform", "--target", f"exec:driver --at redis://{URI}"),
        ("conform", "--target", f"redis:127.0.0.1:1,password={SECRET}"),
        ("conform", "--target", f"kafka:127.0.0.1:1,sasl.password={SECRET}"),
        ("conform", "--target", f"nats:127.0.0.1:1,nkeys_seed_str={SECRET}"),
        ("chaos", "consumer-killed", "--target", f"rocketmq:{URI}"),
        ("hunt", "--target", f"rocketmq:{URI}"),
        ("smoke", "--target", f"redis:{URI}"),
        ("list", "faults", "--target", f"kafka:{URI}"),
        ("replay", ".", "--target", f"kafka:{URI}"),
        ("check", f"s3://user:{SECRET}@bucket/history"),
        ("check", f"hdfs://user:{SECRET}@name/history", "--engine", "spark"),
        ("check", "h.txt", "--master", f"spark://user:{SECRET}@host:7077"),
        ("tap", "--upstream", f"http://{URI}", "--out", "t"),
        ("baseline", ".", "--owner", "o", "--reason", "r", "--expires", "2099-01-01", "--issue", f"https://{URI}/1"),
    ],
    ids=lambda words: words[-1].partition(":")[0] if words[0] == "conform" else words[0],
)  # fmt: skip
def test_credentials_of_a_command_line_are_refused_and_told_by_nobody(
    tmp_path: Path, refused: Callable[..., tuple[int, str, list[str]]], words: tuple[str, ...]
) -> None:
    (tmp_path / "h.txt").touch()
    code, said, found = refused(*words)
    assert (code, found) == (64, []), said
    assert "[credentials]" in said


@pytest.mark.parametrize("name", ["redis"])
def test_what_the_file_of_a_target_holds_is_in_nothing_that_a_failed_run_leaves(
    tmp_path: Path, name: str
) -> None:
    """Nobody listens at the address."""
    (tmp_path / "mine.toml").write_text(FILES[name])
    words = (
        "conform",
        "--target",
        f"{name}:127.0.0.1:1",
        "--target-config",
        "mine.toml",
        "--out",
        "run",
    )
    code, said, found = left_by(tmp_path, *words, "--seed", "1", "--examples", "1")
    assert (code in (69, 70), found) == (True, []), said


@pytest.mark.parametrize(
    "text",
    [
        f'[credentials]\npassword = "{SECRET}',
        f"[credentials]\npassword = {SECRET}\n",
        f'[credentials]\npassword = ["{SECRET}"]\n',
        f'[credential]\npassword = "{SECRET}"\n',
        f'password = "{SECRET}"\n',
        f'[credentials]\npasswort = "{SECRET}"\n',
        f'[options]\npassword = "{SECRET}"\n',
    ],
)
def test_a_wrong_file_is_told_without_what_it_holds(
    tmp_path: Path, refused: Callable[..., tuple[int, str, list[str]]], text: str
) -> None:
    (tmp_path / "mine.toml").write_text(text)
    words = ("conform", "--target", "redis:127.0.0.1:1", "--target-config", "mine.toml")
    code, said, found = refused(*words)
    assert (code, found, "mine.toml" in said) == (64, [], True), said


@pytest.mark.long
@pytest.mark.parametrize(("target", "name"), [(REDIS, "redis"), (KAFKA, "kafka")])
def test_a_run_on_a_real_server_leaves_no_secret(tmp_path: Path, target: str, name: str) -> None:
    """Redis refuses the password, and Kafka needs none: a run that fails, and one that is whole."""
    if (why := why_not(name)) is not None:
        pytest.skip(why)
    (tmp_path / "mine.toml").write_text(FILES[name])
    words = ("conform", "--target", target, "--target-config", "mine.toml", "--out", "run")
    code, said, found = left_by(tmp_path, *words, "--seed", "1", "--examples", "1")
    assert found == [], said
    assert (tmp_path / "run" / "rounds" / "1" / "run.json").is_file(), said
    assert code == (69 if name == "redis" else code)


def test_a_traceback_is_kept_without_what_is_secret(tmp_path: Path) -> None:
    """Of an error that quotes it, say."""
    failing = (
        "import sys, click\n"
        "from conformance.cli import main\n"
        "from conformance.targets.options import read_config\n"
        "from pathlib import Path\n"
        "@main.root.command('fail')\n"
        "def fail():\n"
        "    words = read_config(Path('mine.toml'))['credentials']['password']\n"
        "    raise ValueError(f'the server said no to {words}')\n"
        "main._registered = lambda: {}\n"
        "main.Root.get_command = lambda self, ctx, name: fail\n"
        "main.main(['fail'])\n"
    )
    (tmp_path / "mine.toml").write_text(FILES["redis"])
    done = subprocess.run(
        [sys.executable, "-c", failing],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    (kept,) = tmp_path.glob("inorder-traceback-*.txt")
    assert (done.returncode, "said no to ***" in kept.read_text()) == (70, True), done.stderr
    assert SECRET not in done.stdout + done.stderr + kept.read_text()


def test_an_option_that_holds_a_secret_is_known_by_its_name() -> None:
    secret = (
        "password",
        "sasl.password",
        "ssl.key.password",
        "token",
        "aws_secret_access_key",
        "nkeys_seed_str",
    )
    plain = (
        "session.timeout.ms",
        "group.protocol",
        "username",
        "region_name",
        "tls_ca",
        "app.consumer",
    )
    assert [holds_secret(name) for name in (*secret, *plain)] == [True] * 6 + [False] * 6


def test_an_address_is_masked_wherever_it_stands() -> None:
    said = f"can't reach redis://user:{SECRET}@host:1/0, nor http://plain.example/a@b"
    assert masked(said) == "can't reach redis://***@host:1/0, nor http://plain.example/a@b"


def test_a_secret_among_the_options_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'[options]\npassword = "{SECRET}"\n')
    with pytest.raises(UsageError, match="under \\[credentials\\]") as refused:
        parse("redis", f"h:1,config={path}", clients=(), options=("password",))
    assert SECRET not in str(refused.value)
    path.write_text(FILES["redis"])
    assert read_config(path)["credentials"]["password"] == SECRET
