"""`make demo`: the suite judges systems in front of your eyes, each by a command that you can type yourself.

The story, in order: our reference keeps every promise; a real bug in it is caught and explained; a consumer is
killed while it holds a lease; two releases of Apache RocketMQ are held against one profile, and one of them breaks
a promise that the other keeps; Spark checks a history of a million events; one table at the end.

Rules:
- a step is a row of STEPS: its commands, what it needs of this machine, and what is expected to come out;
- a step that lacks a part is skipped, with the part, the reason and the remedy;
- it ends with 0 when every step that ran came out as expected, else with 1 and a sentence for each that did not.
"""

from __future__ import annotations

import contextlib
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

import click
from rich import box
from rich.table import Table
from rich.text import Text

from conformance.cli.main import COMMAND_GROUP, Root, root
from conformance.cli.options import print_human
from conformance.cli.people import console
from conformance.parts.doctor import why_not
from conformance.reports.allure import FOLDER as ALLURE_RESULTS
from conformance.reports.text import COLOURS, WORDS, short_name
from conformance.reports.view import ClauseView, VerdictView, open_run
from conformance.waiting import now_s
from specs.errors import EXIT_REFUTED, EXIT_UPHELD, InorderError
from specs.history.runinfo import read_runinfo
from specs.verdicts.verdict import ClauseVerdict
from specs.vocabulary import Party

SEED = 1
EVENTS = 1_000_000
MUTANT = "unlock-while-listener-runs"
SCENARIO = "consumer-killed"
GATE_PROFILE = "rocketmq-5-orderly"
GATE_CLAUSE = "DLQ-7"
BROKER_CLAUSES_AT_LEAST = 10
DEFAULT_OUT = Path("runs") / "demo"

Expect = Callable[[VerdictView], str | None]
"""What is wrong with a verdict, in a sentence; None when it is as expected."""


@dataclass(frozen=True, slots=True)
class Step:
    """One scene. commands: argument lists of `inorder`, `{out}` is the step's folder; the last one judges.

    needs: commands that must be registered, and parts by doctor's names. judged: where the verdict lies.
    """

    name: str
    title: str
    why: str
    commands: tuple[str, ...]
    expect: Expect
    parts: tuple[str, ...] = ()
    judged: str = "{out}"

    def folder(self, out: Path) -> Path:
        return out / self.name

    def lines(self, out: Path) -> list[list[str]]:
        """The commands as argument lists."""
        return [
            shlex.split(command.format(out=shlex.quote(str(self.folder(out)))))
            for command in self.commands
        ]


@dataclass(slots=True)
class Scene:
    """What became of a step: a verdict, or why it was skipped; and what was not as expected."""

    step: Step
    verdict: VerdictView | None = None
    skipped: str | None = None
    wrong: str | None = None
    seconds: float = 0.0


# --------------------------------------------------------------------------------------- expectations


def upheld(verdict: VerdictView) -> str | None:
    if verdict.exit_code == EXIT_UPHELD:
        return None
    return f"expected to be upheld, it is {verdict.verdict.value} ({_names(verdict)})"


def refuted_in(clause_id: str) -> Expect:
    """Refuted, and among others in that clause."""

    def expect(verdict: VerdictView) -> str | None:
        names = [clause.id for clause in verdict.of(ClauseVerdict.REFUTED)]
        if verdict.exit_code == EXIT_REFUTED and clause_id in names:
            return None
        return f"expected to be refuted in {clause_id}, it is {verdict.verdict.value} ({_names(verdict)})"

    return expect


def a_broker_that_keeps(clause_id: str) -> Expect:
    """Nothing refuted, that clause upheld, and enough of what only the broker keeps."""

    def expect(verdict: VerdictView) -> str | None:
        kept = {
            clause.id
            for clause in verdict.of(ClauseVerdict.UPHELD)
            if clause.party == Party.BROKER.value
        }
        if verdict.count(ClauseVerdict.REFUTED):
            return f"expected to break nothing, it is refuted in {_names(verdict)}"
        if clause_id not in kept:
            return f"expected to keep {clause_id}, which was not upheld"
        if len(kept) < BROKER_CLAUSES_AT_LEAST:
            return f"expected at least {BROKER_CLAUSES_AT_LEAST} broker promises to be upheld, there were {len(kept)}"
        return None

    return expect


def _names(verdict: VerdictView) -> str:
    return ", ".join(clause.id for clause in verdict.failures) or "no clause is refuted"


# ----------------------------------------------------------------------------------------- the story

STEPS: tuple[Step, ...] = (
    Step(
        "reference",
        "Our reference keeps every promise",
        "A simulated cluster under a virtual clock: consumers join, crash, pause and hand over; Hypothesis draws what "
        "happens, every clause judges all of it.",
        (f"conform --target reference --seed {SEED} --out {{out}}",),
        upheld,
    ),
    Step(
        "mutant",
        "A real bug is caught",
        "The same cluster with one line changed back to a bug that RocketMQ once had (B-01): at a rebalance the lease "
        "is given back while the listener still runs.",
        (f"conform --target mutant:{MUTANT} --seed {SEED} --out {{out}}",),
        refuted_in("LSE-2"),
    ),
    Step(
        "chaos",
        "A consumer is killed while it holds a lease",
        "Real processes on real sockets: kill -9, the lease runs out, the survivor takes over.",
        (f"chaos {SCENARIO} --target reference+tcp --seed {SEED} --out {{out}}",),
        upheld,
        judged=f"{{out}}/{SCENARIO}",
    ),
    Step(
        "rocketmq-5.4.0",
        "Apache RocketMQ 5.4.0 under the profile of RocketMQ 5",
        "A released broker, started from its jars with leases of a second, asked over the wire and consumed from.",
        (
            f"conform --target rocketmq-local:5.4.0 --profile {GATE_PROFILE} --seed {SEED} --out {{out}}",
        ),
        a_broker_that_keeps(GATE_CLAUSE),
        ("java", "rocketmq-5.4.0"),
    ),
    Step(
        "rocketmq-4.9.7",
        "Apache RocketMQ 4.9.7 under the same profile: a version gate at work",
        "What 5.x promises 4.9 does not keep: its dead letters wait for a delay level before anybody can read them.",
        (
            f"conform --target rocketmq-local:4.9.7 --profile {GATE_PROFILE} --seed {SEED} --out {{out}}",
        ),
        refuted_in(GATE_CLAUSE),
        ("java", "rocketmq-4.9.7"),
    ),
    Step(
        "million",
        f"Spark checks a history of {EVENTS:,} events",
        "A generated history, judged by the same clauses on Spark.",
        (
            f"generate --events {EVENTS} --out {{out}}/history",
            "check {out}/history --engine spark --out {out}/verdict",
        ),
        upheld,
        ("java",),
        judged="{out}/verdict",
    ),
)


# ------------------------------------------------------------------------------------------ the play


def missing(step: Step) -> str | None:
    """Why a step can't run here: which part, why, and how to mend it; None when it can."""
    registered = {entry.name: entry for entry in entry_points(group=COMMAND_GROUP)}
    for line in step.lines(Path()):
        entry = registered.get(line[0])
        if entry is None:
            return f"the command `inorder {line[0]}` is not installed; to mend it: make setup"
        try:
            entry.load()
        except (ImportError, AttributeError) as error:
            return (
                f"the command `inorder {line[0]}` can't be loaded ({error}); to mend it: make setup"
            )
    for part in step.parts:
        reason = why_not(part)
        if reason is not None:
            return reason
    return None


def play(steps: Sequence[Step], out: Path, commands: Root = root) -> list[Scene]:
    """Run the steps one after the other, showing each command and what it prints."""
    return [
        _scene(number, len(steps), step, out, commands)
        for number, step in enumerate(steps, start=1)
    ]


def _scene(number: int, total: int, step: Step, out: Path, commands: Root) -> Scene:
    paper = console()
    paper.rule(f"[bold]{number} of {total}[/bold]  {step.title}", align="left")
    print_human(Text(step.why))
    scene = Scene(step, skipped=missing(step))
    if scene.skipped is not None:
        print_human(Text(f"skipped: {scene.skipped}\n", style="yellow"))
        return scene
    began_s = now_s()
    _remove_generated(step.folder(out) / "history")
    try:
        for line in step.lines(out):
            print_human(Text(f"\n$ inorder {shlex.join(line)}", style="bold"))
            sys.stdout.flush()
            commands.main(line, prog_name="inorder", standalone_mode=False)
        scene.verdict = open_run(Path(step.judged.format(out=step.folder(out))))
        scene.wrong = step.expect(scene.verdict)
    except (InorderError, click.ClickException) as error:
        scene.wrong = f"it could not be judged: {error}"
    scene.seconds = now_s() - began_s
    told = "as expected" if scene.wrong is None else f"NOT AS EXPECTED: {scene.wrong}"
    print_human(
        Text(
            f"{told}, after {scene.seconds:.0f} s\n",
            style="green" if scene.wrong is None else "bold red",
        )
    )
    return scene


def _remove_generated(folder: Path) -> None:
    """An earlier demo's generated history makes room for the new one; what anybody recorded stays."""
    with contextlib.suppress(InorderError):
        if read_runinfo(folder).target == "generated":
            shutil.rmtree(folder)


def closing_table(scenes: Sequence[Scene]) -> Table:
    """What was upheld, refuted and not exercised, by which party of which system."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    table.add_column("system", overflow="fold")
    table.add_column("party", no_wrap=True)
    table.add_column("made by", overflow="fold")
    for verdict in (ClauseVerdict.UPHELD, ClauseVerdict.REFUTED, ClauseVerdict.NOT_EXERCISED):
        table.add_column(WORDS[verdict].lower(), justify="right")
    table.add_column("refuted in")
    for scene in scenes:
        if scene.verdict is None:
            table.add_row(
                Text(scene.step.name),
                *[Text("–")] * 5,
                Text("skipped" if scene.skipped else "not judged"),
            )
        else:
            _add_rows(table, scene.verdict)
        table.add_section()
    return table


def _add_rows(table: Table, verdict: VerdictView) -> None:
    for number, (party, clauses) in enumerate(_by_party(verdict)):
        table.add_row(
            Text(verdict.target if number == 0 else ""),
            Text(party),
            Text(
                " + ".join(
                    dict.fromkeys(short_name(name) for c in clauses for name in c.implementations)
                )
            ),
            _count(clauses, ClauseVerdict.UPHELD),
            _count(clauses, ClauseVerdict.REFUTED),
            _count(clauses, ClauseVerdict.NOT_EXERCISED),
            Text(
                ", ".join(
                    c.id for c in clauses if c.verdict is ClauseVerdict.REFUTED and not c.hidden
                )
            ),
        )


def _by_party(verdict: VerdictView) -> list[tuple[str, list[ClauseView]]]:
    """Claimed clauses by party, in the order broker, client, producer, pair."""
    claimed = [
        clause for clause in verdict.clauses if clause.verdict is not ClauseVerdict.NOT_CLAIMED
    ]
    found = [(party.value, [c for c in claimed if c.party == party.value]) for party in Party]
    return [(party, clauses) for party, clauses in found if clauses]


def _count(clauses: Sequence[ClauseView], verdict: ClauseVerdict) -> Text:
    number = sum(clause.verdict is verdict and not clause.hidden for clause in clauses)
    return Text(str(number), style=COLOURS[verdict] if number else "dim")


def closing_words(scenes: Sequence[Scene], out: Path) -> list[str]:
    """Where the reports lie, what was skipped, what was not as expected."""
    judged = [scene for scene in scenes if scene.verdict is not None]
    lines = [
        f"Reports of {len(judged)} runs lie in {out}: report.html, report.txt, report.md, junit.xml, verdict.json."
    ]
    lines += [f"  {scene.verdict.folder}" for scene in judged if scene.verdict is not None]
    if judged:
        lines.append(
            f"In a browser, where Allure is installed: allure serve $(find {out} -name {ALLURE_RESULTS})"
        )
        lines.append(
            "To read one again: inorder explain DIR. To run a simulated one again: inorder replay DIR."
        )
    lines += [f"Skipped: {scene.step.title}: {scene.skipped}" for scene in scenes if scene.skipped]
    wrong = [scene for scene in scenes if scene.wrong]
    lines += [f"Not as expected: {scene.step.title}: {scene.wrong}" for scene in wrong]
    if not wrong:
        lines.append(
            f"Everything came out as expected in {sum(scene.seconds for scene in scenes):.0f} s."
        )
    return lines


@click.command(name="demo")
@click.option("--only", multiple=True, metavar="STEP", help="Only this step; may be repeated.")
@click.option(
    "--out", type=click.Path(path_type=Path), default=DEFAULT_OUT, show_default=True, metavar="DIR"
)
def demo(only: tuple[str, ...], out: Path) -> int:
    """Watch the suite judge our reference, a mutant of it, and two releases of Apache RocketMQ."""
    names = [step.name for step in STEPS]
    for name in only:
        if name not in names:
            raise click.UsageError(f"there is no step {name!r}; the steps are {', '.join(names)}")
    steps = [step for step in STEPS if not only or step.name in only]
    scenes = play(steps, out)
    console().rule("[bold]What came out[/bold]", align="left")
    print_human(closing_table(scenes))
    print_human("")
    for line in closing_words(scenes, out):
        print_human(Text(line))
    return EXIT_REFUTED if any(scene.wrong for scene in scenes) else EXIT_UPHELD


class _Alone(Root):
    """The demo as a program of its own, with the command line's way of ending."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return demo if cmd_name == "demo" else None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return ["demo"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run it and exit: 0 as expected, 1 not, 64 wrong usage, 70 the suite failed, 130 after Ctrl-C."""
    from conformance.parts.processes import exit_on_sigterm

    exit_on_sigterm()
    _Alone(name="make").main(
        ["demo", *(sys.argv[1:] if arguments is None else arguments)], prog_name="make"
    )


if __name__ == "__main__":
    main()
