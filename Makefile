# Needs Python 3.11 and make; everything else, a Java runtime included, goes into .venv.
# `make test ARGS="-k codec"` hands ARGS to the command behind the target.

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DOCS := $(VENV)/.docs-installed
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
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

.PHONY: demo drawings test test-long coverage check check-steps check-product lint lint-types lint-form bench soak chaos simulate lock web docs

# The drawings of all machines that the dashboard shows; they are kept in the repository.
drawings: $(STAMP)
	@for machine in $$($(BIN)/python -c "from fsm.machine_list import MACHINES; print(*MACHINES)"); do \
		$(BIN)/python -m fsm draw $$machine --format svg -o web/dashboard/machines/$$machine.svg || exit; \
	done

# The site of the documents, in build/site; it needs no network.
docs: $(DOCS)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build $(ARGS)
	@echo "build/site/index.html"

demo: $(STAMP)
	@$(BIN)/python -m examples.demo $(ARGS)

test: $(STAMP)
	@$(BIN)/python -m pytest --numprocesses $(TESTERS) --maxprocesses 5 \
		--dist loadgroup --no-loadscope-reorder $(ARGS)

# Tests of whole processes that take longest: JVMs that are killed, a cluster, the demonstration.
test-long: $(STAMP) $(DOCS)
	@$(BIN)/python -m pytest -m long --numprocesses 3 --dist loadgroup $(ARGS)

# As `test`, and which lines it took: about half as long again.
coverage: $(STAMP)
	@$(MAKE) --no-print-directory test \
		ARGS="--cov=specs --cov=fsm --cov=transports --cov=actors --cov-report=term --cov-fail-under=90 $(ARGS)"

# After `make test`, which writes down the steps that the machines took.
check: check-steps check-product

check-steps: $(STAMP)
	@$(BIN)/python -m fsm check --steps .machine-steps.jsonl

check-product: $(STAMP)
	@$(BIN)/python -m fsm check --product $(ARGS)

lint: $(STAMP)
	@$(MAKE) --no-print-directory --jobs 2 --output-sync lint-types lint-form

lint-types: $(STAMP)
	$(BIN)/mypy

lint-form: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/flake8 $$(grep -rlw async --include='*.py' $(PACKAGES))
	$(BIN)/python -m tests.budgets

# `make bench ARGS="--small --json"` shows in minutes that all of them run.
bench: $(STAMP)
	@$(BIN)/python -m bench.run $(ARGS)

# Tests that take long, whole systems by chance, then an attack on a node: `make soak COUNT=5000000 ARGS="--seed 7"`.
soak: $(STAMP)
	@$(BIN)/python -m pytest -m "soak or long or hypothesis or chance" --hypothesis-profile soak
	@$(BIN)/python -m tests.simulation --seeds $(SEEDS) --first $(FIRST) --jobs $(JOBS)
	@$(BIN)/python -m tests.simulation --groups --seeds $(SEEDS) --first $(FIRST) --jobs $(JOBS)
	@$(BIN)/python -m tests.simulation --stored --seeds $(SEEDS) --first $(FIRST) --jobs $(JOBS)
	@$(BIN)/python -m tests.simulation --windows --seeds $(SEEDS) --first $(FIRST) --jobs $(JOBS)
	@$(BIN)/python -m tests.fuzz --frames $(COUNT) $(ARGS)

# Nodes of one domain as processes, under load and with a fault every few seconds: `make chaos
# ARGS="--seconds 60 --rate 50"`. It needs the program nats-server.
chaos: $(STAMP)
	@$(BIN)/python -m tests.chaos $(ARGS)

# Whole systems only: `make simulate SEEDS=500 FIRST=10000 JOBS=4`.
simulate: $(STAMP)
	@$(BIN)/python -m tests.simulation --seeds $(SEEDS) --first $(FIRST) --jobs $(JOBS) $(ARGS)

# What pages load, after a change in web/src, of a machine, a limit or a word; needs Node.js and npm.
OF_PAGES := p2p_connection link_dialling handler_controller p2p_entry stub_deployment \
	stub_connection node_link resolve_job transaction object_subscription invitation observer_copy
web: $(STAMP)
	@$(BIN)/python -m fsm draw --format js --output web/src/machines.js $(OF_PAGES)
	@$(BIN)/python -m specs constants --output web/src
	@cd web && node constants.mjs && npm ci --ignore-scripts --no-audit --no-fund && npm run check && npm run build

# The versions and hashes that are installed, after a change of the dependencies in pyproject.toml.
# `make lock ARGS=--upgrade` takes newer versions, `make lock ARGS="--upgrade-package trio"` of one.
# With extras: pip takes a requirement with one as not pinned if the pin has none.
LOCK := $(BIN)/uv pip compile --quiet --no-config --universal --python-version 3.11 \
	--no-strip-extras --generate-hashes --no-emit-index-url --no-emit-find-links \
	--custom-compile-command "make lock"

lock: $(STAMP)
	@$(LOCK) $(ARGS) --output-file requirements/build.txt requirements/build.in
	@$(LOCK) $(ARGS) --output-file requirements/dev.txt --extra dev pyproject.toml
	@$(LOCK) --constraint requirements/dev.txt --output-file requirements/run.txt pyproject.toml
	@$(LOCK) $(ARGS) --constraint requirements/dev.txt --output-file requirements/docs.txt requirements/docs.in
	@$(MAKE) --no-print-directory $(STAMP) $(DOCS)
	@$(BIN)/python requirements/licences.py > requirements/licences.txt

# Installed anew when what is locked changes. What is installed is told on stderr: stdout is data.
$(STAMP): pyproject.toml requirements/build.txt requirements/dev.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) >&2
	@echo "installing into $(VENV) (once)" >&2
	@$(INSTALL) --require-hashes --requirement requirements/build.txt >&2
	@$(INSTALL) --require-hashes --no-build-isolation --requirement requirements/dev.txt >&2
	@$(INSTALL) --no-build-isolation --no-deps --editable . >&2
	@touch $@

# What builds the site; `make` and `make test` do without.
$(DOCS): $(STAMP) requirements/docs.txt
	@echo "installing what builds the documents into $(VENV) (once)" >&2
	@$(INSTALL) --require-hashes --requirement requirements/docs.txt >&2
	@touch $@
