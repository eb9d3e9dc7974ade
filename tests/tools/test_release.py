"""A release holds what git holds and nothing else, is made of a commit alone, and judges in a fresh environment."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import time
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from tests.tools import releases

release: Any = releases.load()
ROOT = releases.ROOT
MEGABYTES_WITHOUT_EXTRAS = 300
IN_A_WHEEL = (
    "specs/profiles/reference.toml",
    "specs/schemas/driver.v2.json",
    "specs/clauses/lease/one_owner_at_a_time.txt",
    "conformance/cases/lease/stranger_cannot_unlock.txt",
    "conformance/importing/recipes/kafka-java-client-log.toml",
    "conformance/reports/page/report.html.j2",
    "conformance/reports/page/page.js",
    "conformance/reports/page/page.css",
    "chaos/scenarios/consumer-killed.toml",
    "reference_impl/mutants/suspend_ignored.py",
    "conformance/beside/drivers/redis-py/driver.py",
    "conformance/beside/docs/index.md",
    "inorder-{}.dist-info/licenses/LICENSE",
)
IN_NONE = ("tests/", "tools/", "runs/", ".tools/", ".venv/", ".ci/", "uv.lock")


def tell(capsys: pytest.CaptureFixture[str], line: str) -> None:
    """A figure for whoever runs the tests; nothing is held to it."""
    with capsys.disabled():
        sys.stderr.write(f"\n{line}\n")


# ------------------------------------------------------------------------------------------ what is refused


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A committed tree of version 1.2.0, whose changes are told."""
    root = tmp_path / "tree"
    root.mkdir()
    (root / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\n')
    (root / "CHANGELOG.md").write_text(
        "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-11-23\n"
    )
    git(root, "init", "--quiet")
    commit(root)
    return root


def git(root: Path, *words: str) -> None:
    who = {
        f"GIT_{each}_{what}": "x@y"
        for each in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    subprocess.run(["git", "-C", root, *words], check=True, env={**os.environ, **who})


def commit(root: Path) -> None:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "x", "--allow-empty")


def test_a_committed_tree_with_its_changes_told_is_taken(tree: Path) -> None:
    """Tagged or not yet."""
    assert release.refusals(tree) == []
    git(tree, "tag", "v1.2.0")
    assert release.refusals(tree) == []


def test_a_changed_tree_is_refused(tree: Path) -> None:
    """One that holds a file of which git knows nothing, too."""
    (tree / "new.py").touch()
    assert release.refusals(tree) == [
        "the tree differs from its commit in 1 places (?? new.py, ...); commit them, or take them away"
    ]


def test_a_version_without_a_word_of_its_changes_is_refused(tree: Path) -> None:
    """It is named, and so are those that CHANGELOG.md has."""
    (tree / "pyproject.toml").write_text('[project]\nversion = "1.3.0"\n')
    commit(tree)
    assert release.refusals(tree) == [
        "CHANGELOG.md has no heading `## [1.3.0]`, the version of pyproject.toml; it has Unreleased, 1.2.0"
    ]


def test_a_version_is_released_once(tree: Path) -> None:
    """What came after its tag is another one."""
    git(tree, "tag", "v1.2.0")
    commit(tree)
    assert release.refusals(tree) == [
        "the tag v1.2.0 is on another commit; a version is released once"
    ]


def test_what_is_no_release_is_not_thrown_away(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder of somebody's is refused, before anything is built."""
    monkeypatch.setattr(release, "refusals", lambda: [])
    (tmp_path / "mine.txt").touch()
    assert release.main(["--out", str(tmp_path)]) == release.EXIT_REFUSED
    assert "holds something that is no earlier release" in capsys.readouterr().err
    assert (tmp_path / "mine.txt").exists()


# --------------------------------------------------------------------------------------------- what is in it


def test_a_wheel_holds_all_that_it_reads() -> None:
    """Profiles, cases, schemas, the page's parts, drivers and docs; of a checkout's own nothing."""
    wanted = release.wanted_in_wheel()
    for name in IN_A_WHEEL:
        told = name.format(release.version())
        assert any(each.startswith(told) for each in wanted), told
    assert [each for each in wanted if each.startswith(IN_NONE)] == []


def test_a_source_distribution_holds_what_a_wheel_is_made_of() -> None:
    """And no test."""
    head = f"inorder-{release.version()}/"
    inside = {name.removeprefix(head) for name in release.wanted_in_sdist()}
    assert {"pyproject.toml", "README.md", "LICENSE", "drivers/speaking.py"} <= inside
    assert [each for each in inside if each.startswith(IN_NONE)] == []


def a_wheel(folder: Path, **files: str) -> Path:
    file = folder / "x-1-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as wheel:
        for name, content in files.items():
            wheel.writestr(name, content)
    return file


def test_what_is_wrong_with_a_wheel_is_told(tmp_path: Path) -> None:
    """What lacks, what is too much, and where it was made."""
    wheel = a_wheel(tmp_path, kept="x", stray="made in /home/me/project/src")
    assert release.wrong_with(wheel, {"kept", "lost"}, ["/home/me/project/"]) == [
        "x-1-py3-none-any.whl lacks lost",
        "x-1-py3-none-any.whl holds stray, which git does not",
        "stray in x-1-py3-none-any.whl names /home/me/project/",
    ]
    assert release.wrong_with(wheel, {"kept", "stray"}, ["/elsewhere/"]) == []


def test_a_source_distribution_is_read_likewise(tmp_path: Path) -> None:
    """It is a tar archive."""
    file = tmp_path / "x-1.tar.gz"
    with tarfile.open(file, "w:gz") as sdist:
        entry = tarfile.TarInfo("x-1/a")
        entry.size = 1
        sdist.addfile(entry, io.BytesIO(b"a"))
    assert release.wrong_with(file, {"x-1/a", "x-1/b"}, []) == ["x-1.tar.gz lacks x-1/b"]


def test_sums_are_read_by_their_tool(tmp_path: Path) -> None:
    """`sha256sum --check` takes them, and sees a change."""
    file = tmp_path / "a.whl"
    file.write_text("a")
    (tmp_path / release.SUMS).write_text(release.sums([file]))
    check = ["sha256sum", "--check", "--strict", "--status", release.SUMS]
    assert subprocess.run(check, cwd=tmp_path, check=False).returncode == 0
    file.write_text("b")
    assert subprocess.run(check, cwd=tmp_path, check=False).returncode == 1


def test_the_command_line_tells_the_version_of_the_project() -> None:
    """It stands in pyproject.toml; whoever runs the tests has installed that one."""
    assert metadata.version("inorder") == release.version()


# ------------------------------------------------------------------------------------------ as a user does it


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("dist")
    return release.build(folder)


@pytest.mark.long
def test_both_files_are_what_they_should_be(built: Any) -> None:
    """By git, by pyproject.toml and by twine."""
    release.check(built)


@pytest.mark.long
def test_the_same_tree_gives_the_same_bytes(built: Any, tmp_path: Path) -> None:
    """So that anybody can hold a release against its commit."""
    again = release.build(tmp_path)
    assert release.sums([again.wheel, again.sdist]) == release.sums([built.wheel, built.sdist])


@pytest.mark.long
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_from_the_file_to_a_first_verdict(
    built: Any, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Install it, type one command: the reference is judged and upheld. The environment is small."""
    environment = release.installed(getattr(built, kind), tmp_path / "venv")
    size, megabytes = environment.told_size, environment.megabytes(bytecode=False)
    assert environment("--version") == f"inorder {release.version()}\n"
    began = time.monotonic()
    said = environment("conform", "--target", "reference", "--out", "run")
    seconds = time.monotonic() - began
    assert "UPHELD  reference under reference" in said
    tell(
        capsys,
        f"{kind}: installed in {environment.seconds:.0f} s, {size}; judged in {seconds:.0f} s",
    )
    assert megabytes < MEGABYTES_WITHOUT_EXTRAS


@pytest.mark.long
def test_an_installed_wheel_finds_what_lies_beside_it(built: Any, tmp_path: Path) -> None:
    """The drivers of other systems, and the documentation that `--help` names."""
    environment = release.installed(built.wheel, tmp_path / "venv")
    script = (
        "from conformance.drivers.java import SOURCE; "
        "from conformance.targets import kafka, nats, rabbitmq, redis, rocketmq_grpc, sqs; "
        "print(SOURCE, kafka.JAVA_DRIVER, kafka.Librdkafka.program, nats.NatsPy.program, redis.RedisPy.program, "
        "rabbitmq.Pika.program, rocketmq_grpc.PythonGrpc.program, sqs.Boto3.program)"
    )
    python = [tmp_path / "venv" / "bin" / "python", "-c", script]
    found = release.run(python, "no drivers", folder=tmp_path, environment=release.alone())
    assert [path for path in found.split() if not path.startswith(str(tmp_path / "venv"))] == []
    assert [path for path in found.split() if not Path(path).is_file()] == []
    told = "".join(environment("--help").partition("Documentation:")[2].split())
    assert Path(told).is_file()
    assert told.startswith(str(tmp_path / "venv"))


@pytest.mark.long
@pytest.mark.parametrize(
    ("extra", "brings", "does_not"),
    [
        ("", set(), {"pyspark", "pandas", "docker"}),
        ("spark", {"pyspark", "pandas"}, {"docker"}),
        ("docker", {"docker"}, {"pyspark", "pandas"}),
        ("all", {"pyspark", "pandas", "docker"}, set()),
    ],
)
def test_extras_bring_what_they_say(
    built: Any, extra: str, brings: set[str], does_not: set[str], tmp_path: Path
) -> None:
    """Resolved against the index; nothing is installed."""
    venv = tmp_path / "venv"
    release.run([sys.executable, "-m", "venv", "--without-pip", venv], "no environment")
    what = f"inorder[{extra}] @ file://{built.wheel}" if extra else str(built.wheel)
    said = release.run(
        [release.uv(), "pip", "install", "--dry-run", "--python", venv / "bin" / "python", what],
        "the extra does not resolve",
        environment={"UV_SYSTEM_CERTS": os.environ.get("UV_SYSTEM_CERTS", "1")},
    )
    names = {line.split("==")[0].split()[-1] for line in said.splitlines() if "+ " in line}
    assert "pyarrow" in names
    assert (brings - names, does_not & names) == (set(), set())


@pytest.mark.long
def test_a_release_is_made_of_a_commit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In a clone whose version has its heading: two files and their sums; a second one takes the place of the first."""
    clone, out = tmp_path / "clone", tmp_path / "dist"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    changes = clone / "CHANGELOG.md"
    told = f"## [{release.version()}] - 2026-11-23"
    if told.split(" - ")[0] not in changes.read_text():
        assert make(clone, out).returncode == release.EXIT_REFUSED
        changes.write_text(
            changes.read_text().replace("## [Unreleased]", f"## [Unreleased]\n\n{told}", 1)
        )
        commit(clone)
    done = make(clone, out)
    tell(capsys, done.stderr)
    assert done.returncode == 0
    names = {file.name for file in out.iterdir()}
    stem = f"inorder-{release.version()}"
    assert names == {f"{stem}-py3-none-any.whl", f"{stem}.tar.gz", release.SUMS}
    check = ["sha256sum", "--check", "--strict", "--status", release.SUMS]
    assert subprocess.run(check, cwd=out, check=False).returncode == 0


def make(root: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """What `make release` runs, in another tree; that tree's own packages do it."""
    return subprocess.run(
        [sys.executable, root / "tools" / "release.py", "--no-image", "--out", out],
        env={**os.environ, "PYTHONPATH": str(root), "INORDER_TOOLS": str(release.tools_dir())},
        capture_output=True,
        text=True,
        check=False,
    )
