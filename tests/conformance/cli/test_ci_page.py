"""The GitHub action and the GitLab template: by their schemas, and by running their steps as a runner does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[3]
ACTION, TEMPLATE = ROOT / "action.yml", ROOT / "templates" / "gate.yml"
INPUT = re.compile(r"\$\{\{ (inputs|github)\.([\w-]+) \}\}")
COMPONENT_INPUT = re.compile(r"\$\[\[ inputs\.(\w+) \]\]")
REFERENCE = ("reference", 2)  # so few runs put too little at stake
MUTANT = ("mutant:suspend-ignored", 1)
NOBODY = ("rocketmq:127.0.0.1:1", 69)
SHORT = "--examples 6 --profile 'reference'"


def read(path: Path) -> list[Any]:
    """Its documents."""
    return list(YAML(typ="safe").load_all(path.read_text(encoding="utf-8")))


def steps(given: dict[str, str]) -> dict[str, tuple[str, dict[str, str]]]:
    """The action's scripts by name, each with its environment, as a runner fills them in."""
    action = read(ACTION)[0]
    values = {name: told.get("default", "") for name, told in action["inputs"].items()}
    values |= {**given, "action_path": str(ROOT)}

    def filled(text: str) -> str:
        return INPUT.sub(lambda found: str(values[found[2]]), text)

    return {
        step["name"]: (
            filled(step["run"]),
            {name: filled(value) for name, value in step.get("env", {}).items()},
        )
        for step in action["runs"]["steps"]
        if "run" in step
    }


def bash(script: str, folder: Path, path: str, **more: str) -> subprocess.CompletedProcess[str]:
    """As GitHub's runners start it."""
    environment = {**os.environ, **more, "PATH": path}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def judged(
    target: str, folder: Path, path: str
) -> tuple[subprocess.CompletedProcess[str], str, str]:
    """The step that judges: what it said, its outputs, and the job's summary."""
    script, environment = steps({"target": target, "seed": "1", "arguments": SHORT})["Judge"]
    outputs, summary = folder / "outputs", folder / "summary.md"
    outputs.touch()
    summary.touch()
    done = bash(
        script,
        folder,
        path,
        **environment,
        GITHUB_OUTPUT=str(outputs),
        GITHUB_STEP_SUMMARY=str(summary),
    )
    return done, outputs.read_text(), summary.read_text()


BESIDE = f"{Path(sys.executable).parent}:{os.environ['PATH']}"


@pytest.mark.parametrize(
    ("target", "code"),
    [*(pytest.param(*each, marks=pytest.mark.long) for each in (REFERENCE, MUTANT)), NOBODY],
    ids=lambda each: str(each),
)
def test_the_action_tells_the_verdict(target: str, code: int, tmp_path: Path) -> None:
    """Its exit code and output, an annotation, a summary; and the run's folder, where there was a run."""
    done, outputs, summary = judged(target, tmp_path, BESIDE)
    assert (done.returncode, outputs) == (code, f"exit-code={code}\n"), done.stderr
    was_run = code != NOBODY[1]
    assert (tmp_path / "inorder-run" / "verdict.json").exists() == was_run
    assert summary.startswith(f"# {target}: ") == was_run
    assert ("::error title=RTY-1 no redelivery before" in done.stdout) == (code == 1)


def test_a_step_of_somebody_elses_reads_nothing_outside_the_workspace() -> None:
    """setup-python, say, looks for what a cache depends on in the user's repository, where our files are not."""
    used = [step for step in read(ACTION)[0]["runs"]["steps"] if "uses" in step]
    given = [
        f"{step['uses']} {name}: {value}"
        for step in used
        for name, value in step.get("with", {}).items()
    ]
    assert len(used) == 2
    assert [
        each for each in given if "github.action_path" in each or "/" in each.partition(": ")[2]
    ] == []


def test_an_input_ends_no_script(tmp_path: Path) -> None:
    """What a pull request can write into an input is an argument, whatever it holds."""
    done, outputs, _ = judged('x"; touch stolen; "$(touch stolen)', tmp_path, BESIDE)
    assert (done.returncode, outputs) == (64, "exit-code=64\n")
    assert not (tmp_path / "stolen").exists()


def test_the_template_s_script_judges(tmp_path: Path) -> None:
    """With its inputs filled in; what it says of artefacts is where the run lies."""
    head, body = read(TEMPLATE)
    values = {name: told.get("default", "") for name, told in head["spec"]["inputs"].items()}
    wheel = "https://gitlab.example/inorder-1.2-py3-none-any.whl"
    values |= {"target": MUTANT[0], "arguments": f"--seed 1 {SHORT}", "package": wheel}
    job = body["inorder"]
    install, judge = (
        COMPONENT_INPUT.sub(lambda found: values[found[1]], line) for line in job["script"]
    )
    assert install == f'python -m pip install --quiet "{wheel}"'
    assert bash(judge, tmp_path, BESIDE).returncode == 1
    kept = [*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"]]
    assert all(
        (tmp_path / COMPONENT_INPUT.sub(lambda m: values[m[1]], each)).exists() for each in kept
    )


@pytest.mark.parametrize("name", ["vendor.github-actions", "vendor.gitlab-ci"])
def test_they_keep_their_schemas(name: str, tmp_path: Path) -> None:
    """The published ones, as check-jsonschema brings them; of a component, the job behind its head."""
    file = ACTION
    if name == "vendor.gitlab-ci":
        file = tmp_path / "gitlab-ci.yml"
        file.write_text(TEMPLATE.read_text(encoding="utf-8").split("\n---\n")[1], encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", name, str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_the_action_installs_what_it_needs(tmp_path: Path) -> None:
    """Both scripts in an environment that holds nothing: the core alone judges; a mutant is red."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    path = f"{tmp_path / 'venv' / 'bin'}:{os.environ['PATH']}"
    script, environment = steps({"target": MUTANT[0]})["Install"]
    installed = bash(script, tmp_path, path, **environment)
    assert installed.returncode == 0, installed.stderr
    done, _, summary = judged(MUTANT[0], tmp_path, path)
    assert (done.returncode, "RTY-1" in summary) == (1, True), done.stderr
