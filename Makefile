# What there is to do here. `make demo` and `make test` need nothing but Python and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SAMPLE := examples/cluster.json
N := 2000
PLACEMENTS := 20000
PLANS := 500
WORKERS := 3
CORE := tests/kube tests/audit tests/rules tests/render tests/merge
AXE := tests/browser/node_modules/axe-core/axe.min.js
# CI asks a part of what the suites have; ALL=1 asks everything (make nightly).
ALL :=
PART := $(if $(ALL),, and not nightly)
# A test of e2e that hangs for these seconds shows what its threads do and ends its worker. A new worker would begin the module again.
HANGS := --max-worker-restart 0 -o faulthandler_exit_on_timeout=true -o faulthandler_timeout=$(if $(ALL),3600,600)

.PHONY: demo test fast dist test-install bounds lock lint types imports unit mutants workflows browser growth screenshot e2e conformance tools nightly cluster docs mixin golden sample clean

demo: $(VENV)/installed ## show check and explain on the sample cluster
	$(BIN)/kubectl-spread check -f $(SAMPLE) --server-version 1.37 || test $$? -eq 1
	$(BIN)/kubectl-spread explain deploy/cart -n shop -f $(SAMPLE) --server-version 1.37

test: lint types imports unit ## everything that needs no Kubernetes

fast: $(VENV)/developed ## the tests of the core alone, in parallel
	$(BIN)/pytest --quiet --numprocesses 2 $(CORE)

dist: $(VENV)/installed ## wheel, sdist, and the archive for krew on this platform
	$(BIN)/python -m release

test-install: $(VENV)/developed ## install what dist built with krew, pip, pipx and uv
	$(BIN)/pytest -m "install$(PART)" tests/install

bounds: $(VENV)/developed ## the core of the wheel in dist with the lowest and the newest releases of its dependencies
	$(BIN)/python -m tests.bounds

lock: $(VENV)/developed ## pin the newest releases of what development, the archive and its build need
	$(BIN)/python -m release.locking

lint: $(VENV)/developed
	$(BIN)/ruff format --check --quiet
	$(BIN)/ruff check --quiet
	$(BIN)/python -m tests.words

types: $(VENV)/developed
	$(BIN)/mypy

imports: $(VENV)/developed
	$(BIN)/lint-imports --no-logo

unit: $(VENV)/developed
	$(BIN)/pytest --quiet --numprocesses logical --dist worksteal --ignore tests/e2e

mutants: $(VENV)/developed ## put faults into the core, each of which the hermetic tests must find
	$(BIN)/python -m tests.mutants

workflows: $(VENV)/developed ## hold the workflows to zizmor and actionlint; wants Go
	$(BIN)/pytest --quiet -m "workflows or not workflows" tests/ci/test_workflows.py

browser: $(VENV)/developed $(AXE) ## the HTML page in Chromium
	$(BIN)/pytest -m browser tests/browser

growth: $(VENV)/developed ## hold the growth of cost in each shape of input below its limit
	$(BIN)/pytest --quiet -m growth tests/growth

screenshot: $(VENV)/developed ## write the pictures of docs/formats.md and docs/monitor.md
	$(BIN)/python -m tests.browser.screenshot
	$(BIN)/python -m tests.e2e.picture

e2e: $(VENV)/developed ## the suites against real control planes
	$(BIN)/pytest --numprocesses $(WORKERS) $(HANGS) -m "e2e$(PART)" tests/e2e tests/controlplane tests/mixin

conformance: $(VENV)/developed ## N random cases a minor and kind against the real Kubernetes code
	$(BIN)/python -m tests.conformance --cases $(N) $(if $(ALL),--minors all --gates all --placements $(PLACEMENTS) --plans $(PLANS))
	$(if $(ALL),$(BIN)/python -m tests.conformance.newnodes 100)

tools: $(VENV)/developed ## build what tests run, such as etcd and Kubernetes, from Go modules
	$(BIN)/python -m tests.tools $(if $(ALL),--all)

nightly: ## everything that there is to ask: the stages of CI with ALL=1, and the mutants
	$(PYTHON) -m tests.stages nightly

cluster: $(VENV)/developed ## leave a real control plane running, to try things
	$(BIN)/python -m tests.controlplane.serve

docs: $(VENV)/developed ## write the pages that code can write
	$(BIN)/python -m tests.generated

mixin: $(VENV)/developed ## write the alerts and the dashboard of the mixin; needs Go
	$(BIN)/python -m tests.mixin.rendering

golden: $(VENV)/developed ## rewrite what tests compare; review the difference
	$(BIN)/pytest --quiet --update-golden

sample: $(VENV)/developed ## capture the sample cluster from a real control plane
	$(BIN)/python -m tests.e2e.capture_sample

clean:
	rm -rf $(VENV) build dist .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/developed: release/locks/development.txt $(VENV)/installed
	$(BIN)/python -m pip install --quiet --require-hashes --requirement $<
	touch $@

$(AXE): tests/browser/package-lock.json
	npm ci --prefix tests/browser --ignore-scripts --no-audit --no-fund --silent
	touch $@
