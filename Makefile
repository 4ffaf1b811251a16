# Every target sets up .venv by itself. Choose the interpreter with `make PYTHON=/path/to/python test`.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTHON ?=
PYTEST_ARGS ?=
# Three processes: one has the Spark session, the others mostly wait for processes that were killed to come back.
SHARED := -n 3 --dist loadgroup --no-loadscope-reorder
# Without a JVM every test is busy: a process a core, which take up test after test.
FAST := -n 2
PYSPARK ?=
N := 3
DEMO_ARGS ?= --workers 16 --work-us 400 --html demo/demo.html

.PHONY: help demo test test-fast test-random test-spark faults mutants lint check lock bench cluster cluster-stop kafka kafka-stop java clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(STAMP) java ## count a skewed stream on Spark, key grouping beside Spillway; prints a table, writes demo/demo.html
	$(BIN)/anabranch demo $(DEMO_ARGS)

test: $(STAMP) java ## run every check and the whole test suite (PYTEST_ARGS=... is passed on)
	@$(MAKE) --no-print-directory check
	$(BIN)/python -m pytest $(SHARED) $(PYTEST_ARGS)

test-fast: $(STAMP) ## run the tests that need no JVM
	$(BIN)/python -m pytest -m 'not spark' $(FAST) $(PYTEST_ARGS)

test-random: $(STAMP) ## run them with other examples each time
	$(BIN)/python -m pytest -m 'not spark' $(FAST) --hypothesis-profile=random $(PYTEST_ARGS)

# Everything but Spark itself is what the lock names.
OTHER := .venv-pyspark-$(PYSPARK)
test-spark: java ## run the tests on Spark with another release: make test-spark PYSPARK=4.1.1
	@[ -n "$(PYSPARK)" ] || { echo 'say which release: make test-spark PYSPARK=4.1.1' >&2; exit 2; }
	@$(MAKE) --no-print-directory VENV=$(OTHER) $(OTHER)/bin/python
	@sed -n 's/^\([A-Za-z0-9_.-]*==[^ ;]*\).*/\1/p' requirements.lock | grep -v -E '^(pyspark|py4j)==' >$(OTHER)/constraints
	@$(OTHER)/bin/python -m pip install --quiet --disable-pip-version-check -c $(OTHER)/constraints \
	  -e '.[spark,connect,kafka,report,dev]' 'pyspark==$(PYSPARK)'
	$(OTHER)/bin/python -m pytest -m spark $(SHARED) $(PYTEST_ARGS)

FAULTS_ARGS ?=
faults: $(STAMP) java ## kill tasks, processes, hosts and the broker under a running stream; about an hour (FAULTS_ARGS='--faults 10')
	$(BIN)/python -m dev.faults $(FAULTS_ARGS)

SEED ?= 1
mutants: N = 150
mutants: $(STAMP) java ## list small changes of the source that no test notices; about an hour (SEED=2 draws others, N=10 fewer)
	@$(BIN)/python -m dev.mutants --n $(N) --seed $(SEED)

lint: check ## run ruff, mypy and the import contracts, and see that the code is formatted
	$(BIN)/ruff format --check .

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# No address of a package index may end up in the lock: each reader installs from the index that is set up there.
lock: $(BIN)/python ## resolve the dependencies anew and write requirements.lock (UPGRADE=1 takes newer releases)
	@$(BIN)/python -m uv --version >/dev/null 2>&1 || $(BIN)/python -m pip install --quiet uv
	$(BIN)/python -m uv pip compile pyproject.toml --quiet --all-extras --universal --python-version 3.11 \
	  --fork-strategy fewest --generate-hashes --no-emit-index-url --no-emit-find-links --no-header \
	  $(if $(UPGRADE),--upgrade) --output-file requirements.lock
	@! grep -n '://' requirements.lock || { echo 'requirements.lock names an address; see the lines above' >&2; exit 1; }

bench: $(STAMP) ## list the benchmark scripts and how to run them
	@scripts=($$(grep -l __main__ benchmarks/*.py)); \
	if [ $${#scripts[@]} -eq 0 ]; then echo 'benchmarks/ holds no script'; exit 0; fi; \
	for script in "$${scripts[@]}"; do \
	  echo "$(BIN)/python $$script"; \
	  $(BIN)/python -c 'import ast, sys; doc = ast.get_docstring(ast.parse(open(sys.argv[1]).read())); \
	    print("   ", (doc or "").partition("\n")[0])' "$$script"; \
	done

cluster: $(STAMP) java ## start a standalone Spark cluster, each of its N=3 hosts on a loopback address; prints the master's URL
	@$(BIN)/python -m dev.cluster start --workers $(N)

cluster-stop: $(BIN)/python ## end that cluster
	@$(BIN)/python -m dev.cluster stop

kafka: $(STAMP) java ## start a Kafka broker on 127.0.0.1:9092 (PORT=... another); fetches it, and Spark's connector, once
	@$(BIN)/python -m dev.kafka start $(if $(PORT),--port $(PORT))

kafka-stop: $(BIN)/python ## end that broker; what it holds stays in .kafka/run
	@$(BIN)/python -m dev.kafka stop

# Spark takes JAVA_HOME before the search path, so the check does too.
JAVA_MAJOR = "$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1

java: ## see that Java 17 or later is there; as root on Debian or Ubuntu, install it
	@have_java() { major=$$($(JAVA_MAJOR) || true); [ -n "$$major" ] && [ "$$major" -ge 17 ]; }; \
	if have_java; then exit 0; fi; \
	if [ "$$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then \
	  echo 'Java 17 or later not found: installing it'; \
	  apt-get update -qq; \
	  for package in openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless; do \
	    if apt-cache show "$$package" >/dev/null 2>&1; then \
	      DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$$package"; break; \
	    fi; \
	  done; \
	fi; \
	if have_java; then exit 0; fi; \
	echo "Spark needs Java 17 or later, got $${major:-none}; install openjdk-17-jre-headless (Debian, Ubuntu)," \
	  'java-17-openjdk-headless (Fedora) or openjdk@17 (Homebrew), or set JAVA_HOME; make test-fast needs none' >&2; \
	exit 1

clean: ## remove .venv, caches and whatever the demo and the builds wrote
	@[ ! -e .cluster/processes.json ] || $(BIN)/python -m dev.cluster stop
	@[ ! -e .kafka/broker.pid ] || $(BIN)/python -m dev.kafka stop
	rm -rf $(VENV) .venv-pyspark-* demo dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis \
	  spark-warehouse metastore_db derby.log .cluster .kafka
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# A name on the search path proves nothing (version managers put shims there), so each candidate is run.
# The removal on failure matters: venv leaves an interpreter without pip behind, and make would take it for done.
$(BIN)/python:
	@python=; \
	for candidate in $(PYTHON) python3.13 python3.12 python3.11 python3; do \
	  if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	    python=$$candidate; break; \
	  fi; \
	done; \
	if [ -z "$$python" ]; then \
	  echo 'anabranch needs Python 3.11 or later, and none was found; install python3.11 or later with its venv module' \
	    '(Debian, Ubuntu: apt-get install python3 python3-venv), or name one: make PYTHON=/path/to/python' >&2; exit 1; \
	fi; \
	if ! "$$python" -c 'import ensurepip, venv' 2>/dev/null; then \
	  package=$$("$$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'); \
	  if [ "$$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then \
	    echo "$$python has no venv module: installing $$package"; \
	    apt-get update -qq; \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$$package" || \
	      DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv; \
	  else \
	    echo "$$python has no venv module; install it (Debian, Ubuntu: apt-get install $$package)" >&2; exit 1; \
	  fi; \
	fi; \
	echo "setting up $(VENV) with $$("$$python" --version)"; \
	"$$python" -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(STAMP): requirements.lock pyproject.toml | $(BIN)/python
	@echo 'installing what requirements.lock names (Spark alone takes some 480 MB; the first time lasts minutes)'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@
