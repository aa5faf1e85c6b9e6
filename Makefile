# Needs python3 (3.11 to 3.13, with venv), make and git; everything else is fetched, pinned, into .venv.
# Nothing here reads stdin, so it runs the same on a terminal and in CI.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
LOCK_FLAGS ?=
FRESH ?=
COMPILE := $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-emit-find-links --no-annotate --no-header --quiet $(LOCK_FLAGS)

# Spark starts its Python workers with `python3` from PATH unless told otherwise, which need not be this environment.
export PYSPARK_PYTHON := $(CURDIR)/$(BIN)/python

.DEFAULT_GOAL := help
.PHONY: help setup services test kafka quick nightly demo lint types lock clean bench bench-full docs

help:  ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1	/' | expand -t 16

setup: $(READY)  ## create .venv from the lock and make sure of Java 17 or newer
	@sh scripts/java.sh

# A half-finished environment must not look ready, so the mark is set last.
$(READY): requirements-setup.lock requirements.lock pyproject.toml scripts/python.sh
	@sh scripts/python.sh $(VENV)
	@touch $@

services: setup  ## PostgreSQL, Chromium and Maven, which some tests run against; apt when root
	@sh scripts/services.sh

# Spark takes jars only when it starts, so they are fetched before; without them the tests that need them say so.
test: setup services lint types  ## the whole suite, with lint and types: what CI runs
	@sh scripts/kafka.sh fetch || echo "test: the tests against Kafka are skipped" >&2
	$(BIN)/pytest

kafka: setup services  ## fetch a Kafka broker and Spark's connector by Maven, and start the broker
	@sh scripts/kafka.sh start

quick: lint types  ## lint, types and a fast part of every folder: under one minute, once kernels and types are cached
	$(BIN)/pytest --quick -m "not spark and not slow and not nightly"

nightly: setup  ## the property tests in their long form
	$(BIN)/pytest -m nightly --timeout 7200

demo: setup  ## the guided run
	$(BIN)/headgate demo

# Parts that were done before are kept, so a run that was interrupted goes on; `make bench FRESH=--fresh` begins anew.
bench: setup  ## measure us and our peers on the reduced set, and write docs/results.md
	$(BIN)/python -m benchmarks.everything --scale small $(FRESH)
	$(BIN)/python -m benchmarks.page --scale small

bench-full: setup  ## the same at the papers' sizes: hours
	$(BIN)/python -m benchmarks.everything --scale paper $(FRESH)
	$(BIN)/python -m benchmarks.page --scale paper

docs: $(READY)  ## build the documentation into site/; a broken link fails
	$(BIN)/mkdocs build --strict --quiet

lint: $(READY)  ## ruff: rules and formatting
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(READY)  ## mypy, strict
	$(BIN)/mypy

lock: $(READY)  ## write the locks anew; LOCK_FLAGS=--upgrade takes newer versions
	$(COMPILE) pyproject.toml --all-extras --group dev --output-file requirements.lock >/dev/null
	$(COMPILE) --group setup --constraint requirements.lock --output-file requirements-setup.lock >/dev/null

clean:  ## remove the environment and every cache
	rm -rf $(VENV) site .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist spark-warehouse metastore_db derby.log
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
