# Every target sets up what it needs on a machine that has only Python 3.11+, pip and make.
# `make` alone lists the targets.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
UV     := $(shell command -v uv 2>/dev/null || echo .bootstrap/bin/uv)
GET_UV := $(PYTHON) -m pip install -qq --disable-pip-version-check --root-user-action=ignore --target .bootstrap uv==0.13.7
# editable, and with bytecode for a fast start
INSTALL = "$(UV)" pip install --quiet --python $(BIN)/python --no-deps --editable . && $(BIN)/python -m compileall -q src $(VENV)/lib/python*/site-packages/click
# Three workers on two cores: the tests of faults wait for leases more than they compute, and they are on one worker
# (602 s in place of 767). The long suites compute all the time.
# Bytecode is half of the tests' start: allow it even where the machine forbids it.
PYTEST  = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --dist loadgroup

.DEFAULT_GOAL := help
.PHONY: help setup run test lint bench soak lock clean

help: ## what can be made
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-7s %s\n", $$1, $$2}'

run: $(VENV)/.can-run ## five example jobs on SQLite, planned and executed until Ctrl-C
	@echo "In another terminal, in this folder (they read demo.db):"
	@echo "  export FLEETCRON_DATABASE_URL=sqlite:///demo.db PATH=$(CURDIR)/$(BIN):\$$PATH"
	@echo "  fleetcron runs --to now           what ran, what was skipped and why; then: fleetcron runs show ID"
	@echo "  fleetcron runs log ID --follow    what a run prints"
	@echo "  fleetcron top                     pools, nodes, what runs and what fails, every two seconds"
	@echo "  fleetcron dead                    dead letters: replay or discard them"
	@echo "  fleetcron jobs                    when each job is next; then: fleetcron jobs trigger report"
	@echo
	@PYTHONPATH=examples $(BIN)/python -m fleetcron serve -f examples/demo.yaml --app demo:app --log-level warning

test: lint ## everything: lint, types, import contract, tests against real services
	@$(PYTEST) -n 3 $(ARGS)

lint: setup ## ruff, mypy --strict, the import contract
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

bench: setup ## speed next to peers and floors, in one run
	@$(BIN)/python -m bench $(ARGS)

soak: setup ## the long suites, with a bar and a report page; a stopped one goes on where it was; ONLY=worlds: a part
	@$(PYTEST) -n 2 -m soak --soak -p tests.soak.plugin -q -o console_output_style=classic $(if $(ONLY),-k '$(ONLY)') $(ARGS)

setup: $(VENV)/.ready

# two steps, so that `make run` does not wait for the test services
$(VENV)/.can-run: requirements/runtime.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "fleetcron needs Python 3.11 or newer; this is $$($(PYTHON) --version). Try: make PYTHON=/path/to/python3.11"; exit 1; }
	@test -x "$(UV)" || { echo "setting up uv ..."; $(GET_UV); }
	@echo "setting up $(VENV) ..."
	@test -x $(BIN)/python || "$(UV)" venv --quiet --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" $(VENV)
	@"$(UV)" pip install --quiet --python $(BIN)/python --require-hashes --requirements requirements/runtime.txt
	@$(INSTALL)
	@touch $@

$(VENV)/.ready: $(VENV)/.can-run requirements/dev.txt
	@echo "setting up what the tests need ..."
	@"$(UV)" pip sync --quiet --python $(BIN)/python --require-hashes requirements/dev.txt
	@$(INSTALL)
	@touch $@

lock: ## write the hash-pinned requirements from pyproject.toml
	@test -x "$(UV)" || $(GET_UV)
	@"$(UV)" export --quiet --format requirements.txt --no-emit-project --no-header --no-default-groups > requirements/runtime.txt
	@"$(UV)" export --quiet --format requirements.txt --no-emit-project --no-header --group dev > requirements/dev.txt
	@! grep -nE 'https?://' requirements/*.txt || { echo "requirements must not name a registry host"; exit 1; }

clean: ## remove everything that the targets made
	rm -rf $(VENV) .bootstrap build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache uv.lock
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
