#!/usr/bin/env python3
"""Makes a release in `dist/`: a wheel, a source distribution, an image where an engine answers, and their SHA256SUMS.

    make release                        (or: .venv/bin/python tools/release.py [--out DIR] [--no-image])

Rules:
- the version is that of pyproject.toml and stands nowhere else; CHANGELOG.md must have a heading for it;
- nothing is made of a tree that differs from its commit: what is released can be made again;
- what is in the two files is compared with what git holds, both ways: a file that is missing is found, and one too
  many; no file tells where it was made;
- each is installed into an environment that holds nothing, and judges something there, before `dist/` is touched;
- a refusal is one sentence for each reason and exit code 64, a failure one sentence and exit code 70.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from docker import DockerClient
from docker.errors import DockerException

from conformance.parts import docker_engine
from conformance.parts.places import tools_dir
from specs.errors import InorderError, Unavailable

ROOT = Path(__file__).resolve().parents[1]
NAME = "inorder"
SUMS = "SHA256SUMS"
TWINE = "twine==6.2.0"
RENDERER = "readme-renderer[md]==44.0"
DEADLINE_S = 1800
EXIT_REFUSED = 64
EXIT_FAILED = 70
VERDICT = ("conform", "--target", "mutant:suspend-ignored", "--seed", "1", "--out", "run")
"""A first verdict, and the exit code that it has: our cluster with a known bug is refuted."""
VERDICT_CODE = 1


class Failed(Exception):
    """A step could not be done; the message says why in one sentence, and may quote a command's last lines."""


def say(line: str) -> None:
    """To people: stderr."""
    print(f"release: {line}", file=sys.stderr, flush=True)  # noqa: T201 - this is a program


def run(
    command: Sequence[str | Path],
    failure: str,
    *,
    folder: Path = ROOT,
    code: int = 0,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Runs a command to its end and returns its output. Raises Failed, quoting it, if it ends with another code."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=DEADLINE_S,
        check=False,
    )
    if done.returncode != code:
        said = "\n".join("    " + line for line in done.stdout.strip().splitlines()[-15:])
        raise Failed(f"{failure} (exit {done.returncode}):\n{said}")
    return done.stdout


# ------------------------------------------------------------------------------------------- what is released


def settings(root: Path = ROOT) -> dict[str, object]:
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))


def version(root: Path = ROOT) -> str:
    """The one place in which it stands."""
    project = settings(root)["project"]
    assert isinstance(project, dict)
    return str(project["version"])


def git(root: Path, *words: str) -> str:
    return run(["git", "-C", root, *words], "git could not be asked")


def refusals(root: Path = ROOT) -> list[str]:
    """Why this tree is none to release; one sentence each."""
    found = []
    changed = git(root, "status", "--porcelain").splitlines()
    if changed:
        found.append(
            f"the tree differs from its commit in {len(changed)} places ({changed[0].strip()}, ...);"
            " commit them, or take them away"
        )
    told = version(root)
    headings = re.findall(r"^## \[([^\]]+)\]", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    if told not in headings:
        found.append(
            f"CHANGELOG.md has no heading `## [{told}]`, the version of pyproject.toml; it has {', '.join(headings)}"
        )
    tagged = git(root, "tag", "--list", f"v{told}").strip()
    if tagged and git(root, "rev-list", "-n", "1", tagged) != git(root, "rev-parse", "HEAD"):
        found.append(f"the tag {tagged} is on another commit; a version is released once")
    return found


# ------------------------------------------------------------------------------------------- building


@dataclass(frozen=True)
class Built:
    """What was built, in one folder."""

    wheel: Path
    sdist: Path


def uv() -> Path:
    found = tools_dir() / "uv" / "bin" / "uv"
    if not found.exists():
        raise Failed("uv is not here; run `make setup`")
    return found


def build(out: Path, root: Path = ROOT) -> Built:
    """The source distribution of the tree, and the wheel of that: whoever has the one can make the other."""
    environment = {
        # The same commit gives the same bytes.
        "SOURCE_DATE_EPOCH": git(root, "log", "-1", "--format=%ct").strip(),
        "UV_SYSTEM_CERTS": os.environ.get("UV_SYSTEM_CERTS", "1"),
    }
    command: list[str | Path] = [uv(), "build", "--quiet", "--no-create-gitignore"]
    run(
        [*command, "--out-dir", out, root],
        "the distributions could not be built",
        environment=environment,
    )
    told = f"{NAME}-{version(root)}"
    built = Built(out / f"{told}-py3-none-any.whl", out / f"{told}.tar.gz")
    wanted = {built.wheel.name, built.sdist.name}
    if {file.name for file in out.iterdir()} != wanted:
        raise Failed(f"there is something else than {' and '.join(sorted(wanted))} in {out}")
    return built


# ------------------------------------------------------------------------------------------- looking into it

MADE_FOR_A_WHEEL = ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")
MADE_FOR_AN_SDIST = ("PKG-INFO", ".gitignore", "pyproject.toml")


def tracked(root: Path = ROOT) -> list[str]:
    """The files that git holds."""
    return git(root, "ls-files").splitlines()


def below(names: Iterable[str], tops: Iterable[str]) -> set[str]:
    """Those that are one of `tops`, or lie in one."""
    tops = tuple(tops)
    return {
        name for name in names if any(name == top or name.startswith(f"{top}/") for top in tops)
    }


def wanted_in_wheel(root: Path = ROOT) -> set[str]:
    """By pyproject.toml and git: the packages, what lies beside them, and what each wheel has."""
    wheel = settings(root)["tool"]["hatch"]["build"]["targets"]["wheel"]  # type: ignore[index]
    names = tracked(root)
    found = below(names, wheel["packages"])
    for source, place in wheel["force-include"].items():
        found |= {place + name.removeprefix(source) for name in below(names, [source])}
    return found | {f"{NAME}-{version(root)}.dist-info/{name}" for name in MADE_FOR_A_WHEEL}


def wanted_in_sdist(root: Path = ROOT) -> set[str]:
    """Likewise; all of it in one folder."""
    sdist = settings(root)["tool"]["hatch"]["build"]["targets"]["sdist"]  # type: ignore[index]
    found = below(tracked(root), [top.strip("/") for top in sdist["include"]])
    folder = f"{NAME}-{version(root)}"
    return {f"{folder}/{name}" for name in found | set(MADE_FOR_AN_SDIST)}


def contents(file: Path) -> Iterator[tuple[str, bytes]]:
    """Names and bytes of a wheel or a source distribution."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as wheel:
            for name in wheel.namelist():
                yield name, wheel.read(name)
    else:
        with tarfile.open(file) as sdist:
            for entry in sdist:
                read = sdist.extractfile(entry)
                if read is not None:
                    yield entry.name, read.read()


def places_of_this_machine(root: Path = ROOT) -> tuple[str, ...]:
    """The folder in which the tree lies and the one above it, as they would stand in a path. None of a root's own."""
    return tuple(f"{each}/" for each in (root, root.parent) if len(each.parts) > 1)


def wrong_with(file: Path, wanted: set[str], places: Sequence[str]) -> list[str]:
    """What is missing in a distribution, what is too much, and what tells where it was made; sentences."""
    inside = dict(contents(file))
    found = [f"{file.name} lacks {name}" for name in sorted(wanted - set(inside))]
    found += [
        f"{file.name} holds {name}, which git does not" for name in sorted(set(inside) - wanted)
    ]
    found += [
        f"{name} in {file.name} names {place}"
        for name, content in sorted(inside.items())
        for place in places
        if place.encode() in content
    ]
    return found


def check(built: Built, root: Path = ROOT) -> None:
    """Both by what must be in them, and their descriptions as an index would show them. Raises Failed."""
    places = places_of_this_machine(root)
    found = wrong_with(built.wheel, wanted_in_wheel(root), places)
    found += wrong_with(built.sdist, wanted_in_sdist(root), places)
    if found:
        raise Failed("\n    ".join(["the distributions are not what they should be:", *found[:20]]))
    twine: list[str | Path] = [uv(), "tool", "run", "--quiet", "--with", RENDERER, "--from", TWINE]
    run(
        [*twine, "twine", "check", "--strict", built.wheel, built.sdist],
        "twine finds fault with them",
        environment={"UV_SYSTEM_CERTS": os.environ.get("UV_SYSTEM_CERTS", "1")},
    )


# ------------------------------------------------------------------------------------------- using it


@dataclass(frozen=True)
class Environment:
    """A virtual environment with one distribution in it. seconds: so long it took to make."""

    folder: Path
    seconds: float

    def __call__(self, *words: str, code: int = 0) -> str:
        """What `inorder WORDS` says, which must end with `code`. Nothing of the checkout is in its reach."""
        script = self.folder / "bin" / NAME
        return run(
            [script, *words],
            f"`{NAME} {' '.join(words)}` failed in a fresh environment",
            folder=self.folder,
            code=code,
            environment=alone(),
        )

    def megabytes(self, *, bytecode: bool) -> float:
        """Of its files: those that Python has compiled, or all the others, `pip` among them."""
        sizes = (
            path.lstat().st_size
            for path in self.folder.rglob("*")
            if path.is_file() and not path.is_symlink() and (path.suffix == ".pyc") == bytecode
        )
        return sum(sizes) / 1e6

    @property
    def told_size(self) -> str:
        return f"{self.megabytes(bytecode=False):.0f} MB and {self.megabytes(bytecode=True):.0f} MB of bytecode"


def alone() -> dict[str, str]:
    """Settings under which Python takes nothing from a checkout."""
    return {"PYTHONPATH": "", "PYTHONSAFEPATH": "1", "VIRTUAL_ENV": ""}


def installed(file: Path, folder: Path, *, extras: str = "") -> Environment:
    """A new environment with that wheel or source distribution, by the machine's own pip. Raises Failed."""
    began = time.monotonic()
    run([sys.executable, "-m", "venv", folder], "python could not make a virtual environment")
    what = f"{file}[{extras}]" if extras else str(file)
    run(
        [folder / "bin" / "python", "-m", "pip", "install", "--quiet", what],
        f"pip could not install {file.name}",
        folder=folder,
        environment=alone(),
    )
    return Environment(folder, time.monotonic() - began)


def try_out(file: Path, folder: Path, root: Path = ROOT) -> str:
    """A first verdict by that file alone, told in one line. Raises Failed where it is none."""
    environment = installed(file, folder)
    said = environment("--version").split()[-1]
    if said != version(root):
        raise Failed(f"{file.name} calls itself {said}, and pyproject.toml says {version(root)}")
    began = time.monotonic()
    environment(*VERDICT, code=VERDICT_CODE)
    took = time.monotonic() - began
    return (
        f"{file.name}: installed in {environment.seconds:.0f} s, {environment.told_size};"
        f" first verdict after {took:.0f} s more"
    )


# ------------------------------------------------------------------------------------------- the image


def image(client: DockerClient, wheel: Path, scratch: Path) -> str:
    """The image with that wheel, built and tried; its name. Raises InorderError where there is no way to one.

    Where the base has this very Python, all that is installed is brought along, so that the build needs no network.
    """
    context = scratch / "context"
    context.mkdir(parents=True)
    shutil.copy(wheel, context)
    shutil.copy(ROOT / "docker" / "cli" / "Dockerfile", context)
    base = docker_engine.ensure_base(client)
    ours = ".".join(map(str, sys.version_info[:2]))
    theirs = "import sys; print(*sys.version_info[:2], sep='.')"
    same = _in_container(client, base, ["python3", "-c", theirs]).strip() == ours
    if same:
        bring_wheels(wheel, context, scratch / "pip")
    name = f"{NAME}:{wheel.name.split('-')[1]}"
    client.images.build(
        path=str(context),
        tag=name,
        buildargs={"BASE": base, "PIP_NO_INDEX": "1" if same else ""},
        network_mode="none" if same else None,
        rm=True,
        forcerm=True,
    )
    client.images.get(name).tag(NAME, "latest")
    said = _in_container(client, name, ["--version"]).split()[-1]
    if said != wheel.name.split("-")[1]:
        raise Failed(f"{NAME} in the image {name} calls itself {said}")
    _in_container(client, name, VERDICT, code=VERDICT_CODE)
    return name


def bring_wheels(wheel: Path, folder: Path, scratch: Path) -> None:
    """The wheels of all that a wheel needs, for this Python, into a folder."""
    run([sys.executable, "-m", "venv", scratch], "python could not make a virtual environment")
    python = scratch / "bin" / "python"
    pip: list[str | Path] = [python, "-m", "pip", "wheel", "--quiet", "--wheel-dir", folder]
    run([*pip, wheel], "pip could not get the wheels of what it needs", environment=alone())


def _in_container(client: DockerClient, name: str, words: Sequence[str], *, code: int = 0) -> str:
    """What a command says in a container without a network, as the image's own user."""
    container = client.containers.run(name, list(words), detach=True, network_mode="none")
    try:
        ended = int(container.wait(timeout=DEADLINE_S)["StatusCode"])
        said = bytes(container.logs()).decode(errors="replace")
    finally:
        container.remove(force=True)
    if ended != code:
        raise Failed(f"`{' '.join(words)}` in {name} ended with {ended}: {said[-2000:]}")
    return said


# ------------------------------------------------------------------------------------------- all


def sums(files: Iterable[Path]) -> str:
    """As `sha256sum --check` reads them."""
    return "".join(
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(files)
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Makes it; an exit code."""
    options = argparse.ArgumentParser(description="Makes a release in dist/.")
    options.add_argument("--out", type=Path, default=ROOT / "dist", help="default: dist")
    options.add_argument("--no-image", action="store_true", help="also where an engine answers")
    told = options.parse_args(arguments)
    why_not = refusals()
    out = told.out.resolve()
    if out.exists() and any(out.iterdir()) and not (out / SUMS).exists():
        why_not.append(f"{out} holds something that is no earlier release; empty it")
    for sentence in why_not:
        say(f"refused: {sentence}")
    if why_not:
        return EXIT_REFUSED
    try:
        release(out, with_image=not told.no_image)
    except Failed as error:
        say(str(error))
        return EXIT_FAILED
    return 0


def release(out: Path, *, with_image: bool) -> None:
    """Builds, checks and tries everything, then replaces `out` by it. Raises Failed."""
    with tempfile.TemporaryDirectory(prefix=f"{NAME}-release-") as scratch:
        made = Path(scratch) / "dist"
        made.mkdir()
        say(f"building {NAME} {version()} of {git(ROOT, 'rev-parse', '--short', 'HEAD').strip()}")
        built = build(made)
        check(built)
        for kind, file in (("wheel", built.wheel), ("sdist", built.sdist)):
            say(try_out(file, Path(scratch) / kind))
        (made / SUMS).write_text(sums([built.wheel, built.sdist]), encoding="utf-8")
        if with_image:
            say(told_of_image(built.wheel, Path(scratch) / "image"))
        if out.exists():
            shutil.rmtree(out)
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(made, out)
    say(f"{out}: {', '.join(sorted(file.name for file in out.iterdir()))}")


def told_of_image(wheel: Path, scratch: Path) -> str:
    """What became of the image, in a sentence. Raises Failed where it could not be built, or does not work."""
    try:
        client = docker_engine.connect()
    except Unavailable as error:
        return f"no image: {error}"
    with contextlib.closing(client):
        try:
            return f"the image {image(client, wheel, scratch)} is built and tried"
        except (InorderError, DockerException) as error:
            raise Failed(f"the image could not be made: {error}") from error


if __name__ == "__main__":
    sys.exit(main())
