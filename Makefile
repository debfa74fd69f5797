# The commands of this project: `make` lists them. See CONTRIBUTING.md.

SHELL := /bin/sh
.DEFAULT_GOAL := help

VENV := .venv
SPARK_VENV := .venv-spark
EXECUTOR_VENV := .venv-executor
WRITERS_VENV := .venv-writers
JAVA_VENV := .venv-java
DOCS_VENV := .venv-docs
# Where the operator, the demo and the tests find the Spark environment.
export MERGE_SPARK_ENV := $(CURDIR)/$(SPARK_VENV)
# The interpreter both environments are made with; empty means: look for one (.ci/check-tools).
PYTHON ?=

SUITES = $(VENV)/bin/python .ci/suites.py
LOCK = .ci/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-header $(LOCK_ARGS)

.PHONY: help
help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Make both environments from the locks (done by the other commands too)
	@python=$$(PYTHON='$(PYTHON)' .ci/check-tools) && export PYTHON="$$python" && \
	.ci/environment $(VENV) --with-project requirements/airflow.txt && \
	.ci/environment $(SPARK_VENV) requirements/spark.txt $$(.ci/java)

.PHONY: demo
demo: setup ## Run real merges through Airflow and Spark into a real table
	@$(VENV)/bin/python -m dags_examples.demo

# Not part of setup: only the cluster tests need it.
.PHONY: setup-executor
setup-executor:
	@python=$$(PYTHON='$(PYTHON)' .ci/check-tools) && export PYTHON="$$python" && \
	.ci/environment $(EXECUTOR_VENV) requirements/executor.txt

# Not part of setup: where there is a Java, only the tests of those without need it.
.PHONY: setup-java
setup-java:
	@python=$$(PYTHON='$(PYTHON)' .ci/check-tools) && export PYTHON="$$python" && \
	.ci/environment $(JAVA_VENV) requirements/java.txt

# Not part of setup: 400 MB of other libraries that write parquet files.
.PHONY: setup-writers
setup-writers:
	@python=$$(PYTHON='$(PYTHON)' .ci/check-tools) && export PYTHON="$$python" && \
	.ci/environment $(WRITERS_VENV) requirements/writers.txt

# Not part of setup: it takes half a minute, and spares each driver several seconds.
.PHONY: setup-classes
setup-classes: setup
	@.ci/class-archive $(SPARK_VENV)

# Not part of setup: servers that tests build or fetch if they are not there, each for itself.
.PHONY: setup-servers
setup-servers: setup
	@$(SPARK_VENV)/bin/python -m tests.servers

.PHONY: setup-tests
setup-tests: setup
	@$(MAKE) --no-print-directory -j3 setup-executor setup-java setup-classes $(if $(ONLY),,setup-servers)

.PHONY: test
test: setup-tests ## Run every test suite, long ones in part (ONLY="engine datafiles": these, whole)
	@$(SUITES) full $(ONLY)

.PHONY: test-turn
test-turn: setup-tests ## Run a part of what `make test` leaves out (MERGE_TESTS_TURN=0, 1, ...)
	@$(SUITES) turn

.PHONY: test-all
test-all: setup-tests ## Run every test there is, whole lists included: hours
	@$(SUITES) all $(ONLY)

.PHONY: test-quick
test-quick: setup ## Run the tests that take seconds, in under 2 minutes
	@$(SUITES) quick $(ONLY)

.PHONY: test-one
test-one: setup setup-classes ## Run one test, file or folder in its environment (T=tests/sql/test_errors.py)
	@$(VENV)/bin/python .ci/one_test.py '$(T)'

.PHONY: test-live
test-live: setup setup-classes ## Run the tests on a live Airflow server only
	@$(SUITES) full live

.PHONY: test-property
test-property: setup ## Run N=… random statements, from SEED=… or from the first seed never run
	@$(SPARK_VENV)/bin/python -m tests.property --statements $(or $(N),300) \
		$(if $(SEED),--seed $(SEED)) $(if $(KINDS),--kinds $(KINDS)) \
		$(if $(MINUTES),--minutes $(MINUTES)) $(if $(PLAN),--plan $(PLAN)) \
		$(if $(OTHERS),--others $(OTHERS)) $(if $(CHANGES),--changes)

.PHONY: test-evidence
test-evidence: setup ## Compare N=… conditions by every reader of files with rows, from SEED=… on (KINDS=…)
	@$(SPARK_VENV)/bin/python -W ignore -m tests.evidence --combinations $(or $(N),20000) \
		$(if $(SEED),--seed $(SEED)) $(if $(KINDS),--kinds $(KINDS))

.PHONY: test-histories
test-histories: setup ## Let three engines change N=… Iceberg tables in turn, STEPS=… times, from SEED=… on
	@$(SPARK_VENV)/bin/python -W ignore -m tests.connectors.iceberg.histories \
		--histories $(or $(N),100) --steps $(or $(STEPS),8) $(if $(SEED),--seed $(SEED))

.PHONY: test-care
test-care: setup ## Expire N=… random histories of Iceberg tables, from SEED=… on, as Spark's procedure does
	@$(SPARK_VENV)/bin/python -W ignore -m tests.connectors.iceberg.care_histories \
		--histories $(or $(N),300) $(if $(SEED),--seed $(SEED)) $(if $(STEPS),--steps $(STEPS))

.PHONY: test-races
test-races: setup ## Let writers race on a table for MINUTES=… (STORE=s3 WRITERS=8 PUBLISH=… SEED=… KEY=1 COMPACT=1 DAYS=10 DISTURB=1; ICEBERG=1 STORE=sql CARE=1), then check it
	@$(if $(ICEBERG),$(SPARK_VENV)/bin/python -m tests.races.$(if $(CARE),iceberg_care_race,iceberg_race) --catalog $(or $(STORE),rest) --minutes $(or $(MINUTES),1) \
		$(if $(SEED),--seed $(SEED)) $(if $(DAYS),--days $(DAYS)) $(if $(DISTURB),--disturb),$(SPARK_VENV)/bin/python -m tests.races --minutes $(or $(MINUTES),1) --store $(or $(STORE),local) \
		$(if $(WRITERS),--writers $(WRITERS)) --publish $(or $(PUBLISH),own) \
		$(if $(SEED),--seed $(SEED)) $(if $(KEY),--key) $(if $(COMPACT),--compact) $(if $(DAYS),--days $(DAYS)) \
		$(if $(DISTURB),--disturb))

.PHONY: test-faults
test-faults: setup ## Kill drivers and break their storage N=… times, at every step (JOBS=…: whole jobs; COMPACT=1; ICEBERG=1; DAYS=10)
	@$(if $(JOBS),MERGE_JOB_KILLS=$(JOBS) $(SPARK_VENV)/bin/pytest tests/faults/test_job_kills.py \
		-k any_time,$(SPARK_VENV)/bin/python -W ignore -m tests.faults --runs $(or $(N),200) \
		$(if $(COMPACT),--compactions) $(if $(ICEBERG),--iceberg) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(DAYS),--days $(DAYS)))

.PHONY: test-yarn
test-yarn: setup ## End tasks on a real YARN N=… times at each point of their jobs (KINDS=… MINUTES=…)
	@AIRFLOW__LOGGING__LOGGING_LEVEL=ERROR $(VENV)/bin/python -W ignore -m tests.yarn --endings $(or $(N),20) \
		$(if $(KINDS),--kinds '$(KINDS)') $(if $(MINUTES),--minutes $(MINUTES))

.PHONY: test-writers
test-writers: setup setup-writers ## Change tables of files that other libraries wrote (WRITERS="duckdb,chdb" EVERY=…)
	@$(SPARK_VENV)/bin/python -W ignore -m tests.writers --every $(or $(EVERY),1) \
		$(if $(WRITERS),--writers $(WRITERS))

.PHONY: test-maintenance
test-maintenance: setup ## Maintain N=… random tables, from SEED=… on: expire, tags, orphan files
	@$(SPARK_VENV)/bin/python -m tests.connectors.paimon.random_maintenance $(or $(N),500) $(SEED)

.PHONY: test-fuzz
test-fuzz: setup ## Attack tables with N=… damaged and hostile files, from SEED=… on
	@$(SPARK_VENV)/bin/python -m tests.fuzz --attacks $(or $(N),2000) \
		$(if $(SEED),--seed $(SEED)) $(if $(MINUTES),--minutes $(MINUTES))

.PHONY: test-settings
test-settings: setup ## Run statements under each of Spark's settings (NAMES=regex MINUTES=… BARE=1 QUICK=1)
	@$(SPARK_VENV)/bin/python -W ignore -m tests.settings $(if $(NAMES),--names '$(NAMES)') \
		$(if $(MINUTES),--minutes $(MINUTES)) $(if $(BARE),--bare) $(if $(QUICK),--quick)

.PHONY: test-compat
test-compat: setup ## Run the suites on other versions of Spark and Airflow (ONLY="pyspark-3.5")
	@python=$$(PYTHON='$(PYTHON)' .ci/check-tools) && export PYTHON="$$python" && \
	$(VENV)/bin/python .ci/compat.py run $(ONLY)

.PHONY: test-readme
test-readme: ## Run the suites of failures with exactly what README installs, extras apart
	@$(MAKE) --no-print-directory test-compat ONLY="readme readme-sqlite"

.PHONY: lint
lint: setup ## Check style, types, import rules and file length
	@.ci/lint

.PHONY: docs
docs: ## Build the documentation as a site in .docs, and check its links (SERVE=1: show it, too)
	@python=$$(PYTHON='$(PYTHON)' .ci/check-tools) && export PYTHON="$$python" && \
	.ci/environment $(DOCS_VENV) requirements/docs.txt && \
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs $(if $(SERVE),serve,build) --strict

.PHONY: format
format: setup ## Format the code and apply the safe fixes
	@$(VENV)/bin/ruff check --fix-only --quiet . && $(VENV)/bin/ruff format .

.PHONY: lock
lock: ## Compile the locks from pyproject.toml (LOCK_ARGS=--upgrade renews all versions)
	@python=$$(PYTHON='$(PYTHON)' .ci/check-tools) && export PYTHON="$$python" && \
	for group in build airflow spark java executor writers docs; do \
		echo "requirements/$$group.txt" && \
		$(LOCK) --group pyproject.toml:$$group -o requirements/$$group.txt || exit 1; \
	done && \
	"$$python" .ci/compat.py lock

.PHONY: bench
bench: setup ## Measure merges on generated tables
	@$(SPARK_VENV)/bin/python -m benchmarks.merge $(BENCH_ARGS)

.PHONY: bench-natives
bench-natives: setup ## Measure this project beside Iceberg, Delta Lake and plain Spark
	@$(SPARK_VENV)/bin/python -m benchmarks.natives $(BENCH_ARGS)

.PHONY: clean
clean: ## Remove everything that the commands made
	rm -rf $(VENV) $(SPARK_VENV) $(EXECUTOR_VENV) $(WRITERS_VENV) $(JAVA_VENV) $(DOCS_VENV) .venv-compat-* .tools .demo .docs .bench .test dist build \
		.pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find airflow_provider_merge spark_jobs dags_examples tests benchmarks .ci \
		-name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
