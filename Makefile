# `make` alone lists what there is. Everything runs in .venv, which `make setup` makes from the lock.

PYTHON ?= python3
# Processes that `make test` spreads the tests over; 0 runs them in one.
WORKERS ?= 2
# More arguments for pytest, as in: make test TESTS=tests/unit ARGS="-k units -x"
TESTS ?= tests
ARGS ?=

BIN := .venv/bin

.PHONY: help setup demo parts test check format bench docs lock clean

help:
	@echo "make setup    .venv with everything, from the lock (also done by the others)"
	@echo "make demo     start a server, run the examples on it, show the results (KEEP=1 keeps it running)"
	@echo "make test     all tests (TESTS=tests/unit, ARGS='-k name', WORKERS=2)"
	@echo "make check    lint, format, types, layers, lock and generated pages"
	@echo "make format   let ruff format and fix what it can"
	@echo "make bench    measure, and write the table of docs/performance.md"
	@echo "make docs     write the generated pages"
	@echo "make lock     resolve the dependencies anew (ARGS=--upgrade for newer versions)"

setup: .venv/ready

.venv/ready: requirements-dev.lock pyproject.toml scripts/setup.sh
	@PYTHON="$(PYTHON)" scripts/setup.sh

demo: setup
	@$(BIN)/python scripts/demo.py $(if $(KEEP),--keep)

# The servers that tests start; what cannot be built here fails the tests that want it.
parts: setup
	@$(BIN)/python -m tests.parts.building

test: setup $(if $(filter tests,$(TESTS)),parts)
	$(BIN)/python -m pytest $(TESTS) -n $(WORKERS) $(ARGS)

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports
	$(BIN)/python scripts/lock.py --check
	$(BIN)/python scripts/config_docs.py --check

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup
	$(BIN)/python -m benchmarks.run $(ARGS)

docs: setup
	$(BIN)/python scripts/config_docs.py

lock:
	$(if $(wildcard $(BIN)/python),$(BIN)/python,$(PYTHON)) scripts/lock.py $(ARGS)

clean:
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis .import_linter_cache .cache build dist
