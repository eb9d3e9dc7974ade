"""How each command of the pages is held: which are quick, what stands for a placeholder, and what is run elsewhere.

A command is run as its page has it, but for the words that a reader has to replace (`STANDS_FOR`) and for numbers that
would take hours (`SHORTER`). What is neither quick nor held by another test is run in the long tests. Few are not run,
each with its reason (`NOT_RUN`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tests.docs.commands import Command

Rules = tuple[tuple[str, str], ...]

QUICK = (
    r"inorder list ",
    r"inorder (?:explain|report|diff|baseline|import|statement) ",
    r"inorder check (?!.*--engine spark)",
    r"inorder replay lease/",
    r"inorder conform --target \S+ --seed 1 --examples 6 --floor 0 ",
    r"(?:eval|_INORDER_COMPLETE)",
)
"""Run in every run of the tests, as long as what they read was made by a quick one."""

QUICKER: Rules = ((r"--examples 6\b", "--examples 2"),)
"""In every run of the tests; the long ones take the page at its word. The same is found."""

STANDS_FOR: Rules = (
    # Alternatives, optional parts: the first of them.
    (r"(?<=\w)\|\w+(?:\|\w+)*(?= |$)", ""),
    (r" \| source$", ""),
    # A shell's `eval` ends well whatever it was given.
    (r'^eval "\$\((.*)\)"$', r"set -o pipefail; \1 | grep complete"),
    # What a reader has; `Things` makes it.
    (r"csv --map map.toml LOG --out HISTORY", "csv --map map.toml deliveries.csv --out imported"),
    (r"\bBEFORE AFTER\b", "{run} {run}"),
    (r"\bRUN\.\.\.(?= |$)|(?<= )RUN\b", "{run}"),
    (r"(?<=explain )run$", "{run}"),
    (r"\bruns/\.\.\.", "{run}"),
    (r"\b(?:HISTORY|runs/mine)(?= --profile| --engine|$)", "{run}"),
    (r"\bcheck mine\b", "check {run}"),
    (r"\bFILE --clause", "two-owners.txt --clause"),
    (r"^inorder (check|chaos) --baseline FILE$", r"inorder \1 {what} --baseline {baseline}"),
    (r"--recipe NAME\b", "--recipe kafka-deliveries"),
    (r"\bFOLDER --out TOTALS\.json", "frozen --out totals.json"),
    (r"compare BEFORE\.json AFTER\.json", "compare {totals} {totals}"),
    (r"REASONS\.toml", "docs/soundness/corpus.toml"),
    (r"--lines LINES", "--lines lines.txt"),
    (r"\bfreezing FOLDER$", "freezing frozen --only examples"),
    (r"--owner WHO --reason WHY --expires DAY", "--owner me --reason known --expires 2099-12-31"),
    (r"\bLANE$", "billing/orders/b0/1"),
    (r"--clause ID\b", "--clause LSE-2"),
    (r"--store DIR\b", "--store store"),
    (r"\b(mutant(?:\+tcp)?):NAME\b", r"\1:unlock-while-listener-runs"),
    (r"\bprocesses:NAME\b", "processes:reference+tcp"),
    (r"(?<=list faults --target )T$", "reference"),
    (r"\bprofile_grid TARGET\b", "profile_grid reference"),
    (r"\bevidence\.systems NAME$", "evidence.systems redis-local:7.0.15"),
    (r"\btrack_record ID$", "track_record B-55"),
    (r"\bkill_matrix\.power NAME$", "kill_matrix.power newest-first"),
    (r"\bchaos_grid TARGET\.\.\.(?: --seeds N --docs docs)?$",
     "chaos_grid reference+tcp --scenario consumer-killed"),
    (r"(?<=parts\.(?:nats) )VERSION$", "2.15.2"),
    (r"(?<=parts\.redis )VERSION$", "7.0.15"),
    (r"(?<=parts\.rabbitmq )VERSION$", "3.10.8"),
    (r"(?<=parts\.elasticmq )VERSION$", "1.6.11"),
    (r"(?<=parts\.rocketmq_go )VERSION$", "2.1.2"),
    (r"(?<=parts\.rocketmq_proxy )VERSION$", "5.4.0"),
    (r"(?<=parts\.kafka_go )VERSION$", "1.9.2"),
    (r"\brocketmq:(?:HOST:PORT|127\.0\.0\.1:9876)", "rocketmq:{namesrv}"),
    (r"^inorder conform \.\.\. ", "inorder conform --target mutant:unlock-while-listener-runs "),
    (r"^pytest tests --pyargs conformance\.suite \.\.\.$",
     "pytest tests --pyargs conformance.suite --inorder-target reference --inorder-seed 1 --inorder-examples 2"),
    (r"^(inorder serve.*)$", r"\1 --namesrv-port 0"),
)  # fmt: skip

SHORTER: Rules = (
    (r"--minutes 10\b", "--minutes 0.1"),
    (r"--budget 10m\b", "--budget 10s"),
    (r"--inputs 1000000\b", "--inputs 2000"),
    (r"--plans (?:300|10000)\b", "--plans 20"),
    (r"(?<=laws )--least 50 --plans (?:400|700)\b", "--plans 5"),
    (r"--events 1(?:00)?000000\b", "--events 20000"),
    (r"--soak 300\b", "--soak 2 --backlog 1000"),
    (r"(evidence\.load)$", r"\1 --alone --queues 1 --clients 1 --rounds 1 --backlog 1000 --send-s 0.5"),
    (r"(evidence\.kill_matrix\.power)(?: \S+)?$",
     r"\1 newest-first --seeds 1 --out searches --power power.json"),
    (r"(evidence\.operators .*)$", r"\1 --budget 1s"),
    (r"(evidence\.planted)$", r"\1 --sample 2 --examples 2"),
    (r"(evidence\.frozen)$", r"\1 redis-local:7.0.15 --budget 1s"),
    (r"(evidence\.wrong_drivers)$", r"\1 hello --command smoke --budget 1s"),
    (r"(evidence\.interop \S+)$", r"\1 --page {matrix} --budget 1s"),
    (r"(evidence\.track_record \S+)$", r"\1 --page {track_record} --times 1"),
    (r"(evidence\.profile_grid .*)$", r"\1 --page {everywhere} --budget 1s"),
    (r"(evidence\.systems .*)$", r"\1 --page {promises}"),
    (r"^make systems$", "make systems ARGS='--budget 1s --page {promises}'"),
    (r"^make matrix$", "make matrix ARGS='--budget 1s --page {matrix}'"),
    (r"^make matrix ARGS=--fresh$", "make matrix ARGS='--fresh --budget 1s --page {matrix}'"),
    (r"^make everywhere$", "make everywhere ARGS='--budget 1s --page {everywhere}'"),
    (r"^make track-record$", "make track-record ARGS='--budget 1s --page {track_record}'"),
    (r"^inorder mutants$", "inorder mutants --budget 1s"),
    (r"^(pytest --pyargs conformance\.suite .*)$", r"\1 --inorder-examples 2"),
)  # fmt: skip
"""Numbers that would take hours, or a page of the repository that would be written."""

HELD_ELSEWHERE: Mapping[str, str] = {
    r"docs/drivers\.md: .*": "tests/conformance/drivers/test_guide.py",
    r"docs/tap\.md: inorder (?:tap|check) .*": "tests/conformance/tap/test_command.py",
    r"README\.md: inorder tap .*": "tests/conformance/tap/test_command.py",
    r"README\.md: inorder conform --target mutant:\S+ --seed 1 --out runs/demo/mutant": (
        "tests/conformance/cli/test_readme.py"
    ),
    r".*: python -m specs\.docs": "tests/specs/docs/test_documents.py",
    r".*: python -m conformance\.cases\.guide": "tests/conformance/cases/test_guide.py",
    r".*: python -m inorder\.evidence\.kill_matrix\.document": (
        "tests/inorder/evidence/kill_matrix/test_document.py"
    ),
    r".*: python -m inorder\.evidence\.track_record (?:B-54|B-61|B-77[bce]|lock-after-release)": (
        "tests/inorder/evidence/track_record/test_tapped.py"
    ),
    # A driver with a process for each client needs the system that it speaks to.
    r'.*: inorder chaos .* --target "exec:python3 driver\.py"': "tests/chaos/test_toys.py",
    r"docs/spark-api\.md: inorder check s3a?://.*": "tests/spark_checkers/test_cluster.py",
    r"docs/(?:attach|chaos|tap)\.md: inorder chaos --attach .*": "tests/chaos/attach/test_attach.py",
    r"docs/chaos\.md: inorder hunt .*": "tests/chaos/hunting/test_hunt.py",
    r"docs/chaos\.md: inorder shrink RUN --minutes 10": (
        "tests/conformance/cli/test_shrink_real.py"
    ),
    r"docs/chaos\.md: inorder confirm .*": "tests/conformance/reports/test_rate.py",
    r".*: python -m inorder\.evidence\.hunts": "tests/inorder/evidence/test_hunts.py",
    r".*: python -m inorder\.evidence\.scenario_matrix.*": (
        "tests/inorder/evidence/test_scenario_matrix.py"
    ),
    r"docs/reports/kafka-consumer-auto-commit\.md: java .*": (
        "tests/inorder/evidence/track_record/test_report.py"
    ),
    r"docs/reports/librdkafka-outdated-answer\.md: python .*": (
        "tests/inorder/evidence/test_outdated_answer.py"
    ),
    r"docs/mqadmin\.md: mqadmin .*": "tests/conformance/parts/test_mqadmin.py",
    r".*: pip install (?:\./inorder-|\"|CHECKOUT).*": "tests/tools/test_release.py",
    r".*: make release": "tests/tools/test_release.py",
    r".*: make (?:test|test-all|test-turn|promises.*|setup|contracts)": "Makefile",
    r".*: pytest(?: tests/conformance/cases)? --rewrite": "tests/conformance/cases/test_rewrite.py",
    r"docs/machines\.md: inorder replay FILE": "tests/inorder/evidence/machines/test_every.py",
    r"docs/systems\.md: inorder conform --target kafka:HOST:PORT .*": (
        "tests/conformance/targets/test_kafka.py"
    ),
    r".*: pytest --inorder-baseline FILE": "tests/conformance/cli/test_plugin.py",
}
"""`PAGE: COMMAND` → who runs the same: a test, or `make`, which runs the tests."""

NOT_RUN: Mapping[str, str] = {
    r".*: make bench": "a quarter of an hour, and its figures mean something on an idle machine only",
}
"""`PAGE: COMMAND` → why not. At most one in twenty."""


def replaced(text: str, rules: Iterable[tuple[str, str]]) -> str:
    for pattern, instead in rules:
        text = re.sub(pattern, instead, text)
    return text


def of(command: Command, table: Mapping[str, str]) -> str | None:
    """What the table says of a command."""
    told = f"{command.page}: {command.text}"
    return next((said for pattern, said in table.items() if re.fullmatch(pattern, told)), None)


def is_quick(command: Command) -> bool:
    return any(re.match(pattern, command.text) for pattern in QUICK)
