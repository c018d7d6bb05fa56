# What there is to do here. `make demo` and `make test` need nothing but Python and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SAMPLE := examples/cluster.json
N := 2000

.PHONY: demo test lint types imports unit e2e conformance control-plane cluster docs golden sample clean

demo: $(VENV)/installed ## show check and explain on the sample cluster
	$(BIN)/kubectl-spread check -f $(SAMPLE) --server-version 1.37 || test $$? -eq 1
	$(BIN)/kubectl-spread explain deploy/cart -n shop -f $(SAMPLE) --server-version 1.37

test: lint types imports unit ## everything that needs no Kubernetes

lint: $(VENV)/developed
	$(BIN)/ruff format --check --quiet
	$(BIN)/ruff check --quiet

types: $(VENV)/developed
	$(BIN)/mypy

imports: $(VENV)/developed
	$(BIN)/lint-imports --no-logo

unit: $(VENV)/developed
	$(BIN)/pytest --quiet

e2e: $(VENV)/developed ## the suites against a real control plane
	$(BIN)/pytest -m e2e

conformance: $(VENV)/developed ## N random cases a minor and kind against the real Kubernetes code
	$(BIN)/python -m tests.conformance --cases $(N)

control-plane: $(VENV)/developed ## build etcd and Kubernetes from their Go modules
	$(BIN)/python -m tests.controlplane.binaries

cluster: $(VENV)/developed ## leave a real control plane running, to try things
	$(BIN)/python -m tests.controlplane.serve

docs: $(VENV)/developed ## write the pages that code can write
	$(BIN)/python -m tests.generated

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

$(VENV)/developed: pyproject.toml $(VENV)/installed
	$(BIN)/python -m pip install --quiet --group dev
	touch $@
