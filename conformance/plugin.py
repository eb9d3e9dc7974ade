"""The pytest plugin: runs the target once, then lets each test report one clause of the verdict.

Rules:
- the run happens between collection and the first test; the seed is in the header, before it;
- a refuted or possible clause fails with the story of the failure; others that were not upheld are skipped;
- with allure-pytest, tests carry the identity, labels, description and attachments of our own Allure results;
- the exit code is that of `inorder conform` (0, 1, 2, 70), pytest's own are mapped: interrupted 130, internal 70,
  usage and nothing collected 64. With some tests deselected it is about the others: 1 if one of them was refuted,
  2 if one could not tell or a check of the run failed, else 0;
- it is never greener than pytest's own: once anything else failed (a user's test, a fixture, another plugin's
  threshold), pytest's 1 stays.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import allure
import allure_commons
import pytest
from allure_commons.model2 import TestResult
from allure_pytest.utils import allure_full_name

from conformance import again
from conformance.cli import seam
from conformance.cli.main import EXIT_INTERRUPTED
from conformance.cli.options import LARGEST_SEED, draw_seed, folder_name
from conformance.cli.people import Watching, tell
from conformance.reports import allure as allure_results
from conformance.reports import text
from conformance.reports.saving import context_of
from conformance.reports.view import CheckView, ClauseView, VerdictView
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
from specs.model.rules import RULES
from specs.verdicts.baseline import read_baseline, today
from specs.verdicts.verdict import ClauseVerdict, RunVerdict

SUITE_MODULE = "conformance.suite.test_clauses"
CHECKS = ("MET-1", "MET-2", "MET-3", "MET-4", "MET-5", "MET-6")
KEY = pytest.StashKey["Suite"]()
_DETAILS_WIDTH = 100


class NotKept(pytest.fail.Exception):  # type: ignore[name-defined,misc]  # pytest makes it at run time
    """A test of the suite fails because of the verdict, and not because something went wrong."""

    def __init__(self, story: str) -> None:
        super().__init__(story, pytrace=False)


@dataclass(slots=True, eq=False)
class Failures:
    """A plugin that counts, of what pytest counts as failed, what failed because of the verdict."""

    count: int = 0
    _tests: set[str] = field(default_factory=set)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Remember the test: only here is the exception known."""
        if call.excinfo is not None and isinstance(call.excinfo.value, NotKept):
            self._tests.add(item.nodeid)
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count where pytest does: only here is it known that the failure stands."""
        self.count += report.failed and report.when == "call" and report.nodeid in self._tests


@dataclass(slots=True)
class Suite:
    """The one run of a session and what its tests said."""

    ready: seam.Conformance
    seed: int
    examples: int | None
    out: Path
    verdict: VerdictView | None = None
    context: tuple[Row, ...] = ()
    deselected: bool = False
    seen: set[str] = field(default_factory=set)
    failures: Failures = field(default_factory=Failures)

    def run(self, watch: seam.Watch) -> None:
        """Judge the target."""
        self.verdict = self.ready.run(
            seed=self.seed, examples=self.examples, floor=None, out=self.out, watch=watch
        )
        self.context = context_of(self.out, self.verdict)

    @property
    def judged(self) -> VerdictView:
        assert self.verdict is not None, "the run comes before the tests"
        return self.verdict

    def report_clause(self, clause_id: str) -> None:
        """Pass, fail or skip as the clause's verdict says."""
        clause = next((each for each in self.judged.clauses if each.id == clause_id), None)
        if clause is None:
            pytest.skip(f"{clause_id} is not judged on this target")
        self.seen.add(clause_id)
        self._decorate(clause)
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
        self.seen.add(check_id)
        allure.dynamic.title(f"{check.id} {check.title}")
        self._label("the run itself")
        if check.ok is False:
            raise NotKept(f"{check.title}: {check.detail}")
        if check.ok is None:
            pytest.skip("nothing to check")

    def _decorate(self, clause: ClauseView) -> None:
        allure.dynamic.title(clause.name)
        allure.dynamic.description(clause.statement)
        self._label(clause.family)
        allure.dynamic.story(clause.name)
        allure.dynamic.tag(text.WORDS[clause.verdict].lower())
        for name, body, kind in allure_results.attachments(self.judged, clause, self.context):
            allure.attach(body, name=name, attachment_type=kind)

    def _label(self, suite: str) -> None:
        allure.dynamic.parent_suite(self.ready.target)
        allure.dynamic.suite(suite)
        allure.dynamic.epic(self.ready.profile.name)
        allure.dynamic.feature(suite)

    def exit_code(self) -> int:
        """What the tests that ran say."""
        if self.verdict is None:
            return EXIT_SUITE
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
class AllureIdentities:
    """A plugin of pytest and of Allure: gives the results that allure-pytest writes the identity of our own ones.

    allure-pytest makes one of the test's name and parameters, which are the same for every target.
    """

    suite: Suite
    _tests: set[str] = field(default_factory=set)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """By what names allure-pytest knows the suite's tests: they depend on where it is installed."""
        ours = [
            item
            for item in session.items
            if isinstance(item, pytest.Function) and _is_ours(item.module)
        ]
        self._tests.update(allure_full_name(item) for item in ours)

    @allure_commons.hookimpl(tryfirst=True)  # type: ignore[untyped-decorator]  # Allure has no types
    def report_result(self, result: TestResult) -> None:
        """Called before the result is written."""
        if result.fullName in self._tests:
            promise = ", ".join(parameter.value.strip("'") for parameter in result.parameters)
            allure_results.identify(
                result, promise, self.suite.ready.target, self.suite.ready.profile.name
            )


# ------------------------------------------------------------------------------------------------ hooks


def pytest_configure(config: pytest.Config) -> None:
    """Find target and profile before anything is collected."""
    target = config.getoption("--inorder-target")
    if not target:
        pytest.exit(
            "say what to judge: --inorder-target NAME, as `inorder list targets`",
            returncode=EXIT_USAGE,
        )
    if hasattr(config, "workerinput") or getattr(config.option, "numprocesses", None):
        pytest.exit("the suite is one run of one target: leave -n out", returncode=EXIT_USAGE)
    seed = config.getoption("--inorder-seed")
    if seed is not None and not 0 <= seed <= LARGEST_SEED:
        pytest.exit(f"--inorder-seed must be between 0 and {LARGEST_SEED}", returncode=EXIT_USAGE)
    seed = draw_seed() if seed is None else seed
    out = config.getoption("--inorder-out")
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
        out=Path(out) if out else folder_name(target, seed),
    )
    config.pluginmanager.register(suite.failures)
    identities = AllureIdentities(suite)
    config.pluginmanager.register(identities)
    allure_commons.plugin_manager.register(identities)
    config.add_cleanup(lambda: allure_commons.plugin_manager.unregister(identities))


def pytest_report_header(config: pytest.Config) -> list[str]:
    suite = config.stash[KEY]
    return [
        f"inorder: {suite.ready.target} under {suite.ready.profile.name}, seed {suite.seed}, kept in {suite.out}"
    ]


def _is_ours(module: ModuleType) -> bool:
    return module.__name__ == SUITE_MODULE


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
        item.config.stash[KEY].deselected = True


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """The run, once everything is collected; then pytest goes on with the tests."""
    if session.testsfailed or session.config.option.collectonly or not session.items:
        return
    reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
    watch = Watching(write=tell if reporter is None else reporter.write_line)
    with _sentences():
        session.config.stash[KEY].run(watch)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Map pytest's exit code onto ours, and leave Allure the environment of the run."""
    suite = session.config.stash[KEY]
    folder = session.config.getoption("allure_report_dir", None)
    if folder and suite.verdict is not None:
        allure_results.write_environment(suite.verdict, Path(folder))
    match (
        session.exitstatus
    ):  # another plugin may have made it worse than what the hook was called with
        case pytest.ExitCode.OK if not session.config.option.collectonly:
            session.exitstatus = suite.exit_code()
        case pytest.ExitCode.TESTS_FAILED if session.testsfailed == suite.failures.count:
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


@pytest.fixture(scope="session")
def inorder_suite(pytestconfig: pytest.Config) -> Suite:
    """The run whose verdict the tests report."""
    return pytestconfig.stash[KEY]


@contextmanager
def _sentences() -> Iterator[None]:
    """Our errors end the session with one sentence and their own exit code."""
    try:
        yield
    except InorderError as error:
        pytest.exit(str(error), returncode=error.exit_code)
