# Needs Python 3.11 and make; everything else, a Java runtime included, goes into .venv.
# `make test ARGS="-k codec"` hands ARGS to the command behind the target.

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PACKAGES := actors fsm spark specs transports
ARGS ?=
COUNT ?= 1000000
SEEDS ?= 10000
FIRST ?= 0
JOBS ?= 2
# Three more than there are cores, as many tests wait for other processes.
TESTERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 3)

# Tests start hundreds of processes; without compiled modules each takes a second longer.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test coverage check lint bench soak simulate

demo: $(STAMP)
	@$(BIN)/python -m actors demo $(ARGS)

test: $(STAMP)
	@$(BIN)/python -m pytest --numprocesses $(TESTERS) --maxprocesses 5 \
		--dist loadgroup --no-loadscope-reorder $(ARGS)

# The same, and which lines it took: about half as long again.
coverage: $(STAMP)
	@$(MAKE) --no-print-directory test \
		ARGS="--cov=specs --cov=fsm --cov=transports --cov=actors --cov-report=term --cov-fail-under=90 $(ARGS)"

# After `make test`, which writes down the steps that the machines took.
check: $(STAMP)
	@$(BIN)/python -m fsm check --steps .machine-steps.jsonl
	@$(BIN)/python -m fsm check --product $(ARGS)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/flake8 $(PACKAGES)

# `make bench ARGS="--small --json"` shows in minutes that all of them run.
bench: $(STAMP)
	@$(BIN)/python -m bench.run $(ARGS)

# Tests that take long, whole systems by chance, then a node besieged: `make soak COUNT=5000000 ARGS="--seed 7"`.
soak: $(STAMP)
	@$(BIN)/python -m pytest -m "soak or hypothesis or chance" --hypothesis-profile soak
	@$(BIN)/python -m tests.simulation --seeds $(SEEDS) --first $(FIRST) --jobs $(JOBS)
	@$(BIN)/python -m tests.fuzz --frames $(COUNT) $(ARGS)

# Whole systems only: `make simulate SEEDS=500 FIRST=10000 JOBS=4`.
simulate: $(STAMP)
	@$(BIN)/python -m tests.simulation --seeds $(SEEDS) --first $(FIRST) --jobs $(JOBS) $(ARGS)

# Installed anew when pyproject.toml changes. What is installed is told on stderr: stdout is data.
$(STAMP): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) >&2
	@echo "installing into $(VENV) (once)" >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' >&2
	@touch $@
