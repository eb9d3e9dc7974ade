"""The pytest plugin: runs the target once, then lets each test report one clause of the verdict.

Rules:
- the run happens between collection and the first test; the seed is in the header, before it. Under pytest-xdist one
  worker runs the suite and the others the user's tests; the run is made by whoever needs it first, and only once;
- a refuted or possible clause fails with the story of the failure; others that were not upheld are skipped;
- what allure-pytest writes of our tests are the results that `inorder conform` writes (`conformance.reports.allure`);
- the exit code is that of `inorder conform` (0, 1, 2, 70), pytest's own are mapped: interrupted 130, internal 70,
  usage and nothing collected 64. With some tests deselected it is about the others: 1 if one of them was refuted,
  2 if one could not tell or a check of the run failed, else 0. Without any of the suite's tests it is pytest's;
- it is never greener than pytest's own: once anything else failed (a user's test, a fixture, another plugin's
  threshold), pytest's 1 stays.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import allure_commons
import pytest
from allure_commons.logger import AllureFileLogger
from allure_commons.model2 import TestResult
from allure_pytest.utils import allure_full_name

from conformance import again
from conformance.cli import seam
from conformance.cli.main import EXIT_INTERRUPTED
from conformance.cli.options import LARGEST_SEED, draw_seed, folder_name
from conformance.cli.people import Watching, tell
from conformance.reports import allure as allure_results
from conformance.reports import text
from conformance.reports.cases import CaseRun, Status, cases_of
from conformance.reports.saving import context_of
from conformance.reports.view import CheckView, ClauseView, VerdictView, open_run
from specs.clauses.catalogue import all_clauses
from specs.errors import (
    EXIT_INCONCLUSIVE,
    EXIT_REFUTED,
    EXIT_SUITE,
    EXIT_UPHELD,
    EXIT_USAGE,
    InorderError,
)
from specs.history.row import Row
from specs.history.store import History, open_history
from specs.model.rules import RULES
from specs.scratch import Scratch
from specs.verdicts.baseline import read_baseline, today
from specs.verdicts.verdict import ClauseVerdict, RunVerdict

SUITE_MODULE = "conformance.suite.test_clauses"
CHECKS = ("MET-1", "MET-2", "MET-3", "MET-4", "MET-5", "MET-6")
KEY = pytest.StashKey["Suite"]()
_DETAILS_WIDTH = 100
_FIXTURE = "inorder_suite"
_WORKER = "inorder"
"""Under this name pytest-xdist carries what a worker must know of the suite, and what it tells at its end."""
_PARAMETERS = ("clause_id", "check_id")


class NotKept(pytest.fail.Exception):  # type: ignore[name-defined,misc]  # pytest makes it at run time
    """A test of the suite fails because of the verdict, and not because something went wrong."""

    def __init__(self, story: str) -> None:
        super().__init__(story, pytrace=False)


class Ended(InorderError):
    """The run was begun by another worker, which did not come to its end."""

    exit_code = EXIT_SUITE


@dataclass(frozen=True, slots=True)
class Shared:
    """What the processes of one session share: a folder with a lock, which the kernel lifts when its holder dies."""

    folder: Path

    @property
    def judged(self) -> bool:
        """Is the run over, with a verdict?"""
        return (self.folder / "judged").exists()

    @property
    def failure(self) -> tuple[str, int] | None:
        """The sentence with which the run failed, and its exit code."""
        path = self.folder / "failed.json"
        if not path.exists():
            return None
        sentence, code = json.loads(path.read_text(encoding="utf-8"))
        return str(sentence), int(code)

    def once(self, make: Callable[[], VerdictView], out: Path) -> VerdictView:
        """The verdict of the run, made by whoever comes first; the others wait for it."""
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self.judged:
                return open_run(out)
            if self.failure is not None:
                raise Ended(self.failure[0])
            if (self.folder / "begun").exists():
                raise Ended("the worker that made the run ended before it was over")
            (self.folder / "begun").touch()
            try:
                verdict = make()
            except InorderError as error:
                told = json.dumps([str(error), error.exit_code])
                (self.folder / "failed.json").write_text(told, encoding="utf-8")
                raise
            (self.folder / "judged").touch()
            return verdict


@dataclass(slots=True)
class Suite:
    """The one run of a session and what its tests said. out: where it is kept, as somebody wrote it; folder: the same,
    wherever a test may have gone. shared: with other processes, where there are any."""

    ready: seam.Conformance
    seed: int
    examples: int | None
    out: Path
    folder: Path
    name: str = ""
    shared: Shared | None = None
    verdict: VerdictView | None = None
    context: tuple[Row, ...] = ()
    deselected: bool = False
    seen: set[str] = field(default_factory=set)
    failures: int = 0
    _cases: CaseRun | None = None

    def ensure(self, watch: seam.Watch) -> None:
        """Judge the target, unless that was done."""
        if self.verdict is not None:
            return
        verdict = (
            self._run(watch)
            if self.shared is None
            else self.shared.once(lambda: self._run(watch), self.folder)
        )
        self.take(verdict)

    def take(self, verdict: VerdictView) -> None:
        """This is what the tests report."""
        self.verdict = verdict
        self.context = context_of(self.folder, verdict)

    def _run(self, watch: seam.Watch) -> VerdictView:
        return self.ready.run(
            seed=self.seed,
            examples=self.examples,
            floor=None,
            out=self.out,
            watch=watch,
            name=self.name,
        )

    @property
    def judged(self) -> VerdictView:
        assert self.verdict is not None, "the run comes before the tests"
        return self.verdict

    @property
    def cases(self) -> CaseRun:
        """As test reports see the run."""
        if self._cases is None:
            self._cases = cases_of(self.judged, self.context)
        return self._cases

    def report_clause(self, clause_id: str) -> None:
        """Pass, fail or skip as the clause's verdict says."""
        clause: ClauseView | None = next(
            (each for each in self.judged.clauses if each.id == clause_id), None
        )
        if clause is None:
            pytest.skip(f"{clause_id} is not judged on this target")
        if self.judged.verdict is RunVerdict.INADMISSIBLE:
            raise NotKept("the run can't be trusted: see the checks of the run")
        if clause.hidden:
            pytest.skip(clause.reason)
        match clause.verdict:
            case ClauseVerdict.UPHELD:
                return
            case ClauseVerdict.REFUTED | ClauseVerdict.POSSIBLE:
                raise NotKept(
                    text.failure(self.judged, clause, width=_DETAILS_WIDTH, context=self.context)
                )
            case other:
                pytest.skip(f"{text.WORDS[other]}: {clause.reason}")

    def report_check(self, check_id: str) -> None:
        """Pass, fail or skip as the check of the run says."""
        check: CheckView | None = next(
            (each for each in self.judged.met if each.id == check_id), None
        )
        if check is None:
            pytest.skip(f"{check_id} is not made on this target")
        if check.ok is False:
            raise NotKept(f"{check.title}: {check.detail}")
        if check.ok is None:
            pytest.skip("nothing to check")

    def exit_code(self) -> int:
        """What the tests that ran say."""
        if self.verdict is None or not self.seen:
            return EXIT_UPHELD  # nobody asked for the run, or only tests that say themselves what they make of it
        if not self.deselected or self.verdict.verdict is RunVerdict.INADMISSIBLE:
            return self.verdict.exit_code
        clauses = [clause for clause in self.verdict.clauses if clause.id in self.seen]
        verdicts = {clause.verdict for clause in clauses if not clause.hidden}
        if ClauseVerdict.REFUTED in verdicts:
            return EXIT_REFUTED
        checks = [check for check in self.verdict.met if check.id in self.seen]
        if ClauseVerdict.POSSIBLE in verdicts or any(check.ok is False for check in checks):
            return EXIT_INCONCLUSIVE
        return EXIT_UPHELD


@dataclass(frozen=True, slots=True, eq=False)
class Hearing:
    """A plugin that hears which of the suite's tests ran, and of what pytest counts as failed, what the verdict did.

    A worker's reports come to the process that counts with what was noted on them.
    """

    suite: Suite

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Note it on the report: only here is the exception known."""
        report = yield
        promise = promise_of(item)
        if promise is not None and call.when == "call":
            unkept = call.excinfo is not None and isinstance(call.excinfo.value, NotKept)
            report.inorder = [promise, unkept]  # type: ignore[attr-defined]  # pytest carries what a report has
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count where pytest does: only here is it known that the failure stands."""
        noted = getattr(report, "inorder", None)
        if noted is not None and report.when == "call":
            promise, unkept = noted
            self.suite.seen.add(promise)
            self.suite.failures += bool(report.failed and unkept)


@dataclass(frozen=True, slots=True, eq=False)
class AllureResults:
    """A plugin of pytest and of Allure: makes the results that allure-pytest writes of our tests those of our own."""

    suite: Suite
    folder: Path
    _tests: set[str] = field(default_factory=set)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """By what names allure-pytest knows the suite's tests: they depend on where it is installed."""
        ours = [item for item in session.items if promise_of(item) is not None]
        self._tests.update(allure_full_name(item) for item in ours)

    @allure_commons.hookimpl(tryfirst=True)  # type: ignore[untyped-decorator]  # Allure has no types
    def report_result(self, result: TestResult) -> None:
        """Called before the result is written."""
        if result.fullName not in self._tests or self.suite.verdict is None:
            return
        (promise,) = (each.value.strip("'") for each in result.parameters)
        run = self.suite.cases
        case = run.case(promise)
        if case is None:  # not judged on this target: skipped, and no test of `inorder conform`
            allure_results.identify(result, run, promise)
            return
        status, details = result.status, result.statusDetails
        allure_results.fill(result, run, case, AllureFileLogger(str(self.folder)))
        expected = {Status.PASSED: Status.PASSED, Status.SKIPPED: Status.SKIPPED}
        if status != expected.get(case.status, Status.FAILED).value:  # a fixture's failure, say
            result.status, result.statusDetails = status, details


# ------------------------------------------------------------------------------------------------ hooks


def pytest_configure(config: pytest.Config) -> None:
    """Find target and profile before anything is collected."""
    target = config.getoption("--inorder-target")
    if not target:
        pytest.exit(
            "say what to judge: --inorder-target NAME, as `inorder list targets`",
            returncode=EXIT_USAGE,
        )
    seed = config.getoption("--inorder-seed")
    if seed is not None and not 0 <= seed <= LARGEST_SEED:
        pytest.exit(f"--inorder-seed must be between 0 and {LARGEST_SEED}", returncode=EXIT_USAGE)
    # A worker has the session's seed and folder, and not its own.
    told = getattr(config, "workerinput", {}).get(_WORKER)
    seed = told["seed"] if told else draw_seed() if seed is None else seed
    named = told["out"] if told else config.getoption("--inorder-out")
    out = Path(named) if named else folder_name(target, seed)
    with _sentences():
        known = config.getoption("--inorder-baseline")
        ready = seam.prepare(
            target,
            config.getoption("--inorder-profile"),
            baseline=read_baseline(Path(known), today()) if known else None,
        )
    suite = config.stash[KEY] = Suite(
        ready=ready,
        seed=seed,
        examples=config.getoption("--inorder-examples"),
        out=out,
        folder=out.absolute(),
        name=config.getoption("--inorder-name") or "",
        shared=Shared(Path(told["shared"])) if told else None,
    )
    config.pluginmanager.register(Hearing(suite))
    folder = config.getoption("allure_report_dir", None)
    if folder:
        results = AllureResults(suite, Path(folder))
        config.pluginmanager.register(results)
        allure_commons.plugin_manager.register(results)
        config.add_cleanup(lambda: allure_commons.plugin_manager.unregister(results))


def pytest_report_header(config: pytest.Config) -> list[str]:
    suite = config.stash[KEY]
    return [
        f"inorder: {suite.ready.target} under {suite.ready.profile.name}, seed {suite.seed}, kept in {suite.out}"
    ]


def _is_ours(module: ModuleType) -> bool:
    return module.__name__ == SUITE_MODULE


def promise_of(item: pytest.Item) -> str | None:
    """The id of the clause or check that a test of the suite reports; None for anybody else's test."""
    if not (isinstance(item, pytest.Function) and _is_ours(item.module)):
        return None
    given = item.callspec.params
    return next((str(given[name]) for name in _PARAMETERS if name in given), None)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if not _is_ours(metafunc.module):
        return
    if "clause_id" in metafunc.fixturenames:
        names = {clause.id: f"{clause.id} {clause.title}" for clause in all_clauses()}
        if metafunc.config.stash[KEY].ready.on_the_wire:
            names |= {rule.id: f"{rule.id} {rule.title}" for rule in RULES.values()}
        metafunc.parametrize("clause_id", list(names), ids=list(names.values()))
    if "check_id" in metafunc.fixturenames:
        metafunc.parametrize("check_id", CHECKS)


def pytest_deselected(items: list[pytest.Item]) -> None:
    for item in items:
        if promise_of(item) is not None:
            item.config.stash[KEY].deselected = True


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """The run, once everything is collected; then pytest goes on with the tests. Workers make it when they need it."""
    suite = session.config.stash[KEY]
    if session.testsfailed or session.config.option.collectonly or suite.shared is not None:
        return
    if not any(_needs_the_run(item) for item in session.items):
        return
    reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
    watch = Watching(write=tell if reporter is None else reporter.write_line)
    with _sentences():
        suite.ensure(watch)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """In a worker the run comes here: outside of the test, whose time may be bounded."""
    suite = item.config.stash[KEY]
    if suite.shared is not None and _needs_the_run(item):
        try:
            suite.ensure(_SILENT)
        except (
            InorderError
        ) as error:  # the test itself will fail with the sentence, and nothing else runs here
            item.session.shouldstop = str(error)
    return (yield)


def _needs_the_run(item: pytest.Item) -> bool:
    return _FIXTURE in getattr(item, "fixturenames", ())


_SILENT = Watching(write=lambda _line: None)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Map pytest's exit code onto ours, and leave Allure the environment of the run."""
    suite = session.config.stash[KEY]
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput[_WORKER] = suite.deselected
        return
    failure = _taken_over(suite)
    folder = session.config.getoption("allure_report_dir", None)
    if folder and suite.verdict is not None:
        allure_results.write_beside(suite.cases, Path(folder))
    if failure is not None:
        session.exitstatus = failure
        return
    match (
        session.exitstatus
    ):  # another plugin may have made it worse than what the hook was called with
        case pytest.ExitCode.OK if not session.config.option.collectonly:
            session.exitstatus = suite.exit_code()
        case pytest.ExitCode.TESTS_FAILED if session.testsfailed == suite.failures:
            session.exitstatus = suite.exit_code() or pytest.ExitCode.TESTS_FAILED
        case pytest.ExitCode.INTERRUPTED:
            session.exitstatus = EXIT_USAGE if session.testsfailed else EXIT_INTERRUPTED
        case pytest.ExitCode.INTERNAL_ERROR:
            session.exitstatus = EXIT_SUITE
        case pytest.ExitCode.USAGE_ERROR | pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = EXIT_USAGE
        case _:
            pass


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    suite = config.stash[KEY]
    if suite.verdict is not None:
        terminalreporter.section("inorder")
        terminalreporter.write_line(text.closing(suite.verdict))
        terminalreporter.write_line(
            f"replay: {suite.verdict.replay or again.command('replay', suite.out)}"
        )


# ----------------------------------------------------------------------------------------- pytest-xdist


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Each worker learns which run is the session's, and where its processes meet."""
    suite: Suite = node.config.stash[KEY]
    if suite.shared is None:
        scratch = Scratch("pytest")
        node.config.add_cleanup(scratch.cleanup)
        suite.shared = Shared(Path(scratch.name))
    told = {"seed": suite.seed, "out": str(suite.folder), "shared": str(suite.shared.folder)}
    node.workerinput[_WORKER] = told


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """What a worker says at its end."""
    if getattr(node, "workeroutput", {}).get(_WORKER):
        node.config.stash[KEY].deselected = True


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object | None:
    """All of the suite's tests lie on one worker; the user's are handed out as `--dist` says."""
    from xdist.scheduler import LoadScopeScheduling

    how = config.getoption("dist")
    if how == "each":  # each worker runs everything, and reports the one run
        return None

    class OneForTheSuite(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
        def _split_scope(self, nodeid: str) -> str:
            return "inorder" if _looks_ours(nodeid) else _scope(nodeid, how)

    return OneForTheSuite(config, log)


def _looks_ours(nodeid: str) -> bool:
    """By the name alone, which is all that is known here: a test of that name of somebody else's comes along."""
    path, _, test = nodeid.partition("::")
    return path.endswith("test_clauses.py") and test.startswith(("test_clause[", "test_run["))


def _scope(nodeid: str, how: str) -> str:
    """Which of a user's tests stay together, as pytest-xdist's own schedulers have it."""
    if how == "loadfile":
        return nodeid.split("::", 1)[0]
    if how == "loadscope":
        return nodeid.rsplit("::", 1)[0]
    if how == "loadgroup" and nodeid.rfind("@") > nodeid.rfind("]"):
        return nodeid.rpartition("@")[2]
    return nodeid


def _taken_over(suite: Suite) -> int | None:
    """Where workers made the run: take its verdict; the exit code of a run that failed, or None."""
    if suite.shared is None:
        return None
    if suite.shared.judged:
        suite.take(open_run(suite.folder))
    return None if suite.shared.failure is None else suite.shared.failure[1]


# --------------------------------------------------------------------------------------------- fixtures


@pytest.fixture(scope="session")
def inorder_suite(pytestconfig: pytest.Config) -> Suite:
    """The run whose verdict the tests report."""
    suite = pytestconfig.stash[KEY]
    try:
        suite.ensure(_SILENT)
    except InorderError as error:
        pytest.fail(str(error), pytrace=False)
    return suite


@pytest.fixture(scope="session")
def inorder_verdict(inorder_suite: Suite) -> VerdictView:
    """The verdict of the session's run."""
    return inorder_suite.judged


@pytest.fixture(scope="session")
def inorder_folder(inorder_suite: Suite) -> Path:
    """Where the session's run is kept: its history, verdict and reports."""
    return inorder_suite.folder


@pytest.fixture(scope="session")
def inorder_history(inorder_suite: Suite) -> History:
    """What the session's run recorded; `rows()` gives its events."""
    return open_history(inorder_suite.folder)


@contextmanager
def _sentences() -> Iterator[None]:
    """Our errors end the session with one sentence and their own exit code."""
    try:
        yield
    except InorderError as error:
        pytest.exit(str(error), returncode=error.exit_code)
