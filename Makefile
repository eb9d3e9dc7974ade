# Every target does its own set-up first; the second time that takes no time.
# INORDER_NO_APT=1 keeps it from installing Debian packages (Java, Maven, a C compiler).
# The long grids (promises, track-record, matrix, everywhere, systems, the load of bench) and test-all go on where they were ended; ARGS=--fresh begins anew, and
# ARGS='--budget 20m' begins nothing after that time.

PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= 4

# The tests start hundreds of processes, and each would compile the project anew.
unexport PYTHONDONTWRITEBYTECODE

.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all test-turn parts promises track-record matrix everywhere systems bench release lint format types contracts clean

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## .venv and .tools: Python packages, Java, RocketMQ's jars, toxiproxy
	@$(PYTHON) tools/setup.py

demo: setup ## the suite judges four systems and shows what it found
	@$(BIN)/python -m inorder.evidence.demo

# Types are looked at beside the tests, which often wait for a server.
test: setup lint contracts ## lint, types, import contracts and all tests that do not take long
	@$(BIN)/mypy >.tools/types.log 2>&1 & types=$$!; \
	$(BIN)/pytest -n $(WORKERS) --dist loadgroup -m "not long"; tests=$$?; \
	wait $$types; typed=$$?; cat .tools/types.log; exit $$((tests ? tests : typed))

promises: setup ## README's targets, and by turns the pages, each as a process that has to end as promised (20 minutes); ARGS=page: all pages
	@$(BIN)/python -m tests.docs.promises --out runs/promises $(ARGS)

# Their tests say why they are skipped where one of these can't be had.
parts: setup ## the other servers and clients that long tests need: RabbitMQ, ElasticMQ, RocketMQ's proxy, Kafka's for Java, older releases (300 MB)
	@for part in rabbitmq elasticmq rocketmq_proxy "kafka java:4.4.0 java:4.1.0" "nats 2.10.9" "jars 5.1.0"; do $(BIN)/python -m conformance.parts.$$part || true; done

test-turn: parts ## of the long tests the eighth whose turn it is by the commit, begun within six minutes
	$(BIN)/pytest -n $(WORKERS) --dist loadgroup -m long --turn commit --begin-before $$(($$(date +%s) + 360)) --durations 15

test-all: parts lint types contracts ## the same with the long tests, going on where it was ended, and how much of specs and reference_impl all of them reach
	$(BIN)/coverage run -m pytest -n $(WORKERS) --dist loadgroup --durations 25 --go-on=$$($(BIN)/python -m tests.turns $(ARGS))
	$(BIN)/coverage combine -q --append
	$(BIN)/coverage report

track-record: setup ## known bugs of released brokers, refuted in one release and upheld in another
	@$(BIN)/python -m inorder.evidence.track_record --out runs/track-record $(ARGS)

matrix: setup ## every broker with every client, ours and Apache's, judged by the same clauses (about 20 minutes)
	@$(BIN)/python -m inorder.evidence.interop --out runs/matrix $(ARGS)

everywhere: setup ## every profile and case on the reference: simulated, on sockets, killed and started again (about an hour)
	@$(BIN)/python -m inorder.evidence.profile_grid --out runs/everywhere $(ARGS)

systems: setup ## what each released system keeps, promise by promise, by a run of each (half an hour)
	@$(BIN)/python -m inorder.evidence.systems --out runs/systems $(ARGS)

bench: setup ## what simulating and judging cost, load beside Apache's broker, the Spark checkers beside a plain scan
	@$(BIN)/python -m inorder.evidence.benchmarks --out runs/bench
	@$(BIN)/python -m inorder.evidence.load --out runs/load $(ARGS)
	@$(BIN)/python -m spark_checkers.bench

release: setup ## dist/: wheel, source distribution and their sums, each tried; the image, where a Docker engine answers
	@$(BIN)/python tools/release.py $(ARGS)

lint: setup ## ruff: rules, and whether all is formatted
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .

format: setup ## ruff writes the code as `make lint` wants it
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

types: setup ## mypy, strict
	$(BIN)/mypy

contracts: setup ## which package may import which
	$(BIN)/lint-imports

clean: ## removes .venv, .tools and everything that a run leaves
	rm -rf .venv .tools .mypy_cache .ruff_cache .import_linter_cache .pytest_cache .hypothesis .coverage* \
		runs allure-results build dist spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
